# SPDX-License-Identifier: Apache-2.0
"""The context of the handlers: a node on its way into a module, its inputs in the form that torch wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.ir import Array, Attrs, Node, Origin, Shape, Tensor
from tinyet.to_module.form import Form, move_between, plain
from tinyet.to_module.network import Function, Network, moved

Handler = Callable[["Build"], None]
"""Gives each output of the node at hand a value: by `give`."""

A = TypeVar("A", bound=Attrs)

NO_CLAMP = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph, of this shape there. slot: what the module's steps call it; data: its numbers, in its form,
    where it is a constant. truth: torch has truth values where the graph has int32."""

    slot: str
    shape: Shape
    form: Form
    data: Array | None = None
    truth: bool = False

    @property
    def torch_shape(self) -> Shape:
        return self.form.shape_of(self.shape)

    @property
    def is_number(self) -> bool:
        """Whether it is one number, a constant."""
        return self.data is not None and self.data.size == 1

    @property
    def number(self) -> float:
        assert self.data is not None
        return float(self.data.reshape(()))

    def along(self, axis: int) -> tuple[Form, int]:
        """A form that has an axis, its own if it can be, and which of the tensor's dimensions that is."""
        form = self.form if self.form.dims[axis] is not None else plain(len(self.shape))
        return form, form.dim(axis)

    def lifted(self, rank: int) -> Value:
        """With leading dimensions of size 1, as numpy broadcasts."""
        shape = (*[1] * (rank - len(self.shape)), *self.shape)
        return Value(self.slot, shape, self.form.lifted(rank), self.data, self.truth)


class Values:
    """The values of the graph that are there. All other forms that were made of one are kept beside it."""

    def __init__(self) -> None:
        self._known: dict[Tensor, Value] = {}
        self._moved: dict[tuple[str, tuple[int, ...] | None, Shape | None], str] = {}
        self._count = 0

    def fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}#{self._count}"

    def __getitem__(self, tensor: Tensor) -> Value:
        if tensor not in self._known:
            if not tensor.is_constant:
                raise RefusedError(f"reads {tensor.name!r}, which is not there")
            self._known[tensor] = Value(tensor.name, tensor.shape, plain(len(tensor.shape)), tensor.array)
        return self._known[tensor]

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._known

    def __setitem__(self, tensor: Tensor, value: Value) -> None:
        self._known[tensor] = value

    def remembered(
        self, slot: str, order: tuple[int, ...] | None, shape: Shape | None, make: Callable[[], str]
    ) -> str:
        """The slot of a tensor that was moved so, made if it is not there."""
        key = slot, order, shape
        if key not in self._moved:
            self._moved[key] = make()
        return self._moved[key]


