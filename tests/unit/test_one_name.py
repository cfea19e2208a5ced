# SPDX-License-Identifier: Apache-2.0
"""One name a thing: parameters in Python, options of the command line, arguments of the pytest marker and keys of the
JSON reports are spelled alike. What stands in one entrance only is in a table here, with its reason."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import typer

import tinyet
import tinyet.pytest as plugin
from tests import small
from tinyet import analysis, cli
from tinyet.cli.options import ModelFlags
from tinyet.opening import ModelOptions
from tinyet.program import Program
from tinyet.project import Project
from tinyet.validation import ValidationResult

_TORCH = importlib.util.find_spec("torch") is not None


def parameters(*functions: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Those of all the functions, by name."""
    return {
        name: parameter
        for function in functions
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and name != "self"
    }


# ---------------------------------------------------------------- Python

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "open": tinyet.open,
    "compile": tinyet.compile,
    "diagnose": tinyet.diagnose,
    "generate": tinyet.generate,
    "analyze": tinyet.analyze,
    "compare": tinyet.compare,
    "check": tinyet.check,
    "lower": tinyet.lower,
    "from_tflite": tinyet.from_tflite,
    "from_onnx": tinyet.from_onnx,
    "from_sklearn": tinyet.from_sklearn,
    "from_xgboost": tinyet.from_xgboost,
    "from_lightgbm": tinyet.from_lightgbm,
    "export_tflite": tinyet.export_tflite,
    "Program.streaming": Program.streaming,
    "audit": tinyet.audit,
    "Project.validate": Project.validate,
    "Project.build": Project.build,
    "device.validate": plugin.TinyetDevice.validate,
}
# A parameter whose default is another one in some function, and why.
OTHER_DEFAULTS = {
    "board": "required to generate; nobody's to compile; the project's own, or a usual one, to analyze and compare",
    "buffers": "analyze takes a project's own",
    "calibration": "required to diagnose",
    "example_inputs": "required to lower",
    "name": "a lowered module is a part, and no program with a name of its own",
    "optimize": "analyze and compare take a project's own",
    "program": "audit takes the project's own",
    "runtime": "TFLM's arithmetic is read where nobody says, and LiteRT's kernels are written for",
}


def test_a_parameter_has_one_default() -> None:
    defaults: dict[str, set[str]] = {}
    for function in FUNCTIONS.values():
        for name, parameter in parameters(function).items():
            defaults.setdefault(name, set()).add(repr(parameter.default))
    assert {name for name, found in defaults.items() if len(found) > 1} == set(OTHER_DEFAULTS)


def test_options_are_given_by_name() -> None:
    """What has a default is keyword-only, but for what is the first thing that a function is about."""
    first = {"example_inputs", "calibration", "board", "axis", "elf", "methods"}
    for title, function in FUNCTIONS.items():
        for name, parameter in parameters(function).items():
            if parameter.default is not parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
                assert name in first, f"{title}({name})"


def test_open_takes_what_its_record_has() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(ModelOptions)}
    assert {n: p.default for n, p in parameters(tinyet.open).items() if n != "path"} == fields


def test_open_takes_what_the_typed_doors_take() -> None:
    doors = parameters(
        *(tinyet.compile, tinyet.from_tflite, tinyet.from_onnx),
        *(tinyet.from_sklearn, tinyet.from_xgboost, tinyet.from_lightgbm),
    )
    # An estimator is compared with while it is there; dynamic shapes are of example inputs.
    first = {"model", "example_inputs", "dynamic_shapes", "path", "estimator", "compared_on"}
    assert doors.keys() - first <= parameters(tinyet.open).keys()
    assert parameters(tinyet.open).keys() - doors.keys() == {
        *("streaming", "hop", "edges", "trust_pickle", "flag", "false_alarms", "drift")
    }


# ---------------------------------------------------------------- the command line

