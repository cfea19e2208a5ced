# SPDX-License-Identifier: Apache-2.0
"""A delegate that turns chains of elementwise int8 operators into one loop: no value between them touches memory.

It shows all that a region delegate has: `partition` says which nodes it takes and why not the others, `preprocess`
makes C of each group, with an `init` that runs once and an `execute` that runs in each inference.
docs/write-a-delegate.md walks through it.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.delegates import Delegate, Partition, Payload, files_of, regions_of
from tinyet.emit.names import identifier
from tinyet.ir import Array, DType, Graph, Node, Tensor
from tinyet.numerics import clamp_range
from tinyet.ops.add import Add
from tinyet.ops.mul import Mul, factor
from tinyet.ops.shared.addition import affine_form, scaling
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary
from tinyet.opset import (
    Call,
    Constant,
    ConstantArg,
    Definition,
    Event,
    EventArg,
    Init,
    InputArg,
    LiteralArg,
    OutputArg,
    StateArg,
)

# ---------------------------------------------------------------- claim


def refuse(node: Node) -> str | None:
    """Why the delegate does not compute a node, or None."""
    if not isinstance(node.attrs, Add | Sub | Mul | Unary):
        return "only add, sub, mul and functions of one value"
    for tensor in (*node.inputs, *node.outputs):
        assert tensor is not None
        if tensor.dtype is not DType.INT8:
            return f"only int8; {tensor.name} is {tensor.dtype.value}"
        if tensor.shape != node.output.shape and not (tensor.is_constant and tensor.type.count == 1):
            return f"no broadcasting; {tensor.name} has shape {tensor.shape}"
    return None


def partition(graph: Graph, free: Collection[Node], _target: Target) -> Partition:
    """Connected groups of at least two such nodes: alone, an operator gains nothing."""
    return regions_of(graph, free, refuse, at_least=2)


# ---------------------------------------------------------------- preprocess


def preprocess(region: Graph, _target: Target) -> Payload:
    """One loop over the elements; each operator is one line of it."""
    tables = [node for node in region.nodes if is_function(node)]
    inputs = {tensor: f"in{i}[i]" for i, tensor in enumerate(region.inputs)}
    lines = [f"const int32_t {value(t)} = {text};" for t, text in inputs.items()]
    for node in region.nodes:
        where = f" /* {node.origins[-1].location} */" if node.origins else ""
        lines.append(f"const int32_t {value(node.output)} = {expression(node, tables)};{where}")
    lines += [f"out{i}[i] = (int8_t){value(t)};" for i, t in enumerate(region.outputs)]
    parameters = [f"const int8_t *in{i}" for i in range(len(region.inputs))]
    parameters += [f"int8_t *out{i}" for i in range(len(region.outputs))]
    parameters += ["const void *state"] if tables else []
    execute = Definition(
        kernel="fused_elementwise",
        returns="static tinyet_status",
        parameters=(*parameters, "uint32_t event"),
        body=(
            *(["  const int8_t *const tables = (const int8_t *)state;"] if tables else []),
            "  TINYET_EVENT_BEGIN(event);",
            f"  for (uint32_t i = 0u; i < {region.outputs[0].type.count}u; i++) {{",
            *(f"    {line}" for line in lines),
            "  }",
            "  TINYET_EVENT_END(event);",
            "  return TINYET_OK;",
        ),
        comment=f"{len(region.nodes)} operators in one loop",
    )
    constants: tuple[Constant, ...] = ()
    init = None
    if tables:
        # The tables lie in flash; init copies them to RAM, which many microcontrollers read faster.
        data = np.concatenate([table(node) for node in tables])
        constants = (Constant("tables", data, "one for each function"),)
        init = Init("fused_copy_tables", (StateArg(), ConstantArg("tables"), LiteralArg(data.size)))
    call = Call(
        symbol=execute,
        args=(
            *(InputArg(i) for i in range(len(region.inputs))),
            *(OutputArg(i) for i in range(len(region.outputs))),
            *((StateArg(),) if tables else ()),
            EventArg(),
        ),
        constants=constants,
        returns_status=True,
        state_bytes=256 * len(tables),
        init=init,
        events=(Event("the fused loop", tuple(o for node in region.nodes for o in node.origins)),),
    )
    return Payload(call, headers=("fused_elementwise.h",))


def value(tensor: Tensor) -> str:
    """The C variable that holds an element of a tensor."""
    return f"v_{identifier(tensor.name)}"


def expression(node: Node, tables: list[Node]) -> str:
    """The C of one operator on one element: exactly the operator's integer specification."""
    if node in tables:
        (x,) = (t for t in node.inputs if t is not None and not t.is_constant)
        return f"tables[{256 * tables.index(node) + 128} + {value(x)}]"
    a, b, out = (node.input(0), node.input(1), node.output)
    if isinstance(node.attrs, Mul):
        by, (low, high) = factor(node), clamp_range(node.attrs.clamp, out.type)
        product = f"({value(a)} - {a.type.zero_point}) * ({value(b)} - {b.type.zero_point})"
        return f"fused_finish({product}, {by.multiplier}, {by.shift}, {out.type.zero_point}, {low}, {high})"
    assert isinstance(node.attrs, Add | Sub)
    s = scaling(node, node.attrs.clamp, 1 if isinstance(node.attrs, Add) else -1)
    low, high = s.clamp
    form = affine_form(s)
    if form is not None:  # one multiplication an operand, proved equal for every pair of values
        total = f"{value(a)} * {form.a} + {value(b)} * {form.b} + {form.c}"
        return f"tinyet_clamp(({total}) >> {form.shift}, {low}, {high})"
    left, right, both = s.factors
    parts = [
        f"fused_operand({value(t)} - {t.type.zero_point}, {f.multiplier}, {f.shift})"
        for t, f in ((a, left), (b, right))
    ]
    joined = f" {'+' if s.sign > 0 else '-'} ".join(parts)
    return f"fused_finish({joined}, {both.multiplier}, {both.shift}, {out.type.zero_point}, {low}, {high})"


def is_function(node: Node) -> bool:
    """Whether the result depends on one int8 alone: a function of it, or arithmetic with a constant."""
    return sum(t is not None and not t.is_constant for t in node.inputs) == 1


def table(node: Node) -> Array:
    """What such a node gives for -128 … 127, by the operator's own reference."""
    every = np.arange(-128, 128, dtype=np.int8)
    (result,) = ops.evaluate(node, [t.array.ravel() if t and t.is_constant else every for t in node.inputs])
    return result


FUSER = Delegate("fuser", files=files_of(Path(__file__).parent), partition=partition, preprocess=preprocess)
