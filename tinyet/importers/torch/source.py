# SPDX-License-Identifier: Apache-2.0
"""MODEL on the command line: `file.py`, `file.py:factory` or a saved `.pt2` program.

A Python file defines

    model() → nn.Module, or any other function named as `file.py:factory`;
    example_inputs() → a tensor or a tuple of tensors (batch first, usually of batch 1);
    entries() → in place of example_inputs(), where several methods become models: {name: (method, example inputs)};
        calibration() then gives a dict of what is said below, by these names;
    calibration() → an iterable of inputs like the example inputs, typical of real data;
    evaluation() → optional: (inputs, expected), stacked along the first dimension, or an iterable of those;
    quantizer() → optional: a torchao PT2E quantizer;
    labels → optional: the names of the classes, a list of str, or a function that returns it.

A factory may return `(module, example_inputs)`; then example_inputs() is not needed.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from tinyet.errors import ModelError, TinyetError, UsageError
from tinyet.errors.arguments import OverTime
from tinyet.fx.argument_checks import check_model
from tinyet.fx.capture import capture, example_inputs_of, lower
from tinyet.fx.entry_points import entry
from tinyet.fx.examples import Inputs, example_of
from tinyet.fx.log_filter import quiet
from tinyet.fx.source_locations import frame_of_exception, message_of, shown_path
from tinyet.importers.torch.saved import load_saved
from tinyet.importers.torch.streamed import Streamed
from tinyet.ir import Note
from tinyet.messages.stages import stage

Batches = Callable[[], Iterable[Any]]


@dataclass(frozen=True)
class ModelSource:
    """The source that a MODEL argument names. The functions are None when the source has none.

    name: of the factory, or else of the file, as a C identifier.
    module: the nn.Module, None for a saved program.
    over_time: the request of `tinyet.streaming`, if the module comes from there; `program` is the one over the
    window.
    notes: what the importer of a file has to tell.
    program: captured, normalised (see `capture.capture`).
    """

    name: str
    path: Path
    module: nn.Module | None
    program: ExportedProgram
    example_inputs: Inputs
    calibration: Batches | None = None
    evaluation: Batches | None = None
    quantizer: Callable[[], Any] | None = None
    labels: Callable[[], Any] | None = None
    dynamic_shapes: Callable[[], Any] | None = None
    over_time: OverTime | None = None
    notes: tuple[Note, ...] = ()


def identifier(text: str) -> str:
    """`text` as a C identifier in lower case: other characters become one underscore."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    if not name:
        return "model"
    return f"model_{name}" if name[0].isdigit() else name


def _call(function: Callable[[], Any], label: str) -> Any:
    try:
        return function()
    except Exception as error:
        frame = frame_of_exception(error)
        raise ModelError(f"{label} raises {message_of(error)}", str(frame) if frame else None) from error


_NEIGHBOURS: dict[str, ModuleType] = {}
"""Modules beside the model files that were executed, by the bare names that these have imported them by."""


def _forget_other_neighbours(directory: Path) -> None:
    """Modules of this directory are imported anew where another model's have the same names. Those that the other
    model has are its own."""
    for name, module in list(_NEIGHBOURS.items()):
        if any(each.exists() for each in _places(name, directory)) and not _is_of(name, module, directory):
            del _NEIGHBOURS[name]
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _places(name: str, directory: Path) -> tuple[Path, Path]:
    """Where a module of this name, or the package that it is of, lies in a directory."""
    top = name.partition(".")[0]
    return directory / f"{top}.py", directory / top


def _is_of(name: str, module: ModuleType, directory: Path) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    source, package = _places(name, directory)
    place = Path(file).resolve()
    return place == source or package in place.parents


def _import(path: Path) -> ModuleType:
    """Execute the file as a module of its own; its directory is importable meanwhile, as with `python
    file.py`."""
    name = f"tinyet_model_{identifier(path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} is not a Python file", hint="name a .py or a .pt2 file")
    module = importlib.util.module_from_spec(spec)
    directory = str(path.parent.resolve())
    _forget_other_neighbours(Path(directory))
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, directory)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        frame = frame_of_exception(error)
        raise ModelError(
            f"{path.name} raises {message_of(error)} when it is imported", str(frame) if frame else str(path)
        ) from error
    finally:
        sys.path.remove(directory)
        new = {n: m for n, m in list(sys.modules.items()) if n not in before and n != name}
        _NEIGHBOURS.update((n, m) for n, m in new.items() if _is_of(n, m, Path(directory)))
    return module


def _made(path: Path, factory: str | None) -> tuple[ModuleType, nn.Module | Streamed, Any]:
    """A file's module, executed; what its factory makes; and the example inputs that this gives, or None."""
    namespace = _import(path)
    wanted = factory or "model"
    function = getattr(namespace, wanted, None)
    shown = shown_path(str(path))
    if isinstance(function, nn.Module):
        raise ModelError(f"{wanted} is a module, not a function", shown, f"define `def {wanted}(): return …`")
    if not callable(function):
        defined = sorted(
            n
            for n, v in vars(namespace).items()
            if callable(v) and not n.startswith("_") and getattr(v, "__module__", "") == namespace.__name__
        )
        raise ModelError(
            f"there is no function {wanted}() in {path.name}",
            shown,
            f"define it, or name another one as {path.name}:FUNCTION ({', '.join(defined)})",
        )
    made = _call(function, f"{wanted}()")
    inputs: Any = None
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    try:
        check_model(made)
    except UsageError as error:
        raise ModelError(f"what {wanted}() returns is no model: {error.what}", shown, error.hint) from error
    if not isinstance(made, nn.Module):
        raise ModelError(
            f"{wanted}() returns an exported program",
            shown,
            "return the module, or save the program as a .pt2",
        )
    return namespace, made, inputs


