# SPDX-License-Identifier: Apache-2.0
"""Shared parts of recurrent layers: shapes, order of steps, type rule, and the integers of a gate.

A layer's gates are sums over its input and over its state before. In integers each of the two sums is requantized to
Q3.12 by itself, the first saturated to int16, and so is what they add up to, as in LiteRT's integer LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.errors import QuantizationError, UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape, Tensor, TensorType
from tinyet.numerics import (
    Int64,
    Multiplier,
    quantize_multipliers,
    reduced_multiplier,
    requantize,
    requantize_64,
)
from tinyet.numerics.float32 import Float32
from tinyet.ops.shared import factors, weighted_s16
from tinyet.ops.shared.gates import GATE_SCALE, added
from tinyet.ops.shared.integers import INTEGERS, check_activations, magnitudes
from tinyet.ops.shared.packing import interleave_pairs, interleave_rows, requantize_form
from tinyet.ops.shared.shapes import expect_rank
from tinyet.opset import (
    Arg,
    Call,
    Constant,
    FieldValue,
    InputArg,
    Iteration,
    Nest,
    OutputArg,
    ParamsArg,
    Pointer,
    ScratchArg,
    Struct,
    operand,
    parameters,
)


@dataclass(frozen=True)
class Recurrent(Attrs):
    """reverse: steps are taken from the last to the first; the output at a place is the state behind that place's step.
    sequence: the state behind each step is an output; else only the last one is."""

    reverse: bool = False
    sequence: bool = True


def attrs_of(node: Node) -> Recurrent:
    assert isinstance(node.attrs, Recurrent)
    return node.attrs


@dataclass(frozen=True)
class Sizes:
    """units: of the layer, each with its gates. outputs: of the state that goes from step to step."""

    batch: int
    steps: int
    inputs: int
    units: int
    outputs: int


def iterate(node: Node) -> Iteration:
    """A step depends on all before it. Of a state any element may reach any other in two steps."""
    attrs, (batch, steps, inputs) = attrs_of(node), node.input(0).shape
    nest = Nest()
    n, t, i = nest.parallel(batch), nest.sequential(steps), nest.reduced(inputs)
    states = [
        operand(n, nest.reduced(node.input(1 + k).shape[1]))
        for k in range(len(node.outputs) - attrs.sequence)
    ]
    gate = nest.reduced(node.input(1 + len(states)).shape[0])
    step = (-1) * t + (steps - 1) if attrs.reverse else t
    made = [operand(n, nest.parallel(out.shape[-1])) for out in node.outputs[attrs.sequence :]]
    if attrs.sequence:
        made.insert(0, operand(n, step, nest.parallel(node.outputs[0].shape[-1])))
    read = [operand(n, step, i), *states, operand(gate, i), *parameters(node, nest, 2 + len(states))]
    return nest.iteration(read, made)


# ---------------------------------------------------------------- shapes


def expect_shape(node: Node, index: int, what: str, shape: Shape) -> None:
    """Raises UnsupportedShape where an input that is there has another shape."""
    tensor = node.optional_input(index)
    if tensor is not None and tensor.shape != shape:
        raise UnsupportedShape(f"{node.op}: {what} of shape {tensor.shape}, not {shape}", node.where)


def sequence_sizes(node: Node, weights: int, gates: int) -> Sizes:
    """Of x (N, T, I), a state (N, R) and the weights of so many gates: inputs (gates * H, I) at index `weights`, and
    state (gates * H, R) behind. Raises UnsupportedShape."""
    batch, steps, inputs = expect_rank(node, 0, 3)
    rows, columns = expect_rank(node, weights, 2)
    _, outputs = expect_rank(node, 1, 2)
    units = rows // gates
    if rows != gates * units or columns != inputs:
        raise UnsupportedShape(
            f"{node.op}: input weights of shape {(rows, columns)} for {inputs} inputs and {gates} gates",
            node.where,
        )
    expect_shape(node, 1, "a state", (batch, outputs))
    expect_shape(node, weights + 1, "state weights", (rows, outputs))
    return Sizes(batch, steps, inputs, units, outputs)


def square_sizes(node: Node, gates: int, biases: Sequence[int]) -> Sizes:
    """sequence_sizes of a layer with the inputs x, h, w_ih, w_hh and biases, whose state is its units. Raises
    UnsupportedShape."""
    sizes = sequence_sizes(node, 2, gates)
    if sizes.outputs != sizes.units:
        raise UnsupportedShape(
            f"{node.op}: a state of {sizes.outputs} values for {sizes.units} units", node.where
        )
    for index in biases:
        expect_shape(node, index, "a bias", (gates * sizes.units,))
    return sizes


def output_shapes(node: Node, sizes: Sizes, *states: int) -> tuple[Shape, ...]:
    """The outputs behind each step, if they are asked for, and the states of so many values each."""
    whole = ((sizes.batch, sizes.steps, sizes.outputs),) if attrs_of(node).sequence else ()
    return (*whole, *((sizes.batch, count) for count in states))


def order(node: Node, sizes: Sizes) -> range:
    """The places of the steps, one after another."""
    return range(sizes.steps)[:: -1 if attrs_of(node).reverse else 1]


def results(node: Node, y: Array, *states: Array) -> tuple[Array, ...]:
    """The outputs, of what is behind each step and of the states behind the last."""
    return (y, *states) if attrs_of(node).sequence else states


# ---------------------------------------------------------------- types


def check_constants(tensors: Sequence[Tensor]) -> str | None:
    """Weights and biases are known."""
    return None if all(t.is_constant for t in tensors) else "weights and biases must be constants"


def check_floats(node: Node) -> str | None:
    """All are float32."""
    tensors = (*node.inputs, *node.outputs)
    wrong = [t.name for t in tensors if t is not None and t.dtype is not DType.FLOAT32]
    return f"a float input needs float32 throughout, {wrong[0]} is not" if wrong else None


def check_state(*tensors: Tensor) -> str | None:
    """A state before, behind each step, and at the end has one type, but for its shape."""
    first = tensors[0]
    for tensor in tensors[1:]:
        if (tensor.dtype, tensor.type.quant) != (first.dtype, first.type.quant):
            return f"{tensor.name} must have the type and the quantization of {first.name}"
    return check_activations(first)


def gate_scales(weights: Tensor, gates: int) -> tuple[float, ...] | None:
    """The scale of each gate's rows; None where the weights are not quantized so."""
    quant = weights.type.quant
    if quant is None or any(quant.zero_point):
        return None
    if quant.axis is None:
        return quant.scale * gates
    if quant.axis != 0:
        return None
    rows = np.array(quant.scale).reshape(gates, -1)
    return tuple(rows[:, 0].tolist()) if (rows == rows[:, :1]).all() else None


