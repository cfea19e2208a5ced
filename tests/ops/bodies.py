# SPDX-License-Identifier: Apache-2.0
"""The tests that nearly every operator has, made of its cases: `test_host = bodies.host(lists_of_cases)`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.exact import assert_drawn, assert_kernels
from tests.ops import drawing, elementwise
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Attrs, DType, Node, constant
from tinyet.ops.shared.clamped import Clamped
from tinyet.opset import Op, signature

Test = Callable[..., None]
Nodes = st.SearchStrategy[Case]
Lists = st.SearchStrategy[list[Case]]

needs_litert = pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")


# ---------------------------------------------------------------- C against the reference


def host(nodes: Nodes, dtypes: str | None = None) -> Test:
    """Every portable kernel that takes a node, not only the one that would be chosen, on this machine; with its memory
    in every way that a plan may lay it. dtypes: what the nodes are, as kernels name it."""

    @drawing.called
    @given(nodes)
    def test(case: Case) -> None:
        assert dtypes in (None, signature(case.node))
        assert_kernels([case])

    return test


def batches(lists: Lists, examples: int = 4) -> Test:
    """The same of kernels whose C is made for each call; all lists are one compilation."""

    def test() -> None:
        assert_drawn(lists, settings(max_examples=examples, deadline=None))

    return test


def one_kernel(op: Op, symbol: str, nodes: Nodes) -> Test:
    """The kernel of this name takes all nodes, whichever would be chosen."""

    @drawing.called
    @given(nodes)
    def test(case: Case) -> None:
        kernel = next(k for k in op.kernels if k.symbol == symbol)
        assert_kernels([case], [kernel])

    return test


# ---------------------------------------------------------------- the reference against others


def equals_litert(name: str, cases: st.SearchStrategy[Case]) -> Test:
    """LiteRT's operator of this name, with the activation that is fused where there is one: equal."""

    @drawing.quick
    @given(cases)
    def test(case: Case) -> None:
        attrs = case.node.attrs
        options: dict[str, litert.Option] = {}
        if isinstance(attrs, Clamped):
            options["activation"] = elementwise.ACTIVATIONS[attrs.clamp]
        want = elementwise.run_litert(name, case, **options)
        assert np.array_equal(elementwise.reference(case), want)

    marked: Test = needs_litert(test)
    return marked


def equals_torch(function: Callable[..., object], cases: st.SearchStrategy[Case]) -> Test:
    """One IEEE operation, or a choice: equal, NaN included."""

    @drawing.quick
    @given(cases)
    def test(case: Case) -> None:
        elementwise.matches_torch(case, function)

    return test


# ---------------------------------------------------------------- refusals


def expect_shape_error(
    attrs: Attrs, x: tuple[int, ...], weights: tuple[int, ...], bias: tuple[int, ...] | None, words: str
) -> None:
    """That a float layer of these shapes is refused, with these words."""
    inputs = [tensor("x", x, DType.FLOAT32), constant("w", np.zeros(weights, np.float32))]
    inputs += [] if bias is None else [constant("b", np.zeros(bias, np.float32))]
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, tuple(inputs), (tensor("y", (1,), DType.FLOAT32),)))
