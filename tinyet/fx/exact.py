# SPDX-License-Identifier: Apache-2.0
"""Computes captured graphs in float64, for statistics that do not depend on the processor.

How torch sums float32 numbers depends on the processor: on the width of its vectors, and on which of several
libraries' kernels is chosen for them. The sums differ in their last bits, and with them the range that an observer
sees, a scale, a weight's integer. float64 sums differ as well, but 2**29 times less: rounded to float32 they are the
same number, but for one in some hundred million.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tinyet.fx.biquad_ops import BIQUADS
from tinyet.fx.log_bands_ops import LOG_BANDS
from tinyet.fx.log_filter import quiet
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.fx.spectrum_ops import SPECTRA

with quiet():
    from torchao.quantization.pt2e.observer import ObserverBase

_ANY_FLOAT = ("aten", "prims")
"""Namespaces whose operators take float64 wherever they take float32."""

_OURS: frozenset[object] = RECURRENT | SPECTRA | {BIQUADS, LOG_BANDS}
"""Operators of tinyet that do, too."""


def widen(values: Any) -> Any:
    """float32 tensors → float64, in tuples and lists, too; all else as it is."""
    return _each(_widened, values)


def narrow(values: Any) -> Any:
    """float64 tensors → the nearest float32, in tuples and lists, too; all else as it is."""
    return _each(_narrowed, values)


def _widened(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


def _narrowed(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype is torch.float64 else value


def _in_float64(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


def _each(change: Callable[[Any], Any], values: Any) -> Any:
    """The function of each leaf. As pytree's, which takes longer for a small layer's arguments than the layer."""
    kind = type(values)
    if kind is tuple:
        return tuple([_each(change, value) for value in values])
    if kind is list:
        return [_each(change, value) for value in values]
    if kind is dict:
        return {key: _each(change, value) for key, value in values.items()}
    if kind is torch.Tensor or kind in _SCALARS:
        return change(values)
    return pytree.tree_map(change, values)


_SCALARS = {int, float, bool, str, NoneType, torch.dtype}


def call(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """An operator on values that `widen` gave. torch's own and those of `_OURS` compute in float64, also where
    float32 is asked for by name; any other (quantize, dequantize, a user's) gets float32, the type it was
    captured with, and its results are widened.
    """
    if isinstance(target, torch._ops.OpOverload) and (target.namespace in _ANY_FLOAT or target in _OURS):
        args, kwargs = _each(_in_float64, (args, dict(kwargs)))
    elif isinstance(target, torch._ops.OperatorBase):
        args, kwargs = narrow((args, dict(kwargs)))
    return widen(target(*args, **kwargs))


class Exact(fx.Interpreter):
    """Runs a graph module in float64. Inputs and constants are float32; outputs are float64. Observers see the nearest
    float32 numbers.

    Between two nodes it does less than fx.Interpreter, which for each sets up contexts for tracing and progress bars:
    for a small network three times as long as the operators.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self._held: dict[str, Any] = {}

    def run(self, *args: Any) -> Any:  # type: ignore[override]
        """The outputs for these inputs, as fx.Interpreter gives them; an operator's error says which it is."""
        self.env = env = {}
        self.args_iter = iter(self.graph.process_inputs(*args))
        for node in self.graph.nodes:
            try:
                env[node] = result = self.run_node(node)
            except Exception as error:
                text = f"While executing {node.format_node()}"
                error.args = (f"{error.args[0]}\n\n{text}" if error.args else text, *error.args[1:])
                raise
            for last_used in self.user_to_last_uses.get(node, ()):
                del env[last_used]
            if node.op == "output":
                return self.graph.process_outputs(result)
        return None

    def run_node(self, n: fx.Node) -> Any:
        return getattr(self, n.op)(n.target, self._values(n.args), self._values(n.kwargs))

    def _values(self, arguments: Any) -> Any:
        """Arguments of a node, with what its nodes have given."""
        if isinstance(arguments, fx.Node):
            return self.env[arguments]
        if isinstance(arguments, tuple):
            return tuple([self._values(value) for value in arguments])
        if isinstance(arguments, list):
            return [self._values(value) for value in arguments]
        if isinstance(arguments, dict):
            return {key: self._values(value) for key, value in arguments.items()}
        return arguments

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        return widen(super().placeholder(target, args, kwargs))

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self._held:
            self._held[target] = widen(super().get_attr(target, args, kwargs))
        return self._held[target]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return call(target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self._held:
            self._held[target] = self.fetch_attr(target)
        module = self._held[target]
        result = module(*narrow(args), **narrow(kwargs))
        return args[0] if isinstance(module, ObserverBase) else widen(result)
