# SPDX-License-Identifier: Apache-2.0
"""Dimensions that torch.export marks dynamic: which values they have, and whether a graph at another size computes what
the module does there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tinyet.errors import DynamicShape, ModelError, UsageError
from tinyet.fx.examples import Example, example_of
from tinyet.fx.log_filter import quiet
from tinyet.fx.module_snapshot import left_as_found
from tinyet.fx.source_locations import frame_of_exception, message_of, place_of_forward
from tinyet.ir import MOST_SIZES, Array, Graph, Note, Size
from tinyet.messages.stages import stage
from tinyet.messages.text import storable
from tinyet.reference import Session
from tinyet.sizes import resize

_MOST_CHECKED = 24
"""Sizes at which the module itself is run beside the graph, where torch.export vouches for all."""
_MOST_RUN = 512
"""Sizes at which it is run where torch.export does not."""
_FAR = 1e-3
"""Of the largest value of an output: the same sums in another order are much nearer."""
_BOUNDED = 'give it a name and both ends: torch.export.Dim("steps", min=4, max=98)'


@dataclass(frozen=True)
class Dynamic:
    """A size as `module` has it. example: inputs of the largest; size.axes: of each of them, in torch's order. fixed:
    why torch.export takes the size for a fixed one; empty where it does not."""

    module: nn.Module
    size: Size
    example: Example
    fixed: str

    def inputs(self, value: int) -> list[Tensor]:
        """The beginnings of the example's, so many elements of each."""
        return [
            x if axis is None else x.narrow(axis, 0, value)
            for x, axis in zip(self.example.tensors, self.size.axes, strict=True)
        ]

    @property
    def note(self) -> Note | None:
        """What a person should know of how the size was checked."""
        if not self.fixed:
            return None
        return Note(
            f"torch.export takes {self.size.name} for a fixed size ({self.fixed}): the model was run, and compared, at "
            f"each of its {len(self.size.values)} sizes instead"
        )


def dynamic_of(module: object, example_inputs: Any, dynamic_shapes: Any) -> Dynamic:
    """The size that `dynamic_shapes` declares, as torch.export takes it, for the model's example inputs.

    torch.export is asked whether the model can be exported so, for all sizes; recurrent layers, whose steps it would
    count out, are left aside. Where it cannot, the model has to be run at each size (`check_sizes`). Raises UsageError
    for what is no module, for a declaration of no size, of several, or without a largest value, for example inputs that
    are not of the largest, and for too many sizes to run each.
    """
    if not isinstance(module, nn.Module) or example_inputs is None:
        raise UsageError(
            "dynamic_shapes is of a module",
            "dynamic_shapes",
            "give the nn.Module, its example inputs, and dynamic_shapes beside them",
        )
    stage("exporting the model with its dynamic shapes")
    example = example_of(example_inputs)
    if not example.is_plain:
        raise UsageError(
            "a size that is known at run time is of inputs that forward() takes one by one",
            "dynamic_shapes",
            "give the model tensors, not tuples, lists or dicts of them",
        )
    each = _by_input(module, example, dynamic_shapes)
    found: dict[str, range] = {}
    values: set[range] = set()
    axes: list[int | None] = []
    for number, (x, spec) in enumerate(zip(example.tensors, each, strict=True)):
        dims = _dims(spec, x)
        if len(dims) > 1:
            raise UsageError(
                f"input {number} has two dynamic axes", "dynamic_shapes", "one axis of each input"
            )
        axes.append(next(iter(dims), None))
        for dim in dims.values():
            root = _root(dim)
            found[root.__name__] = _values(dim, root)
            values.add(found[root.__name__])
        wrong = [axis for axis, dim in dims.items() if x.shape[axis] != _values(dim, _root(dim))[-1]]
        for axis in wrong:
            raise UsageError(
                f"input {number} has {x.shape[axis]} elements along axis {axis}, which goes up to "
                f"{_values(dims[axis], _root(dims[axis]))[-1]}",
                "example_inputs",
                "give the example inputs, and the calibration data, at the largest size: memory is planned for it",
            )
    if len(found) != 1 or len(values) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise UsageError(
            f"dynamic_shapes declares {'different values of ' if len(found) == 1 else ''}{names}",
            "dynamic_shapes",
            "one size, the same for all inputs that have it: " + _BOUNDED,
        )
    size = Size(next(iter(found)).strip("_") or "size", values.pop(), tuple(axes))
    fixed = _why_fixed(module, example, dynamic_shapes)
    if fixed and len(size.values) > _MOST_RUN:
        raise DynamicShape(
            f"torch.export cannot let {size.name} be open, and it has too many values to run the model at each "
            f"({len(size.values)}, at most {_MOST_RUN}): {fixed}",
            place_of_forward(module),
            "declare fewer, by steps (4 * torch.export.Dim(...)) or a smaller range",
        )
    return Dynamic(module, size, example, fixed)


