# SPDX-License-Identifier: Apache-2.0
"""One way to compute an operator on a device. It refuses a node with a reason, or lowers it to a `Call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tinyet.boards.cpus import Family, Target
from tinyet.ir import DType, Node, Tensor
from tinyet.ir.memoize import memoize
from tinyet.opset.access_order import AccessOrders
from tinyet.opset.call import Call
from tinyet.opset.cost import Cost, CostModel, estimate
from tinyet.opset.data_layout import DENSE, DataLayout, Layouts

Lower = Callable[[Node, Target], Call]
Refuse = Callable[[Node, Target], str | None]


def accept_all(node: Node, target: Target) -> str | None:
    """A kernel that refuses nothing."""
    return None


@dataclass(frozen=True)
class LayoutSupport:
    """A kernel's call for a node whose output, or first input, is not row-major without gaps.

    lower: as the kernel's own; with scratch memory of the same size where only pixel strides differ. takes: whether it
    can lower a node so; asked of the input and of the output, each by itself. data_layouts: that `takes` is asked for.
    """

    lower: Callable[[Node, Target, Layouts], Call]
    takes: Callable[[Node, Layouts], bool]
    data_layouts: tuple[DataLayout, ...] = ()


def only_strides(_node: Node, layouts: Layouts) -> bool:
    """Of kernels for which any pixel stride is as good as another."""
    return layouts.reads is None and layouts.writes is None


ALONE = "there is no other kernel to weigh it against"
"""A reason to state no cost."""


@dataclass(frozen=True)
class Kernel:
    """One implementation of an operator.

    symbol:   the C function (or family) as reports name it.
    dtypes:   signature it computes, "s8", "f32", …, as `signature(node)` gives it; other nodes are refused.
    headers, sources: what a project needs, by the names under which the delegate's `files` knows them.
    refuse:   reason why this node cannot be computed for this target, or None. Called after the dtype check.
    lower:    the call, with constants packed and scratch counted, for a node that was not refused.
    delegate: who brought it.
    texts:    C files that it carries itself: {name: text}; headers and sources may name them.
    cost_model:    what its cost grows with; None where it states none, for the reason `no_cost_model`.
    layout_support: how it takes input and output that are not row-major; None where it does not.
    access_order:    what it reads of an input after it has written of its output; None where it promises nothing.
    replaces: whether its output may lie exactly where an input lies, by the input's number; beside those that the
        operator allows to all its kernels. An output of fewer bytes begins where the input does.
    always_called: it is called though the output's bytes lie in an input, which they do not at every size of a run.
    open_code: functions that it makes for a call compile where their counts are no constants.
    first_on: the family of cores that it is made for: there it is asked before the operator's others, which decides
        where no costs are stated.
    """

    symbol: str
    dtypes: str
    lower: Lower
    headers: tuple[str, ...]
    sources: tuple[str, ...]
    refuse: Refuse = accept_all
    delegate: str = "portable"
    texts: Mapping[str, str] = field(default_factory=dict)
    cost_model: CostModel | None = None
    no_cost_model: str = ""
    layout_support: LayoutSupport | None = None
    access_order: AccessOrders | None = None
    replaces: Callable[[Node, int], bool] | None = None
    always_called: bool = False
    open_code: bool = False
    first_on: Family | None = None

    def may_stride(self, node: Node, tensor: Tensor, pixel_stride: int) -> bool:
        """Whether it can read or write this tensor of a node with a pixel every `pixel_stride` bytes."""
        if self.layout_support is None:
            return False
        if tensor is node.outputs[0]:
            return len(node.outputs) == 1 and self.layout_support.takes(node, Layouts(output=pixel_stride))
        alone = tensor is node.inputs[0] and node.inputs.count(tensor) == 1
        return alone and self.layout_support.takes(node, Layouts(input=pixel_stride))

    def why_not(self, node: Node, target: Target) -> str | None:
        have = signature(node)
        if have != self.dtypes:
            return f"computes {self.dtypes}, the node is {have}"
        return self.refuse(node, target)

    def takes_layout(self, node: Node, tensor: Tensor, layout: DataLayout) -> bool:
        """Whether it can read or write this tensor of a node in a layout."""
        support = self.layout_support
        if support is None or layout not in support.data_layouts or not layout.holds(tensor):
            return False
        if tensor is node.outputs[0]:
            return len(node.outputs) == 1 and support.takes(node, Layouts(writes=layout))
        alone = tensor is node.inputs[0] and node.inputs.count(tensor) == 1
        return alone and support.takes(node, Layouts(reads=layout))

    def cost(self, node: Node, target: Target, call: Call, layouts: Layouts = DENSE) -> Cost | None:
        """Of the call that it made of a node; None where it states none for the target."""
        return estimate(self.symbol, self.cost_model, node, target, call, layouts)


def in_order(kernels: Sequence[Kernel], target: Target) -> list[Kernel]:
    """As they are asked for a target. Those whose sums are rounded to even come last: plans say who was asked in vain,
    and few layers have a use for them."""
    return sorted(kernels, key=lambda kernel: (kernel.dtypes == "s8_rne", kernel.first_on != target.family))


def with_cost_models(kernels: Sequence[Kernel], cost_models: Mapping[str, CostModel]) -> tuple[Kernel, ...]:
    """Kernels with their cost models, found by the kernels' names; but for those that say why they have none."""
    return tuple(
        k if k.no_cost_model else replace(k, cost_model=cost_models.get(k.symbol, k.cost_model))
        for k in kernels
    )


def library_kernels(
    name: str,
    dtypes: Sequence[str],
    lower: Lower,
    headers: tuple[str, ...],
    refuse: Refuse = accept_all,
    cost_model: CostModel | None = None,
    access_order: AccessOrders | None = None,
    no_cost_model: str = "",
) -> tuple[Kernel, ...]:
    """`<name>_<dtypes>` for each of `dtypes`, every one in the C file of its name; `lower` makes the calls of all."""
    symbols = {each: f"{name}_{each}" for each in dtypes}
    return tuple(
        Kernel(
            s,
            each,
            lower,
            headers,
            (f"{s}.c",),
            refuse,
            cost_model=cost_model,
            access_order=access_order,
            no_cost_model=no_cost_model,
        )
        for each, s in symbols.items()
    )


# All kernels of a node's operator ask, for each target and after many passes.
@memoize
def signature(node: Node) -> str:
    """The dtypes of a node as one word: "s8" where first input and output agree, else "f32_s8" (from, to).

    "_w4" behind it says that the weights are int4; "_rne" and "_acc32" how sums are rounded (the attribute `rounding`):
    such a node needs a kernel of its own. The words are those of kernels' names.
    """
    first = next((t.dtype.suffix for t in node.inputs if t is not None), "")
    last = node.outputs[0].dtype.suffix
    narrow = any(t is not None and t.dtype is DType.INT4 for t in node.inputs)
    asked = getattr(node.attrs, "rounding", "double")
    rounding = {"double": "", "half_away": "", "int32_accumulator": "_acc32"}.get(asked, "_rne")
    return (first if first == last else f"{first}_{last}") + ("_w4" if narrow else "") + rounding
