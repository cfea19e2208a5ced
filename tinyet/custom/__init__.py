# SPDX-License-Identifier: Apache-2.0
"""Operators that users register: their meaning, their kernels, and the files that hold them."""

from __future__ import annotations

from tinyet.custom.form import Form
from tinyet.custom.operators import CustomOp, OutputQuant, custom_op, named, registered
from tinyet.custom.plugin import load_plugin
from tinyet.opset.custom import Argument, CallSite, CustomAttrs, Params, Scalar, Value

__all__ = [
    "Argument",
    "CallSite",
    "CustomAttrs",
    "CustomOp",
    "Form",
    "OutputQuant",
    "Params",
    "Scalar",
    "Value",
    "custom_op",
    "load_plugin",
    "named",
    "registered",
]