def check_weights(weights: Tensor, gates: int) -> str | None:
    """int8, a scale a gate."""
    if weights.dtype is not DType.INT8:
        return f"{weights.name} must be int8"
    if gate_scales(weights, gates) is None:
        return f"{weights.name} must be quantized with zero point 0 and one scale for the rows of each of {gates} gates"
    return None


def check_bias(bias: Tensor | None, x: Tensor) -> str | None:
    """int32, and int64 beside inputs of int16; or none."""
    wanted = DType.INT64 if x.dtype is DType.INT16 else DType.INT32
    return None if bias is None or bias.dtype is wanted else f"the bias must be {wanted.value}"


def check_square(node: Node, gates: int, biases: Sequence[int]) -> str | None:
    """The types of a layer with the inputs x, h, w_ih, w_hh and biases."""
    x, h, w_ih, w_hh = (node.input(i) for i in range(4))
    complaint = check_constants([t for t in node.inputs[2:] if t is not None])
    if complaint is not None:
        return complaint
    if x.dtype is DType.FLOAT32:
        return check_floats(node)
    if x.dtype not in INTEGERS:
        return f"no form for {x.dtype.value}"
    complaint = check_state(x) or check_state(h, *node.outputs)
    if complaint is not None:
        return complaint
    if h.dtype is not x.dtype:
        return f"beside an {x.dtype.value} input the state must be {x.dtype.value}"
    found = [check_weights(w_ih, gates), check_weights(w_hh, gates)]
    found += [check_bias(node.optional_input(i), x) for i in biases]
    return next((text for text in found if text), None)


