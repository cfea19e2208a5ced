# SPDX-License-Identifier: Apache-2.0
"""TFLM's portable kernels as an oracle, beside LiteRT's (litert.py): the models are the same, the interpreter is that
of the package `tflite-micro`, which is optional, too: `available()` tells whether it is there. And TFLM's custom
operators, those on signals, run by run: they keep something."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from tests.oracle import litert
from tinyet.tflite import Model, Operator, Subgraph, TensorInfo
from tinyet.tflite.write import write_model

ARENA_BYTES = 1 << 18


def available() -> bool:
    """Whether the package `tflite-micro` is installed."""
    return importlib.util.find_spec("tflite_micro") is not None


def run(
    op: str,
    inputs: Sequence[litert.TensorSpec | None],
    outputs: Sequence[litert.TensorSpec],
    **options: litert.Option,
) -> list[NDArray[Any]]:
    """litert.run in TFLM's kernels: the outputs, then the inputs that are states as the run leaves them. Raises
    ValueError where TFLM refuses the operator."""
    from tflite_micro.python.tflite_micro import runtime

    model = litert.build(op, inputs, outputs, states_outside=True, **options)
    given = [spec for spec in inputs if spec is not None]
    states = [spec for spec in given if spec.role == "state"]
    try:
        interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
        for index, spec in enumerate([given[0], *states]):
            interpreter.set_input(spec.array(), index)
        interpreter.invoke()
    except RuntimeError as error:
        raise ValueError(f"TFLM refuses {op}: {error}") from error
    results = sum(not spec.role for spec in outputs)
    return [interpreter.get_output(index) for index in range(results + len(states))]


def run_custom(
    name: str,
    options: Mapping[str, int | bool],
    constants: Sequence[NDArray[Any]],
    runs: Sequence[Sequence[NDArray[Any]]],
    outputs: Sequence[tuple[tuple[int, ...], str]],
) -> list[list[NDArray[Any]]]:
    """The outputs of each run of a custom operator.

    options: its flexbuffer. runs: of each its inputs, which stand before the constants; all runs have the same shapes
    and types. outputs: shape and dtype of each. Raises RuntimeError when TFLM refuses the operator.
    """
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(
        custom_model(name, options, constants, runs[0], outputs), arena_size=ARENA_BYTES
    )
    found = []
    for inputs in runs:
        for index, array in enumerate(inputs):
            interpreter.set_input(array.copy(order="C"), index)
        interpreter.invoke()
        found.append([np.array(interpreter.get_output(i)) for i in range(len(outputs))])
    return found


def custom_model(
    name: str,
    options: Mapping[str, int | bool],
    constants: Sequence[NDArray[Any]],
    inputs: Sequence[NDArray[Any]],
    outputs: Sequence[tuple[tuple[int, ...], str]],
) -> bytes:
    """The `.tflite` bytes of the model that `run_custom` runs."""
    tensors = [TensorInfo(f"input{i}", x.shape, x.dtype.name) for i, x in enumerate(inputs)]
    tensors += [
        TensorInfo(f"constant{i}", x.shape, x.dtype.name, x.tobytes()) for i, x in enumerate(constants)
    ]
    tensors += [TensorInfo(f"output{i}", shape, kind) for i, (shape, kind) in enumerate(outputs)]
    given = tuple(range(len(tensors) - len(outputs)))
    made = tuple(range(len(given), len(tensors)))
    operator = Operator(
        "CUSTOM", given, made, custom=name, custom_options=bytes(flexbuffers.Dumps(dict(options)))
    )
    return write_model(
        Model((Subgraph("main", tuple(tensors), tuple(range(len(inputs))), made, (operator,)),))
    )
