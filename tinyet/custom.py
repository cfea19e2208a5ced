# SPDX-License-Identifier: Apache-2.0
"""Operators of the user's own: a torch.library operator with its shape rule, numpy reference and C kernel, in one file.

    tinyet.custom_op("examples::snake", infer=…, float32=Form(reference, "snake_f32", C), int8=Form(…))

The registered operator goes through everything that tinyet's own operators go through. See docs/custom-ops.md.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import ClassVar, Literal

import numpy as np

from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.errors import ModelError, UnsupportedShape, UsageError
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType
from tinyet.opset import (
    Arg,
    Call,
    Constant,
    ConstantArg,
    InputArg,
    Kernel,
    LiteralArg,
    Op,
    OutputArg,
    ScratchArg,
)

Scalar = int | float | bool | str | None
Params = tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]
Argument = int | float | bool | Array

OutputQuant = Literal["own", "same"] | tuple[float, int]
"""How an int8 result is quantized: by its own observed range, as the first input, or with a (scale, zero point)."""


@dataclass(frozen=True)
class CustomAttrs(Attrs):
    """What the call in PyTorch had beside tensors, by name: numbers, and lists of them. One subclass an operator."""

    pointwise: ClassVar[bool] = False
    params: Params = ()


@dataclass(frozen=True, eq=False)
class Value:
    """An input or the output, as the functions of an operator see it.

    quant: scale and zero point, None for floats. data: the values of a constant, None for what is computed.
    """

    shape: Shape
    dtype: DType
    quant: QuantParams | None
    data: Array | None = None

    @property
    def type(self) -> TensorType:
        """As tinyet.numerics wants it."""
        return TensorType(self.shape, self.dtype, self.quant)

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.type.count

    @property
    def scale(self) -> float:
        """Real size of one step of an int8 value."""
        return self.type.scale

    @property
    def zero_point(self) -> int:
        """The integer that stands for 0."""
        return self.type.zero_point


@dataclass(frozen=True, eq=False)
class CallSite:
    """One use of an operator in a model: its tensor arguments in order (None where absent), its other arguments by
    name, and its result (None while only its shape is asked for)."""

    inputs: tuple[Value | None, ...]
    params: Mapping[str, Scalar | tuple[Scalar, ...]]
    output: Value | None = None

    @property
    def x(self) -> Value:
        """The first input."""
        assert self.inputs[0] is not None
        return self.inputs[0]

    @property
    def out(self) -> Value:
        """The result."""
        assert self.output is not None
        return self.output


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


@dataclass(frozen=True, eq=False)
class CustomOp:
    """A registered operator. torch_name: "namespace::name". output: None when there is no int8 form."""

    torch_name: str
    op: Op
    output: OutputQuant | None


_REGISTERED: dict[str, CustomOp] = {}


def registered(target: object) -> CustomOp | None:
    """The operator that was registered for a call's target in a captured graph (`examples.snake.default`)."""
    namespace, _, rest = str(target).partition(".")
    return _REGISTERED.get(f"{namespace}::{rest.rpartition('.')[0] or rest}")


def custom_op(
    torch_op: object,
    *,
    infer: Callable[[CallSite], Sequence[int]],
    float32: Form,
    int8: Form | None = None,
    name: str | None = None,
    output: OutputQuant = "own",
    macs: Callable[[CallSite], int] = no_macs,
    inplace: tuple[int, ...] = (),
    pointwise: bool = False,
    summary: str = "",
) -> CustomOp:
    """Make an operator of torch.library known to tinyet.

    torch_op: what `torch.library.custom_op` returned, an overload of torch.ops, or the name "namespace::name".
    infer: the result's shape from the inputs' shapes and parameters. int8: without it the operator stays in float32
    in a quantized model. output: quantization of the int8 result, "own", "same" (as the first input) or
    (scale, zero point). name: in reports, .tet files and C; by default the name in torch. inplace: inputs whose memory
    the result may take, since the kernel reads an element before it writes the same one, and never later. pointwise:
    each element of the result depends on the same element of the first input, and on nothing else that has a shape;
    then the operator works on images as they lie in memory (NHWC), without being moved to PyTorch's order.

    Raises UsageError for a name that is taken, C text without the function, a file that cannot be read.
    """
    torch_name = _torch_name(torch_op)
    title = name or torch_name.rpartition("::")[2]
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", title):
        raise UsageError(f"{title!r} cannot be the name of an operator", hint="small letters, digits and _")
    if torch_name in _REGISTERED:
        raise UsageError(f"{torch_name} is registered already", hint="register each operator once")
    forms = {DType.FLOAT32: float32} | ({DType.INT8: int8} if int8 is not None else {})
    attrs = type(
        title.title().replace("_", ""),
        (CustomAttrs,),
        {"name": title, "pointwise": pointwise},
    )

    def infer_node(node: Node) -> tuple[Shape, ...]:
        return (tuple(int(size) for size in infer(_site(node, output=False))),)

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (_checked(node, forms[node.output.dtype].reference(_site(node), inputs)),)

    op = Op(
        attrs=attrs,
        summary=summary,
        infer=infer_node,
        reference=reference,
        kernels=tuple(_kernel(title, form, dtype) for dtype, form in forms.items()),
        check=lambda node: _complaint(node, forms),
        macs=lambda node: macs(_site(node)),
        inplace=inplace,
    )
    ops.register(op)
    found = CustomOp(torch_name, op, output if int8 is not None else None)
    _REGISTERED[torch_name] = found
    return found


