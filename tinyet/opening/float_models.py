# SPDX-License-Identifier: Apache-2.0
"""Float models of other tools' files as torch modules: what calibration, training and reports work on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet.compiler import compiled
from tinyet.data import read_data
from tinyet.errors import ToolchainError, UsageError
from tinyet.importers.onnx.importer import import_model as import_onnx
from tinyet.importers.onnx.read import OnnxModel
from tinyet.importers.onnx.read import read_file as read_onnx
from tinyet.importers.tflite.floats import holds_integers, with_float_weights
from tinyet.importers.tflite.importer import import_model
from tinyet.ir import Note
from tinyet.program import Program
from tinyet.tflite import Model
from tinyet.tflite import read_file as read_tflite

if TYPE_CHECKING:
    import torch

    from tinyet.fx.origins import FileModule


@dataclass(frozen=True, eq=False)
class FloatModel:
    """module: in eval mode, one submodule a layer, called after the file's. examples: zeros of the inputs' shapes and
    types. notes: what the importer has to tell."""

    path: Path
    module: FileModule
    examples: tuple[torch.Tensor, ...]
    notes: tuple[Note, ...]

    def batches(self, calibration: Iterable[Any] | str | Path) -> Iterable[Any]:
        """Calibration data as batches; of a .npz file its arrays, called as the file's inputs or in their order."""
        if not isinstance(calibration, (str, Path)):
            return calibration
        from tinyet.quantization.batches import batches_of

        arrays = read_data(calibration, list(self.module.input_names)).arrays
        return batches_of(arrays, self.examples, str(calibration))

    def compiled(self, **options: Any) -> Program:
        """The program, without the warning of its answers. options: those of `compiler.compiled`."""
        program = compiled(self.module, self.examples, **options)
        return replace(program, notes=(*self.notes, *program.notes))


def float_model(path: Path, signature: str | None = None) -> FloatModel:
    """The float model of a .tflite or .onnx file; weights that are integers beside float values are what they stand
    for. signature: of a .tflite, which one.

    Raises UsageError for a model that is quantized already, ModelError (UnsupportedOp, with all complaints at once) for
    one that cannot be taken, ToolchainError without torch.
    """
    if path.suffix == ".onnx":
        return of_onnx(read_onnx(path), path)
    return of_tflite(read_tflite(path), path, signature)


def of_tflite(model: Model, path: Path, signature: str | None = None) -> FloatModel:
    """The same of a file that has been read."""
    if holds_integers(model):
        raise _quantized_already(path)
    try:
        from tinyet.to_module.convert import to_module
    except ImportError as error:
        raise _without_torch(path, error) from error
    widened = with_float_weights(model, path.name)
    graph, notes = import_model(widened, name=path.stem, file=path.name, signature=signature)
    module, examples = to_module(graph)
    return FloatModel(path, module, examples, notes)


def of_onnx(model: OnnxModel, path: Path) -> FloatModel:
    """The same of a file that has been read."""
    if model.is_quantized:
        raise _quantized_already(path)
    try:
        from tinyet.to_module.convert import to_module
    except ImportError as error:
        raise _without_torch(path, error) from error
    graph, notes = import_onnx(model, name=path.stem)
    module, examples = to_module(graph)
    return FloatModel(path, module, examples, notes)


def module_given(
    model: Any, example_inputs: Any, calibration: Iterable[Any] | str | Path | None
) -> tuple[Any, Any, Any]:
    """A model as a user gives it: a module, its example inputs and calibration batches as they are; of a float model's
    file what it becomes. Raises UsageError for example inputs of a file, and for a module's calibration data in a file.
    """
    if isinstance(model, (str, Path)):
        if example_inputs is not None:
            raise UsageError("a file has its own example inputs", str(model), "leave example_inputs away")
        found = float_model(Path(model))
        return found.module, found.examples, None if calibration is None else found.batches(calibration)
    if isinstance(calibration, (str, Path)):
        raise UsageError("the calibration data of a module is batches", hint="give a list of tensors")
    return model, example_inputs, calibration


def _quantized_already(path: Path) -> UsageError:
    return UsageError("the model is quantized already", str(path), "give the model before it was quantized")


def _without_torch(path: Path, error: ImportError) -> ToolchainError:
    return ToolchainError(
        f"a float model is quantized by way of torch, which is not there ({error})",
        str(path),
        "pip install 'tinyet[torch]'",
    )
