# SPDX-License-Identifier: Apache-2.0
"""The call server finds what is wrong with a kernel; and structs have in it the bytes that a compiler gives them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from tests.calls.encoding import server_of
from tests.calls.exact import Attempt, assert_right, attempts
from tests.calls.host import build, library, library_table, process
from tests.calls.process import Process
from tests.calls.table import Field, Layout, function_table, struct_bytes
from tests.ops.cases import Case, tensor
from tinyet.boards.cpus import HOST
from tinyet.delegates import kernel_sources
from tinyet.device import calls
from tinyet.device.calls import Address, Invocation, Kind, Memory, Request
from tinyet.errors import EmulatorError, InternalError
from tinyet.ir import Node
from tinyet.ops.clamp import OP, Clamp
from tinyet.opset import Pointer, Struct

SYMBOL = "tinyet_clip_s8"
DECLARATION = """
typedef struct { int32_t low, high; int32_t count; } tinyet_clip_params;
void tinyet_clip_s8(const int8_t *input, int8_t *output, const tinyet_clip_params *params);
"""


def clipped() -> Case:
    x, y = (tensor(name, (2, 9), scale=0.5, zero_point=3) for name in "xy")
    return Case(Node(Clamp(-3.0, 9.0), (x,), (y,)), (np.arange(-90, 90, 10).astype(np.int8).reshape(2, 9),))


def clip_attempts() -> list[Attempt]:
    kernel = next(k for k in OP.kernels if k.symbol == SYMBOL)
    return attempts(clipped(), [kernel], HOST)


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Process]]:
    """Servers of the kernel as it is, and with a part of it replaced."""
    text = kernel_sources.text(f"{SYMBOL}.c")
    assert text is not None
    element = "(int8_t)tinyet_clamp(*input++, low, high)"
    changes = {
        "as it is": (element, element),
        "one more": (element, "(int8_t)tinyet_clamp(*input++, low, high + 1)"),
        "reads behind": ("  while (", "  *output = input[params->count];\n  while ("),
        "reads before": ("  while (", "  *output = input[-1];\n  while ("),
        "writes behind": ("params->count;", "params->count + 1;"),
        "overflows": (element, "(int8_t)tinyet_clamp(*input++, low, high * 2147483647)"),
        "wide": ("  while (", "  *(int16_t *)(void *)output = 0;\n  while ("),
        "writes its input": ("  while (", "  ((int8_t *)(uintptr_t)input)[0] ^= 1;\n  while ("),
    }
    table = function_table(["tinyet_clip.h"], DECLARATION)
    processes = {}
    for number, (name, (old, new)) in enumerate(changes.items()):
        folder = tmp_path_factory.mktemp(f"server{number}")
        source = folder / f"{SYMBOL}.c"
        assert old in text
        source.write_text(text.replace(old, new), encoding="utf-8")
        processes[name] = process(build(folder, [source], {}, table), table)
    yield processes
    for each in processes.values():
        each.close()


def test_the_kernel_as_it_is(mutated: Mapping[str, Process]) -> None:
    found = clip_attempts()
    assert [len(a.placement.shared) for a in found] == [0, 0, 1], "apart, at odd addresses, in place"
    assert_right(found, mutated["as it is"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one more", f"(?s){SYMBOL}.*differs at .* of y: C 22, reference 21"),
        ("reads behind", f"(?s)heap-buffer-overflow.*READ of size 1.*in {SYMBOL}"),
        ("reads before", f"(?s)heap-buffer-overflow.*READ of size 1.*in {SYMBOL}"),
        (
            "writes behind",
            f"(?s)heap-buffer-overflow.*WRITE of size 1.*in {SYMBOL}|READ of size 1.*in {SYMBOL}",
        ),
        ("overflows", "signed integer overflow"),
        ("wide", "misaligned address"),
        ("writes its input", "byte 0 of block 1 is not the call's to write"),
    ],
)
def test_what_a_mutated_kernel_does_is_found(mutated: Mapping[str, Process], name: str, words: str) -> None:
    """And the server answers the next request, whatever became of it."""
    with pytest.raises(AssertionError) as caught:
        assert_right(clip_attempts(), mutated[name])
    assert re.search(words, str(caught.value)), str(caught.value)
    assert mutated[name].server.pointer_bytes == struct.calcsize("P")


# ---------------------------------------------------------------- structs


def test_layouts_are_the_compilers() -> None:
    layouts = library().server.layouts
    assert layouts["tinyet_clip_params"] == Layout(
        12, {name: Field(4 * i, 4, 4, False) for i, name in enumerate(("low", "high", "count"))}
    )
    assert layouts["tinyet_conv2d_s8_quant"].fields["weights"] == Field(0, 8, 8, False)
    assert layouts["tinyet_fft"].fields["size"] == Field(48, 40, 4, False)
    assert layouts["tinyet_max_pool2d_params"] == layouts["tinyet_pool2d_shape"]


def test_bytes_of_a_struct() -> None:
    layouts = library().server.layouts
    value = Struct(
        "tinyet_signal_rfft_f32_params",
        {"twiddles": Pointer("t"), "fft": Struct("tinyet_fft", {"count": 7, "radix": (4, -1)}), "given": 9},
    )
    made = struct_bytes(value, layouts)
    assert made.pointers == ((0, "t"),)
    numbers = np.frombuffer(made.data, np.int32)
    assert {int(i): int(numbers[i]) for i in np.flatnonzero(numbers)} == {4: 7, 6: 4, 7: -1, 37: 9}
    real = struct_bytes(
        Struct("tinyet_clip_f32_params", {"low": 1, "high": float("inf"), "count": 3}), layouts
    )
    assert real.data == struct.pack("<ffi", 1.0, float("inf"), 3)


@pytest.mark.parametrize(
    ("ctype", "fields", "words"),
    [
        ("tinyet_clip_params", {"low": 2**32}, "does not fit in 32 bits"),
        ("tinyet_clip_params", {"low": 1.5}, "the field is none"),
        ("tinyet_clip_params", {"lowest": 1}, "no field lowest"),
        ("tinyet_fft", {"radix": (1,) * 11}, "cannot hold"),
        ("tinyet_none", {}, "no header declares"),
    ],
)
def test_values_that_do_not_fit(ctype: str, fields: dict[str, int | float], words: str) -> None:
    with pytest.raises(InternalError, match=words):
        struct_bytes(Struct(ctype, fields), library().server.layouts)


def test_a_server_of_another_table_is_refused() -> None:
    told = calls.Layouts(8, 1, 0, 0, ())
    with pytest.raises(InternalError, match="another table"):
        server_of(library_table(), told)


# ---------------------------------------------------------------- requests


def copied(**changes: int) -> Request:
    """tinyet_clip_s8 of four bytes, all numbers as a request has them."""
    number = changes.get("function", library_table().numbers[SYMBOL])
    blocks = (
        Memory(4, b"\x01\x02\x03\x7f"),
        Memory(4, returned=True),
        Memory(12, struct.pack("<3i", 2, 9, 4)),
    )
    given = [Address(0, changes.get("offset", 0)), Address(changes.get("block", 1)), Address(2)]
    return Request(blocks, (Invocation(number, tuple(given[: changes.get("arguments", 3)])),))


def asked(request: Request) -> calls.Result:
    head, body = library().ask(calls.request_bytes(request))
    return calls.unpack_result(calls.answer_head(head)[0], body, request.blocks)


def test_a_request() -> None:
    assert asked(copied()) == calls.Result(0, 1, 0, (b"\x02\x02\x03\x09",))
    assert asked(Request((Memory(3, returned=True),), ())) == calls.Result(0, 0, 0, (b"\xa5" * 3,))


@pytest.mark.parametrize("changes", [{"function": 10**6}, {"offset": 5}, {"block": 3}, {"arguments": 2}])
def test_requests_that_are_refused(changes: dict[str, int]) -> None:
    """And the next one is answered."""
    with pytest.raises(EmulatorError, match="asks for what is not there"):
        asked(copied(**changes))
    assert asked(copied()).status == 0


def test_places_in_one_memory() -> None:
    blocks = (Memory(3, align=1), Memory(4, align=4), Memory(1, align=1), Memory(2, align=16))
    assert Request(blocks, ()).placed() == ((0, 4, 8, 16), 18)


def test_answers_that_are_none() -> None:
    with pytest.raises(EmulatorError, match="no answer"):
        calls.answer_head(b"x" * calls.HEAD_BYTES)
    for body in (b"", b"\x00" * 9):
        with pytest.raises(EmulatorError):
            calls.unpack_result(Kind.CALLS, body, ())
    with pytest.raises(EmulatorError, match="kind LAYOUTS"):
        calls.unpack_result(Kind.LAYOUTS, b"\x00" * 8, ())
    with pytest.raises(EmulatorError, match="lies outside"):
        calls.unpack_layouts(Kind.ERROR, b"\x02\x00\x00\x00")


def test_every_library_kernel_is_in_the_table() -> None:
    """But those whose C is made for each call; their sources hold no function of the table."""
    for source in kernel_sources.names():
        name, text = source.removesuffix(".c"), kernel_sources.text(source)
        assert text is not None
        if name not in library_table().numbers:
            assert name not in re.findall(r"(?m)^void (tinyet_\w+)\(", text), name
