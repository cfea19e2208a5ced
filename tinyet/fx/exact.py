# SPDX-License-Identifier: Apache-2.0
"""Computes captured graphs in float64, for statistics that do not depend on the processor.

How torch sums float32 numbers depends on the processor: on the width of its vectors, and on which of several
libraries' kernels is chosen for them. The sums differ in their last bits, and with them the range that an observer
sees, a scale, a weight's integer. float64 sums differ as well, but 2**29 times less: rounded to float32 they are the
same number, but for one in some hundred million.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tinyet.fx.log_filter import quiet
from tinyet.fx.recurrent_ops import RECURRENT

with quiet():
    from torchao.quantization.pt2e.observer import ObserverBase

_ANY_FLOAT = ("aten", "prims")
"""Namespaces whose operators take float64 wherever they take float32."""


def widen(values: Any) -> Any:
    """float32 tensors → float64, in tuples and lists, too; all else as it is."""
    return pytree.tree_map(lambda v: v.double() if _is(v, torch.float32) else v, values)


def narrow(values: Any) -> Any:
    """float64 tensors → the nearest float32, in tuples and lists, too; all else as it is."""
    return pytree.tree_map(lambda v: v.float() if _is(v, torch.float64) else v, values)


def _is(value: object, dtype: torch.dtype) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is dtype


def call(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """An operator on values that `widen` gave. torch's own and recurrent layers compute in float64, also where float32
    is asked for by name; any other (quantize, dequantize, a user's) gets float32, the type it was captured with, and
    its results are widened.
    """
    if isinstance(target, torch._ops.OpOverload) and (target.namespace in _ANY_FLOAT or target in RECURRENT):
        args, kwargs = pytree.tree_map(
            lambda v: torch.float64 if v is torch.float32 else v, (args, dict(kwargs))
        )
    elif isinstance(target, torch._ops.OperatorBase):
        args, kwargs = narrow((args, dict(kwargs)))
    return widen(target(*args, **kwargs))


class Exact(fx.Interpreter):
    """Runs a graph module in float64. Inputs and constants are float32; outputs are float64. Observers see the nearest
    float32 numbers."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self._constants: dict[str, Any] = {}

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        return widen(super().placeholder(target, args, kwargs))

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self._constants:
            self._constants[target] = widen(super().get_attr(target, args, kwargs))
        return self._constants[target]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return call(target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        module = self.fetch_attr(target)
        result = module(*narrow(args), **narrow(kwargs))
        return args[0] if isinstance(module, ObserverBase) else widen(result)