# Options that may be given several times: each is one of a list.
SINGULAR = {"svg": "pictures", "pin": "pins", "layer": "layers", "op": "ops"}
ARGUMENTS = {"model": "path", "directory": "path"}
COMMANDS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "generate": (tinyet.open, tinyet.generate),
    "compile": (tinyet.open,),
    "export": (tinyet.open, tinyet.export_tflite),
    "analyze": (tinyet.open, tinyet.analyze),
    "quantize": (tinyet.compile, tinyet.diagnose),
    "validate": (Project.validate,),
    "check": (tinyet.check,),
    "compare": (tinyet.compare,),
    "build": (Project.build,),
    "audit": (tinyet.audit,),
}
ONLY_PYTHON = {
    "before": "A",
    "after": "B",
    "program": "MODEL",
    "model": "MODEL",
    "path": "MODEL, DIR or --out",
    "example_inputs": "the model's file gives them",
    "dynamic_shapes": "as example_inputs",
    "quantizer": "an object: quantizer() of the model's file, or `tinyet quantize`",
    "sample": "arrays: the first of --evaluation",
    "progress": "shown at a terminal",
    "on_output": "shown at a terminal",
}
ONLY_COMMAND = {
    "out": "export_tflite's path, Program.save",
    "save": "Program.save",
    "save_evaluation": "numpy.savez",
    "json": "to_json()",
    "layers": "TinyetQuantizer.set_module_name",
    "ops": "TinyetQuantizer.set_operator",
    "outputs": "int8_config",
    "report": "what diagnose does",
    "auto": "quantization.remedies.choose",
    "accuracy": "of --auto",
    "max_drop": "of --auto",
    "fail_if": "Comparison.broken",
    "markdown": "to_markdown()",
    "trace": "profiles.forms",
    "folded": "profiles.forms",
    "html": "pages.page_of",
    "pictures": "pages.pictures",
    "model_explorer": "pages.viewers",
    "netron": "pages.viewers",
    "measured": "to_json() of Project.validate",
    "budgets": "of a pyproject.toml",
    "boards": "one after the other",
    "max_samples": "of evaluation data: slice it",
}
# What a command leaves out of what its functions take, and why.
LEFT_OUT = {
    "compile": {"delegates": "a program is the same for all of them"},
    "export": {"delegates": "a .tflite is for none"},
    "quantize": {
        "delegates": "bytes are counted for the usual ones",
        "stateful": "`tinyet compile` has it",
        "strict": "`tinyet compile` has it",
        "dump": "`tinyet compile` has it",
    },
    "validate": {"labels": "in --evaluation"},
    "audit": {"project": "DIR"},
}


def options_of(command: Any) -> dict[str, Any]:
    """Options by the name that the parameter has in Python."""
    named = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    long = {max(p.opts, key=len).removeprefix("--").replace("-", "_"): p for p in named}
    return {SINGULAR.get(name, name): p for name, p in long.items()}


@pytest.mark.skipif(not _TORCH, reason="torch is not installed")
@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_called_as_parameters(name: str) -> None:
    group: Any = typer.main.get_command(cli.app)
    options, known = options_of(group.commands[name]), parameters(*COMMANDS[name])
    unknown = options.keys() - known.keys()
    assert unknown <= ONLY_COMMAND.keys(), "an option that Python does not have"
    missing = known.keys() - options.keys() - ONLY_PYTHON.keys()
    assert missing == LEFT_OUT.get(name, {}).keys(), "a parameter that the command line does not have"


def test_every_command_that_works_is_in_the_table() -> None:
    group: Any = typer.main.get_command(cli.app)
    assert group.commands.keys() - COMMANDS.keys() == {"boards", "delegates", "doctor"}
    assert "kind" in options_of(group.commands["doctor"])


def test_an_option_has_the_parameters_default() -> None:
    """As text, a number, a switch; what is absent is None."""
    of_open = parameters(tinyet.open)
    for field in dataclasses.fields(ModelFlags):
        assert field.default == of_open[field.name].default, field.name


# ---------------------------------------------------------------- pytest

PLACE = {"model", "project", "on", "timeout"}
NOT_IN_A_TEST = {
    "path": "model or project",
    "progress": "pytest shows its own",
    "program": "model or project",
    "out": "a folder of the session",
    "kind": "the first that the board can have",
    "sample": "the harness has none",
    "library_version": "the project is thrown away",
    "homepage": "likewise",
    "archive": "likewise",
    "tflm_header": "likewise",
    "schedule": "a test is of one model",
}


