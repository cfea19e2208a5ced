# SPDX-License-Identifier: Apache-2.0
"""A specialised function: it fills the library's structs with literals and calls functions of CMSIS-NN.

Layers with equal constants get equal functions, of which the generated model holds one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.library import HEADER
from tinyet.ir import Node
from tinyet.opset import (
    Arg,
    Call,
    Constant,
    ConstantArg,
    Definition,
    InputArg,
    Kernel,
    OutputArg,
    ScratchArg,
    wrapped,
)

NAME = "cmsis_nn"

_CTYPES = {"int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t"}


@dataclass(frozen=True)
class Local:
    """A local `const <ctype> <name> = {…};` of the function.

    fields: (what it is, its C text), in the order of the struct.
    """

    ctype: str
    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        parts = [f"/* {what} */ {value}" if what else value for what, value in self.fields]
        return f"const {self.ctype} {self.name} = {{{', '.join(parts)}}};"


def dims(name: str, n: int, h: int, w: int, c: int) -> Local:
    """A cmsis_nn_dims, whose fields mean what the function says they mean."""
    return Local("cmsis_nn_dims", name, (("", f"{n}, {h}, {w}, {c}"),))


def context(scratch_bytes: int) -> Local:
    """A cmsis_nn_context of the scratch memory."""
    text = f"scratch, {scratch_bytes}" if scratch_bytes else "NULL, 0"
    return Local("cmsis_nn_context", "context", (("", text),))


def pair(first: int, second: int) -> str:
    """A struct of two integers."""
    return f"{{{first}, {second}}}"


def checked(function: str, arguments: Sequence[str]) -> str:
    """The last statement of a wrapper: the library's function and what it returns."""
    call = f"{function}({', '.join(arguments)})"
    return f"return {call} == ARM_CMSIS_NN_SUCCESS ? TINYET_OK : TINYET_DELEGATE_ERROR;"


def delegated_call(
    function: str,
    summary: str,
    statements: Sequence[str | Local],
    *,
    constants: Sequence[Constant] = (),
    inputs: Sequence[int] = (0,),
    scratch_bytes: int = 0,
    ctype: str = "int8_t",
) -> Call:
    """A call of a wrapper `static tinyet_status f(inputs…, output, [scratch,] constants…)`.

    function: that of the library after which reports call it. summary: for the comment above. ctype: of inputs
    and output. statements: in terms of input (or input_0, input_1, …), output, scratch, the constants and the locals.
    """
    names = ["input"] if len(inputs) == 1 else [f"input_{i}" for i in range(len(inputs))]
    parameters = [f"const {ctype} *{name}" for name in names] + [f"{ctype} *output"]
    args: list[Arg] = [*(InputArg(i) for i in inputs), OutputArg(0)]
    if scratch_bytes:
        parameters.append("void *scratch")
        args.append(ScratchArg())
    for constant in constants:
        parameters.append(f"const {_CTYPES[constant.data.dtype.name]} *{constant.name}")
        args.append(ConstantArg(constant.name))
    texts = [s.text if isinstance(s, Local) else s for s in statements]
    body = tuple(line for text in texts for line in wrapped(f"  {text}"))
    wrapper = Definition(function, "static tinyet_status", tuple(parameters), body, summary)
    return Call(wrapper, tuple(args), None, tuple(constants), scratch_bytes, returns_status=True)


def kernel(
    function: str,
    dtypes: str,
    lower: Callable[[Node, Target], Call],
    refuse: Callable[[Node, Target], str | None],
    *others: str,
) -> Kernel:
    """A kernel that calls a function of the library, and perhaps others, each defined in the file of its name."""
    return Kernel(
        function, dtypes, lower, (HEADER,), tuple(f"{f}.c" for f in (function, *others)), refuse, NAME
    )
