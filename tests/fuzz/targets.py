# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that are fuzzed. This list is the only place that names them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.board import BoardFiles
from tests.fuzz.frames import Frames
from tests.fuzz.manifest import Manifests
from tests.fuzz.npz import NpzFiles
from tests.fuzz.onnx import OnnxFiles, OnnxFloatFiles
from tests.fuzz.projects import Projects
from tests.fuzz.run import Target
from tests.fuzz.sniffing import SniffedFiles
from tests.fuzz.tet import TetFiles
from tests.fuzz.tflite import TfliteFiles, TfliteFloatFiles

TARGETS: Mapping[str, Callable[[], Target]] = {
    "tet": TetFiles,
    "boards": BoardFiles,
    "npz": NpzFiles,
    "foreign": SniffedFiles,
    "manifests": Manifests,
    "frames": Frames,
    "tflite": TfliteFiles,
    "tflite_float": TfliteFloatFiles,
    "onnx": OnnxFiles,
    "onnx_float": OnnxFloatFiles,
    "projects": Projects,
}
"""By name, what makes a target; it is made once a run."""