def _by_input(module: nn.Module, example: Example, spec: Any) -> list[Any]:
    """The declaration of each input: given in their order, or by the names of forward()'s arguments."""
    if isinstance(spec, Mapping):
        names = list(inspect.signature(module.forward).parameters)[: len(example.tensors)]
        if set(spec) <= set(names):
            return [spec.get(name) for name in names]
        raise UsageError(
            f"dynamic_shapes names {', '.join(map(str, spec))}; forward() takes {', '.join(names)}",
            "dynamic_shapes",
        )
    if not isinstance(spec, (tuple, list)) or len(spec) != len(example.tensors):
        raise UsageError(
            "dynamic_shapes has no entry for each input",
            "dynamic_shapes",
            "({1: steps},), or {'x': {1: steps}}",
        )
    return list(spec)


def _dims(spec: Any, x: Tensor) -> dict[int, Any]:
    """The dynamic axes of an input."""
    pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
    found = {}
    for axis, dim in pairs:
        if dim is None or isinstance(dim, int):
            continue
        if not isinstance(axis, int) or not 0 <= axis < x.dim():
            raise UsageError(f"there is no axis {axis} of {list(x.shape)}", "dynamic_shapes")
        if not isinstance(_root(dim), torch.export.Dim):
            raise UsageError(f"{dim} is no dimension with a largest value", "dynamic_shapes", _BOUNDED)
        found[axis] = dim
    return found


def _root(dim: Any) -> Any:
    """The dimension that a sum or product of one is made of."""
    return getattr(dim, "root", dim)


def _values(dim: Any, root: Any) -> range:
    """What a size may be, as declared."""
    least, most = max(int(root.min), 1), root.max
    if not isinstance(most, int) or most > 1 << 20:
        raise UsageError(
            f"the size {root.__name__} has no largest value, and memory is planned for it",
            "dynamic_shapes",
            _BOUNDED,
        )
    if most - least + 1 > MOST_SIZES or most <= least:
        raise UsageError(
            f"the size {root.__name__} has {most - least + 1} values, there can be 2 to {MOST_SIZES}",
            "dynamic_shapes",
            _BOUNDED,
        )
    values = [int(dim.fn(value)) if dim is not root else value for value in range(least, most + 1)]
    found = range(values[0], values[-1] + 1, max(values[1] - values[0], 1))
    if list(found) != values or values[0] < 1:
        raise UsageError(
            f"{root.__name__} does not grow by equal steps from 1 or more", "dynamic_shapes", _BOUNDED
        )
    return found


