# SPDX-License-Identifier: Apache-2.0
"""What a Python file of the user's gives beside the model: calibration, evaluation, labels. Needs torch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyet.compiler import dynamic_given
from tinyet.data import Data, array_of, make_samples, read_data, refuse_indices
from tinyet.errors import DataError, ModelError, TinyetError, ToolchainError
from tinyet.files.model_name import class_name, given_or_derived
from tinyet.ir import Array
from tinyet.opening.files import file_names
from tinyet.opening.float_models import float_model
from tinyet.program import Program

if TYPE_CHECKING:
    from tinyet.importers.torch.source import ModelSource
    from tinyet.quantization.sizes import Dynamic


def load_model(model: str) -> ModelSource:
    """`file.py`, `file.py:factory`, `file.pt2`, or a float .tflite or .onnx, loaded and captured. Raises ModelError,
    and ToolchainError without torch."""
    try:
        from tinyet.fx.capture import capture
        from tinyet.importers.torch.source import ModelSource, identifier, load_source
    except ImportError as error:
        raise ToolchainError(
            f"capturing a model needs torch and torchao: {error}",
            model,
            "pip install 'tinyet[torch]', or capture it elsewhere with `tinyet compile` and bring the .tet",
        ) from error
    path = Path(model)
    if path.suffix not in (".tflite", ".onnx"):
        return load_source(model)
    found = float_model(path)
    program = capture(found.module, found.examples)
    return ModelSource(identifier(path.stem), path, None, program, found.examples, notes=found.notes)


def load_entries(model: str) -> dict[str, ModelSource]:
    """The entry points that a Python file declares. Raises as `load_model`."""
    try:
        from tinyet.importers.torch import source
    except ImportError as error:
        raise ToolchainError(
            f"capturing a model needs torch and torchao: {error}", model, "pip install 'tinyet[torch]'"
        ) from error
    return source.load_entries(model)


def declares_entries(model: str) -> bool:
    """Whether MODEL is a Python file that defines entries(). It is not executed."""
    path = Path(f"{model.partition('.py:')[0]}.py" if ".py:" in model else model)
    if path.suffix != ".py":
        return False
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return False  # who loads it says why
    return any(isinstance(node, ast.FunctionDef) and node.name == "entries" for node in tree.body)


def measured_with(source: ModelSource, evaluation: Path | None) -> ModelSource:
    """The source whose evaluation() are the samples and labels of a .npz file, if one is given."""
    if evaluation is None:
        return source
    data = read_data(evaluation, list(source.program.graph_signature.user_inputs))
    if data.labels is None:
        raise DataError("the file holds no labels", str(evaluation), "save them as `labels`")
    pair = tuple(map(_without_batches, data.arrays, source.example_inputs)), data.labels
    return replace(source, evaluation=lambda: pair)


def _without_batches(array: Array, example: Any) -> Array:
    """Samples that each have the dimension of the batch, stacked without it."""
    return array.reshape(-1, *array.shape[2:]) if array.ndim == example.ndim + 1 else array


def name_of(source: ModelSource, name: str | None) -> str:
    """The name that was given, or what the user calls the model: its factory or file, its class, its folder."""
    _, folder = file_names(source.path)
    return given_or_derived(name, source.name, class_name(source.module), folder)


def call_users(function: Callable[[], Any], label: str) -> Any:
    """The result of one of the user's functions; its exceptions become a ModelError at the user's line."""
    from tinyet.fx.source_locations import frame_of_exception, message_of

    try:
        return function()
    except TinyetError:
        raise
    except Exception as error:
        frame = frame_of_exception(error)
        raise ModelError(f"{label} raises {message_of(error)}", str(frame) if frame else None) from error


def calibration_of(source: ModelSource, given: Iterable[Any] | str | Path | None) -> Iterable[Any] | None:
    """The batches that were given, or those of a file, or of the source's own calibration(), or None."""
    if given is None:
        return None if source.calibration is None else call_users(source.calibration, "calibration()")
    if not isinstance(given, (str, Path)):
        return given
    from tinyet.quantization.batches import batches_of

    arrays = read_data(given, list(source.program.graph_signature.user_inputs)).arrays
    return batches_of(arrays, source.example_inputs, str(given))


def dynamic_of(source: ModelSource) -> Dynamic | None:
    """The size that the source's dynamic_shapes() declares, or None."""
    if source.dynamic_shapes is None:
        return None
    declared = call_users(source.dynamic_shapes, "dynamic_shapes()")
    return dynamic_given(source.module, source.example_inputs, declared)


def labels_of(source: ModelSource) -> Any:
    """The names of the classes that the source gives, or None."""
    return None if source.labels is None else call_users(source.labels, "labels()")


def evaluation_of(
    source: ModelSource, program: Program, channels_last: bool
) -> tuple[Data | None, list[str]]:
    """The samples of the source's evaluation() in the program's shapes, and remarks about them.

    evaluation() gives (inputs, expected), stacked, or an iterable of such pairs. What is expected counts as a
    label when it is one whole number a sample.
    """
    if source.evaluation is None:
        return None, []
    where = f"evaluation() in {source.path}"
    function = source.evaluation

    def collect() -> list[tuple[Any, Any]]:
        given = function()
        batches: Iterable[Any] = [given] if _is_single_pair(given) else given
        return list(batches)

    pairs = call_users(collect, "evaluation()")
    if not pairs or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise DataError("evaluation() must give inputs and what is expected", where, "return inputs, labels")
    columns: list[list[Array]] = [[] for _ in source.example_inputs]
    expected: list[Array] = []
    for inputs, answer in pairs:
        values = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        if len(values) != len(columns):
            raise DataError(f"evaluation() gives {len(values)} inputs, the model takes {len(columns)}", where)
        for column, value, example in zip(columns, values, source.example_inputs, strict=True):
            array = array_of(value)
            column.append(array[None] if array.ndim == example.ndim - 1 else array)
        expected.append(np.atleast_1d(array_of(answer)))
    try:
        arrays = [np.concatenate(column) for column in columns]
        answers = np.concatenate(expected)
    except ValueError as error:
        raise DataError(f"the batches of evaluation() do not fit together: {error}", where) from error
    arrays = [
        _as_program(a, e.ndim, channels_last) for a, e in zip(arrays, source.example_inputs, strict=True)
    ]
    batch = program.inputs[0].shape[0] if program.inputs[0].shape else 1
    remarks: list[str] = []
    labels: Array | None = answers.reshape(-1)
    if batch > 1:
        labels = None
        arrays = [a[: len(a) // batch * batch].reshape(-1, batch, *a.shape[1:]) for a in arrays]
        remarks.append(f"evaluation(): no accuracy, because the model takes {batch} samples at a time")
    elif answers.dtype.kind not in "iub" or answers.size != len(answers):
        labels = None
        remarks.append("evaluation(): no accuracy, because what is expected is not one class index a sample")
    try:
        make_samples(program.inputs, arrays, labels)
        refuse_indices(program.graph, arrays)
    except DataError as error:
        raise DataError(error.what, where, error.hint) from error
    return Data(tuple(arrays), labels), remarks


def _is_single_pair(given: object) -> bool:
    """Whether evaluation() gave (inputs, expected) and not a sequence of two such pairs."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    expected = given[1]
    return not isinstance(expected, (tuple, list)) or all(isinstance(label, int) for label in expected)


def _as_program(array: Array, rank: int, channels_last: bool) -> Array:
    """Images in the order in which the program takes them."""
    return np.moveaxis(array, 1, -1) if channels_last and rank == 4 and array.ndim == 4 else array