# ---------------------------------------------------------------- integers


@dataclass(frozen=True, eq=False)
class Part:
    """One of the two matrices of a layer's gates: what its sums are, and what they are multiplied by.

    weights: int8 (gates * H, K). bias: the whole constant part of the sums, int64 (gates * H). multiplier, shift:
    int64 (gates,).
    """

    weights: Array
    bias: Int64
    multiplier: Int64
    shift: Int64

    @property
    def gates(self) -> int:
        return len(self.multiplier)

    @property
    def units(self) -> int:
        return len(self.weights) // self.gates

    def rows(self, of_gates: Int64) -> Int64:
        """A number of each gate for each row."""
        return np.repeat(of_gates, self.units)

    def scaled(self, x: Array) -> Int64:
        """(…, K) integers to (…, gates * H): the sums, requantized."""
        # float64 holds every integer below 2**53, so the matrix product is exact and fast.
        sums = (x.astype(np.float64) @ self.weights.T.astype(np.float64)).astype(np.int64)
        return requantize(sums + self.bias, self.rows(self.multiplier), self.rows(self.shift))

    def added(self, x: Array, before: Int64 | int = 0) -> Int64:
        """The same and what was there before, as int16 in int64."""
        return added(self.scaled(x), before)

    def in_order(self, order: Sequence[int]) -> Part:
        """With the gates in another order."""

        def rows(array: Array) -> Array:
            return array.reshape(self.gates, self.units, -1)[list(order)].reshape(array.shape)

        of_gates = (each[list(order)] for each in (self.multiplier, self.shift))
        return type(self)(rows(self.weights), rows(self.bias).astype(np.int64), *of_gates)

    def complaint(self) -> str | None:
        """Why sums could overflow, or None. |x| <= 128: its zero point is in the bias."""
        bound = 128 * magnitudes(self.weights) + np.abs(self.bias)
        if int(bound.max(initial=0)) >= 2**31:
            return "sums could overflow 32 bits"
        # Twice, for what was there before is added to it.
        if not factors.shifts_fit(2 * bound, self.rows(self.shift)):
            return "the scales of the weights are too large for gates"
        return None


class PartS16(Part):
    """Of values in int16, whose sums have more than 32 bits and are requantized as those of other layers in int16."""

    def scaled(self, x: Array) -> Int64:
        sums = (x.astype(np.float64) @ self.weights.T.astype(np.float64)).astype(np.int64)
        return requantize_64(sums + self.bias, self.rows(self.multiplier), self.rows(self.shift))

    def complaint(self) -> str | None:
        bound = weighted_s16.LARGEST * magnitudes(self.weights) + np.abs(self.bias)
        factor = np.ldexp(self.multiplier.astype(np.float64), (self.shift - 31).astype(np.int32))
        of_gates = zip(bound.reshape(self.gates, -1).max(axis=1, initial=0), factor, strict=True)
        found = (weighted_s16.rescaling(float(one), int(most)) for most, one in of_gates)
        return next((text for text in found if text), None)


def part(
    x: TensorType,
    weights: Tensor,
    bias: Tensor | None,
    gates: int,
    out_scale: float = GATE_SCALE,
    kind: type[np.floating] = np.float32,
) -> Part:
    """Of values of type x. kind: in which scales are multiplied; in float32 LiteRT does. Raises QuantizationError for
    factors beyond all bounds."""
    scales = gate_scales(weights, gates)
    assert scales is not None
    with np.errstate(over="ignore"):
        real = np.array(scales, kind) * kind(x.scale) / kind(out_scale)
    multiplier, shift = quantize_multipliers(real.astype(np.float64))
    array = weights.array
    own = np.int64(0) if bias is None else bias.array.astype(np.int64)
    folded = own - x.zero_point * array.astype(np.int64).sum(axis=1)
    made = PartS16 if x.dtype is DType.INT16 else Part
    return made(array, np.asarray(folded, np.int64), multiplier, shift)


