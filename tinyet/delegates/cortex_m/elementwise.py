# SPDX-License-Identifier: Apache-2.0
"""a + b and a - b of one shape, in an affine form proved exact (tinyet_dsp_elementwise.h)."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ops.shared import addition, broadcast
from tinyet.opset import Call, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_dsp_elementwise.h")


def kernel(sign: int) -> Kernel:
    """For the operator in which b has this sign."""

    def refuse(node: Node, target: Target) -> str | None:
        walk = broadcast.node_loops(node)
        if len(walk.size) > 1 or (walk.a_stride, walk.b_stride) != ((1,), (1,)):
            return "only operands of one shape"
        return addition.refuse_affine(node, addition.own_scaling(node, sign), target)

    def lower(node: Node, target: Target) -> Call:
        s = addition.own_scaling(node, sign)
        form = addition.affine_form(s)
        assert form is not None
        count = node.output.type.count
        body = (
            f"tinyet_dsp_affine(input_0, input_1, output, /* count */ {count},",
            f"    /* factors */ {form.a}, {form.b}, /* offset */ {form.c}, /* shift */ {form.shift},",
            f"    /* clamp */ {s.clamp[0]}, {s.clamp[1]});",
        )
        return specialised_call("tinyet_dsp_affine", f"{node.op} of {count} elements", (), body, (0, 1))

    return Kernel("tinyet_dsp_affine", "s8", lower, HEADERS, (), refuse, "cortex_m")


ADD_KERNELS = (kernel(1),)
SUB_KERNELS = (kernel(-1),)
