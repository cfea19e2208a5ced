# SPDX-License-Identifier: Apache-2.0
"""The expected console output of a generated application: the Python counterpart of project/common/main.c.j2."""

from __future__ import annotations

import numpy as np

from tinyet.emit.facts import ModelFacts, TensorFacts

# As many elements of each output are printed (SHOWN in main.c.j2).
_SHOWN = 16
_LARGEST_FLOAT = np.float32(3.4028234e38)


def printed_outputs(facts: ModelFacts) -> list[str]:
    """The lines that follow the run's time, without "done"; none when the sample's outputs are not known."""
    lines: list[str] = []
    for index, (tensor, data) in enumerate(zip(facts.outputs, facts.expected, strict=False)):
        values: list[float] = np.frombuffer(data, tensor.dtype.numpy).tolist()
        shown = " ".join(_element(tensor, value) for value in values[:_SHOWN])
        lines.append(f"output {index}: {shown}{' ...' if len(values) > _SHOWN else ''}")
        # Not the greatest of all: a NaN in front stays the largest, as no comparison with it holds.
        largest = 0
        for at, value in enumerate(values):
            largest = at if value > values[largest] else largest
        lines.append(f"  largest: index {largest}, value {_value(tensor, values[largest])}")
    return lines


def _element(tensor: TensorFacts, value: float) -> str:
    return real(np.float32(value)) if tensor.is_float else str(value)


def _value(tensor: TensorFacts, value: float) -> str:
    """The value as a real number, where the output represents one."""
    if tensor.scale is None or tensor.zero_point is None:
        return _element(tensor, value)
    return real(np.float32(np.float32(value - tensor.zero_point) * np.float32(tensor.scale)))


def real(value: np.float32) -> str:
    """print_real of the application: four decimals, in the same float32 operations."""
    if np.isnan(value):
        return "nan"
    sign = "-" if value < 0 else ""
    value = np.float32(abs(value))
    if value > _LARGEST_FLOAT:
        return f"{sign}inf"
    exponent = 0
    while value >= np.float32(1e6):
        value = np.float32(value / np.float32(10))
        exponent += 1
    while value != 0 and value < np.float32(1e-2):
        value = np.float32(value * np.float32(10))
        exponent -= 1
    whole = int(value)
    rest = np.float32(value - np.float32(whole))
    decimals = int(np.float32(np.float32(rest * np.float32(1e4)) + np.float32(0.5)))
    if decimals == 10_000:
        whole, decimals = whole + 1, 0
    return f"{sign}{whole}.{decimals:04d}" + (f"e{exponent}" if exponent else "")
