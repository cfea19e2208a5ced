# SPDX-License-Identifier: Apache-2.0
"""What an operator is and what a kernel is: the records that everything else is written against."""

from __future__ import annotations

from tinyet.opset.call import (
    WIDTH,
    Arg,
    Call,
    Constant,
    ConstantArg,
    Definition,
    Event,
    EventArg,
    FieldValue,
    Init,
    InputArg,
    LiteralArg,
    OutputArg,
    ParamsArg,
    Pointer,
    ScratchArg,
    StateArg,
    Struct,
    library_call,
    wrapped,
)
from tinyet.opset.kernel import Kernel, accept_all, signature
from tinyet.opset.op import Op, no_complaint, no_macs

__all__ = [
    "WIDTH",
    "Arg",
    "Call",
    "Constant",
    "ConstantArg",
    "Definition",
    "Event",
    "EventArg",
    "FieldValue",
    "Init",
    "InputArg",
    "Kernel",
    "LiteralArg",
    "Op",
    "OutputArg",
    "ParamsArg",
    "Pointer",
    "ScratchArg",
    "StateArg",
    "Struct",
    "accept_all",
    "library_call",
    "no_complaint",
    "no_macs",
    "signature",
    "wrapped",
]
