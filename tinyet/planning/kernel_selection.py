# SPDX-License-Identifier: Apache-2.0
"""Which kernels can compute which node, and why the others cannot. `search` picks one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.delegates import DEFAULT, PORTABLE, Delegate, delegates_named
from tinyet.errors import InternalError, UnsupportedOp, bullet_list
from tinyet.ir import Graph, Node
from tinyet.ops.region import Region
from tinyet.opset import Kernel, in_order, signature
from tinyet.planning.partition import contract, inline
from tinyet.planning.sized import Sizing


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
    """The kernel of a node, its delegate, and the delegates that were asked before."""

    kernel: Kernel
    delegate: Delegate
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, eq=False)
class Selection:
    """graph: as it was given, except for regions. candidates: for every node of it, in the order of asking.

    pinned: nodes that the user has lowered to one delegate and no other may compute; `deploy` checks this.
    """

    graph: Graph
    candidates: Mapping[Node, tuple[Choice, ...]]
    pinned: Mapping[Node, Delegate]


def with_portable(delegates: Sequence[Delegate]) -> tuple[Delegate, ...]:
    """The user's order, with the portable kernels last where they are not named."""
    return tuple(delegates) if PORTABLE in delegates else (*delegates, PORTABLE)


@dataclass
class _State:
    graph: Graph
    target: Target
    sizing: Sizing | None = None
    candidates: dict[Node, list[Choice]] = field(default_factory=dict)
    refusals: dict[Node, list[Refusal]] = field(default_factory=dict)
    pinned: dict[Node, Delegate] = field(default_factory=dict)
    homeless: list[str] = field(default_factory=list)
    names: dict[str, Graph] = field(default_factory=dict)

    def refuse(self, node: Node, delegate: Delegate, kernel: str, reason: str) -> None:
        self.refusals.setdefault(node, []).append(Refusal(delegate.name, kernel, reason))

    def choose(self, node: Node, delegate: Delegate, kernel: Kernel) -> None:
        self.candidates.setdefault(node, []).append(
            Choice(kernel, delegate, tuple(self.refusals.get(node, ())))
        )

    def under_own_name(self, part: Graph) -> Graph:
        """The graph of a region under a name that no other region has, for delegates that name functions by it."""
        name, count = part.name, 0
        while self.names.setdefault(name, part) is not part:
            count += 1
            name = f"{part.name}_{count}"
        return Graph(name, part.inputs, part.outputs, part.nodes)

    def complain(self, node: Node, delegate: Delegate | None = None) -> None:
        """Note that no delegate takes a node; with a delegate: that this one does not."""
        reasons = [r for r in self.refusals.get(node, []) if delegate is None or r.delegate == delegate.name]
        text = "; ".join(map(str, reasons)) or (
            f"{delegate.name} has no kernel" if delegate else "it has no kernel"
        )
        self.homeless.append(f"{node.op} ({signature(node)}), {node.where or node.outputs[0].name}: {text}")


def select_kernels(
    graph: Graph, target: Target, delegates: Sequence[Delegate] = DEFAULT, sizing: Sizing | None = None
) -> Selection:
    """The kernels for every node, in the delegates' order.

    sizing: of a graph whose size is known at run time; nodes that depend on it get kernels for all sizes, and are in no
    region of a delegate.

    A region delegate takes groups of the nodes that those before it left; each group becomes one node. The
    portable kernels, if the user does not name them, take only the nodes that no other delegate can compute.
    Raises UnsupportedOp with every node that no delegate takes, each with its source line and the reasons.
    """
    state = _State(graph, target, sizing)
    _lowered_modules(state, delegates)
    for delegate in with_portable(delegates):
        _ask(state, delegate, last_resort=delegate not in delegates)
    for node in state.graph.nodes:
        if node not in state.candidates:
            state.complain(node)
    if state.homeless:
        raise UnsupportedOp(
            f"no kernel for {len(state.homeless)} node(s) on {target.cpu}:\n{bullet_list(state.homeless)}",
            hint="leave these layers in float (TinyetQuantizer().set_module_name(name, None)) or write a kernel: "
            "docs/add-an-operator.md",
        )
    return Selection(
        state.graph, {node: tuple(found) for node, found in state.candidates.items()}, state.pinned
    )


