# SPDX-License-Identifier: Apache-2.0
"""The text of a specialised function: a C wrapper that calls an always-inline kernel with literal constants.

Layers with equal constants get equal text, which the generated model holds once; the name is made of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tinyet.opset import Arg, Call, Constant, ConstantArg, InputArg, OutputArg, ScratchArg


def largest_divisor(count: int, limit: int, multiple: int = 1) -> int:
    """The largest divisor of `count`, up to `limit`, that is a multiple of `multiple`; at least that.

    `multiple` divides `count`.
    """
    return max((d for d in range(multiple, limit + 1, multiple) if count % d == 0), default=multiple)


def specialised_call(
    kernel: str,
    summary: str,
    constants: Sequence[Constant],
    body: Sequence[str],
    inputs: Sequence[int] = (0,),
    scratch_bytes: int = 0,
) -> Call:
    """A call of the wrapper `static void <kernel>_<digest>(inputs…, output, [scratch,] constants…)`.

    body: C statements on the parameters: input (or input_0, input_1, …), output, scratch, and the constants.
    """
    names = ["input"] if len(inputs) == 1 else [f"input_{i}" for i in range(len(inputs))]
    types = {"int8": "int8_t", "int16": "int16_t", "int32": "int32_t"}
    parameters = [f"const int8_t *{name}" for name in names] + ["int8_t *output"]
    args: list[Arg] = [*(InputArg(i) for i in inputs), OutputArg(0)]
    if scratch_bytes:
        parameters.append("void *scratch")
        args.append(ScratchArg())
    for constant in constants:
        parameters.append(f"const {types[constant.data.dtype.name]} *{constant.name}")
        args.append(ConstantArg(constant.name))
    signature, lines = ", ".join(parameters), "\n".join(f"  {line}" for line in body)
    digest = hashlib.sha256(f"{signature}\n{lines}".encode()).hexdigest()[:8]
    symbol = f"{kernel}_{digest}"
    text = f"/* {summary} */\nTINYET_DSP_FUNCTION void {symbol}({signature}) {{\n{lines}\n}}"
    return Call(symbol, tuple(args), None, tuple(constants), scratch_bytes, (text,))
