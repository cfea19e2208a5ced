# SPDX-License-Identifier: Apache-2.0
"""Shapes, strides and types of what operators give, found by torch once and kept.

torch finds them by running an operator on tensors without values, at a millisecond each, and looks for what it found
before only where an operator is its own and is none that others make up: not for quantize and dequantize, half of the
nodes of a quantized program. They follow from the operator and from what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_CPU = torch.device("cpu")

_FIXED = ("aten", "prims", "quantized_decomposed", "tinyet")
"""Namespaces whose rules never change; a user's operator may get another."""

_STEPS = tuple(f"quantized_decomposed.{name}_per_tensor.default" for name in ("quantize", "dequantize"))

_MOST_KEPT = 10_000

_PLAIN = (int, float, bool, str, NoneType, type, torch.dtype, torch.layout, torch.device, torch.memory_format)


class _Form(NamedTuple):
    """Of a plain tensor of this machine, that begins where its storage does."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class _OtherError(Exception):
    """Something else than plain tensors and numbers."""


_Known = tuple[type, tuple[_Form, ...]]
"""What an operator gives: Tensor, tuple or list, and the forms of the tensors."""

_known: dict[object, _Known] = {}


def fake_of(value: Tensor, mode: FakeTensorMode) -> Tensor:
    """The tensor without its values."""
    try:
        return _made(_form(value), mode)
    except _OtherError:
        found: Tensor = mode.from_tensor(value.detach(), static_shapes=True)
        return found


def result_of(
    target: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], mode: FakeTensorMode
) -> Any:
    """What the operator gives for tensors without values, none of which wants gradients."""
    key = _call_key(target, args, kwargs)
    kind, forms = _known.get(key, (NoneType, ()))
    if kind is NoneType:
        with torch.no_grad(), mode:
            result = target(*args, **kwargs)
        if key is not None:
            _keep(key, result)
        return result
    made = [_made(form, mode) for form in forms]
    return made[0] if kind is Tensor else kind(made)


def _call_key(target: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """None where the answer may be another next time."""
    if target.namespace not in _FIXED or target._schema.is_mutable:
        return None
    if str(target) in _STEPS:
        # Whatever the step and the zero point are, which are others in each program.
        args = tuple(type(value) if type(value) in (int, float) else value for value in args)
    try:
        return target, _key(args), _key(dict(kwargs)), torch.get_default_dtype()
    except _OtherError:
        return None


def _keep(key: object, result: Any) -> None:
    several = type(result) in (tuple, list)
    try:
        forms = tuple(_form(value) for value in (result if several else (result,)))
    except _OtherError:
        return
    if len(_known) >= _MOST_KEPT:
        _known.clear()
    _known[key] = type(result) if several else Tensor, forms


def _made(form: _Form, mode: FakeTensorMode) -> Tensor:
    empty = torch.empty_strided(form.shape, form.stride, dtype=form.dtype, device="meta")
    made: Tensor = FakeTensor(mode, empty, _CPU)
    return made


def _form(value: object) -> _Form:
    if not isinstance(value, Tensor) or type(value) not in (Tensor, nn.Parameter, FakeTensor):
        raise _OtherError
    shape, stride = tuple(value.shape), tuple(value.stride()) if value.layout is torch.strided else ()
    plain = (
        value.layout is torch.strided
        and value.device == _CPU
        and not (value.is_quantized or value.is_conj() or value.is_neg())
        and getattr(value, "constant", None) is None
        and all(type(number) is int for number in (*shape, *stride, value.storage_offset()))
    )
    if not plain or value.storage_offset():
        raise _OtherError
    return _Form(shape, stride, value.dtype)


def _key(value: Any) -> object:
    """Equal only for what an operator cannot tell apart but by values: 1 is not 1.0, and a list is no tuple."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is dict:
        return tuple((name, _key(part)) for name, part in value.items())
    if kind in (tuple, list):
        return kind, tuple(_key(part) for part in value)
    return _form(value)
