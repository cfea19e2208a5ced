# SPDX-License-Identifier: Apache-2.0
"""Methods of a module as modules of their own, over the same parameters: each entry point becomes a model."""

from __future__ import annotations

import copy

from torch import nn

from tinyet.errors import ModelError, UsageError
from tinyet.errors.arguments import described, text_given


def entry(model: nn.Module, method: str) -> nn.Module:
    """The module with another of its methods in forward()'s place: `tinyet.compile(tinyet.entry(net, "encode"), …)`.

    It has the parameters, buffers and submodules of `model`, not copies. Weights are quantized by their own values
    alone, so that all entry points of a module have the same integers, and a project of them has these once.
    method: of the class; its arguments are the model's inputs. Raises UsageError for what is no module, and ModelError
    for a method that there is not.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"entry takes a module, not {described(model)}", hint='tinyet.entry(net, "encode")')
    kind = type(model)
    text_given(method, "method", 'the name of one of its methods: "encode"')
    found = getattr(kind, method, None)
    if not callable(found) or (hasattr(nn.Module, method) and method != "forward"):
        own = sorted(
            name
            for name in dir(kind)
            if not name.startswith("_") and not hasattr(nn.Module, name) and callable(getattr(kind, name))
        )
        raise ModelError(
            f"{kind.__name__} has no method {method!r} that could be an entry point",
            hint=f"one of {', '.join(['forward', *own])}",
        )
    made = copy.copy(model)
    made.__class__ = type(kind.__name__, (kind,), {"forward": found, "__module__": kind.__module__})
    return made
