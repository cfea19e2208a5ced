# SPDX-License-Identifier: Apache-2.0
"""What a stream does to the arena, action by action: for the checker, which believes nothing of it but the rules of its
operators. Each row is a value of its own, and those around an image are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.accesses import Access, Alias, Copy, Piece, Span
from tinyet.memory.plan import MemoryPlan
from tinyet.memory.streams import Fill, Run, Stream, Take


def _row(tensor: Tensor, row: int) -> str:
    """No tensor's name holds a space."""
    return f"row {row} of {tensor.name}"


def _row_bytes(tensor: Tensor) -> int:
    return tensor.type.bytes // tensor.shape[1]


def row_aliases(stream: Stream) -> list[Alias]:
    """Whole tensors that streams read are rows, and those that they make are made of them."""
    made = {t for node in stream.nodes for t in node.outputs}
    found = []
    for tensor, rows in stream.rows.items():
        size = _row_bytes(tensor)
        if rows.window:
            continue
        if tensor in made:
            pieces = (Piece(r * size, size, _row(tensor, r), 0) for r in range(tensor.shape[1]))
            found.append(Alias(tensor.name, tuple(pieces)))
        else:
            found += [
                Alias(_row(tensor, r), (Piece(0, size, tensor.name, r * size),))
                for r in range(tensor.shape[1])
            ]
    return found


def row_steps(
    plan: MemoryPlan,
    stream: Stream,
    span: Callable[[Tensor], Span],
    scratch: Mapping[Node, int],
    align: int,
    scratch_align: int,
) -> list[Access | Copy]:
    """The actions in order. The n-th strip of a layer has to find the rows that its operator's rule says.

    Raises InternalError where a layer is not computed as a whole, or a row is set that stands for none.
    """
    done = dict.fromkeys(stream.nodes, 0)
    made = {t for node in stream.nodes for t in node.outputs}
    there = {t for t, rows in stream.rows.items() if not rows.window and t not in made}
    next_row = {t: t.shape[1] if t in there else 0 for t in stream.rows}
    steps: list[Access | Copy] = []

    def at(tensor: Tensor, slot: int) -> int:
        rows = stream.rows[tensor]
        return plan.offset(tensor) + (slot - (0 if rows.window else rows.above)) * _row_bytes(tensor)

    def one(tensor: Tensor, row: int, slot: int, alignment: int = 1) -> Span:
        return Span(_row(tensor, row), at(tensor, slot), _row_bytes(tensor), alignment)

    for action in stream.actions:
        match action:
            case Fill(tensor, slot, count, value):
                rows = stream.rows[tensor]
                above = next_row[tensor] == 0 if rows.window else slot < rows.above
                first = -count if above else next_row[tensor]
                if not above and first < tensor.shape[1]:
                    raise InternalError(f"row {first} of {tensor.name} is set to {value}", "memory planner")
                next_row[tensor] += 0 if above else count
                spans = tuple(one(tensor, first + k, slot + k) for k in range(count))
                steps.append(Access(f"around {tensor.name}", (), spans))
            case Take(tensor, slot):
                steps.append(Access(f"rows of {tensor.name}", (), (one(tensor, next_row[tensor], slot),)))
                next_row[tensor] += 1
            case Run(node, reads, writes, drops):
                rule, output = stream.rules[node], node.outputs[0]
                first = done[node] * rule.stride - rule.before
                read = []
                for index, slot in reads:
                    tensor = node.input(index)
                    strict = max(align, tensor.dtype.bytes)
                    read += [
                        one(tensor, first + k, slot + k, strict if k == 0 else 1) for k in range(rule.window)
                    ]
                others = (t for i, t in enumerate(node.inputs) if i not in dict(reads))
                read += [span(t) for t in others if t is not None and not t.is_constant]
                strict = max(align, output.dtype.bytes)
                row = done[node] * rule.out
                written = [one(output, row + k, writes + k, strict if k == 0 else 1) for k in range(rule.out)]
                size = scratch.get(node, 0)
                area = (plan.scratch[node], size, scratch_align) if size else None
                name = f"{node.op} {output.name}, rows from {row}"
                steps.append(Access(name, tuple(dict.fromkeys(read)), tuple(written), area))
                done[node] += 1
                next_row[output] += rule.out
                for drop in drops:
                    size, start = _row_bytes(drop.tensor), plan.offset(drop.tensor)
                    source, moved = start + drop.rows * size, drop.kept * size
                    steps.append(Copy(f"{drop.tensor.name} moves", start, source, moved))
    for node, count in done.items():
        if count * stream.rules[node].out != node.outputs[0].shape[1]:
            raise InternalError(f"{node.op} is computed {count} times by rows", "memory planner")
    return steps
