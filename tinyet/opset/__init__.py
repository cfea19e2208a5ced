# SPDX-License-Identifier: Apache-2.0
"""What an operator is and what a kernel is: the records that everything else is written against."""

from __future__ import annotations

from tinyet.opset.arrangement import DENSE, Arrangement
from tinyet.opset.attributes import DelegateName, attribute_complaints, delegate_name
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
from tinyet.opset.cost import Claim, Cost
from tinyet.opset.kernel import (
    Arranged,
    Kernel,
    Lower,
    Refuse,
    accept_all,
    claimed,
    library_kernels,
    only_pitches,
    signature,
)
from tinyet.opset.op import Op, Reference, no_complaint, no_macs
from tinyet.opset.over_time import OverTime, TimeAxes, TimeRule, along, each_step, whole
from tinyet.opset.rows import RowRule, Rows, each_row, has_rows, strip
from tinyet.opset.rule import complaints, tensor_complaint
from tinyet.opset.sweep import Sweep, Sweeps

__all__ = [
    "DENSE",
    "WIDTH",
    "Arg",
    "Arranged",
    "Arrangement",
    "Call",
    "Claim",
    "Constant",
    "ConstantArg",
    "Cost",
    "Definition",
    "DelegateName",
    "Event",
    "EventArg",
    "FieldValue",
    "Init",
    "InputArg",
    "Kernel",
    "LiteralArg",
    "Lower",
    "Op",
    "OutputArg",
    "OverTime",
    "ParamsArg",
    "Pointer",
    "Reference",
    "Refuse",
    "RowRule",
    "Rows",
    "ScratchArg",
    "StateArg",
    "Struct",
    "Sweep",
    "Sweeps",
    "TimeAxes",
    "TimeRule",
    "accept_all",
    "along",
    "attribute_complaints",
    "claimed",
    "complaints",
    "delegate_name",
    "each_row",
    "each_step",
    "has_rows",
    "library_call",
    "library_kernels",
    "no_complaint",
    "no_macs",
    "only_pitches",
    "signature",
    "strip",
    "tensor_complaint",
    "whole",
    "wrapped",
]
