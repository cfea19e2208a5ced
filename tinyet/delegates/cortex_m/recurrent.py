# SPDX-License-Identifier: Apache-2.0
"""int8 recurrent layers: matrices with the weights of two rows in each int16 (gates.py); and in eights of rows, for
cores with Helium (tinyet_gate_sums_mve.h)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import gates
from tinyet.ir import Array, Node
from tinyet.ops import gru, lstm, rnn
from tinyet.ops.shared.cost_models_recurrent import SizesOf, in_rows, of_function
from tinyet.ops.shared.recurrent import Part, PartConstants, Sizes, part_rows
from tinyet.opset import Call, Constant, CostModel, Kernel
from tinyet.opset.kernel import Refuse, accept_all

Lower = Callable[[Node, str, PartConstants, int], Call]
Finish = Callable[[Call, Sequence[Part], Target, bool], Call]
PartsOf = Callable[[Node], Sequence[Part]]


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

    scratch: bytes behind the gates. refuse: what is against a layer's two matrices. finish: what becomes of the call of
    a layer with these; like the costs, by whether sums of the state are saturated by themselves.
    """

    name: str
    constants: PartConstants
    scratch: Callable[[Sizes], int]
    refuse: Callable[[Sequence[Part], Target], str | None]
    cost_model: Callable[[SizesOf, PartsOf, bool], CostModel]
    finish: Finish = lambda call, _parts, _target, _apart: call

    def kernel(
        self,
        layer: str,
        sizes_of: SizesOf,
        parts: PartsOf,
        lower: Lower,
        of_layer: Callable[[CostModel], CostModel] = lambda cost_model: cost_model,
        refuse: Refuse = accept_all,
        apart: bool = False,
    ) -> Kernel:
        """layer: as in the name of the portable kernel. refuse: what it is not for, whatever its numbers are.
        of_layer: what is special in the layer's costs. apart: sums of its state are saturated by themselves."""
        symbol = f"tinyet_{layer}_{self.name}"
        header = f"tinyet_{layer.partition('_')[0]}_{self.name}.h"

        def why_not(node: Node, target: Target) -> str | None:
            return refuse(node, target) or self.refuse(parts(node)[:2], target)

        def lowered(node: Node, target: Target) -> Call:
            call = lower(node, symbol, self.constants, self.scratch(sizes_of(node)))
            return self.finish(call, parts(node)[:2], target, apart)

        cost_model = of_layer(self.cost_model(sizes_of, parts, apart))
        return Kernel(
            symbol, "s8", lowered, (header,), (f"{symbol}.c",), why_not, "cortex_m", cost_model=cost_model
        )


def refuse_parts(parts: Sequence[Part], _target: Target) -> str | None:
    return next((text for matrix in parts if (text := gates.refuse_part(matrix))), None)


def refuse_without_helium(_parts: Sequence[Part], target: Target) -> str | None:
    return None if "mve" in target.features else f"{target.cpu} has no Helium instructions"


def in_eights(sizes_of: SizesOf, parts_of: PartsOf, _apart: bool) -> CostModel:
    return in_rows(sizes_of, parts_of)


DSP = Family(
    "dsp", gates.part_constants, gates.scratch_bytes, refuse_parts, gates.cost_model, gates.with_functions
)
MVE = Family("mve", sixteens_constants, sixteens, refuse_without_helium, in_eights)
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
        family.kernel(
            "lstm_s8_lut", lstm.sizes_of, lstm.parts, lstm.pwl_call, refuse=lstm.refuse_litert, apart=True
        ),
    )
)
GRU = tuple(family.kernel("gru_s8", gru.sizes_of, gru.parts, gru.layer_call) for family in FAMILIES)
RNN = tuple(family.kernel("rnn_s8", rnn.sizes_of, rnn.parts, rnn.layer_call, of_rnn) for family in FAMILIES)