def _load_python(path: Path, factory: str | None) -> ModelSource:
    namespace, made, inputs = _made(path, factory)
    shown = shown_path(str(path))
    over_time: OverTime | None = None
    if isinstance(made, Streamed):
        over_time, inputs = made.over_time, made.example_inputs
        made = made.model
    if inputs is None:
        example = getattr(namespace, "example_inputs", None)
        if not callable(example):
            raise ModelError(
                f"there is no function example_inputs() in {path.name}",
                shown,
                "tinyet generate makes a project of all entries()"
                if callable(getattr(namespace, "entries", None))
                else "define it: it returns a tensor (or a tuple of tensors) of the shape that the device sees",
            )
        inputs = _call(example, "example_inputs()")
    example = example_of(inputs)
    functions = "calibration", "evaluation", "quantizer", "labels", "dynamic_shapes"
    optional = {n: getattr(namespace, n, None) for n in functions}
    names = optional["labels"]
    if isinstance(names, (list, tuple)):  # other data of this name (a tensor) is ignored
        optional["labels"] = lambda: names
    own = optional["calibration"]
    if callable(own) and not example.is_plain:
        optional["calibration"] = lambda: example.batches(own())
    return ModelSource(
        identifier(factory or path.stem),
        path,
        made,
        capture(made, example, path.parent.resolve()),
        example.tensors,
        over_time=over_time,
        **{n: f for n, f in optional.items() if callable(f)},
    )


def _load_program(path: Path) -> ModelSource:
    with quiet():
        # registers the operators that quantized programs are saved with
        importlib.import_module("torch.ao.quantization.fx._decomposed")
    program = load_saved(path)
    try:
        lowered = lower(program)
    except TinyetError:
        raise
    # The graph is a stranger's: torch reports its errors in many ways.
    except Exception as error:
        raise ModelError(f"the program cannot be run: {message_of(error)}", str(path)) from error
    return ModelSource(identifier(path.stem), path, None, lowered, example_inputs_of(lowered))


def load_source(model: str) -> ModelSource:
    """Load and capture MODEL: `file.py`, `file.py:factory` or `program.pt2`. Raises ModelError."""
    name, factory = model, None
    if match := re.fullmatch(r"(.+\.py):([A-Za-z_]\w*)", model):
        name, factory = match[1], match[2]
    path = Path(name)
    if not path.is_file():
        raise ModelError(f"there is no file {name}", hint="name a .py file, file.py:factory or a .pt2 file")
    stage(f"loading {path.name}")
    return _load_program(path) if path.suffix == ".pt2" else _load_python(path, factory)


def load_entries(model: str) -> dict[str, ModelSource]:
    """The entry points that a Python file declares, each as a source of its own, of one module: name → source. Raises
    ModelError."""
    name, _, factory = model.partition(".py:") if ".py:" in model else (model, "", "")
    path = Path(f"{name}.py" if factory else name)
    stage(f"loading {path.name}")
    namespace, made, _ = _made(path, factory or None)
    shown = shown_path(str(path))
    if isinstance(made, Streamed):
        raise ModelError("a streaming model has one entry point", shown, "leave entries() away")
    declared = _call(namespace.entries, "entries()")
    form = '{"encode": ("encode", (x,)), "decode": ("decode", (code,))}'
    if not isinstance(declared, dict) or len(declared) < 2:
        raise ModelError("entries() returns no dict of two or more entry points", shown, form)
    wrong = [
        repr(key)
        for key, value in declared.items()
        if not (isinstance(key, str) and key.isidentifier() and isinstance(value, tuple) and len(value) == 2)
    ]
    if wrong:
        raise ModelError(
            f"entries() does not say a method and its inputs for {', '.join(wrong)}", shown, form
        )
    batches = _by_entry(namespace, "calibration", declared, shown)
    labels = _by_entry(namespace, "labels", declared, shown)
    quantizer = getattr(namespace, "quantizer", None)
    base = identifier(factory or path.stem)
    found = {}
    for key, (method, inputs) in declared.items():
        module = entry(made, method)
        example = example_of(inputs)
        own = batches.get(key)
        if own is not None and not example.is_plain:
            own = example.batches(own)
        found[key] = ModelSource(
            f"{base}_{key}",
            path,
            module,
            capture(module, example, path.parent.resolve()),
            example.tensors,
            calibration=None if own is None else partial(_itself, own),
            quantizer=quantizer if callable(quantizer) else None,
            labels=partial(_itself, labels[key]) if key in labels else None,
        )
    return found


def _itself(given: Any) -> Any:
    return given


def _by_entry(
    namespace: ModuleType, function: str, declared: Mapping[str, object], shown: str
) -> dict[str, Any]:
    """What a function of the file gives for each entry point; empty where there is none."""
    known = getattr(namespace, function, None)
    if known is None:
        return {}
    found = _call(known, f"{function}()") if callable(known) else known
    if not isinstance(found, dict) or not found.keys() <= declared.keys():
        raise ModelError(
            f"{function} is no dict by the names of entries()", shown, f"keys of {', '.join(declared)}"
        )
    return found
