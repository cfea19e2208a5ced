# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's answers, if it is installed: for comparison.

Its answers depend on its optimization level. By default it makes integer operators of the nodes between
DequantizeLinear and QuantizeLinear; the importer follows these bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from tinyet.errors import DataError, ToolchainError
from tinyet.files.reading import read_bounded
from tinyet.importers.onnx.read import MAX_FILE_BYTES
from tinyet.ir import Array

Level = Literal["ORT_ENABLE_ALL", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL"]
"""Of ONNX Runtime's optimizations (GraphOptimizationLevel), the default first."""

LEVELS: tuple[Level, ...] = get_args(Level)


def run_onnxruntime(
    model: str | Path | bytes, inputs: Mapping[str, Array], level: Level = "ORT_ENABLE_ALL"
) -> list[Array]:
    """The outputs of a model, a path or a file's bytes, for one sample: arrays by the names of the model's inputs, in
    the model's own types.

    One thread; level: how far it optimizes. int8 stays int8: on x86-64, ONNX Runtime makes uint8 of some int8
    activations, unless it is told not to (session.qdqisint8allowed), and then computes a sum or product of an int8 and
    a uint8 in float32. Raises ToolchainError without the `onnxruntime` package, DataError for models or samples that
    it refuses.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ToolchainError(
            f"comparing with ONNX Runtime needs the onnxruntime package: {error}",
            hint="pip install onnxruntime",
        ) from error
    data = model if isinstance(model, bytes) else read_bounded(model, MAX_FILE_BYTES)

    def answer(precise: str) -> list[Array]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.add_session_config_entry("session.x64quantprecision", precise)
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        found: list[Array] = session.run(None, dict(inputs))
        return found

    # Processors without VNNI add pairs of products of uint8 and int8 in int16, which saturates, unless they are told
    # to be precise; pure int8 is exact, and has no kernel then. ONNX Runtime's own exceptions, and those of its
    # bindings, have no common base.
    try:
        return answer("1")
    except Exception:  # noqa: BLE001 - asked again, and what that raises is told
        try:
            return answer("0")
        except Exception as error:
            raise DataError(f"ONNX Runtime refuses: {str(error)[:300]}") from error
