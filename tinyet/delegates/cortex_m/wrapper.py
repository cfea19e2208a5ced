# SPDX-License-Identifier: Apache-2.0
"""A specialised function: a C wrapper that calls an always-inline kernel with literal constants.

Layers with equal constants get equal functions, of which the generated model holds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.opset import (
    Arg,
    Call,
    Constant,
    ConstantArg,
    Definition,
    FieldValue,
    InputArg,
    OutputArg,
    ScratchArg,
    Struct,
)


def largest_divisor(count: int, limit: int, multiple: int = 1) -> int:
    """The largest divisor of `count`, up to `limit`, that is a multiple of `multiple`; at least that.

    `multiple` divides `count`.
    """
    return max((d for d in range(multiple, limit + 1, multiple) if count % d == 0), default=multiple)


def numbers(fields: Mapping[str, FieldValue]) -> list[int]:
    """Of a struct whose members are all int32_t."""
    found: list[int] = []
    for value in fields.values():
        if isinstance(value, Struct):
            found += numbers(value.fields)
        else:
            assert isinstance(value, int)
            found.append(value)
    return found


def specialised_call(
    kernel: str,
    summary: str,
    constants: Sequence[Constant],
    body: Sequence[str],
    inputs: Sequence[int] = (0,),
    scratch_bytes: int = 0,
    element: str = "int8_t",
) -> Call:
    """A call of a wrapper `static void f(inputs…, output, [scratch,] constants…)` around a kernel.

    body: C statements on the parameters: input (or input_0, input_1, …), output, scratch, and the constants.
    element: the C type of the values of inputs and output.
    """
    names = ["input"] if len(inputs) == 1 else [f"input_{i}" for i in range(len(inputs))]
    types = {"int8": "int8_t", "int16": "int16_t", "int32": "int32_t"}
    parameters = [f"const {element} *{name}" for name in names] + [f"{element} *output"]
    args: list[Arg] = [*(InputArg(i) for i in inputs), OutputArg(0)]
    if scratch_bytes:
        parameters.append("void *scratch")
        args.append(ScratchArg())
    for constant in constants:
        parameters.append(f"const {types[constant.data.dtype.name]} *{constant.name}")
        args.append(ConstantArg(constant.name))
    lines = tuple(f"  {line}" for line in body)
    wrapper = Definition(kernel, "TINYET_DSP_FUNCTION void", tuple(parameters), lines, summary)
    return Call(wrapper, tuple(args), None, tuple(constants), scratch_bytes)
