# SPDX-License-Identifier: Apache-2.0
"""Numbers as C expressions of a size: each is what Python knows, at every value."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyet.emit.sizes import field_types
from tinyet.opset import Call, Constant, Definition, LiteralArg, ParamsArg, Pointer, SizeArg, Struct
from tinyet.sizes.extents import formula
from tinyet.sizes.merge import DifferentCalls, merged, varying


def value_of(text: str, size: int) -> int:
    """The expression as C computes it: quotients of these are never negative."""
    assert re.fullmatch(r"[\d\s+*/()-]*", re.sub(r"\bsize\b", "", text))
    return int(eval(text.replace("/", "//"), {"size": size}))


@given(
    st.integers(-300, 300),
    st.integers(-300, 300),
    st.integers(1, 8),
    st.integers(0, 7),
    st.integers(1, 30),
    st.integers(2, 40),
    st.integers(1, 4),
)
def test_what_layers_make_of_a_size(
    factor: int, offset: int, divisor: int, shift: int, first: int, count: int, step: int
) -> None:
    """Strides, windows, rows of bytes: (size + shift) // divisor * factor + offset."""
    values = range(first, first + count * step, step)
    numbers = [(v + shift) // divisor * factor + offset for v in values]
    text = formula(numbers, values, "size")
    assert text is not None
    assert [value_of(text, v) for v in values] == numbers


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=12), st.integers(1, 5))
def test_no_formula_is_right_for_some_sizes_only(numbers: list[int], first: int) -> None:
    values = range(first, first + len(numbers))
    text = formula(numbers, values, "size")
    if text is not None:
        assert [value_of(text, v) for v in values] == numbers


def _call(steps: int, *, weights: bytes = b"abcd", scratch: int = 8, rate: float = 0.5) -> Call:
    import numpy as np

    params = Struct("p", {"shape": Struct("s", {"steps": steps, "sizes": (3, 2 * steps)}), "rate": rate})
    data = np.frombuffer(weights, np.uint8)
    return Call("kernel", (ParamsArg(),), params, (Constant("weights", data),), scratch)


def test_calls_that_differ_in_numbers_are_one() -> None:
    whole = merged([_call(2, scratch=4), _call(3), _call(4)], range(2, 5), open_code=False)
    assert whole.params is not None
    assert [(path, n, n.numbers) for path, n in varying(whole.params)] == [
        ("shape.steps", 4, (2, 3, 4)),
        ("shape.sizes[1]", 8, (4, 6, 8)),
    ]
    assert (
        merged([_call(2, weights=b"ab"), _call(4)], range(2, 6, 2), open_code=False).constants[0].data.size
        == 4
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (_call(2, weights=b"bcde"), "its weights are others"),
        (_call(2, scratch=12), "more scratch memory at a smaller"),
        (Call("another", (ParamsArg(),), _call(2).params), "it is another"),
        (Call("kernel", (LiteralArg(1),), None), "other arguments"),
    ],
)
def test_other_calls_are_none(other: Call, why: str) -> None:
    with pytest.raises(DifferentCalls, match=why):
        merged([other, _call(4)], range(2, 6, 2), open_code=False)


def test_code_is_opened_where_it_may_be() -> None:
    def made(count: int) -> Call:
        body = (f"  run(x, y, /* pixels */ {count}, {count * 3 - 1}, -7, 3.5f, {count}u, w{count > 99});",)
        return Call(Definition("k", "static void", ("const int8_t *x", "int8_t *y"), body), ())

    calls = [made(count) for count in range(4, 9)]
    whole = merged(calls, range(4, 9), open_code=True)
    assert isinstance(whole.symbol, Definition)
    assert whole.symbol.parameters[-1] == "int32_t size"
    assert whole.args == (SizeArg(),)
    assert whole.symbol.body == (
        "  run(x, y, /* pixels */ (size), (size * 3 - 1), -7, 3.5f, (uint32_t)(size), wFalse);",
    )
    with pytest.raises(DifferentCalls, match="made for one size"):
        merged(calls, range(4, 9), open_code=False)
    array = [Call(Definition("k", "void", (), (f"  int8_t x[{n}];",)), ()) for n in (1, 2)]
    with pytest.raises(DifferentCalls, match="an array in its code"):
        merged(array, range(1, 3), open_code=True)


def test_types_of_fields() -> None:
    text = """
    typedef struct { int32_t in_w, out_w; /* uint8_t x; */ uint32_t shift; int32_t size[6]; const int8_t *w; }
    some_params;
    """
    assert field_types([text])["some_params"] == {
        "in_w": "int32_t",
        "out_w": "int32_t",
        "shift": "uint32_t",
        "size": "int32_t",
    }
    assert Pointer("w") != Pointer("v")
