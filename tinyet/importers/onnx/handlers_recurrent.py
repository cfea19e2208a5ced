# SPDX-License-Identifier: Apache-2.0
"""Handlers of LSTM, GRU and RNN. ONNX Runtime has no integer operators for them, so they stand in
float32 between quantized values, and so does the graph: one layer a direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.values import Float32, Value, shape_of
from tinyet.ir import DType, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.gru import Gru
from tinyet.ops.lstm import Lstm
from tinyet.ops.rnn import Rnn
from tinyet.ops.shared.recurrent import Recurrent

_X, _W, _R, _BIAS, _LENGTHS, _H, _C, _PEEPHOLES = range(8)
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""The gates in the order of the graph's operators, by their places in ONNX's: i o f c → i f c o; z r h → r z h."""
_ACTIVATIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Layer:
    """Of the node at hand: x (N, T, I), weights of each direction with their gates in the graph's order."""

    x: Tensor
    units: int
    reversed: Sequence[bool]
    w_ih: Float32
    w_hh: Float32
    bias: Float32
    """(directions, 2, gates * units): beside x, beside the state."""


def recurrent(ctx: Context) -> Sequence[Value]:
    """Y (T, directions, N, H), and the states behind the last step, (directions, N, H) each; those that have names."""
    layer, op = layer_of(ctx), ctx.node.op
    ctx.inexact(
        f"{op} is computed in float32, as by ONNX Runtime, which has no integer form of it: sums are in another order",
        "or quantize the float model here: from_onnx(path, calibration=…), which makes it int8",
    )
    made = [direction(ctx, layer, place) for place in range(len(layer.reversed))]
    wanted = [place for place, name in enumerate(ctx.node.outputs) if name]
    return [joined(ctx, [found[place] for found in made], place) for place in wanted]


def layer_of(ctx: Context) -> Layer:
    """Raises RefusedError for features that the graph's layers do not have."""
    op, shape = ctx.node.op, shape_of(ctx.value(_X))
    refuse_variants(ctx)
    reversed_ = _DIRECTIONS.get(ctx.attribute("direction", "forward"))
    if reversed_ is None:
        raise RefusedError(
            f"goes {str(ctx.attribute('direction', 'forward'))[:40]!r}", "forward, reverse or both"
        )
    w, r = (np.asarray(ctx.constant(i, "weights").real, np.float32) for i in (_W, _R))
    count, units = len(GATES[op]), ctx.attribute("hidden_size", r.shape[-1] if r.ndim else 0)
    rows = count * units
    if len(shape) != 3 or w.shape != (len(reversed_), rows, shape[2]) or r.shape != (*w.shape[:2], units):
        raise RefusedError(f"has weights {w.shape} and {r.shape} for {units} units and an input {shape}")
    bias = np.zeros((len(reversed_), 2, rows), np.float32)
    if ctx.has(_BIAS):
        given = np.asarray(ctx.constant(_BIAS, "bias").real, np.float32)
        if given.shape != (len(reversed_), 2 * rows):
            raise RefusedError(f"has a bias {given.shape} for {units} units")
        bias = given.reshape(bias.shape)
    x = ctx.real(ctx.value(_X))
    in_order = [gates_in_order(data, op) for data in (w, r, bias[..., None])]
    return Layer(swapped(ctx, x), units, reversed_, in_order[0], in_order[1], in_order[2][..., 0])


def gates_in_order(data: Float32, op: str) -> Float32:
    """Rows of gates, along the last axis but one."""
    parts = np.split(data, len(GATES[op]), axis=-2)
    return np.concatenate([parts[gate] for gate in GATES[op]], axis=-2)


