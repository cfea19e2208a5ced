# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models, quantized by ONNX Runtime's own quantizer, and what ONNX Runtime computes with them."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array
from tinyet.program import Program

onnx: Any = pytest.importorskip("onnx")
helper: Any = onnx.helper
OPSET = 17

Float32 = npt.NDArray[np.float32]


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """A node called after its output."""
    return helper.make_node(op, list(inputs), [output], name=f"net/{output}", **attributes)


def value(name: str, shape: Sequence[int | str] | None, dtype: int | None = None) -> Any:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT if dtype is None else dtype, shape)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    opset: int = OPSET,
) -> Any:
    """A float model; `inputs` gives their shapes."""
    given = [onnx.numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()]
    graph = helper.make_graph(
        list(nodes),
        "net",
        [value(name, shape) for name, shape in inputs.items()],
        [value(name, None) for name in outputs],
        given,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def saved(proto: Any, directory: Path, name: str = "net.onnx") -> Path:
    path = directory / name
    path.write_bytes(proto.SerializeToString())
    return path


class _Reader:
    """What the quantizer calibrates with."""

    def __init__(self, samples: Sequence[Mapping[str, Float32]]) -> None:
        self._rest = iter(samples)

    def get_next(self) -> Mapping[str, Float32] | None:
        return next(self._rest, None)


def quantized(
    proto: Any,
    samples: Sequence[Mapping[str, Float32]],
    kind: str = "s8s8",
    per_channel: bool = False,
    form: str = "QDQ",
    **options: Any,
) -> Any:
    """By quantize_static. form: QDQ or QOperator. kind: s8s8, u8s8, u8u8, s16s8 or u16s8, activations and
    weights."""
    pytest.importorskip("onnxruntime")
    from onnxruntime import quantization as q

    types = {
        "s8": q.QuantType.QInt8, "u8": q.QuantType.QUInt8, "s16": q.QuantType.QInt16, "u16": q.QuantType.QUInt16,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source, out = saved(proto, Path(folder)), Path(folder) / "quantized.onnx"
        logging.disable(logging.WARNING)
        try:
            q.quantize_static(
                str(source),
                str(out),
                _Reader(samples),
                quant_format=q.QuantFormat[form],
                activation_type=types[kind[:-2]],
                weight_type=types[kind[-2:]],
                per_channel=per_channel,
                **options,
            )
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(str(out))


def expect_equal(program: Program, proto: Any, samples: Sequence[Mapping[str, Float32]]) -> None:
    """Every output of every sample, as real numbers, bit for bit. The inputs are quantized as ONNX Runtime does."""
    for sample in samples:
        given = []
        for tensor, x in zip(program.inputs, sample.values(), strict=True):
            if tensor.type.quant is None:
                given.append(x)
                continue
            steps = np.rint(x / np.float32(tensor.type.scale)) + tensor.type.zero_point
            given.append(np.clip(steps, -128, 127).astype(np.int8))
        results = program.run(*given, as_float=True)
        results = results if isinstance(results, list) else [results]
        for found, wanted in zip(results, run_onnxruntime(proto.SerializeToString(), sample), strict=True):
            np.testing.assert_array_equal(found, wanted)
