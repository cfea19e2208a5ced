# SPDX-License-Identifier: Apache-2.0
"""int16 recurrent layers for Helium, whose sums 32 bits hold: matrices in eights of rows
(tinyet_gate_sums_s16_mve.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.recurrent import IN_ORDER
from tinyet.ir import Node
from tinyet.numerics import Multiplier, reduced_multiplier
from tinyet.ops import gru, lstm, rnn
from tinyet.ops.shared import counting, gates_lut, recurrent
from tinyet.ops.shared.cost_models_recurrent import SizesOf, of_function, steps
from tinyet.ops.shared.integers import magnitudes
from tinyet.ops.shared.recurrent import Part, Sizes, filled_up, rounded_up
from tinyet.opset import Call, Constant, CostModel, FieldValue, Kernel, Pointer, Struct

EIGHT = 8
FRACTION = 15
"""Bits that the high product of a sum and a multiplier leaves away."""

PartsOf = Callable[[Node], Sequence[Part]]


def constants_of(name: str, matrix: Part) -> tuple[Constant, Constant]:
    """The constants in the layout of tinyet_gate_sums_s16_mve.h."""
    count, units, depth = matrix.gates, matrix.units, matrix.weights.shape[1]
    missing, inputs = -units % EIGHT, -depth % EIGHT
    weights = np.pad(matrix.weights.reshape(count, units, depth), ((0, 0), (0, missing), (0, inputs)))
    eights = weights.reshape(-1, EIGHT, (depth + inputs) // EIGHT, EIGHT)[:, IN_ORDER].swapaxes(1, 2)
    bias = np.pad(matrix.bias.reshape(count, units), ((0, 0), (0, missing)))
    return (
        Constant(
            f"{name}_weights", np.ascontiguousarray(eights), "eight inputs of eight rows, the even ones first"
        ),
        Constant(f"{name}_bias", bias.reshape(-1, EIGHT)[:, IN_ORDER].astype(np.int32)),
    )


def struct_of(name: str, matrix: Part) -> Struct:
    """tinyet_gate_part_s8; constants_of are its arrays."""
    return Struct(
        "tinyet_gate_part_s8",
        {
            "weights": Pointer(f"{name}_weights"),
            "bias": Pointer(f"{name}_bias"),
            "depth": matrix.weights.shape[1],
            "multiplier": filled_up(reduced_multiplier(matrix.multiplier) << 16),
            "form": filled_up(-matrix.shift),
        },
    )


def refusal(parts: Sequence[Part]) -> str | None:
    for matrix in parts:
        bound = int((2**15 * magnitudes(matrix.weights) + np.abs(matrix.bias)).max(initial=0))
        if bound >= 2**31:
            return f"sums up to {bound}, which 32 bits do not hold"
        if int(matrix.shift.max()) >= 0:
            return "a factor of one half and more"
    return None


def scratch_bytes(s: Sizes, sums: int) -> int:
    longest = max(s.inputs, s.outputs)
    return 2 * (sums * rounded_up(s.units) + longest + -longest % EIGHT)


def call(
    node: Node,
    layer: str,
    matrices: Sequence[Part],
    s: Sizes,
    sums: int,
    factor: Multiplier,
    **fields: FieldValue,
) -> Call:
    """sums: of a unit, in scratch. fields: of the parameters, those that other layers have not."""
    parts = dict(zip("xh", matrices, strict=True))
    params = Struct(
        f"tinyet_{layer}_s16_mve_params",
        {
            "shape": recurrent.shape_struct(node, s),
            **{name: struct_of(name, matrix) for name, matrix in parts.items()},
            **{name: value for name, value in fields.items() if name in ("cell_bits", "relu")},
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            **{name: value for name, value in fields.items() if name in ("cell_low", "cell_high")},
            "pieces": Pointer("pieces"),
        },
    )
    constants = [constant for name, matrix in parts.items() for constant in constants_of(name, matrix)]
    constants.append(gates_lut.pwl_constant())
    states = range(len(node.outputs) + 1 - recurrent.attrs_of(node).sequence)
    return recurrent.layer_call(
        f"tinyet_{layer}_s16_mve", node, states, params, constants, scratch_bytes(s, sums)
    )


def lower_lstm(node: Node, _target: Target) -> Call:
    power, (low, high) = lstm.cell_power(node.input(lstm.C)), lstm.cell_bounds(node)
    assert power is not None
    s, factor = lstm.sizes_of(node), lstm.output_factor(node)
    bounds: dict[str, FieldValue] = {"cell_bits": FRACTION + power, "cell_low": low, "cell_high": high}
    return call(node, "lstm", lstm.parts(node), s, lstm.GATES, factor, **bounds)


def lower_gru(node: Node, _target: Target) -> Call:
    (of_x, of_h), s, factor = gru.parts(node), gru.sizes_of(node), gru.state_factor(node)
    return call(node, "gru", (of_x.in_order((2, 0, 1)), of_h), s, gru.GATES + 1, factor)


def lower_rnn(node: Node, _target: Target) -> Call:
    s, factor = rnn.sizes_of(node), rnn.state_factor(node)
    return call(node, "rnn", rnn.parts(node), s, 1, factor, relu=rnn.is_relu(node))


def cost_model(sizes_of: SizesOf, parts_of: PartsOf) -> CostModel:
    def work(node: Node) -> Mapping[str, int]:
        s = sizes_of(node)
        parts, times = steps(s), s.batch * s.steps
        for matrix in parts_of(node):
            eights = -(-matrix.weights.shape[1] // EIGHT)
            rows = times * matrix.gates * -(-matrix.units // EIGHT)
            counting.add(parts, "copied eight", times * eights if matrix.weights.shape[1] % EIGHT else 0)
            counting.add(parts, "gate", times * matrix.gates)
            counting.add(parts, "eight rows", rows)
            counting.add(parts, "odd eight of eight rows", rows * (eights % 2))
            counting.add(parts, "two eights of eight rows", rows * (eights // 2))
        return parts

    return CostModel(work)


def kernel(
    layer: str, lower: Callable[[Node, Target], Call], sizes_of: SizesOf, parts_of: PartsOf, cost: CostModel
) -> Kernel:
    symbol = f"tinyet_{layer}_s16_mve"

    def refuse(node: Node, target: Target) -> str | None:
        return no_helium(target) or refusal(parts_of(node))

    return Kernel(
        symbol,
        "s16",
        lower,
        (f"tinyet_{layer}_mve.h",),
        (f"{symbol}.c",),
        refuse,
        "cortex_m",
        cost_model=cost,
    )


LSTM = kernel("lstm", lower_lstm, lstm.sizes_of, lstm.parts, cost_model(lstm.sizes_of, lstm.parts))
GRU = kernel("gru", lower_gru, gru.sizes_of, gru.parts, cost_model(gru.sizes_of, gru.parts))
RNN = kernel(
    "rnn", lower_rnn, rnn.sizes_of, rnn.parts, of_function(cost_model(rnn.sizes_of, rnn.parts), rnn.is_relu)
)
