# SPDX-License-Identifier: Apache-2.0
"""Which kernel computes which node, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.boards import Target
from tinyet.delegates import DEFAULT, PORTABLE, Delegate
from tinyet.errors import UnsupportedOp, bullet_list
from tinyet.ir import Graph, Node
from tinyet.opset import Kernel, signature


@dataclass(frozen=True)
class Refusal:
    """A kernel (or a whole delegate, when `kernel` is empty) that did not take a node, with its reason."""

    delegate: str
    kernel: str
    reason: str

    def __str__(self) -> str:
        return f"{self.delegate}{'/' + self.kernel if self.kernel else ''}: {self.reason}"


@dataclass(frozen=True)
class Choice:
    """The kernel of a node, and those that were asked before it."""

    kernel: Kernel
    refusals: tuple[Refusal, ...]


Selection = dict[Node, Choice]


def with_portable(delegates: Sequence[Delegate]) -> tuple[Delegate, ...]:
    """The user's order, with the portable kernels last."""
    return (*(d for d in delegates if d is not PORTABLE), PORTABLE)


def select(graph: Graph, target: Target, delegates: Sequence[Delegate] = DEFAULT) -> Selection:
    """A kernel for every node, first come first served in the delegates' order.

    Raises UnsupportedOp with every node that nobody takes, each with its source line and the reasons.
    """
    selection: Selection = {}
    homeless: list[str] = []
    for node in graph.nodes:
        refusals: list[Refusal] = []
        chosen: Kernel | None = None
        for delegate in with_portable(delegates):
            reason = delegate.supports(target)
            if reason is not None:
                refusals.append(Refusal(delegate.name, "", reason))
                continue
            for kernel in delegate.kernels.get(type(node.attrs), ()):
                reason = kernel.why_not(node, target)
                if reason is None:
                    chosen = kernel
                    break
                refusals.append(Refusal(delegate.name, kernel.symbol, reason))
            if chosen is not None:
                break
        if chosen is None:
            reasons = "; ".join(map(str, refusals)) or "it has no kernel"
            homeless.append(f"{node.op} ({signature(node)}), {node.where or node.outputs[0].name}: {reasons}")
        else:
            selection[node] = Choice(chosen, tuple(refusals))
    if homeless:
        raise UnsupportedOp(
            f"no kernel for {len(homeless)} node(s) on {target.cpu}:\n{bullet_list(homeless)}",
            hint="leave these layers in float (TinyetQuantizer().set_module_name(name, None)) or write a kernel: "
            "docs/add-an-operator.md",
        )
    return selection
