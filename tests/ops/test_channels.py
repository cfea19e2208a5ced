# SPDX-License-Identifier: Apache-2.0
"""An operator without some channels computes what it did, without these, bit for bit, by its reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from tests.ops import drawing
from tests.ops.cases import Case
from tests.ops.strategies import strategy_of
from tinyet import ops
from tinyet.ir import Array, Node, Tensor
from tinyet.opset import complaints
from tinyet.passes.prune_rules import Cut, Flow, Index, Unions, flow_of, narrow

NAMES = [op.name for op in ops.OPS]


UNFOLLOWED = {"biquads", "svdf", *(op.name for op in ops.OPS if op.name.startswith("signal_"))}
"""Of these some are; nothing is said of them."""


def axes_of(node: Node, axis: int) -> dict[Tensor, int]:
    """Each computed input has its channels on this axis, counted from the last; all that have it."""
    computed = [t for t in node.inputs if t is not None and not t.is_constant]
    return {t: len(t.shape) - 1 - axis for t in computed if len(t.shape) > axis}


def groups_of(node: Node, flow: Flow, axes: Mapping[Tensor, int]) -> dict[Tensor, Index]:
    """The group of each channel of the output and the linked inputs, of which a whole one may go."""
    assert flow.axis is not None
    tensors = dict.fromkeys((node.output, *(node.input(link.index) for link in flow.links)))
    sizes = {t: t.shape[flow.axis if t is node.output else axes[t]] for t in tensors}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    unions = Unions(sum(sizes.values()))
    for link in flow.links:
        unions.join(link.source + starts[node.input(link.index)], link.target + starts[node.output])
    roots = unions.roots()
    return {t: roots[start : start + sizes[t]] for t, start in starts.items()}


def kept_of(node: Node, flow: Flow, axes: Mapping[Tensor, int], seed: int) -> dict[Tensor, Index]:
    """About half of what may go does; of each value one channel stays."""
    if flow.axis is None:
        return {}
    groups = groups_of(node, flow, axes)
    stay = set(groups[node.output][flow.fixed].tolist())
    rng, kept = np.random.default_rng(seed), dict[Tensor, Index]()
    stay |= {g for own in groups.values() for g in own.tolist() if rng.random() < 0.5}
    stay |= {own[0] for own in groups.values() if not stay & set(own.tolist())}
    for tensor, own in groups.items():
        mask = np.isin(own, list(stay))
        if not mask.all():
            kept[tensor] = np.flatnonzero(mask)
    return kept


@pytest.mark.parametrize("name", NAMES)
def test_without_channels(name: str) -> None:
    @settings(max_examples=15, deadline=None)
    @given(strategy_of(name), st.integers(0, 3), st.integers(0, 2**32 - 1))
    def check(case: Case, axis: int, seed: int) -> None:
        node, axes = case.node, axes_of(case.node, axis)
        # A tensor that is read twice is given once.
        if len(set(node.inputs)) < len(node.inputs):
            return
        flow = flow_of(node, axes)
        if flow is None:
            return
        kept = kept_of(node, flow, axes, seed)
        rest = iter(case.inputs)
        given_ = {t: t.array if t.is_constant else next(rest) for t in node.inputs if t is not None}
        zeros = False
        for product in flow.products:
            # A channel of zeros, of more than one, makes no difference.
            x, other = node.input(product.index), node.input(product.other)
            size = x.shape[product.axis]
            if size > 1 and x not in kept:
                quant = x.type.quant
                moved = np.moveaxis(given_[x].copy(), product.axis, 0)
                moved[seed % size] = 0 if quant is None else quant.one_zero_point
                given_[x], zeros = np.moveaxis(moved, 0, product.axis), True
                kept[x] = np.delete(np.arange(size), seed % size)
                if not other.is_constant:
                    kept[other] = kept[x]
        where = dict(axes) if flow.axis is None else {**axes, node.output: flow.axis}
        small = narrow(node, Cut(where, kept))
        assert not complaints(ops.op_of(small), small)

        def taken(tensor: Tensor, values: Array) -> Array:
            return values.take(kept[tensor], where[tensor]) if tensor in kept else values

        whole = [None if t is None else given_[t] for t in node.inputs]
        narrower: list[Array | None] = []
        for old, new in zip(node.inputs, small.inputs, strict=True):
            if old is None or new is None:
                narrower.append(None)
            else:
                narrower.append(
                    new.array if old.is_constant else np.ascontiguousarray(taken(old, given_[old]))
                )
        with np.errstate(all="ignore"):
            results = zip(node.outputs, ops.evaluate(node, whole), ops.evaluate(small, narrower), strict=True)
        for tensor, want, got in results:
            if zeros:
                # In float a sum of nothing but zeros may have either sign, and infinity times 0 is no number.
                equal = (taken(tensor, want) == got) | ~np.isfinite(taken(tensor, want))
                assert equal.all()
            else:
                assert taken(tensor, want).tobytes() == got.tobytes()

    check()


@pytest.mark.parametrize("name", sorted(set(NAMES) - UNFOLLOWED))
def test_who_is_followed(name: str) -> None:
    def follows(case: Case) -> bool:
        found = (flow_of(case.node, axes_of(case.node, axis)) for axis in range(4))
        return any(flow is not None and (flow.links or flow.weights or flow.products) for flow in found)

    find(strategy_of(name), follows, settings=drawing.exists)
