# SPDX-License-Identifier: Apache-2.0
"""One way to compute a custom operator: its numpy reference beside its C kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape, UsageError
from tinyet.ir import Array, DType, Node
from tinyet.opset import Arg, Call, Constant, ConstantArg, InputArg, Kernel, LiteralArg, OutputArg, ScratchArg
from tinyet.opset.custom import Argument, CallSite, site_of


def no_arguments(_site: CallSite) -> Mapping[str, Argument]:
    return {}


def no_scratch(_site: CallSite) -> int:
    return 0


def no_macs(_site: CallSite) -> int:
    return 0


@dataclass(frozen=True, eq=False)
class Form:
    """One way to compute the operator: in float32, or in int8.

    reference: (site, one array per input or None) → the result. It is the definition: the kernel must give its bits.
    function:  name of the C function: pointers to the inputs, to the output, to scratch memory if there is any, then
        `arguments`; void, or tinyet_status, which stops the run when it is not TINYET_OK.
    source:    its C text, or the path of a file with it.
    arguments: further arguments by name: ints become int32_t, floats float, bools 0 or 1, arrays a const array.
    inputs:    which inputs the function gets; all by default.
    scratch:   bytes of memory that it needs while it runs.
    check:     why it cannot compute a call, or None.
    """

    reference: Callable[[CallSite, Sequence[Array | None]], Array]
    function: str
    source: str | Path
    arguments: Callable[[CallSite], Mapping[str, Argument]] = no_arguments
    inputs: tuple[int, ...] | None = None
    scratch: Callable[[CallSite], int] = no_scratch
    check: Callable[[CallSite], str | None] = lambda _site: None


def kernel_of(name: str, form: Form, dtype: DType) -> Kernel:
    text = form.source
    if isinstance(text, Path):
        try:
            text = text.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"the kernel of {name} cannot be read: {error.strerror}", str(form.source)
            ) from error
    found = re.search(
        rf"^(void|tinyet_status)\s+{re.escape(form.function)}\s*\(([^)]*)\)\s*\{{", text, re.MULTILINE
    )
    if found is None:
        raise UsageError(
            f"the C text of operator {name} does not define {form.function}",
            hint=f"void {form.function}(const … *x, … *out, …) {{ … }}, at the beginning of a line",
        )
    result, parameters = found[1], " ".join(found[2].split())
    header, source = f"custom_{form.function}.h", f"custom_{form.function}.c"

    def lower(node: Node, _target: Target) -> Call:
        return _call(node, form, returns_status=result == "tinyet_status")

    return Kernel(
        form.function,
        dtype.suffix,
        lower,
        (header,),
        (source,),
        texts={
            header: _HEADER.format(
                guard=header.upper().replace(".", "_"),
                operator=name,
                prototype=f"{result} {form.function}({parameters});",
            ),
            source: f'#include "{header}"\n\n{text.strip()}\n',
        },
    )


_HEADER = """\
/* The kernel of operator {operator}. */
#ifndef {guard}
#define {guard}

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {{
#endif

{prototype}

#ifdef __cplusplus
}}
#endif

#endif
"""


def _call(node: Node, form: Form, *, returns_status: bool) -> Call:
    """Inputs, output, scratch, then the form's own arguments."""
    site = site_of(node)
    wanted = range(len(node.inputs)) if form.inputs is None else form.inputs
    args: list[Arg] = [InputArg(i) for i in wanted if node.inputs[i] is not None]
    args.append(OutputArg(0))
    scratch = form.scratch(site)
    if scratch:
        args.append(ScratchArg())
    constants: list[Constant] = []
    for name, value in form.arguments(site).items():
        if isinstance(value, np.ndarray):
            constants.append(Constant(name, np.ascontiguousarray(value)))
            args.append(ConstantArg(name))
        else:
            args.append(LiteralArg(_number(node, name, value)))
    return Call(form.function, tuple(args), None, tuple(constants), scratch, returns_status=returns_status)


def _number(node: Node, name: str, value: object) -> int | float:
    """An int32 or a finite float32; a truth value is 0 or 1."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        if abs(int(value)) < 2**31:
            return int(value)
    elif isinstance(value, float | np.floating) and np.isfinite(np.float32(value)):
        return float(value)
    raise UnsupportedShape(
        f"operator {node.op} passes {name}={value!r} to its kernel",
        node.where,
        "give an int32_t, a float or an array",
    )