def numbers_complaint(
    state_factor: Callable[[], Multiplier], parts: Callable[[], Sequence[Part]]
) -> str | None:
    """The error in the factor that makes a state, or in the numbers of a gate, or None."""
    try:
        if state_factor().shift > 0:
            return "the scale of the state is too small"
        made = parts()
    except QuantizationError as error:
        return error.what
    return next((text for each in made if (text := each.complaint())), None)


# ---------------------------------------------------------------- floats


def given(array: Array | None) -> Float32:
    """An input that is always there."""
    assert array is not None
    return array.astype(np.float32)


def float_bias(node: Node, index: int, count: int) -> Float32:
    """A bias (count,), zeros where the node has none."""
    bias = node.optional_input(index)
    return np.zeros(count, np.float32) if bias is None else bias.array.astype(np.float32)


def float_sums(start: Float32, x: Float32, weights: Float32) -> Float32:
    """(N, rows): a start, and one product after another of (N, K) by (rows, K)."""
    sums = start
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(weights.shape[1]):
            sums = np.asarray(sums + x[:, k : k + 1] * weights[:, k], np.float32)
    return sums


# ---------------------------------------------------------------- kernels


MOST_GATES = 4


def rounded_up(count: int) -> int:
    """To the fours that kernels compute at a time."""
    return count + -count % 4


PartConstants = Callable[[str, Part], Sequence[Constant]]
"""Weights and bias of a part as a kernel reads them, by the names NAME_weights and NAME_bias; one alone where it has
both."""


def part_rows(matrix: Part) -> tuple[Array, Int64]:
    """With the rows of each gate filled up to fours with zeros: weights, int8 (gates, rows, K); and the bias, int64
    (gates, rows)."""
    missing = (0, 0), (0, -matrix.units % 4)
    weights = np.pad(matrix.weights.reshape(matrix.gates, matrix.units, -1), (*missing, (0, 0)))
    return weights, np.pad(matrix.bias.reshape(matrix.gates, -1), missing)


def part_blocks(matrix: Part) -> tuple[Array, Int64]:
    """The same four rows at a time: weights, int8 (gates, rows / 4, K / 4, 4, 4), four inputs of each row, filled up
    with zeros; and the bias."""
    weights, bias = part_rows(matrix)
    return np.stack([interleave_rows(gate) for gate in weights]), bias


def part_constants(name: str, matrix: Part) -> tuple[Constant, Constant]:
    """The constants in the layout of tinyet_gate_sums."""
    blocks, bias = part_blocks(matrix)
    return (
        Constant(f"{name}_weights", blocks, "four inputs of four rows of a gate in turn"),
        Constant(f"{name}_bias", bias.astype(np.int32)),
    )


def part_s16_constants(name: str, matrix: Part) -> tuple[Constant, Constant]:
    """The same of a part of values in int16."""
    gates = np.pad(
        matrix.weights.reshape(matrix.gates, matrix.units, -1), ((0, 0), (0, -matrix.units % 4), (0, 0))
    )
    pairs = interleave_pairs(gates.reshape(-1, gates.shape[2]))
    packed = np.ascontiguousarray(pairs.reshape(-1, 2, *pairs.shape[1:]).transpose(0, 2, 1, 3))
    bias = np.pad(matrix.bias.reshape(matrix.gates, -1), ((0, 0), (0, -matrix.units % 4)))
    return (
        Constant(f"{name}_weights", packed, "a0 b0 a1 b1 c0 d0 c1 d1 of four rows of a gate"),
        Constant(f"{name}_bias", bias, align=8),
    )


