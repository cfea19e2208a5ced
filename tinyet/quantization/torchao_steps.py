# SPDX-License-Identifier: Apache-2.0
"""torchao's steps, without what they keep: `prepare_pt2e` and `convert_pt2e` ask for a module's device through caches
that hold every module they were ever asked about. A process that quantizes many models would hold all of them, with
their weights, graphs and observers; and each class of a graph module that lives makes each tracing a little slower, for
which torch sets attributes of `nn.Module`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tinyet.fx.log_filter import quiet

with quiet():
    import torchao.utils
    from torch.ao.quantization.fx import utils
    from torchao.quantization.pt2e import quantize_pt2e

P = ParamSpec("P")
R = TypeVar("R")


# A torch, or a torchao, without such a cache keeps nothing.
_CACHES: tuple[Any, ...] = (
    getattr(utils, "assert_and_get_unique_device", None),
    getattr(torchao.utils, "_assert_and_get_unique_device", None),
)
_FORGET = tuple(cached.cache_clear for cached in _CACHES if hasattr(cached, "cache_clear"))


def _forgetting(step: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return step(*args, **kwargs)
        finally:
            for forget in _FORGET:
                forget()

    return run


prepare_pt2e = _forgetting(quantize_pt2e.prepare_pt2e)
prepare_qat_pt2e = _forgetting(quantize_pt2e.prepare_qat_pt2e)
convert_pt2e = _forgetting(quantize_pt2e.convert_pt2e)