def test_the_marker_takes_what_open_and_generate_take() -> None:
    known = parameters(tinyet.open, tinyet.generate).keys() - NOT_IN_A_TEST.keys()
    assert set(plugin.OPTIONS) == known | PLACE
    opened = parameters(plugin.TinyetDevices.open).keys()
    assert opened == PLACE | {"board"}


def test_a_device_validates_as_a_project_does() -> None:
    known, own = parameters(Project.validate), parameters(plugin.TinyetDevice.validate)
    assert own.keys() <= known.keys()
    assert known.keys() - own.keys() == {"on", "timeout", "estimate", "progress"}, "the marker says where"


def test_limits_of_a_test_are_fields_of_the_report() -> None:
    fields = {field.name for field in dataclasses.fields(ValidationResult)} | {"instructions", "cycles"}
    assert set(plugin._LIMITS) <= fields


# ---------------------------------------------------------------- JSON

# Keys that no attribute has, and why.
ONLY_JSON = {"version": "of the form", "ram_with_stack_bytes": "ram_bytes and stack"}


def keys_are_attributes(record: Mapping[str, object], made: object) -> None:
    for key in record.keys() - ONLY_JSON.keys():
        assert hasattr(made, key), f"{type(made).__name__} has no {key}"


def test_reports_say_what_attributes_say() -> None:
    found = tinyet.analyze(small.program(), "microbit")
    record: Any = found.to_json()
    keys_are_attributes(record, found)
    for part in (
        "layers",
        "functions",
        "kernels",
        "kernel_front",
        "plans",
        "fusion_groups",
        "peak",
        "largest_constants",
    ):
        for entry, made in zip(record[part], getattr(found, part), strict=True):
            keys_are_attributes(entry, made)
    assert set(record) - {"version", "ram_with_stack_bytes"} == {
        field.name for field in dataclasses.fields(analysis.Analysis)
    }


def test_the_report_of_a_validation_says_what_attributes_say() -> None:
    result = ValidationResult(
        "qemu", "mps2_an386", 1, 0, None, None, None, None, 12, "instructions", 1, 2, 3, 4, 5, (), []
    )
    record = result.to_json()
    keys_are_attributes(record, result)
    unsaid = {
        "count",
        "count_unit",
        "outputs",
    }  # the count is under the name of its unit, outputs are the caller's
    assert {field.name for field in dataclasses.fields(result)} - record.keys() == unsaid


@pytest.mark.skipif(not _TORCH, reason="torch is not installed")
def test_the_report_of_a_quantization_says_what_attributes_say() -> None:
    from tinyet.quality.remedies import Settings
    from tinyet.quality.sensitivity import Exception_, LayerSensitivity, Sensitivity

    layer = LayerSensitivity("a", "aten.conv2d.default", "net.py:1", 30.0, 31.0)
    exception = Exception_("a", "int16", 40.0, 10.0, 12, 4)
    record: Any = Sensitivity(30.0, None, (layer,), (exception,)).to_json()
    keys_are_attributes(record["layers"][0], layer)
    keys_are_attributes(record["exceptions"][0], exception)
    assert Settings().to_json().keys() <= {field.name for field in dataclasses.fields(Settings)}
    assert Settings().to_json().keys() <= parameters(tinyet.diagnose).keys()


# ---------------------------------------------------------------- names at the top


def test_no_module_has_the_name_of_something_public() -> None:
    modules = {module.name for module in pkgutil.iter_modules(tinyet.__path__)}
    assert modules & set(tinyet.__all__) == set()


def test_importing_modules_changes_no_name() -> None:
    before = {
        name: getattr(tinyet, name) for name in ("analyze", "open", "generate", "load", "ValidationResult")
    }
    for name in ("analysis", "opening", "validation", "lowering", "project", "program"):
        importlib.import_module(f"tinyet.{name}")
    assert all(getattr(tinyet, name) is value for name, value in before.items())