@contextmanager
def _steps_uncounted() -> Iterator[None]:
    """Recurrent layers stand for a product of their shapes: torch would count their steps out, one by one. The module
    itself is run beside the graph later."""

    def stand_in(gates: int) -> Any:
        def forward(self: nn.RNNBase, x: Tensor, hx: Any = None) -> Any:  # noqa: ARG001 - as the layer has it
            ways = 2 if self.bidirectional else 1
            units = getattr(self, "proj_size", 0) or self.hidden_size
            y = x @ x.new_zeros(self.input_size, ways * units)
            batch = 1 if x.dim() == 2 else x.shape[0 if self.batch_first else 1]
            shape = (ways * self.num_layers, *([] if x.dim() == 2 else [batch]))
            h = x.new_zeros(*shape, units)
            return y, ((h, x.new_zeros(*shape, self.hidden_size)) if gates == 4 else h)

        return forward

    kinds: dict[Any, int] = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}
    originals = {kind: kind.forward for kind in kinds}
    for kind, gates in kinds.items():
        kind.forward = stand_in(gates)
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.forward = original


def _why_fixed(module: nn.Module, example: Example, dynamic_shapes: Any) -> str:
    """Why torch.export does not export the model with its dynamic shapes; empty where it does."""
    with left_as_found(module):
        module.eval()
        try:
            with quiet(), torch.no_grad(), _steps_uncounted():
                args, kwargs = example.copied().arguments
                torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        except Exception as error:  # noqa: BLE001 - whatever torch says, the model is run at each size then
            lines = [line.strip(" -") for line in str(error).splitlines() if line.strip().startswith("- ")]
            return storable(lines[0] if lines else message_of(error), 200)
    return ""


def check_sizes(dynamic: Dynamic, graph: Graph, size: Size, *, channels_last: bool = False) -> None:
    """Run the module and its float graph at many sizes, at all that torch.export does not vouch for, on the beginnings
    of the example inputs. size: of the graph's inputs. Raises ModelError where one does not run or answers otherwise: a
    layer does not do at one size what it does at another."""
    stage("comparing the graph with the module at other sizes")
    most = len(size.values) if dynamic.fixed else _MOST_CHECKED
    numbers = np.unique(np.linspace(0, len(size.values) - 1, most).astype(int))
    module = dynamic.module
    # Each shape is new, and oneDNN would prepare its kernels for each.
    with left_as_found(module), torch.no_grad(), quiet(), torch.backends.mkldnn.flags(enabled=False):
        module.eval()
        for value in (size.values[int(number)] for number in numbers):
            inputs = dynamic.inputs(value)
            try:
                result = dynamic.example.replaced(inputs).run(module)
            except Exception as error:
                frame = frame_of_exception(error)
                raise ModelError(
                    f"at {size.name} = {value} the model raises {message_of(error)}",
                    str(frame) if frame else place_of_forward(module),
                    "declare the sizes that it runs with",
                ) from error
            wanted = [x.numpy() for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
            other = resize(graph, size, value)
            taken = [
                _as_taken(x.numpy(), channels_last=channels_last).astype(tensor.dtype.numpy, copy=False)
                for x, tensor in zip(inputs, other.user_inputs, strict=True)
            ]
            found = Session(other).outputs(taken)
            _compare(found[: len(wanted)], wanted, f"{size.name} = {value}", place_of_forward(module))


def _as_taken(x: Array, *, channels_last: bool) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1) if channels_last and x.ndim == 4 else x)


def _compare(found: Sequence[Array], wanted: Sequence[Array], where: str, place: str | None) -> None:
    for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        wrong = ours.shape != theirs.shape
        if not wrong and theirs.dtype.kind == "f":
            far = float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max(initial=0.0))
            wrong = not far <= _FAR * max(float(np.abs(theirs).max(initial=0.0)), 1e-3)
        if wrong:
            raise ModelError(
                f"at {where} output {number}, {list(ours.shape)}, is not the model's, {list(theirs.shape)}: a shape, "
                "or a place in one, depends on this size otherwise than it seems to at the largest",
                place,
                "count places from the side that is meant, x[:, :4] or x[:, -4:], away from the middle of the largest",
            )