def _ask(state: _State, delegate: Delegate, *, last_resort: bool) -> None:
    """Let a delegate offer its kernels: for all nodes except regions, or only for those that have none
    yet."""
    free = [node for node in state.graph.nodes if node not in state.candidates]
    reason = delegate.supports(state.target)
    if reason is not None:
        for node in free:
            if node not in state.pinned:
                state.refuse(node, delegate, "", reason)
        return
    if delegate.partition is not None:
        sizing = state.sizing
        whole = [node for node in free if sizing is None or not sizing.depends(node)]
        _partition(state, delegate, [node for node in whole if node not in state.pinned])
    for node in state.graph.nodes:
        pinned = state.pinned.get(node)
        # A pinned node has been offered to its delegate. The portable kernels may replace it if memory
        # planning will find that there is nothing to compute.
        may_ask = pinned is None or (delegate is PORTABLE and pinned is not PORTABLE)
        settled = last_resort or pinned is not None or isinstance(node.attrs, Region)
        if may_ask and (node not in state.candidates or not settled):
            _kernels(state, node, delegate)


def _kernels(state: _State, node: Node, delegate: Delegate) -> None:
    # Operators that the user has registered bring their portable kernels with them.
    own = ops.op_of(node).kernels if delegate is PORTABLE else delegate.kernels.get(type(node.attrs), ())
    for kernel in in_order(own, state.target):
        reason = kernel.why_not(node, state.target)
        sizing = state.sizing if state.sizing is not None and state.sizing.depends(node) else None
        if reason is None and sizing is not None:
            reason = sizing.why_not(node, kernel, state.target)
        if reason is None:
            state.choose(node, delegate, kernel if sizing is None else sizing.kernel(node, kernel))
        else:
            state.refuse(node, delegate, kernel.symbol, reason)


def _partition(state: _State, delegate: Delegate, free: Sequence[Node]) -> None:
    assert delegate.partition is not None
    partition = delegate.partition(state.graph, frozenset(free), state.target)
    taken = [node for region in partition.regions for node in region]
    if len(set(taken)) != len(taken) or not set(taken) <= set(free):
        raise InternalError(f"delegate {delegate.name} takes a node twice, or one that is not free")
    for node in free:
        if node in partition.refusals:
            state.refuse(node, delegate, "", partition.refusals[node])
    if not partition.regions:
        return
    known = set(state.graph.nodes)
    reasons = {
        tuple(region): [r for n in region for r in state.refusals.get(n, ())] for region in partition.regions
    }
    state.graph = contract(state.graph, partition.regions, delegate.name)
    for node in state.graph.nodes:
        if node not in known and isinstance(node.attrs, Region):
            state.refusals[node] = list(dict.fromkeys(reasons[node.attrs.graph.nodes]))
            state.choose(node, delegate, _region_kernel(state, delegate, node))


def _region_kernel(state: _State, delegate: Delegate, node: Node) -> Kernel:
    """A region delegate's payload for a region, as a kernel."""
    assert delegate.preprocess is not None
    assert isinstance(node.attrs, Region)
    payload = delegate.preprocess(state.under_own_name(node.attrs.graph), state.target)
    return Kernel(
        payload.call.kernel,
        signature(node),
        lambda _node, _target: payload.call,
        payload.headers,
        payload.sources,
        delegate=delegate.name,
        texts=payload.texts,
    )


def _lowered_modules(state: _State, given: Sequence[Delegate]) -> None:
    """Regions that are in the program already: modules that the user has lowered to a delegate.

    A region delegate must take all of one; a kernel library gets its nodes, which no other may compute.
    """
    regions = [node for node in state.graph.nodes if isinstance(node.attrs, Region)]
    by_name = {delegate.name: delegate for delegate in given}
    libraries: dict[Node, Delegate] = {}
    for node in regions:
        assert isinstance(node.attrs, Region)
        name = node.attrs.delegate
        delegate = by_name[name] if name in by_name else delegates_named([name])[0]
        reason = delegate.supports(state.target)
        if reason is not None:
            state.refuse(node, delegate, "", reason)
            state.complain(node)
        elif delegate.partition is None:
            libraries[node] = delegate
        else:
            _whole(state, node, delegate, node.attrs.graph)
    if libraries:
        state.graph, home = inline(state.graph, libraries.keys())
        state.pinned.update({node: libraries[region] for node, region in home.items()})
        for node, delegate in state.pinned.items():
            _kernels(state, node, delegate)


def _whole(state: _State, node: Node, delegate: Delegate, part: Graph) -> None:
    assert delegate.partition is not None
    partition = delegate.partition(part, frozenset(part.nodes), state.target)
    if len(partition.regions) == 1 and set(partition.regions[0]) == set(part.nodes):
        state.choose(node, delegate, _region_kernel(state, delegate, node))
        return
    for inner in part.nodes:
        if inner in partition.refusals:
            state.refuse(inner, delegate, "", partition.refusals[inner])
            state.complain(inner, delegate)
    if not partition.refusals:
        state.refuse(
            node, delegate, "", f"it takes the module in {len(partition.regions)} parts, not as a whole"
        )
        state.complain(node)
