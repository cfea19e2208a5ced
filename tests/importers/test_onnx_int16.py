# SPDX-License-Identifier: Apache-2.0
"""Models with activations of 16 bits and weights of 8: tinyet's int16 operators, with the file's scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, model, node, quantized, saved
from tinyet.errors import UnsupportedShape
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array, DType
from tinyet.opening.files import from_onnx

pytest.importorskip("onnxruntime")


def normal(rng: np.random.Generator, *shape: int) -> Float32:
    return rng.standard_normal(shape).astype(np.float32)


def images(rng: np.random.Generator) -> Any:
    nodes = [
        node("Conv", ["x", "v", "b"], "c", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], "r"),
        node("Conv", ["r", "w"], "d", group=4, pads=[1, 1, 1, 1]),
        node("Add", ["r", "d"], "a"),
        node("MaxPool", ["a"], "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["m"], "g"),
        node("Flatten", ["g"], "f"),
        node("Gemm", ["f", "u", "e"], "l", transB=1),
        node("Sigmoid", ["l"], "y"),
    ]
    constants: dict[str, Array] = {
        "v": normal(rng, 4, 3, 3, 3), "b": normal(rng, 4), "w": normal(rng, 4, 1, 3, 3), "u": normal(rng, 5, 4),
        "e": normal(rng, 5),
    }  # fmt: skip
    return model(nodes, {"x": (1, 3, 8, 8)}, constants)


SYMMETRIC = {"ActivationSymmetric": True}


def samples_of(rng: np.random.Generator, *shape: int) -> list[dict[str, Float32]]:
    return [{"x": normal(rng, *shape)} for _ in range(6)]


@pytest.mark.parametrize("kind", ["s16s8", "u16s8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_beside_onnxruntime(kind: str, per_channel: bool, tmp_path: Path) -> None:
    """All layers in int16; ONNX Runtime computes in float32, and answers the same but for single steps."""
    rng = np.random.default_rng(3)
    samples = samples_of(rng, 1, 3, 8, 8)
    proto = quantized(images(rng), samples, kind, per_channel, extra_options=SYMMETRIC)
    program = from_onnx(saved(proto, tmp_path))
    assert {t.dtype for n in program.graph.nodes for t in n.outputs} == {DType.INT16}
    assert [t.dtype for t in program.inputs] == [DType.INT16]
    (conv, depthwise) = [n for n in program.graph.nodes if n.op == "conv2d"]
    assert conv.input(1).dtype is depthwise.input(1).dtype is DType.INT8
    quant = conv.input(1).type.quant
    assert quant is not None
    assert len(quant.scale) == (4 if per_channel else 1)
    assert conv.where == "net.c (net.onnx:7): node 7, Conv"
    (note,) = program.notes
    assert "values of 16 bits are computed in integers" in note.text
    step = program.outputs[0].type.scale
    for sample in samples:
        (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
        found = np.asarray(program.run(sample["x"], as_float=True), np.float64)
        assert np.abs(found - np.asarray(wanted, np.float64)).max() <= 1.01 * step
        assert np.abs(wanted).max() > 1000 * step


def test_floats_at_the_border(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    samples = samples_of(rng, 1, 3, 8, 8)
    path = saved(quantized(images(rng), samples, "s16s8", extra_options=SYMMETRIC), tmp_path)
    program = from_onnx(path, float_io=True)
    assert [t.dtype for t in (*program.inputs, *program.outputs)] == [DType.FLOAT32] * 2
    assert [n.op for n in program.graph.nodes][-1] == "dequantize"


def test_products_of_activations(tmp_path: Path) -> None:
    """As of attention: both operands are values. From ORT_ENABLE_EXTENDED on, ONNX Runtime makes 8 bits of what is
    multiplied by constant weights of 8 bits."""
    rng = np.random.default_rng(4)
    nodes = [
        node("MatMul", ["x", "w"], "q"),
        node("Transpose", ["q"], "t", perm=[0, 2, 1]),
        node("MatMul", ["x", "t"], "m"),
        node("Softmax", ["m"], "s", axis=-1),
        node("MatMul", ["s", "x"], "y"),
    ]
    samples = samples_of(rng, 1, 6, 4)
    proto = quantized(
        model(nodes, {"x": (1, 6, 4)}, {"w": normal(rng, 4, 4)}), samples, "s16s8", extra_options=SYMMETRIC
    )
    program = from_onnx(saved(proto, tmp_path))
    assert {t.dtype for n in program.graph.nodes for t in n.outputs} == {DType.INT16}
    step = program.outputs[0].type.scale
    for sample in samples:
        (wanted,) = run_onnxruntime(proto.SerializeToString(), sample, "ORT_ENABLE_BASIC")
        found = np.asarray(program.run(sample["x"], as_float=True), np.float64)
        # Steps of each layer add up on the way.
        assert np.abs(found - np.asarray(wanted, np.float64)).max() <= 8 * step
        assert np.abs(wanted).max() > 1000 * step


def test_what_is_not_symmetric_or_exact_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    samples = [{"x": np.abs(normal(rng, 1, 3, 8, 8))} for _ in range(3)]
    path = saved(quantized(images(rng), samples, "s16s8"), tmp_path)
    with pytest.raises(UnsupportedShape, match="layers of 16 bits are symmetric") as refused:
        from_onnx(path)
    assert '"ActivationSymmetric": True' in str(refused.value)
    path = saved(quantized(images(rng), samples, "u16s8", extra_options=SYMMETRIC), tmp_path)
    with pytest.raises(UnsupportedShape, match="values of 16 bits are computed in integers"):
        from_onnx(path, exact=True)
