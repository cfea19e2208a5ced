# SPDX-License-Identifier: Apache-2.0
"""Two small delegates that use everything a delegate may bring."""

from __future__ import annotations

from collections.abc import Collection

from tinyet.boards.cpus import Target
from tinyet.delegates import Delegate, Partition, Payload, regions_of
from tinyet.ir import DType, Graph, Node, Tensor
from tinyet.ops.add import Add
from tinyet.ops.mul import Mul
from tinyet.ops.unary import Unary
from tinyet.opset import (
    Call,
    Definition,
    Event,
    EventArg,
    Init,
    InputArg,
    Kernel,
    LiteralArg,
    OutputArg,
    ScratchArg,
    StateArg,
    library_call,
)

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADD_MUL_H
#define ADD_MUL_H
#include "tinyet_common.h"
tinyet_status add_mul_init(void *state, uint32_t magic);
tinyet_status add_mul_check(const void *state, uint32_t magic, const float *x, uint32_t count);
#endif
"""

# A value of 1000 is an error, one of 2000 a write to where there is no memory.
SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
#include "add_mul.h"

tinyet_status add_mul_init(void *state, uint32_t magic) {
  *(uint32_t *)state += magic;
  return TINYET_OK;
}

tinyet_status add_mul_check(const void *state, uint32_t magic, const float *x, uint32_t count) {
  if (*(const uint32_t *)state != magic) {
    return -20; /* not prepared, or twice */
  }
  for (uint32_t i = 0u; i < count; i++) {
    if (x[i] == 2000.0f) {
      *(volatile uint32_t *)(uintptr_t)0x2F000000u = 1u;
    }
    if (x[i] == 1000.0f) {
      return -21;
    }
  }
  return TINYET_OK;
}
"""


def refuse(node: Node) -> str | None:
    if not isinstance(node.attrs, Add | Mul):
        return "only add and mul"
    if any(t is None or t.dtype is not DType.FLOAT32 or t.shape != node.output.shape for t in node.inputs):
        return "only float32 of one shape"
    return None


def partition(graph: Graph, free: Collection[Node], _target: Target) -> Partition:
    return regions_of(graph, free, refuse)


def literal(bound: float) -> str:
    if abs(bound) == float("inf"):
        return "-TINYET_INFINITY" if bound < 0 else "TINYET_INFINITY"
    return f"{bound!r}f"


def preprocess(region: Graph, _target: Target) -> Payload:
    """A loop an operator, each an event; values inside live in scratch memory."""
    count = region.outputs[0].type.count
    inner = [n.output for n in region.nodes if n.output not in region.outputs]
    names: dict[Tensor, str] = {t: f"in{i}" for i, t in enumerate(region.inputs)}
    names |= {t: f"out{i}" for i, t in enumerate(region.outputs)}
    names |= {t: f"(inner + {i * count}u)" for i, t in enumerate(inner)}
    body = ["  float *const inner = (float *)scratch;"] if inner else []
    for k, node in enumerate(region.nodes):
        a, b, out = (names[t] for t in (node.input(0), node.input(1), node.output))
        sign = "+" if isinstance(node.attrs, Add) else "*"
        assert isinstance(node.attrs, Add | Mul)
        low, high = (literal(bound) for bound in node.attrs.clamp)
        body += [
            f"  TINYET_EVENT_BEGIN(event + {k}u);",
            f"  TINYET_TRY(add_mul_check(state, 7u, {a}, {count}u));",
            f"  for (uint32_t i = 0u; i < {count}u; i++) {{",
            f"    {out}[i] = tinyet_clamp_f32({a}[i] {sign} {b}[i], {low}, {high});",
            "  }",
            f"  TINYET_EVENT_END(event + {k}u);",
        ]
    parameters = [f"const float *in{i}" for i in range(len(region.inputs))]
    parameters += [f"float *out{i}" for i in range(len(region.outputs))]
    parameters += ["void *scratch"] if inner else []
    call = Call(
        Definition(
            kernel=f"add_mul_{region.name}",
            returns="static tinyet_status",
            parameters=(*parameters, "const void *state", "uint32_t event"),
            body=(*body, "  return TINYET_OK;"),
        ),
        (
            *(InputArg(i) for i in range(len(region.inputs))),
            *(OutputArg(i) for i in range(len(region.outputs))),
            *((ScratchArg(),) if inner else ()),
            StateArg(),
            EventArg(),
        ),
        scratch_bytes=4 * count * len(inner),
        returns_status=True,
        state_bytes=4,
        init=Init("add_mul_init", (StateArg(), LiteralArg(7))),
        events=tuple(Event(node.op, node.origins) for node in region.nodes),
    )
    return Payload(
        call, headers=("add_mul.h",), sources=("add_mul.c",), texts={"add_mul.h": HEADER, "add_mul.c": SOURCE}
    )


ADD_MUL = Delegate("add_mul", partition=partition, preprocess=preprocess)


def _refuse_sine(node: Node, _target: Target) -> str | None:
    return None if isinstance(node.attrs, Unary) and node.attrs.function == "sin" else "only sin"


def _lower_sine(node: Node, _target: Target) -> Call:
    call = library_call("toy_sin", node, [0], None)
    return Call(call.symbol, (*call.args, LiteralArg(node.output.type.count)), returns_status=True)


SINE_SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
#include "toy_sin.h"
#include "tinyet_math.h"

tinyet_status toy_sin(const float *x, float *output, uint32_t count) {
  for (uint32_t i = 0u; i < count; i++) {
    output[i] = tinyet_sinf(x[i]);
  }
  return TINYET_OK;
}
"""
SINE_HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOY_SIN_H
#define TOY_SIN_H
#include "tinyet_common.h"
tinyet_status toy_sin(const float *x, float *output, uint32_t count);
#endif
"""

SINE = Delegate(
    "sine",
    {
        Unary: (
            Kernel(
                "toy_sin",
                "f32",
                _lower_sine,
                ("toy_sin.h",),
                ("toy_sin.c",),
                _refuse_sine,
                "sine",
                {"toy_sin.h": SINE_HEADER, "toy_sin.c": SINE_SOURCE},
            ),
        )
    },
)
