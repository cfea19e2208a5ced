# SPDX-License-Identifier: Apache-2.0
"""What fits and what does not, and what is named as taking the room."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.golden_files import Golden
from tinyet.boards import Board, load_board
from tinyet.boards.cpus import Target
from tinyet.budget.fit import (
    LARGEST,
    Contributor,
    FitRequest,
    Limits,
    Use,
    check_fit,
    check_sizes,
    fitted,
    largest_constants,
    objective_of,
    peak_tensors,
)
from tinyet.budget.room import CALLER_STACK, room_of
from tinyet.deployment import Deployment, deploy
from tinyet.emit.model import model_files
from tinyet.errors import FitError
from tinyet.ir import DType, Graph, Node, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.opset import Pointer, Struct
from tinyet.opset.cost import field_bytes
from tinyet.projects.one import generate
from tinyet.stack.bound import Bound, Frame
from tinyet.stack.use import StackUse

_BOARD = load_board("mps2_an386")
_DEPLOYMENT = deploy(small.graph(), _BOARD.target)


def _board(*, ram: int | None = None, flash: int | None = None) -> Board:
    """The board with less memory."""
    return dataclasses.replace(
        _BOARD,
        ram=dataclasses.replace(_BOARD.ram, bytes=ram or _BOARD.ram.bytes),
        flash=dataclasses.replace(_BOARD.flash, bytes=flash or _BOARD.flash.bytes),
    )


def _need(deployment: Deployment, board: Board = _BOARD) -> tuple[int, int]:
    """Bytes of RAM and of flash that are counted."""
    room = room_of(deployment, board)
    return deployment.plan.arena_bytes + room.static + room.stack.total, room.flash.at_most


def _refused(board: Board, max_ram: int | None = None, max_flash: int | None = None) -> str:
    with pytest.raises(FitError) as caught:
        check_fit(_DEPLOYMENT, board, Limits(max_ram, max_flash))
    assert caught.value.hint
    return caught.value.what


def test_exactly_enough_fits_and_one_byte_less_does_not() -> None:
    ram, flash = _need(_DEPLOYMENT)
    check_fit(_DEPLOYMENT, _BOARD)
    check_fit(_DEPLOYMENT, _BOARD, Limits(ram, flash))
    check_fit(_DEPLOYMENT, _board(ram=ram, flash=flash))
    assert _refused(_BOARD, max_ram=ram - 1).startswith("RAM:")
    assert _refused(_BOARD, max_flash=flash - 1).startswith("flash:")


def test_a_plan_leaves_room_for_the_harness_where_one_can() -> None:
    graph = small.graph(size=16)

    def ram_of(board: Board, limits: Limits) -> int:
        found = fitted(FitRequest(graph, board, objective_of(board, "speed", limits), limits))
        room = room_of(found, board)
        return found.plan.arena_bytes + found.state_bytes + room.static + room.stack.total

    harness, limits = 744 + 8 * 16, Limits()
    roomy = ram_of(_BOARD, limits)
    least = ram_of(_board(ram=roomy - 1), Limits(max_ram=roomy - 1))
    assert roomy - harness < least < roomy, "nothing that leaves room"
    assert ram_of(_board(ram=roomy), limits) == roomy
    tight = least + harness
    assert ram_of(_board(ram=tight), Limits(max_ram=tight)) == roomy
    assert ram_of(_board(ram=tight), limits) == least


def test_the_error_says_whose_limit_it_is() -> None:
    ram, flash = _need(_DEPLOYMENT)
    assert f"the limit is {ram - 1}" in _refused(_BOARD, max_ram=ram - 1)
    assert f"mps2_an386 has {ram - 1}" in _refused(_board(ram=ram - 1))
    # A limit above what the board has does not help.
    assert f"mps2_an386 has {ram - 1}" in _refused(_board(ram=ram - 1), max_ram=10 * ram)
    assert f"mps2_an386 has {flash - 1}" in _refused(_board(flash=flash - 1), max_flash=10 * flash)


def test_the_stack_is_what_the_kernels_take_and_a_reserve_for_their_callers() -> None:
    """Of a core of which nobody knows what kernels take, and of a framework's firmware, it is the board's."""
    stack = room_of(_DEPLOYMENT, _BOARD).stack
    assert stack.inference is not None
    assert stack.caller == CALLER_STACK
    assert stack.inference + stack.caller <= stack.total < stack.inference + stack.caller + 8
    text = _refused(_BOARD, max_ram=stack.total)
    assert (
        f"stack of an inference {stack.inference} + stack of its callers {stack.total - stack.inference}"
        in text
    )
    given = room_of(_DEPLOYMENT, _BOARD, stack=600).stack
    assert given.total - stack.inference in range(600, 608)
    less = dataclasses.replace(_BOARD, stack_bytes=stack.inference + 512)
    assert room_of(_DEPLOYMENT, less).stack.total == less.stack_bytes
    assert room_of(_DEPLOYMENT, _BOARD, bare=False).stack.total == _BOARD.stack_bytes
    assert room_of(deploy(small.graph(), _UNO.target), _UNO).stack.total == _UNO.stack_bytes


def test_both_memories_are_told_at_once_with_the_largest_contributors(golden: Golden) -> None:
    golden(f"{_refused(_BOARD, max_ram=1, max_flash=1)}\n", "both.txt")


def test_the_peak_is_where_most_bytes_are_alive() -> None:
    step, tensors = peak_tensors(_DEPLOYMENT)
    assert step == 0
    sizes = {c.text: c.bytes for c in tensors}
    assert sizes.pop("input x") == 108
    (text,) = (t for t in sizes if t.startswith("output of conv (net.py:11)"))
    beside = "output of conv (net.py:11), of 144 bytes; the others lie over input x, row by row"
    over = sum(_DEPLOYMENT.plan.over(_DEPLOYMENT.plan.calls[0]).values())
    assert (text, sizes.pop(text), over > 0) == (beside, 144 - over, True)
    assert all(text.startswith("scratch of") for text in sizes)
    assert [c.bytes for c in tensors] == sorted((c.bytes for c in tensors), reverse=True)
    assert sum(c.bytes for c in tensors) <= _DEPLOYMENT.plan.arena_bytes


def test_constants_are_sorted_by_size() -> None:
    found = largest_constants(deploy(small.graph(hidden=50), _BOARD.target))
    assert [c.bytes for c in found] == sorted((c.bytes for c in found), reverse=True)
    assert found[0].bytes >= 36 * 50


_UNO = load_board("arduino_uno")


def _with_a_constant(count: int) -> Graph:
    """x + constant in float32, where the kernel takes the constant as it takes x."""
    x, y = Tensor("x", TensorType((count,), DType.FLOAT32)), Tensor("y", TensorType((count,), DType.FLOAT32))
    node = Node(Add(), (x, constant("offsets", np.arange(count, dtype=np.float32))), (y,))
    return Graph("sum", (x,), (y,), (node,))


def test_progmem_constants_that_are_operands_lie_in_ram_and_in_flash() -> None:
    deployment = deploy(_with_a_constant(50), _UNO.target)
    assert [a.comment for a in deployment.arrays if not a.rom] == ["offsets"]
    # The broadcast's 4 + 3 * 5 integers and the clamp's bounds.
    assert deployment.parameter_bytes == 4 * (4 + 15 + 2)
    ram = deployment.plan.arena_bytes + 200 + _UNO.stack_bytes
    flash = 200 + deployment.parameter_bytes
    stack = room_of(deployment, _UNO).stack
    assert stack.inference is not None
    check_fit(deployment, _UNO, Limits(ram, _need(deployment, _UNO)[1]))
    with pytest.raises(FitError) as caught:
        check_fit(deployment, _UNO, Limits(ram - 1, flash - 1))
    said = f"operands 200 + stack of an inference {stack.inference} + stack of its callers {stack.caller} = {ram} bytes"
    assert said in caught.value.what
    assert f"weights and parameters alone take {flash} bytes, the limit is {flash - 1}" in caught.value.what
    assert caught.value.what.count("200 bytes: constant offsets") == 2


def test_elsewhere_they_lie_in_flash_only() -> None:
    deployment = deploy(_with_a_constant(50), _BOARD.target)
    flash = 200 + deployment.parameter_bytes
    check_fit(deployment, _BOARD, Limits(*_need(deployment)))
    with pytest.raises(FitError, match=f"weights and parameters alone take {flash} bytes"):
        check_fit(deployment, _BOARD, Limits(max_flash=flash - 1))


def _repeated(times: int) -> Graph:
    """x + constant + constant + …, the same numbers under as many names."""
    tensors = [Tensor(f"x{i}", TensorType((50,), DType.FLOAT32)) for i in range(times + 1)]
    values = np.arange(50, dtype=np.float32)
    nodes = [
        Node(Add(), (a, constant(f"offsets_{i}", values)), (b,))
        for i, (a, b) in enumerate(itertools.pairwise(tensors))
    ]
    return Graph("sums", (tensors[0],), (tensors[-1],), tuple(nodes))


@pytest.mark.parametrize("board", [_BOARD, _UNO], ids=lambda board: board.name)
def test_what_many_layers_share_counts_once(board: Board) -> None:
    """As it is printed once: in flash, and in the RAM of boards that copy it there."""
    once, often = (deploy(_repeated(times), board.target) for times in (1, 5))
    assert often.constant_bytes == once.constant_bytes == often.operand_bytes == 200
    text = model_files(often, "sums", ["banner"])["sums.c"]
    assert text.count("static const float ") == 1
    assert "weights and tables: 200 bytes" in text
    assert often.parameter_bytes > 0
    ram, flash = _need(often, board)
    ram += 200 if board is _UNO else 0
    check_fit(often, board, Limits(ram, flash))
    with pytest.raises(FitError) as caught:
        check_fit(often, board, Limits(ram - 1, flash - 1))
    assert caught.value.what.count("200 bytes: constant offsets_0") == (2 if board is _UNO else 1)
    assert "offsets_1" not in caught.value.what


def test_equal_arrays_take_the_strictest_alignment() -> None:
    deployment = deploy(small.graph(), _BOARD.target)
    step = next(step for step in deployment.steps if step.call.constants)
    first = step.call.constants[0]
    twin = dataclasses.replace(first, name="twin", align=16)
    call = dataclasses.replace(step.call, constants=(*step.call.constants, twin))
    changed = tuple(dataclasses.replace(s, call=call) if s is step else s for s in deployment.steps)
    arrays = dataclasses.replace(deployment, steps=changed).arrays
    assert len(arrays) == len(deployment.arrays)
    assert next(a.align for a in arrays if a.role == first.name) == 16


def test_progmem_what_an_instruction_for_constants_reaches() -> None:
    large = dataclasses.replace(
        _UNO,
        flash=dataclasses.replace(_UNO.flash, bytes=1 << 20),
        ram=dataclasses.replace(_UNO.ram, bytes=1 << 16),
    )
    check_fit(deploy(small.graph(hidden=900), _UNO.target), large)
    with pytest.raises(FitError, match="constants can lie in the first 65536 only"):
        check_fit(deploy(small.graph(hidden=1000), _UNO.target), large)


_STACK = StackUse(Bound(40), Bound(80), 4096)


def test_no_more_than_the_largest_are_named() -> None:
    symbols = [Contributor(100 - i, f"symbol_{i}") for i in range(20)]
    with pytest.raises(FitError) as caught:
        check_sizes((Use("RAM", 10, symbols), 9), stack=_STACK, board=_BOARD)
    assert f"symbol_{LARGEST - 1}" in caught.value.what
    assert f"symbol_{LARGEST}" not in caught.value.what


def test_built_sizes_against_their_limits(golden: Golden) -> None:
    ram, flash = Use("RAM", 100, [Contributor(60, "arena")]), Use("flash", 200, [Contributor(150, "weights")])
    check_sizes((ram, None), (flash, None), stack=_STACK, board=_BOARD)
    check_sizes((ram, 100), (flash, 200), stack=_STACK, board=_BOARD)
    with pytest.raises(FitError) as caught:
        check_sizes((ram, 99), (flash, 199), stack=_STACK, board=_BOARD)
    golden(f"{caught.value}\n", "built.txt")
    with pytest.raises(FitError) as caught:
        check_sizes((ram, 99), (flash, 200), stack=_STACK, board=_BOARD)
    assert "weights" not in caught.value.what


def _bound(*frames: tuple[str, int]) -> Bound:
    return Bound(sum(size for _, size in frames), tuple(Frame(name, size) for name, size in frames))


def test_a_stack_that_is_too_small_is_told_with_the_calls(golden: Golden) -> None:
    """Of the whole program where that has a bound, else of an inference; where the linker keeps none, the board's."""
    size = _BOARD.stack_bytes
    chain = [("Reset_Handler", 24), ("main", size), ("digits_run", 40)]
    whole, inference = _bound(*chain), _bound(("digits_run", size + 8))
    unknown = Bound(None, (), ("main calls itself",))
    uses = (Use("RAM", 100, [Contributor(60, "arena")]), 99), (Use("flash", 200, []), None)
    with pytest.raises(FitError) as caught:
        check_sizes(*uses, stack=StackUse(_bound(("digits_run", 40)), whole, size), board=_BOARD)
    golden(f"{caught.value}\n", "stack.txt")
    with pytest.raises(FitError, match=f"an inference may take {size + 8} bytes"):
        check_sizes(stack=StackUse(inference, unknown, None), board=_BOARD)
    check_sizes(stack=StackUse(inference, unknown, size + 8), board=_BOARD)
    check_sizes(stack=StackUse(unknown, unknown, 8), board=_BOARD)


def test_a_model_that_does_not_fit_leaves_no_project(tmp_path: Path) -> None:
    with pytest.raises(FitError):
        generate(small.program(), _BOARD, tmp_path / "project", max_ram=100)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("cpu", "pointer"), [("avr5", 2), ("cortex-m0", 4), ("rv32imac", 4), ("host", 4)])
def test_fields_have_the_bytes_of_the_core(cpu: str, pointer: int) -> None:
    """Numbers take four, or eight where they need them; a pointer what the core's addresses take."""
    inner = Struct("inner", {"weights": Pointer("weights"), "scale": 0.5})
    outer = Struct("outer", {"inner": inner, "sizes": (1, 2, 3), "large": 2**40, "bias": Pointer("bias")})
    assert field_bytes(outer, Target(cpu, frozenset())) == 2 * pointer + 4 + 3 * 4 + 8