def _torch_name(torch_op: object) -> str:
    """ "namespace::name" of whatever torch calls an operator; torch itself is not needed for that."""
    name: object = torch_op
    for attribute in ("_qualname", "_qualified_op_name"):
        name = getattr(torch_op, attribute, name)
    schema = getattr(torch_op, "_schema", None)
    name = getattr(schema, "name", name)
    if not isinstance(name, str) or not re.fullmatch(r"\w+::\w+", name):
        raise UsageError(
            f"{torch_op!r} is no operator of torch.library", hint='give the operator, or "namespace::name"'
        )
    return name


# ---------------------------------------------------------------- the operator


def _value(tensor: Tensor) -> Value:
    return Value(tensor.shape, tensor.dtype, tensor.type.quant, tensor.data)


def _site(node: Node, *, output: bool = True) -> CallSite:
    attrs = node.attrs
    assert isinstance(attrs, CustomAttrs)
    return CallSite(
        tuple(None if t is None else _value(t) for t in node.inputs),
        MappingProxyType(dict(attrs.params)),
        _value(node.output) if output else None,
    )


def _checked(node: Node, result: object) -> Array:
    """The reference's result, if it is what `infer` and the dtype say."""
    want = node.output
    if not isinstance(result, np.ndarray) or result.shape != want.shape or result.dtype != want.dtype.numpy:
        have = f"{result.dtype}{list(result.shape)}" if isinstance(result, np.ndarray) else repr(type(result))
        raise ModelError(
            f"the reference of operator {node.op} gives {have}, but by its infer the result is {want.type}",
            node.where,
            "make infer and reference of the operator agree",
        )
    return result


def _complaint(node: Node, forms: Mapping[DType, Form]) -> str | None:
    out = node.output
    if out.dtype not in forms:
        return f"it has no form in {out.dtype.value}"
    for tensor in node.inputs:
        if tensor is None or (tensor.is_constant and tensor.type.quant is None):
            continue
        if tensor.dtype not in (out.dtype, DType.INT32):
            return f"no form from {tensor.dtype.value} to {out.dtype.value}"
        if tensor.type.quant is not None and tensor.type.quant.axis is not None:
            return f"{tensor.name} must be quantized per tensor"
    return forms[out.dtype].check(_site(node))


# ---------------------------------------------------------------- the kernel


def _kernel(name: str, form: Form, dtype: DType) -> Kernel:
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
    site = _site(node)
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
            args.append(LiteralArg(_literal(node, name, value)))
    return Call(form.function, tuple(args), None, tuple(constants), scratch, returns_status=returns_status)


def _literal(node: Node, name: str, value: object) -> str:
    """A number as C: exact, since a float is written with all the digits of its float32."""
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    if isinstance(value, int | np.integer):
        if -(2**31) < value < 2**31:
            return str(int(value))
    elif isinstance(value, float | np.floating) and np.isfinite(np.float32(value)):
        text = f"{float(np.float32(value)):.9g}"
        return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
    raise UnsupportedShape(
        f"operator {node.op} passes {name}={value!r} to its kernel",
        node.where,
        "give an int32_t, a float or an array",
    )


# ---------------------------------------------------------------- files that register operators


def load_plugin(path: str | Path) -> ModuleType:
    """Import a Python file that registers operators (or delegates); a second time it is not run again.

    Raises UsageError when it cannot be read or raises.
    """
    file = Path(path).resolve()
    # Under its own name, so that a model's `import` of the same file finds it and does not register all again;
    # under another where a module of that name is loaded already.
    for name in (file.stem, f"tinyet_plugin_{file.stem}"):
        known = sys.modules.get(name)
        if known is None:
            break
        if getattr(known, "__file__", None) == str(file):
            return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(
            f"{path} is no Python file", hint="--plugin FILE.py, a file that calls tinyet.custom_op"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{path} raises {type(error).__name__}: {error}", str(path)) from error
    return module