class Build:
    """One node. Raises RefusedError for what torch, or its quantizer, has no form for."""

    def __init__(self, node: Node, network: Network, values: Values) -> None:
        self.node = node
        self._network = network
        self._values = values

    @property
    def origin(self) -> Origin:
        return self.node.origin or Origin(self.node.op)

    def attrs(self, kind: type[A]) -> A:
        assert isinstance(self.node.attrs, kind)
        return self.node.attrs

    # ------------------------------------------------------------ inputs

    def value(self, index: int) -> Value:
        return self._values[self.node.input(index)]

    def optional(self, index: int) -> Value | None:
        tensor = self.node.optional_input(index)
        return None if tensor is None else self._values[tensor]

    def array(self, index: int, role: str) -> Array:
        """An input that must be a constant, in the graph's order, called `role` in the refusal."""
        found = self.value(index)
        if found.data is None:
            raise RefusedError(f"computes its {role}", f"make the {role} a constant of the model")
        return found.data

    def optional_array(self, index: int, role: str) -> Array | None:
        return None if self.node.optional_input(index) is None else self.array(index, role)

    def in_form(self, value: Value, form: Form) -> Value:
        """The value in another form, by a step where that moves something."""
        move = move_between(value.shape, value.form, form)
        if value.data is not None:
            data = move.of_array(value.data)
            return Value(value.slot, value.shape, form, data, value.truth)
        slot = value.slot
        if not move.is_nothing:
            function = partial(moved, order=move.order, shape=move.shape)
            slot = self._values.remembered(
                slot, move.order, move.shape, lambda: self.call(function, [value], "order")
            )
        return Value(slot, value.shape, form, None, value.truth)

    def take(self, index: int, form: Form | None = None) -> Value:
        """An input in a form, by default the graph's own, computed."""
        found = self.value(index)
        return self.computed(self.in_form(found, plain(len(found.shape)) if form is None else form))

    def computed(self, value: Value) -> Value:
        """The value as a tensor of its own, also where it is a constant."""
        if value.data is None:
            return value
        slot = self.call(_itself, [value], "constant")
        return Value(slot, value.shape, value.form, None, value.truth)

    def common(self, values: Sequence[Value], shape: Shape, whole: Sequence[int] = ()) -> Form:
        """The form in which several operands meet, broadcast to `shape`: that of the largest computed one, if it can
        hold the result, so that as little as possible is moved. whole: axes that the form must have."""
        rank = len(shape)
        ranked = sorted(
            (v for v in values if v.data is None), key=lambda v: (-len(v.shape), -math.prod(v.shape))
        )
        for each in ranked:
            form = each.form.lifted(rank)
            if form.holds(shape) and all(form.dims[axis] is not None for axis in whole):
                return form
        return plain(rank)

    # ------------------------------------------------------------ steps

    def step(self, module: nn.Module, inputs: Sequence[Value], role: str = "", count: int = 1) -> list[str]:
        """A submodule that is called with these values; the slots of its results. role: what it is beside the node's
        own layer."""
        module.eval()
        name = self.origin.module or self.origin.aten.lower()
        name = f"{name}_{role}" if role else name
        path = self._network.place(module, name, self.origin, "" if role else self.node.op)
        made = tuple(self._values.fresh(path) for _ in range(count))
        self._network.steps.append((path, tuple(value.slot for value in inputs), made))
        return list(made)

    def call(self, function: Callable[..., Any], values: Sequence[Value], role: str = "") -> str:
        """A function of tensors as a step; its constants are buffers of that."""
        return self.call_many(function, values, 1, role)[0]

    def call_many(
        self, function: Callable[..., Any], values: Sequence[Value], count: int, role: str = ""
    ) -> list[str]:
        """The same with several results."""
        held = {place: tensor_of(v.data) for place, v in enumerate(values) if v.data is not None}
        module = Function(function, len(values), held)
        return self.step(module, [v for v in values if v.data is None], role, count)

    def layer(self, module: nn.Module, parameters: Mapping[str, nn.Parameter | torch.Tensor]) -> nn.Module:
        """A layer of torch's, made without numbers of its own, with these parameters and buffers."""
        for name, found in parameters.items():
            setattr(module, name, found)
        return module

    # ------------------------------------------------------------ outputs

    def give(
        self,
        slot: str,
        form: Form,
        *,
        position: int = 0,
        clamp: tuple[float, float] = NO_CLAMP,
        truth: bool = False,
    ) -> None:
        """An output of the node. clamp: the bounds of the activation that is fused with it."""
        out = self.node.outputs[position]
        value = Value(slot, out.shape, form, None, truth)
        if clamp != NO_CLAMP:
            value = Value(self.clamped(value, clamp), out.shape, form)
        self._values[out] = value

    def pass_on(self, value: Value, form: Form) -> None:
        """The output is an input in another form."""
        out = self.node.output
        self._values[out] = Value(value.slot, out.shape, form, value.data, value.truth)

    def clamped(self, value: Value, clamp: tuple[float, float], role: str = "") -> str:
        """A step that keeps a value between two bounds. role: empty where it is the node itself."""
        low, high = clamp
        if clamp == NO_CLAMP:
            return value.slot
        if clamp == (0.0, math.inf):
            return self.step(nn.ReLU(), [value], role or self._activation("relu"))[0]
        if clamp == (0.0, 6.0):
            return self.step(nn.ReLU6(), [value], role or self._activation("relu6"))[0]
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return self.step(nn.Hardtanh(low, high), [value], role or self._activation("clamp"))[0]
        function = partial(
            torch.clamp,
            min=None if low == -math.inf else low,
            max=None if high == math.inf else high,
        )
        return self.call(function, [value], role or self._activation("clamp"))

    def _activation(self, kind: str) -> str:
        return "" if self.node.op == "clamp" else kind


def constant(data: Array) -> Value:
    """A constant of a step, in torch's order."""
    data = np.asarray(data)
    return Value("", data.shape, plain(data.ndim), data)


def tensor_of(data: Array) -> torch.Tensor:
    """A constant's numbers as a tensor that nothing else writes into."""
    return torch.from_numpy(np.array(data))


def _itself(x: torch.Tensor) -> torch.Tensor:
    return x
