# SPDX-License-Identifier: Apache-2.0
"""int8 recurrent layers: matrices with the weights of two rows in each int16 (tinyet_gates_dsp.h); and in eights of
rows, for cores with Helium (tinyet_gate_sums_mve.h)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.packing import pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import sum_range
from tinyet.ir import Array, Node
from tinyet.ops import gru, lstm, rnn
from tinyet.ops.shared.cost_models_recurrent import SizesOf, in_rows, of_function, paired
from tinyet.ops.shared.recurrent import Part, PartConstants, Sizes, part_blocks, part_rows, rounded_up
from tinyet.opset import Call, Constant, CostModel, Kernel
from tinyet.opset.kernel import Refuse, accept_all

Lower = Callable[[Node, str, PartConstants, int], Call]
PartsOf = Callable[[Node], Sequence[Part]]


def part_constants(name: str, matrix: Part) -> tuple[Constant, Constant]:
    """The constants in the layout of tinyet_gate_dsp."""
    blocks, bias = part_blocks(matrix)
    rows = blocks.astype(np.int64)  # (gates, fours of rows, fours of inputs, row, input)
    a, b = rows[..., [0, 2], :], rows[..., [1, 3], :]
    lanes = 256 * b + a
    weights = np.stack([pack_int16x2(lanes[..., i], lanes[..., i + 2]) for i in (0, 1)], axis=-1)
    products = (a[..., 0] * a[..., 1] + a[..., 2] * a[..., 3]).sum(axis=2)
    own = bias.reshape(len(bias), -1, 2, 2)
    starts = np.stack([256 * own[..., 1] + own[..., 0], own[..., 0] - products], axis=-1)
    return (
        Constant(
            f"{name}_weights",
            weights.astype("<i4").view(np.int8),
            "two rows in an int16, four inputs in turn",
        ),
        Constant(f"{name}_bias", words(starts).astype(np.int32)),
    )


def pairs_bytes(sizes: Sizes) -> int:
    """Of a row of the input or of the state in int16, filled up to fours."""
    return 2 * rounded_up(max(sizes.inputs, sizes.outputs))


def refuse_part(matrix: Part) -> str | None:
    rows = part_blocks(matrix)[0].astype(np.int64)
    a, b = rows[..., [0, 2], :], rows[..., [1, 3], :]
    if np.any((b == -128) & (a < 0)):
        return "a weight of -128"
    smallest, largest = sum_range(matrix.weights.astype(np.int64), matrix.bias)
    bound = int(max(-smallest.min(), largest.max()))
    return f"sums up to {bound}, needs fewer than 2**23" if bound >= 2**23 else None


IN_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
"""Rows of eight as their sums are narrowed."""


def padded_depth(depth: int) -> int:
    """To sixteens, or to eight more than these."""
    return depth + -depth % (8 if depth > 16 and 0 < depth % 16 <= 8 else 16)


def in_sixteens(rows: Array) -> Array:
    """(groups, rows, depth): sixteen inputs of each row in turn, then eight where no more are left."""
    groups, count, depth = rows.shape
    whole = depth // 16 * 16
    sixteens = rows[..., :whole].reshape(groups, count, whole // 16, 16).swapaxes(1, 2)
    parts = (
        sixteens.reshape(groups, count * whole),
        rows[..., whole:].reshape(groups, count * (depth - whole)),
    )
    return np.concatenate(parts, axis=1)


def sixteens_constants(name: str, matrix: Part) -> tuple[Constant, Constant]:
    """The constants in the layout of tinyet_gate_sums_mve."""
    weights, bias = part_rows(matrix)
    gates, rows, depth = weights.shape
    weights = np.pad(weights, ((0, 0), (0, 0), (0, padded_depth(depth) - depth)))
    eights = rows // 8 * 8
    ordered = weights[:, :eights].reshape(-1, 8, weights.shape[2])[:, IN_ORDER]
    parts = [in_sixteens(ordered).reshape(gates, -1), in_sixteens(weights[:, eights:]).reshape(gates, -1)]
    behind = np.concatenate([np.concatenate(parts, axis=1).ravel(), np.zeros(16, np.int8)])
    biases = [bias[:, :eights].reshape(gates, -1, 8)[..., IN_ORDER].reshape(gates, -1), bias[:, eights:]]
    return (
        Constant(
            f"{name}_weights",
            behind,
            "eight rows in turn, the even ones first, and 16 bytes that are read with the last one",
        ),
        Constant(f"{name}_bias", np.concatenate(biases, axis=1).astype(np.int32)),
    )


def sixteens(sizes: Sizes) -> int:
    """Bytes of a row of the input or of the state, filled up, and of its last eight once more."""
    longest = max(sizes.inputs, sizes.outputs)
    return longest + -longest % 16 + 16


@dataclass(frozen=True)
class Family:
    """Kernels that have their matrices in one form.

    scratch: bytes behind the gates. refuse: what is against a layer's two matrices.
    """

    name: str
    constants: PartConstants
    scratch: Callable[[Sizes], int]
    refuse: Callable[[Sequence[Part], Target], str | None]
    cost_model: Callable[[SizesOf, PartsOf], CostModel]

    def kernel(
        self,
        layer: str,
        sizes_of: SizesOf,
        parts: PartsOf,
        lower: Lower,
        of_layer: Callable[[CostModel], CostModel] = lambda cost_model: cost_model,
        refuse: Refuse = accept_all,
    ) -> Kernel:
        """layer: as in the name of the portable kernel. refuse: what it is not for, whatever its numbers are.
        of_layer: what is special in the layer's costs."""
        symbol = f"tinyet_{layer}_{self.name}"
        header = f"tinyet_{layer.partition('_')[0]}_{self.name}.h"

        def why_not(node: Node, target: Target) -> str | None:
            return refuse(node, target) or self.refuse(parts(node)[:2], target)

        def lowered(node: Node, _target: Target) -> Call:
            return lower(node, symbol, self.constants, self.scratch(sizes_of(node)))

        cost_model = of_layer(self.cost_model(sizes_of, parts))
        return Kernel(
            symbol, "s8", lowered, (header,), (f"{symbol}.c",), why_not, "cortex_m", cost_model=cost_model
        )