def refuse_variants(ctx: Context) -> None:
    op = ctx.node.op
    count = len(_DIRECTIONS.get(ctx.attribute("direction", "forward"), (False,)))
    usual = _ACTIVATIONS[op] * count
    given = [str(a).lower() for a in ctx.attribute("activations", list(usual))]
    if tuple(given) not in ((usual,) if op != "RNN" else (usual, ("relu",) * count)):
        raise RefusedError(f"has the activations {', '.join(given)[:60]}", f"take {', '.join(usual)}")
    if op == "GRU" and not ctx.attribute("linear_before_reset", 0):
        raise RefusedError(
            "resets before its matrix (linear_before_reset 0)", "export torch's own, which resets after"
        )
    if ctx.attribute("layout", 0) or ctx.node.attributes.get("clip") or ctx.attribute("input_forget", 0):
        raise RefusedError("has layout 1, clips, or couples gates", "leave these attributes away")
    if ctx.has(_LENGTHS) and set(ctx.integers(_LENGTHS, "lengths")) != {shape_of(ctx.value(_X))[0]}:
        raise RefusedError("has sequences of several lengths", "leave sequence_lens away")
    if ctx.has(_PEEPHOLES) and np.any(ctx.constant(_PEEPHOLES, "peepholes").real):
        raise RefusedError("has peepholes", "leave them away")


def swapped(ctx: Context, x: Tensor) -> Tensor:
    """Steps and batch change places."""
    steps, batch, count = x.shape
    return ctx.reshape(x, (batch, steps, count)) if min(steps, batch) == 1 else ctx.permute(x, (1, 0, 2))


def first_state(ctx: Context, position: int, place: int, batch: int, units: int) -> Tensor:
    """Of a direction: zeros, or a constant of the file."""
    data = np.zeros((batch, units), np.float32)
    if ctx.has(position):
        given = np.asarray(ctx.constant(position, "first state").real, np.float32)
        if given.ndim != 3 or given.shape[1:] != data.shape or place >= given.shape[0]:
            raise RefusedError(f"has a first state {given.shape} for a batch of {batch} and {units} units")
        data = given[place]
    return ctx.held(f"{ctx.node.outputs[0] or ctx.node.name}_first", data)


def direction(ctx: Context, layer: Layer, place: int) -> dict[int, Tensor]:
    """One direction, by the places of ONNX's outputs: y (N, T, H), where somebody wants it, and the states
    (1, N, H)."""
    op, reverse, (batch, steps, _) = ctx.node.op, layer.reversed[place], layer.x.shape
    states = [first_state(ctx, i, place, batch, layer.units) for i in ((_H, _C) if op == "LSTM" else (_H,))]
    weights = [
        ctx.held(f"{ctx.node.name or op}_{name}", data[place])
        for name, data in (("w_ih", layer.w_ih), ("w_hh", layer.w_hh))
    ]
    biases = list(layer.bias[place]) if op == "GRU" else [layer.bias[place].sum(axis=0, dtype=np.float32)]
    weights += [ctx.held(f"{ctx.node.name or op}_bias", data) for data in biases]
    types = [TensorType(state.shape, DType.FLOAT32) for state in states]
    attrs = attrs_of(ctx, reverse, sequence=bool(ctx.node.outputs[0]))
    if attrs.sequence:
        types.insert(0, TensorType((batch, steps, layer.units), DType.FLOAT32))
    made = list(ctx.emit_many(attrs, [layer.x, *states, *weights], types))
    found: dict[int, Tensor] = {}
    if attrs.sequence:
        found[0] = made.pop(0)
    return found | {1 + i: ctx.reshape(state, (1, batch, layer.units)) for i, state in enumerate(made)}


def attrs_of(ctx: Context, reverse: bool, sequence: bool) -> Recurrent:
    if ctx.node.op == "LSTM":
        return Lstm(reverse, sequence)
    if ctx.node.op == "GRU":
        return Gru(reverse, sequence)
    first = str(ctx.attribute("activations", ["Tanh"])[0]).lower()
    return Rnn(reverse, sequence, "relu" if first == "relu" else "tanh")


def joined(ctx: Context, parts: Sequence[Tensor], place: int) -> Tensor:
    """The results of all directions, by their place among ONNX's outputs: y (T, directions, N, H), or a state."""
    axis = 2 if place == 0 else 0
    one = parts[0] if len(parts) == 1 else ctx.emit(Concat(axis), list(parts))
    if place:
        return one
    batch, steps, units = parts[0].shape
    return ctx.permute(ctx.reshape(one, (batch, steps, len(parts), units)), (1, 2, 0, 3))
