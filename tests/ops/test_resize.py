# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.resize import Resize, ResizeMode, attrs_of


def ratio(size: int, out: int, align_corners: bool) -> float:
    if align_corners:
        return float(np.float32(size - 1) / np.float32(out - 1)) if out > 1 else 0.0
    return float(np.float32(size) / np.float32(out))


@st.composite
def resize_nodes(
    draw: st.DrawFn, dtype: DType | None = None, mode: ResizeMode | None = None, free_ratio: bool = True
) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = (*draw(drawing.images), draw(st.sampled_from((1, 3, 5, 17))))
    x = draw(drawing.activations("x", shape, kind))
    out_h, out_w = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    align, half = draw(st.sampled_from(((False, False), (True, False), (False, True))))
    ratios = [ratio(size, out, align) for size, out in ((shape[1], out_h), (shape[2], out_w))]
    if free_ratio and draw(st.integers(0, 3)) == 0:
        ratios = [draw(st.floats(0, 3, width=32)), draw(st.floats(0, 3, width=32))]
    modes: tuple[ResizeMode, ...] = ("nearest", "bilinear")
    chosen = draw(st.sampled_from(modes if mode is None else (mode,)))
    node = drawing.node_of(Resize(out_h, out_w, chosen, align, half, *ratios), [x], x.type.quant)
    return Case(node, (drawing.data(drawing.random(draw), shape, kind),))


test_host = bodies.host(resize_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: resize_nodes(d, free_ratio=False)))
def test_litert(case: Case) -> None:
    a, x, out = attrs_of(case.node), case.inputs[0], case.node.output.type
    if a.align_corners and min(a.out_h, a.out_w) == 1:
        # LiteRT falls back to the plain ratio there; PyTorch's is 0, and both read sample 0.
        a = dataclasses.replace(a, align_corners=False)
    (want,) = litert.run(
        "RESIZE_NEAREST_NEIGHBOR" if a.mode == "nearest" else "RESIZE_BILINEAR",
        [
            litert.TensorSpec(x.shape, x.dtype, out.scale, out.zero_point, data=x),
            litert.TensorSpec((2,), np.int32, data=[a.out_h, a.out_w]),
        ],
        [litert.TensorSpec(out.shape, x.dtype, out.scale, out.zero_point)],
        align_corners=attrs_of(case.node).align_corners,
        half_pixel_centers=a.half_pixel,
    )
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(resize_nodes(DType.FLOAT32, free_ratio=False))
def test_torch(case: Case) -> None:
    """Nearest is exact. Bilinear sums four products of magnitude 15 in another order, which is good for 1e-5; and where
    torch computes a position below 16 with one rounding (a fused product and sum) instead of two, it is off by 2**-20,
    and the value by so much of the difference of two neighbours, at most 30: within 4e-5."""
    torch = pytest.importorskip("torch")
    a = attrs_of(case.node)
    x, size = torch.from_numpy(case.inputs[0]).permute(0, 3, 1, 2), (a.out_h, a.out_w)
    if a.mode == "nearest":
        if a.align_corners:
            return
        mode = "nearest-exact" if a.half_pixel else "nearest"
        want = torch.nn.functional.interpolate(x, size, mode=mode)
    elif a.half_pixel or a.align_corners:
        want = torch.nn.functional.interpolate(x, size, mode="bilinear", align_corners=a.align_corners)
    else:
        return
    want = want.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(
        drawing.reference(case), want, rtol=0, atol=4e-5 if a.mode == "bilinear" else 0
    )


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((1, 4, 4, 1), Resize(0, 4, "nearest", False, False, 1, 1), "to 0x4 pixels"),
        ((1, 4, 4, 1), Resize(4, 4, "bilinear", True, True, 1, 1), "exclude each other"),
        ((1, 4, 4, 1), Resize(4, 4, "bilinear", False, True, -1, 1), "ratios -1 and 1"),
        ((4, 4, 1), Resize(4, 4, "nearest", False, False, 1, 1), "must have 4 dimensions"),
    ],
)
def test_shape_errors(shape: tuple[int, ...], attrs: Resize, words: str) -> None:
    x = tensor("x", shape, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, (x,), (x,)))
