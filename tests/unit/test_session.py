# SPDX-License-Identifier: Apache-2.0
"""Sessions: runs that follow each other, each of which reads what the one before left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinyet
from tinyet import passes
from tinyet.errors import DataError
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.program import Program, from_bytes

_FLOAT = TensorType((1, 3), DType.FLOAT32)
_INT8 = TensorType((1, 3), DType.INT8, QuantParams.per_tensor(0.5, 0))
_FIRST = np.array([[0, 1, -2]], np.float32)


def total(quantized: bool = False) -> Program:
    """total = total + x, from `_FIRST` on; the output is max(total, 0)."""
    x, total, added, shown = (Tensor(name, _FLOAT) for name in ("x", "total", "added", "shown"))
    nodes: list[Node] = []

    def rounded(tensor: Tensor) -> Tensor:
        if not quantized:
            return tensor
        small, real = Tensor(f"{tensor.name}_q", _INT8), Tensor(f"{tensor.name}_r", _FLOAT)
        nodes.extend((Node(Quantize(), (tensor,), (small,)), Node(Dequantize(), (small,), (real,))))
        return real

    nodes.append(Node(Add(), (rounded(x), rounded(total)), (added,)))
    written = rounded(added)
    nodes.append(Node(Clamp(0.0, float("inf")), (written,), (shown,)))
    result = rounded(shown)
    graph = Graph("total", (x, total), (result, written), tuple(nodes), (constant("total_initial", _FIRST),))
    return Program("total", passes.run(graph)[0], graph)


@pytest.mark.parametrize("quantized", [False, True])
def test_runs_of_a_session_follow_each_other(quantized: bool) -> None:
    program = from_bytes(total(quantized).data, "total.tet")
    assert [t.name for t in program.inputs] == ["x"]
    assert len(program.outputs) == 1
    session, beside, x = program.session(), program.session(), np.array([[1, 0.5, 0.5]], np.float32)
    results = [np.asarray(session.run(x)) for _ in range(4)]
    assert np.array_equal(np.stack(results), np.maximum(_FIRST + x * np.arange(1, 5)[:, None, None], 0))
    # Neither another session nor runs without one see any of that.
    assert np.array_equal(beside.run(x), results[0])
    assert np.array_equal(program.run(x), program.run(x))
    assert np.array_equal(program.run(x), results[0])
    session.reset()
    assert np.array_equal(session.run(x), results[0])
    kept = session.state["total"].astype(np.float32) * (0.5 if quantized else 1)
    assert np.array_equal(np.maximum(kept, 0), results[0])


def test_a_state_is_read_set_and_checked() -> None:
    session = total().session()
    x = np.zeros((1, 3), np.float32)
    mine = np.array([[5, 6, 7]], np.float32)
    session.state["total"] = mine
    mine[:] = 0
    assert np.array_equal(session.run(x), [[5, 6, 7]])
    with pytest.raises(ValueError, match="read-only"):
        session.state["total"][:] = 0
    for wrong, match in (
        (mine.astype(np.float64), r"state total is float32\[1x3\], the array is float64\[1, 3\]"),
        (mine[0], r"the array is float32\[3\]"),
    ):
        with pytest.raises(DataError, match=match):
            session.state["total"] = wrong
    with pytest.raises(DataError, match=r"no state 'totl'\n.*states are: total"):
        session.state["totl"] = mine
    # What does not fit leaves all as it was.
    with pytest.raises(DataError, match="shape"):
        session.run(np.zeros((1, 4), np.float32))
    assert np.array_equal(session.state["total"], [[5, 6, 7]])
    assert list(session.state) == ["total"]
    assert repr(session) == "<session of total: <states total: float32[1x3]>>"


def test_a_program_says_what_it_keeps(tmp_path: Path) -> None:
    program = total(quantized=True)
    assert "state total: int8[1x3]" in repr(program)
    program.save(tmp_path / "total.tet")
    again = tinyet.load(tmp_path / "total.tet")
    assert again.hash == program.hash
    assert [state.initial.array.tolist() for state in again.states] == [[[0, 2, -4]]]
