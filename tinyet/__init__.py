# SPDX-License-Identifier: Apache-2.0
"""tinyet turns a PyTorch model into int8 firmware in plain C.

The public names below are loaded on first use, so that `import tinyet` stays fast and needs no torch. No module of the
package has the name of one of them, so importing a module never changes what a name is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyet.version import __version__

if TYPE_CHECKING:
    from tinyet.analysis import Analysis as Analysis
    from tinyet.analysis import analyze as analyze
    from tinyet.anomaly.drift import with_drift as with_drift
    from tinyet.anomaly.threshold import with_flag as with_flag
    from tinyet.auditing.audit import Audit as Audit
    from tinyet.auditing.audit import audit as audit
    from tinyet.boards import Board as Board
    from tinyet.boards import load_board as load_board
    from tinyet.comparison.compare import Comparison as Comparison
    from tinyet.comparison.compare import compare as compare
    from tinyet.compiler import compile as compile  # noqa: A004
    from tinyet.custom import Form as Form
    from tinyet.custom import custom_op as custom_op
    from tinyet.data import Data as Data
    from tinyet.delegates import Delegate as Delegate
    from tinyet.delegates import register_delegate as register_delegate
    from tinyet.errors import TinyetError as TinyetError
    from tinyet.errors import TinyetWarning as TinyetWarning
    from tinyet.fx.entry_points import entry as entry
    from tinyet.importers.torch.streamed import streaming as streaming
    from tinyet.lowering import lower as lower
    from tinyet.opening import open as open  # noqa: A004
    from tinyet.opening.classical import from_lightgbm as from_lightgbm
    from tinyet.opening.classical import from_sklearn as from_sklearn
    from tinyet.opening.classical import from_xgboost as from_xgboost
    from tinyet.opening.classical import sklearn_to_torch as sklearn_to_torch
    from tinyet.opening.diagnosing import diagnose as diagnose
    from tinyet.opening.files import from_onnx as from_onnx
    from tinyet.opening.files import from_tflite as from_tflite
    from tinyet.opening.training import prepare_training as prepare_training
    from tinyet.program import Program as Program
    from tinyet.program import load as load
    from tinyet.project import Project as Project
    from tinyet.projects import generate as generate
    from tinyet.projects import open_project as open_project
    from tinyet.projects.together import TogetherProject as TogetherProject
    from tinyet.projects.together import TogetherValidation as TogetherValidation
    from tinyet.quality.remedies import Diagnosis as Diagnosis
    from tinyet.quantization.config import QuantConfig as QuantConfig
    from tinyet.quantization.config import dynamic_config as dynamic_config
    from tinyet.quantization.config import int4_config as int4_config
    from tinyet.quantization.config import int8_config as int8_config
    from tinyet.quantization.config import int16_config as int16_config
    from tinyet.quantization.quantizer import TinyetQuantizer as TinyetQuantizer
    from tinyet.survey.look import Check as Check
    from tinyet.survey.look import check as check
    from tinyet.to_files import export_tflite as export_tflite
    from tinyet.validation import ValidationResult as ValidationResult

# Public name -> the module that defines it. Those of importers.torch and quantization need torch.
_PUBLIC = {
    "Analysis": "tinyet.analysis",
    "Audit": "tinyet.auditing.audit",
    "Board": "tinyet.boards",
    "Check": "tinyet.survey.look",
    "Comparison": "tinyet.comparison.compare",
    "Data": "tinyet.data",
    "Delegate": "tinyet.delegates",
    "Diagnosis": "tinyet.quality.remedies",
    "Form": "tinyet.custom",
    "Program": "tinyet.program",
    "Project": "tinyet.project",
    "QuantConfig": "tinyet.quantization.config",
    "TinyetError": "tinyet.errors",
    "TinyetQuantizer": "tinyet.quantization.quantizer",
    "TinyetWarning": "tinyet.errors",
    "TogetherProject": "tinyet.projects.together",
    "TogetherValidation": "tinyet.projects.together",
    "ValidationResult": "tinyet.validation",
    "analyze": "tinyet.analysis",
    "audit": "tinyet.auditing.audit",
    "check": "tinyet.survey.look",
    "compare": "tinyet.comparison.compare",
    "compile": "tinyet.compiler",
    "custom_op": "tinyet.custom",
    "diagnose": "tinyet.opening.diagnosing",
    "dynamic_config": "tinyet.quantization.config",
    "entry": "tinyet.fx.entry_points",
    "export_tflite": "tinyet.to_files",
    "from_lightgbm": "tinyet.opening.classical",
    "from_onnx": "tinyet.opening.files",
    "from_sklearn": "tinyet.opening.classical",
    "from_tflite": "tinyet.opening.files",
    "from_xgboost": "tinyet.opening.classical",
    "generate": "tinyet.projects",
    "int16_config": "tinyet.quantization.config",
    "int4_config": "tinyet.quantization.config",
    "int8_config": "tinyet.quantization.config",
    "load": "tinyet.program",
    "load_board": "tinyet.boards",
    "lower": "tinyet.lowering",
    "open": "tinyet.opening",
    "open_project": "tinyet.projects",
    "prepare_training": "tinyet.opening.training",
    "register_delegate": "tinyet.delegates",
    "sklearn_to_torch": "tinyet.opening.classical",
    "streaming": "tinyet.importers.torch.streamed",
    "with_drift": "tinyet.anomaly.drift",
    "with_flag": "tinyet.anomaly.threshold",
}

__all__ = [
    "Analysis",
    "Audit",
    "Board",
    "Check",
    "Comparison",
    "Data",
    "Delegate",
    "Diagnosis",
    "Form",
    "Program",
    "Project",
    "QuantConfig",
    "TinyetError",
    "TinyetQuantizer",
    "TinyetWarning",
    "TogetherProject",
    "TogetherValidation",
    "ValidationResult",
    "__version__",
    "analyze",
    "audit",
    "check",
    "compare",
    "compile",
    "custom_op",
    "diagnose",
    "dynamic_config",
    "entry",
    "export_tflite",
    "from_lightgbm",
    "from_onnx",
    "from_sklearn",
    "from_tflite",
    "from_xgboost",
    "generate",
    "int4_config",
    "int8_config",
    "int16_config",
    "load",
    "load_board",
    "lower",
    "open",
    "open_project",
    "prepare_training",
    "register_delegate",
    "sklearn_to_torch",
    "streaming",
    "with_drift",
    "with_flag",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
