# SPDX-License-Identifier: Apache-2.0
"""The kernels of the delegate cmsis_nn, as plain C under sanitizers. As machine code:
tests/emulated/test_own_functions.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests.calls.exact import assert_drawn
from tests.delegates.cmsis_nodes import NODES, only
from tests.ops import drawing
from tests.ops.cases import Case
from tinyet import assets
from tinyet.boards.cpus import Target
from tinyet.delegates import CMSIS_NN, Delegate
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.mul import Mul
from tinyet.ops.softmax import Softmax

pytestmark = pytest.mark.skipif(
    assets.cmsis_nn_dir() is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)

DSP = Target("cortex-m4", frozenset({"dsp"}))
MVE = Target("cortex-m55", frozenset({"dsp", "mve"}))

ONLY_MVE = {"arm_convolve_1_x_n_s8", "arm_elementwise_mul_s16"}
"""Functions that the delegate does not take for DSP; int16 products it takes elsewhere, too."""

FUNCTIONS = {k.symbol for kernels in CMSIS_NN.kernels.values() for k in kernels}


def takes(delegate: Delegate, target: Target, case: Case) -> bool:
    kernels = delegate.kernels.get(type(case.node.attrs), ())
    return any(kernel.why_not(case.node, target) is None for kernel in kernels)


def check(function: str, target: Target) -> None:
    alone = only(function)
    drawn = settings(max_examples=2, deadline=None)
    assert_drawn(drawing.many(NODES[function]()), drawn, alone, target, partial(takes, alone, target))


def test_every_function_has_nodes() -> None:
    assert set(NODES) == FUNCTIONS


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_host(function: str) -> None:
    """The library as plain C under ASan and UBSan; also functions that would not be chosen."""
    check(function, MVE if function in ONLY_MVE else DSP)


@pytest.mark.parametrize(
    "function", ["arm_convolve_s8", "arm_fully_connected_per_channel_s8", "arm_convolve_s16"]
)
def test_host_with_the_constants_of_mve(function: str) -> None:
    """A project for a core with MVE computes the same on the host, where it is plain C."""
    check(function, MVE)


# ---------------------------------------------------------------- what goes wrong in the library


def image(shape: tuple[int, ...], dtype: DType = DType.INT8, scale: float = 0.1) -> Tensor:
    return Tensor("x", TensorType(shape, dtype, QuantParams.per_tensor(scale, 0)))


def convolution(
    x: Tensor, weights: tuple[int, ...], value: int = 1, out_scale: float = 1.0, **attrs: Any
) -> Node:
    w = constant("w", np.full(weights, value, np.int8), QuantParams((0.1,), (0,)))
    return drawing.node_of(Conv2d(**attrs), [x, w, None], QuantParams.per_tensor(out_scale, 0))


def reason(function: str, node: Node, target: Target) -> str:
    """Why a function of the library does not take a node; empty where it does."""
    (found,) = (k for k in CMSIS_NN.kernels[type(node.attrs)] if k.symbol == function)
    return found.why_not(node, target) or ""


def test_depthwise_edges() -> None:
    """The middle of a 3x3 kernel right of the image; a kernel above it."""
    x = image((1, 5, 5, 4))
    assert not reason("arm_depthwise_conv_3x3_s8", convolution(x, (4, 3, 3, 1), groups=4, pad_right=1), DSP)
    node = convolution(x, (4, 3, 3, 1), groups=4, pad_right=2)
    assert "middle lies in the image" in reason("arm_depthwise_conv_3x3_s8", node, DSP)
    assert not reason("arm_depthwise_conv_s8_opt", node, DSP)
    for pads in ({"pad_top": 2}, {"pad_bottom": 2}):
        node = convolution(x, (4, 2, 2, 1), groups=4, **pads)
        assert "wholly above or below" in reason("arm_depthwise_conv_s8_opt", node, DSP)
        assert not reason("arm_depthwise_conv_s8_opt", node, MVE)
        assert not reason("arm_depthwise_conv_s8", node, DSP)


def test_one_row_edges() -> None:
    """The row's padding on both sides, and a stride that passes the row's end."""
    x = image((1, 1, 9, 4))
    even = convolution(x, (2, 1, 3, 4), pad_left=1, pad_right=1)
    assert not reason("arm_convolve_1_x_n_s8", even, MVE)
    assert "only MVE" in reason("arm_convolve_1_x_n_s8", even, DSP)
    uneven = convolution(x, (2, 1, 3, 4), pad_right=2)
    assert "on both sides" in reason("arm_convolve_1_x_n_s8", uneven, MVE)
    passing = convolution(x, (2, 1, 3, 4), stride_w=3)
    assert "edge" in reason("arm_convolve_1_x_n_s8", passing, MVE)
    assert not reason("arm_convolve_s8", uneven, MVE)


def test_sums_that_do_not_fit() -> None:
    """An output scale for which the sums are shifted left, until they reach 2**30."""
    x = image((1, 1, 1, 4000))
    assert not reason("arm_convolve_s8", convolution(x, (1, 1, 1, 4000), 127), DSP)
    node = convolution(x, (1, 1, 1, 4000), 127, out_scale=0.001)
    assert "could leave 31 bits" in reason("arm_convolve_s8", node, DSP)


def test_grouped_1x1_gets_its_scratch_memory() -> None:
    node = convolution(image((1, 3, 3, 8)), (8, 1, 1, 4), groups=2)
    call = next(k for k in CMSIS_NN.kernels[Conv2d] if k.why_not(node, DSP) is None).lower(node, DSP)
    assert call.kernel == "arm_convolve_s8"
    assert call.scratch_bytes == 16


def test_softmax_limits() -> None:
    def softmax(depth: int, scale: float, out_scale: float = 1 / 256) -> Node:
        x = image((1, depth), scale=scale)
        return drawing.node_of(Softmax(1), [x], QuantParams.per_tensor(out_scale, -128))

    assert not reason("arm_softmax_s8", softmax(511, 0.1), DSP)
    assert "more than 511" in reason("arm_softmax_s8", softmax(512, 0.1), DSP)
    assert "only below 16" in reason("arm_softmax_s8", softmax(3, 16.0), DSP)
    assert "only 0.00390625 with" in reason("arm_softmax_s8", softmax(3, 0.1, 1 / 300), DSP)


def test_the_largest_int16_product() -> None:
    a, b = (image((3,), DType.INT16, 0.01) for _ in range(2))
    node = drawing.node_of(Mul(), [a, b], QuantParams.per_tensor(1.0, 0))
    assert "one more than" in reason("arm_elementwise_mul_s16", node, DSP)
    assert not reason("arm_elementwise_mul_s16", node, MVE)
