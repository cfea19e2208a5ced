# SPDX-License-Identifier: Apache-2.0
"""What portable kernels say that they read after they write: computed with the output as near as they allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels, attempts
from tests.ops import drawing, drawn, overlapping
from tests.ops.cases import CALLED, Case, run_on_host
from tests.ops.overlapping import Placed
from tests.ops.test_adaptive_avg_pool2d import adaptive_avg_pool2d_nodes
from tests.ops.test_avg_pool2d import avg_pool2d_nodes
from tests.ops.test_concat import concat_nodes
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_conv_transpose2d import conv_transpose2d_nodes
from tests.ops.test_dynamic_conv2d import dynamic_conv2d_nodes
from tests.ops.test_dynamic_linear import dynamic_linear_nodes
from tests.ops.test_expand import expand_nodes
from tests.ops.test_half_even import half_even_nodes, rounded_otherwise
from tests.ops.test_int4 import int4
from tests.ops.test_linear import linear_nodes
from tests.ops.test_linear_single_rounding import linear_single_rounding_nodes
from tests.ops.test_max_pool2d import max_pool2d_nodes
from tests.ops.test_pad import pad_nodes
from tests.ops.test_permute import permute_nodes
from tests.ops.test_resize import resize_nodes
from tests.ops.test_slice import slice_nodes
from tinyet import ops
from tinyet.boards.cpus import HOST, Target
from tinyet.ir import Attrs, DType, Tensor
from tinyet.ops import OPS
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.linear_single_rounding import LinearSingleRounding
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.pad import Pad
from tinyet.ops.resize import Resize
from tinyet.ops.shared.window import Window
from tinyet.ops.slice import Slice

NODES = {
    "windows": (
        conv2d_nodes(),
        conv2d_nodes(kind="depthwise"),
        max_pool2d_nodes(),
        avg_pool2d_nodes(),
        adaptive_avg_pool2d_nodes(),
    ),
    "others": (
        conv2d_nodes(DType.INT8).map(int4),
        conv_transpose2d_nodes(),
        dynamic_conv2d_nodes(),
        linear_nodes(),
        linear_nodes(DType.INT8).map(int4),
        dynamic_linear_nodes(),
        half_even_nodes("conv2d"),
        half_even_nodes("linear"),
        half_even_nodes("int32_accumulator"),
        linear_single_rounding_nodes(),
        resize_nodes(),
        pad_nodes(),
        slice_nodes(),
        permute_nodes(),
        expand_nodes(),
        concat_nodes(),
    ),
}
"""Strategies that are computed by one model."""

STATED = {k.symbol for op in OPS for k in op.kernels if k.access_order is not None}
COPYING = {
    "tinyet_dynamic_conv2d_f32",
    "tinyet_dynamic_depthwise_f32",
    "tinyet_dynamic_linear_f32",
    "tinyet_copy",
}
"""Kernels that have read everything before they write: they may lie at any distance."""


def placed(cases: Sequence[Case], target: Target, less: float = 0) -> list[Placed]:
    """By every portable kernel that takes a case and states an access order of one of its inputs; `less` rows of that
    input too near."""
    found = []
    for case in cases:
        variables = [(i, t) for i, t in enumerate(case.node.inputs) if t is not None and not t.is_constant]
        for kernel in ops.op_of(case.node).kernels:
            if kernel.why_not(case.node, target):
                continue
            for index, x in variables:
                distance = overlapping.stated(case, kernel, index)
                if distance is not None:
                    *_, width, channels = (1, 1, *x.shape)
                    values = round(less * width) * channels
                    found.append(Placed(case, kernel, distance - values * x.dtype.bytes, index))
    return found


def lists(name: str) -> st.SearchStrategy[list[Case]]:
    """Equally many cases of each strategy."""
    count = 50 // len(NODES[name])
    each = st.tuples(*(st.lists(nodes, min_size=count, max_size=count) for nodes in NODES[name]))
    return each.map(lambda lists: [case for cases in lists for case in cases])


@pytest.mark.parametrize("name", NODES)
def test_host(name: str) -> None:
    """Under ASan and UBSan."""
    near: list[int] = []

    @drawing.emulated
    @given(lists(name))
    def run(cases: list[Case]) -> None:
        found = [attempt for case in cases for attempt in attempts(case, ops.op_of(case.node).kernels)]
        near.extend(shared.distance for attempt in found for shared in attempt.placement.shared)
        assert_kernels(cases)

    run()
    assert any(near)


@st.composite
def steep(draw: st.DrawFn, dtype: DType) -> list[Case]:
    """Layers of which every output pixel lies behind what it is made of, where it lies over the input."""
    shape = (2, 5, 6, 7)
    pixels = draw(drawing.activations("x", shape, dtype))
    # Winograd's kernel reads this one once, whose weights have room as they are transformed, and four tiles at a time.
    image = draw(drawing.activations("x", (1, 16, 16, 4), dtype))
    around: dict[str, Any] = {f"pad_{side}": 1 for side in ("top", "bottom", "left", "right")}

    def case(attrs: Attrs, weights: tuple[int, ...] = (), x: Tensor = pixels) -> Case:
        inputs, quant = [x], x.type.quant
        if weights:
            w = draw(drawing.weights(weights, dtype))
            inputs, quant = [x, w], draw(drawing.quants_of_sums(x, w))
        return Case(
            drawing.node_of(attrs, inputs, quant), (drawing.data(drawing.random(draw), x.shape, dtype),)
        )

    return [
        case(Conv2d(**around), (9, 3, 3, 7)),
        case(Conv2d(**around), (4, 3, 3, 4), image),
        case(Conv2d(), (7, 1, 1, 7)),
        case(Conv2d(**around, groups=7), (7, 3, 3, 1)),
        case(MaxPool2d(**around, kernel_h=3, kernel_w=3)),
        case(AvgPool2d(**around, kernel_h=3, kernel_w=3)),
        case(AdaptiveAvgPool2d(8, 11)),
        case(ConvTranspose2d(**around), (7, 3, 3, 7)),
        case(Linear(), (9, 7)),
        case(Resize(9, 11, "nearest", False, False, 5 / 9, 6 / 11)),
        case(Resize(9, 11, "bilinear", False, False, 5 / 9, 6 / 11)),
        case(Pad(((0, 0), (1, 1), (1, 1), (0, 0)))),
        case(Slice(2, 0, 5)),
        drawn.case_of(
            Concat(3),
            [replace(pixels.type, shape=(*shape[:-1], channels)) for channels in (2, 7, 3)],
            pixels.type,
            draw(drawn.seeds),
        ),
    ]


def other_layers(case: Case) -> list[Case]:
    """The same layer of integers by other roundings, those of operators of their own among them."""
    once = [case.node.replace(attrs=LinearSingleRounding())] if isinstance(case.node.attrs, Linear) else []
    return rounded_otherwise(case) + [Case(node, case.inputs) for node in once]


@settings(drawing.emulated, derandomize=True, max_examples=1)
@given(st.tuples(steep(DType.INT8), steep(DType.INT16), steep(DType.FLOAT32)))
def test_too_near_is_caught(cases: tuple[list[Case], ...]) -> None:
    """Statements that are two pixels short: some leave one to spare, since a channel is read before it is written.
    Those of kernels that go by rows, or by tiles of four pixels, leave more."""
    all_cases = [case for some in cases for case in some]
    all_cases += [int4(case) for case in cases[0] if isinstance(case.node.attrs, (Conv2d, Linear))]
    all_cases += [other for case in (*cases[0], *cases[1]) for other in other_layers(case)]

    def caught(less: float) -> set[str]:
        # Copies of bytes over themselves would be an error of the sanitizers.
        lines = overlapping.wrong(placed(all_cases, HOST, less), HOST, partial(run_on_host, extra=CALLED))
        return {line.split(":")[0] for line in lines}

    assert not caught(0)
    assert caught(3) == STATED - COPYING
    assert STATED - COPYING - caught(2 / 6) <= {
        "tinyet_conv2d_s8_w16_winograd_f4x4",
        "tinyet_conv2d_s8_winograd_f4x4",
        "tinyet_pad",
        "tinyet_strided_copy_x8",
        "tinyet_strided_copy_x16",
        "tinyet_strided_copy_x32",
    }


def test_every_kernel_of_a_window_says_what_it_reads() -> None:
    windows = {k.symbol for op in OPS if issubclass(op.attrs, Window) for k in op.kernels}
    by_planes = {
        "tinyet_depthwise_s8_bytes",
        "tinyet_depthwise_s8_bytes_3x3",
        "tinyet_depthwise_s8_chw_3x3",
        "tinyet_depthwise_s8_chw_3x3_2x1",
        "tinyet_depthwise_s8_chw_3x3_fives",
        "tinyet_depthwise_s8_chw_3x3_threes",
        "tinyet_depthwise_s8_chw_3x3_twos",
        "tinyet_depthwise_s8_cwh_3x3_2x1",
    }
    assert windows - STATED == by_planes, "they take a channel at a time"
