# SPDX-License-Identifier: Apache-2.0
"""The .tflite file: what stands in it, read with nothing believed; what it means, the importer knows."""

from __future__ import annotations

from tinyet.tflite.read import MAX_FILE_BYTES, read_file, read_model
from tinyet.tflite.records import Model, Operator, Quantization, Runtime, Signature, Subgraph, TensorInfo

__all__ = [
    "MAX_FILE_BYTES",
    "Model",
    "Operator",
    "Quantization",
    "Runtime",
    "Signature",
    "Subgraph",
    "TensorInfo",
    "read_file",
    "read_model",
]
