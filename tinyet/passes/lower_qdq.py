# SPDX-License-Identifier: Apache-2.0
"""Float operators between Dequantize and Quantize become integer operators.

An operator whose inputs all come out of a Dequantize (or are constants that can be made integer) and whose outputs
all go into one and the same Quantize is computed in integers; others stay float. The pass takes the graph of any
quantizer: it looks at the values, not at their origin.

keep_integers, which runs before, handles operators that only move values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tinyet.errors import QuantizationError
from tinyet.ir import DType, Graph, Node, Note, QuantParams, Tensor, TensorType, constant, substitute
from tinyet.ir.limits import SMALLEST_SCALE
from tinyet.numerics import SUM_BITS_64, bias_type, broadcast_params, quantize, round_half_away
from tinyet.ops import op_of
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.integers import INTEGERS
from tinyet.opset import Op
from tinyet.passes.averages import as_sums
from tinyet.passes.rewrite import Names, common_quantize

MAX_AUTO_CONSTANT = (
    1 << 16
)  # elements; a larger float constant is a weight that was deliberately not quantized


@dataclass
class _Lowering:
    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    integer: dict[Tensor, Tensor] = field(
        default_factory=dict
    )  # float tensor → the integer tensor it is a view of
    replaced: dict[Tensor, Tensor] = field(default_factory=dict)
    absorbed: set[Node] = field(
        default_factory=set
    )  # Quantize nodes that an integer operator made superfluous
    notes: list[Note] = field(default_factory=list)
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(self.graph)


def lower_qdq(graph: Graph) -> tuple[Graph, tuple[Note, ...]]:
    """The graph with integer operators, and a note for each operator that had integer inputs and still stays float."""
    state = _Lowering(graph)
    for node in graph.nodes:
        if isinstance(node.attrs, Dequantize):
            source = node.input(0)
            state.integer[node.output] = state.replaced.get(source, source)
            state.nodes.append(node)
        elif isinstance(node.attrs, Quantize):
            _lower_quantize(state, node)
        else:
            _lower_compute(state, node)
    lowered = graph.replace(nodes=state.nodes)
    return substitute(lowered, state.replaced), tuple(state.notes)


def _lower_quantize(state: _Lowering, node: Node) -> None:
    """Quantize of an integer value: nothing if the parameters agree, else a Requantize."""
    if node in state.absorbed:
        return
    source = state.integer.get(node.input(0))
    if source is None or source.is_constant:
        state.nodes.append(node)
    elif source.type == node.output.type:
        state.replaced[node.output] = source
    else:
        state.nodes.append(Node(Requantize(), (source,), (node.output,), node.origins))


def _lower_compute(state: _Lowering, node: Node) -> None:
    touched = any(
        t in state.integer and not state.integer[t].is_constant for t in node.inputs if t is not None
    )
    reason = "its inputs are float"
    if touched:
        reason = _try_integer(state, node) or ""
        if not reason:
            return
        origin = node.origins[-1] if node.origins else None
        state.notes.append(Note(f"{node.op} stays float: {reason}", origin))
    state.nodes.append(node)


def _try_integer(state: _Lowering, node: Node) -> str | None:
    """Append the integer form of a node and return None, or return why there is none."""
    outputs: list[Tensor] = []
    quantizers: list[tuple[Node, ...]] = []
    for index, tensor in enumerate(node.outputs):
        carried = _carried(state, node, index)
        if tensor.dtype is not DType.FLOAT32:
            outputs.append(tensor)
            quantizers.append(())
            continue
        if carried is not None and not state.graph.consumers(tensor) and tensor not in state.graph.outputs:
            outputs.append(Tensor(tensor.name, replace(carried.type, shape=tensor.shape)))
            quantizers.append(())
            continue
        common = common_quantize(state.graph, tensor)
        if common is None:
            return "its output is not quantized (or is used as float, too)"
        # The float value disappears, and the integer one takes over its name, by which people know the layer.
        outputs.append(Tensor(tensor.name, common[0].output.type))
        quantizers.append(common)
    refusals = []
    for form in _forms(state, node, outputs):
        try:
            built = _build(state, node, outputs, form)
        except QuantizationError as error:
            refusals.append(error.what)
            continue
        if built is None:
            refusals.append("not every input is quantized")
            continue
        refusal = op_of(built.node).check(built.node)
        if refusal is None:
            state.nodes += [*built.before, built.node, *built.behind]
            for tensor, common in zip(outputs, quantizers, strict=True):
                state.replaced.update({q.output: tensor for q in common})
                state.absorbed.update(common)
            return None
        refusals.append(refusal)
    return refusals[0]


def _carried(state: _Lowering, node: Node, index: int) -> Tensor | None:
    """The integers of the input that corresponds, before the first step, to an output after the last one."""
    carried = op_of(node).carried
    place = index - len(node.outputs) + len(carried)
    return state.integer.get(node.input(carried[place])) if carried else None


@dataclass(frozen=True)
class _Form:
    """One way in which an operator may compute with integers.

    constants: float constants are quantized here, by their own range; otherwise they are passed on as they are,
    for operators that want them in float. dtype: the type of such constants. wide: everything in int16, for an
    operator whose values are partly int8: these are widened, which is exact, and int8 outputs narrowed behind it,
    from a scale that holds their range, or from `unit_scale`, which some operators fix.
    """

    constants: bool
    dtype: DType
    wide: bool = False
    unit_scale: bool = False


@dataclass
class _Built:
    """An integer operator, and the Requantize nodes around it."""

    node: Node
    before: list[Node]
    behind: list[Node]


def _forms(state: _Lowering, node: Node, outputs: Sequence[Tensor]) -> list[_Form]:
    """The forms to try, in order."""
    op = op_of(node)
    weight = op.bias[1] if op.bias is not None else None
    read = [state.integer[t] for i, t in enumerate(node.inputs) if t in state.integer and i != weight]
    dtypes = {t.dtype for t in (*read, *outputs)} & set(INTEGERS)
    dtype = DType.INT16 if DType.INT16 in dtypes else DType.INT8
    forms = [_Form(constants, dtype) for constants in (False, True)]
    if len(dtypes) > 1 and not op.same_scale and not op.carried:
        wide = [_Form(constants, dtype, True, unit) for unit in (False, True) for constants in (False, True)]
        # An operator that takes both types as they are (a Clamp) needs no more; for others, the wide form has the
        # reason.
        forms = wide if op.check(_mixed(state, node, outputs)) is not None else forms
    return forms


def _mixed(state: _Lowering, node: Node, outputs: Sequence[Tensor]) -> Node:
    """The node with its values in the types that they have."""
    return node.replace(
        inputs=[None if t is None else state.integer.get(t, t) for t in node.inputs], outputs=outputs
    )


def _build(state: _Lowering, node: Node, outputs: Sequence[Tensor], form: _Form) -> _Built | None:
    """The node in that form; None when an input is a float that is no constant."""
    before: list[Node] = []
    inputs = _integer_inputs(state, node, form, before)
    if inputs is None:
        return None
    own: list[Tensor] = list(outputs)
    behind: list[Node] = []
    x = inputs[0]
    if op_of(node).rounds(node) and x is not None and _another_scale(x, own[0]):
        summing = as_sums(node, state.names)
        if summing is not None:
            node, inputs = summing, [x, *summing.inputs[1:]]
        else:
            # The input's steps, not the output's, are those that are averaged.
            kept = TensorType(own[0].shape, x.dtype, x.type.quant)
            own[0] = Tensor(state.names.fresh(f"{own[0].name}_unscaled"), kept)
            behind.append(Node(Requantize(), (own[0],), (outputs[0],), node.origins))
    elif op_of(node).same_scale:
        inputs = [_rescaled(state, t, outputs[0], node, before) for t in inputs]
    for index, tensor in enumerate(own):
        if form.wide and tensor.dtype is DType.INT8:
            lowest, highest = tensor.type.dtype.range
            reach = max(highest - tensor.type.zero_point, tensor.type.zero_point - lowest) * tensor.type.scale
            quant = QuantParams.per_tensor(2.0**-15 if form.unit_scale else reach / 32767, 0)
            wide = TensorType(tensor.shape, DType.INT16, quant)
            own[index] = Tensor(state.names.fresh(f"{tensor.name}_wide"), wide)
            behind.append(Node(Requantize(), (own[index],), (tensor,), node.origins))
    return _Built(node.replace(inputs=inputs, outputs=own), before, behind)


def _integer_inputs(
    state: _Lowering, node: Node, form: _Form, before: list[Node]
) -> list[Tensor | None] | None:
    """The node's inputs in integers; None if one is a float that is no constant. Nodes that compute them are appended
    to `before`."""
    op = op_of(node)
    weight = op.bias[1] if op.bias is not None else None
    biases = {bias: (of, source) for bias, of, source in _biases(op)}
    inputs: list[Tensor | None] = []
    for index, tensor in enumerate(node.inputs):
        if tensor is None or tensor.dtype is not DType.FLOAT32:
            inputs.append(tensor)
        elif index in biases and tensor.is_constant:
            of, source = biases[index]
            weights = state.integer.get(node.input(of))
            first = inputs[source]
            if weights is None or weights.type.quant is None or first is None or first.dtype not in INTEGERS:
                return None
            inputs.append(_integer_bias(state, tensor, first.type, weights.type.quant))
        elif tensor in state.integer:
            integer = state.integer[tensor]
            inputs.append(
                _widened(state, integer, node, before) if form.wide and index != weight else integer
            )
        elif tensor.is_constant:
            inputs.append(_auto_constant(state, tensor, form.dtype) if form.constants else tensor)
        else:
            return None
    return inputs


def _biases(op: Op) -> list[tuple[int, int, int]]:
    """Indices of a bias, of its weights, and of their factor."""
    return [
        *([] if op.bias is None else [(*op.bias, 0)]),
        *([] if op.state_bias is None else [op.state_bias]),
    ]


def _widened(state: _Lowering, tensor: Tensor, node: Node, before: list[Node]) -> Tensor:
    """An int8 value as int16 of the same scale, less its zero point: exact."""
    if tensor.dtype is not DType.INT8 or tensor.type.quant is None or tensor.type.quant.axis is not None:
        return tensor
    quant = QuantParams.per_tensor(tensor.type.scale, 0)
    if tensor.is_constant:
        numbers = tensor.array.astype(np.int16) - np.int16(tensor.type.zero_point)
        return constant(state.names.fresh(f"{tensor.name}_wide"), numbers, quant)
    wide = Tensor(state.names.fresh(f"{tensor.name}_wide"), TensorType(tensor.shape, DType.INT16, quant))
    before.append(Node(Requantize(), (tensor,), (wide,), node.origins))
    return wide


def _integer_bias(state: _Lowering, bias: Tensor, x: TensorType, weight: QuantParams) -> Tensor:
    type_ = bias_type(bias.type.count, x, weight)
    assert type_.quant is not None
    scales, _ = broadcast_params(type_.quant, 1)
    # In float64 from the scales' product, not from its float32 rounding: the accumulator has exactly that scale.
    exact = np.array([x.scale * s for s in weight.scale], np.float64)
    if exact.min() < SMALLEST_SCALE:
        raise QuantizationError(
            "the scale of its sums, that of the input times the weights', is no normal float32"
        )
    values = round_half_away(
        bias.array.astype(np.float64) / np.broadcast_to(exact, scales.shape if len(exact) > 1 else 1)
    )
    bits = 32 if type_.dtype is DType.INT32 else SUM_BITS_64
    if not np.all(np.isfinite(values)) or np.abs(values).max(initial=0) >= 2.0 ** (bits - 1):
        raise QuantizationError(f"bias {bias.name} does not fit into {bits} bits at the scale of its sums")
    return constant(state.names.fresh(f"{bias.name}_q"), values.astype(type_.dtype.numpy), type_.quant)


def _auto_constant(state: _Lowering, tensor: Tensor, dtype: DType) -> Tensor:
    """A small float constant as integers over its own range: int8 (which always holds 0), or symmetric int16."""
    data = tensor.array.astype(np.float64)
    if data.size > MAX_AUTO_CONSTANT:
        raise QuantizationError(f"constant {tensor.name} is not quantized and has {data.size} elements")
    low, high = min(float(data.min()), 0.0), max(float(data.max()), 0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise QuantizationError(f"constant {tensor.name} is not finite")
    if dtype is DType.INT16:
        scale, zero_point = (max(high, -low) / 32767 if high > low else 1.0), 0
    else:
        scale = (high - low) / 255 if high > low else 1.0
        if low == high or low == 0.0 or high == 0.0:
            # One sign only: put zero at an end, so that the extreme value is represented exactly.
            zero_point = -128 if low == 0.0 else 127
        else:
            zero_point = int(np.clip(round_half_away(-128 - low / scale), -128, 127))
    type_ = TensorType(tensor.shape, dtype, QuantParams.per_tensor(scale, zero_point))
    return constant(state.names.fresh(f"{tensor.name}_q"), quantize(tensor.array, type_), type_.quant)


def _another_scale(x: Tensor, out: Tensor) -> bool:
    """Whether two activations of one integer type are quantized differently."""
    return x.dtype is out.dtype and x.dtype in INTEGERS and x.type.quant != out.type.quant


def _rescaled(
    state: _Lowering, tensor: Tensor | None, out: Tensor, node: Node, extra: list[Node]
) -> Tensor | None:
    """An activation with the output's quantization: itself, or behind a Requantize."""
    if tensor is None or tensor.dtype not in INTEGERS or out.dtype not in INTEGERS:
        return tensor
    if (tensor.dtype, tensor.type.quant) == (out.dtype, out.type.quant):
        return tensor
    type_ = TensorType(tensor.shape, out.dtype, out.type.quant)
    rescaled = Tensor(state.names.fresh(f"{tensor.name}_rescaled"), type_)
    extra.append(Node(Requantize(), (tensor,), (rescaled,), node.origins))
    return rescaled