def part_s16_struct(name: str, matrix: Part) -> Struct:
    """tinyet_lut_sums_s16; part_s16_constants are its arrays."""
    return Struct(
        "tinyet_gate_part_s16",
        {
            "weights": Pointer(f"{name}_weights"),
            "bias": Pointer(f"{name}_bias"),
            "depth": matrix.weights.shape[1],
            "block": weighted_s16.block_pairs(matrix.weights),
            "multiplier": filled_up(reduced_multiplier(matrix.multiplier)),
            "shift": filled_up(15 - matrix.shift),
        },
    )


def gate_forms(matrix: Part) -> Int64:
    """The shift of each gate as tinyet_requantize_form has it; rows of a gate share it: the cheap one where it is exact
    for all of them."""
    form = requantize_form(matrix.weights, matrix.bias, matrix.rows(matrix.shift)).reshape(matrix.gates, -1)
    return np.where((form >= 0).all(axis=1), form[:, 0], matrix.shift - 31)


def part_struct(name: str, matrix: Part, constants: Sequence[Constant]) -> Struct:
    """tinyet_gate_part_s8; constants: of which its arrays are, those of part_constants or another form of them."""
    there = {constant.name for constant in constants}

    def pointer(array: str) -> FieldValue:
        return Pointer(found) if (found := f"{name}_{array}") in there else 0

    return Struct(
        "tinyet_gate_part_s8",
        {
            "weights": pointer("weights"),
            "bias": pointer("bias"),
            "depth": matrix.weights.shape[1],
            "multiplier": filled_up(matrix.multiplier),
            "form": filled_up(gate_forms(matrix)),
        },
    )


def filled_up(of_gates: Int64) -> tuple[int, ...]:
    numbers = tuple(of_gates.tolist())
    return numbers + (0,) * (MOST_GATES - len(numbers))


def shape_struct(node: Node, sizes: Sizes) -> Struct:
    """tinyet_recurrent_shape."""
    a, last = attrs_of(node), sizes.steps - 1
    step = -1 if a.reverse else 1
    return Struct(
        "tinyet_recurrent_shape",
        {
            "batch": sizes.batch,
            "steps": sizes.steps,
            "inputs": sizes.inputs,
            "units": sizes.units,
            "outputs": sizes.outputs,
            "x_first": last * sizes.inputs if a.reverse else 0,
            "x_step": step * sizes.inputs,
            "y_first": last * sizes.outputs if a.reverse and a.sequence else 0,
            "y_step": step * sizes.outputs if a.sequence else 0,
            "y_batch": (sizes.steps if a.sequence else 1) * sizes.outputs,
        },
    )


def form_of(factor: Multiplier) -> int:
    """A shift as tinyet_requantize_form has it, of numbers below 2**30."""
    return -1 - factor.shift if factor.shift < 0 else factor.shift - 31


def float_weights(node: Node, sizes: Sizes, indices: Sequence[int], gates: int) -> Constant:
    """Of each unit, for each value of the input and then of the state, the weights of all its gates."""
    matrices = [node.input(i).array.reshape(gates, sizes.units, -1) for i in indices]
    packed = np.concatenate(matrices, axis=2).transpose(1, 2, 0)
    return Constant("weights", np.ascontiguousarray(packed), "the gates of a unit side by side")


def float_biases(node: Node, sizes: Sizes, index: int, gates: int) -> Constant:
    """Of each unit, those of all its gates."""
    own = float_bias(node, index, gates * sizes.units)
    return Constant("bias", np.ascontiguousarray(own.reshape(gates, -1).T))


def layer_call(
    symbol: str,
    node: Node,
    inputs: Sequence[int],
    params: Struct,
    constants: Sequence[Constant],
    scratch_bytes: int,
) -> Call:
    """`symbol(inputs…, y, states…, scratch, params)`: where no sequence is asked for, y is the last state itself."""
    states = len(inputs) - 1
    first = 1 if attrs_of(node).sequence else 0
    args: list[Arg] = [InputArg(i) for i in inputs]
    args += [OutputArg(0), *(OutputArg(first + i) for i in range(states)), ScratchArg(), ParamsArg()]
    return Call(symbol, tuple(args), params, tuple(constants), scratch_bytes)