def refuse_parts(parts: Sequence[Part], _target: Target) -> str | None:
    return next((text for matrix in parts if (text := refuse_part(matrix))), None)


def refuse_without_helium(_parts: Sequence[Part], target: Target) -> str | None:
    return None if "mve" in target.features else f"{target.cpu} has no Helium instructions"


DSP = Family("dsp", part_constants, pairs_bytes, refuse_parts, paired)
MVE = Family("mve", sixteens_constants, sixteens, refuse_without_helium, in_rows)
FAMILIES = (MVE, DSP)


def of_rnn(cost_model: CostModel) -> CostModel:
    return of_function(cost_model, rnn.is_relu)


LSTM = tuple(
    kernel
    for family in FAMILIES
    for kernel in (
        family.kernel("lstm_s8", lstm.sizes_of, lstm.parts, lstm.plain_call, refuse=lstm.refuse_projected),
        family.kernel(
            "lstm_projected_s8", lstm.sizes_of, lstm.parts, lstm.projected_call, refuse=lstm.refuse_plain
        ),
        family.kernel("lstm_s8_lut", lstm.sizes_of, lstm.parts, lstm.pwl_call, refuse=lstm.refuse_litert),
    )
)
GRU = tuple(family.kernel("gru_s8", gru.sizes_of, gru.parts, gru.layer_call) for family in FAMILIES)
RNN = tuple(family.kernel("rnn_s8", rnn.sizes_of, rnn.parts, rnn.layer_call, of_rnn) for family in FAMILIES)
