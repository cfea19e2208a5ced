# SPDX-License-Identifier: Apache-2.0
"""Regions: found, made one node, undone; and delegates by name, from packages too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.delegates.toy import ADD_MUL, SINE
from tests.golden_files import Golden
from tinyet import delegates
from tinyet.boards import load_board
from tinyet.delegates import PORTABLE, Delegate, Partition, delegates_named, regions_of, register_delegate
from tinyet.deployment import deploy
from tinyet.errors import InternalError, UnsupportedOp, UsageError
from tinyet.ir import Attrs, DType, Graph, Node, Origin, Tensor, TensorType, to_text
from tinyet.ops import check
from tinyet.ops.add import Add
from tinyet.ops.div import Div
from tinyet.ops.mul import Mul
from tinyet.ops.region import Region
from tinyet.ops.sub import Sub
from tinyet.planning.partition import contract, inline
from tinyet.reference import run_graph

FLOAT = TensorType((4,), DType.FLOAT32)
TARGET = load_board("mps2_an386").target
CHAIN: tuple[type[Attrs], ...] = (Add, Mul, Sub, Div, Mul, Add)


def graph_of(operators: Sequence[tuple[type[Attrs], int, int]], outputs: list[int]) -> Graph:
    """Values 0 and 1 are inputs; operator k reads two earlier values and makes value k + 2."""
    values = [Tensor("x", FLOAT), Tensor("y", FLOAT)]
    nodes = []
    for k, (kind, a, b) in enumerate(operators):
        out = Tensor(f"v{k + 2}", FLOAT)
        origin = Origin(file="net.py", line=k + 1, text=f"line {k + 1}")
        nodes.append(Node(kind(), (values[a], values[b]), (out,), (origin,)))
        values.append(out)
    given_out = tuple(dict.fromkeys(values[i] for i in outputs))
    return check(Graph("g", (values[0], values[1]), given_out, tuple(nodes)), "building")


def chain() -> Graph:
    return graph_of([(kind, k + 1 if k else 0, 1) for k, kind in enumerate(CHAIN)], [7])


def refuse(node: Node) -> str | None:
    return None if isinstance(node.attrs, Add | Mul) else "only add and mul"


def ops_of(graph: Graph) -> list[str]:
    return [
        "+".join(n.op for n in node.attrs.graph.nodes) if isinstance(node.attrs, Region) else node.op
        for node in graph.nodes
    ]


def test_a_chain_is_split_where_others_are(golden: Golden) -> None:
    graph = chain()
    partition = regions_of(graph, graph.nodes, refuse)
    assert [[n.op for n in region] for region in partition.regions] == [["add", "mul"], ["mul", "add"]]
    assert {n.op: reason for n, reason in partition.refusals.items()} == {
        "sub": "only add and mul",
        "div": "only add and mul",
    }
    with_fused_nodes = check(contract(graph, partition.regions, "toy"), "contract")
    assert ops_of(with_fused_nodes) == ["add+mul", "sub", "div", "mul+add"]
    golden(to_text(with_fused_nodes), "contracted.txt")
    first = with_fused_nodes.nodes[0]
    assert [o.line for o in first.origins] == [1, 2]
    assert (first.inputs, first.outputs) == (graph.inputs, graph.nodes[1].outputs)


def test_a_group_never_waits_for_itself() -> None:
    """add → sub → mul and add → mul: together, add and mul would need what sub makes of their own result."""
    graph = graph_of([(Add, 0, 1), (Sub, 2, 0), (Mul, 2, 3)], [4])
    partition = regions_of(graph, graph.nodes, refuse)
    assert [[n.op for n in region] for region in partition.regions] == [["add"], ["mul"]]


def test_two_groups_never_wait_for_each_other() -> None:
    """Each of two groups alone may be joined, both together not: the second stays apart."""
    graph = graph_of([(Add, 0, 1), (Add, 0, 0), (Sub, 2, 0), (Sub, 3, 0), (Mul, 2, 5), (Mul, 3, 4)], [6, 7])
    partition = regions_of(graph, graph.nodes, refuse)
    check(contract(graph, partition.regions, "toy"), "contract")


def test_small_groups_are_left_with_a_reason() -> None:
    graph = graph_of([(Add, 0, 1), (Sub, 2, 0)], [3])
    partition = regions_of(graph, graph.nodes, refuse, at_least=2)
    assert partition.regions == ()
    assert partition.refusals[graph.nodes[0]] == "a group of 1, fewer than 2"


def test_only_free_nodes_are_taken() -> None:
    graph = chain()
    partition = regions_of(graph, graph.nodes[1:], refuse)
    assert [[n.op for n in region] for region in partition.regions] == [["mul"], ["mul", "add"]]
    assert graph.nodes[0] not in partition.refusals


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 12))
    operators = [
        (draw(st.sampled_from((Add, Mul, Sub))), draw(st.integers(0, k + 1)), draw(st.integers(0, k + 1)))
        for k in range(count)
    ]
    outputs = draw(st.lists(st.integers(2, count + 1), min_size=1, max_size=3))
    return graph_of(operators, outputs)


@given(graphs())
def test_partitioning_changes_nothing(graph: Graph) -> None:
    partition = regions_of(graph, graph.nodes, refuse)
    taken = [n for region in partition.regions for n in region]
    assert len(set(taken)) == len(taken)
    assert set(taken) == {n for n in graph.nodes if isinstance(n.attrs, Add | Mul)}
    with_fused_nodes = check(contract(graph, partition.regions, "toy"), "contract")
    regions = [n for n in with_fused_nodes.nodes if isinstance(n.attrs, Region)]
    assert len(regions) == len(partition.regions)
    back, home = inline(with_fused_nodes, regions)
    check(back, "inline")
    assert set(home.values()) == set(regions)
    data = [np.array([1.5, -2.0, 0.25, 3.0], np.float32), np.array([-1.0, 0.5, 2.0, 0.0], np.float32)]
    with np.errstate(all="ignore"):
        wanted = run_graph(graph, data)
        for changed in (with_fused_nodes, back):
            for a, b in zip(run_graph(changed, data), wanted, strict=True):
                np.testing.assert_array_equal(a, b)


def test_circular_partitions_are_the_delegates_fault() -> None:
    graph = graph_of([(Add, 0, 1), (Sub, 2, 0), (Mul, 2, 3)], [4])
    with pytest.raises(InternalError, match="in a circle"):
        contract(graph, [(graph.nodes[0], graph.nodes[2])], "toy")


# ---------------------------------------------------------------- selection


def test_who_took_what_and_why_not() -> None:
    deployment = deploy(chain(), TARGET, (ADD_MUL, PORTABLE))
    took = [(s.choice.delegate.name, s.choice.kernel.symbol) for s in deployment.steps]
    assert [name for name, _ in took] == ["add_mul", "portable", "portable", "add_mul"]
    assert took[0][1] == "add_mul_v3"
    refusals = [str(r) for r in deployment.steps[1].choice.refusals]
    assert refusals[0] == "add_mul: only add and mul"
    assert [e.label for e in deployment.events] == ["add", "mul", "mul", "add"]
    assert deployment.steps[3].first_event == len(deployment.steps) + 2
    assert "net.py:6" in deployment.origin_of(len(deployment.steps) + 3)
    assert deployment.state_bytes == 8


def test_the_order_of_delegates_decides() -> None:
    deployment = deploy(chain(), TARGET, (PORTABLE, ADD_MUL))
    assert {s.choice.delegate.name for s in deployment.steps} == {"portable"}


def test_require_lists_every_fallback(golden: Golden) -> None:
    with pytest.raises(UnsupportedOp) as caught:
        deploy(chain(), TARGET, (ADD_MUL,), require=True)
    golden(f"{caught.value}\n", "require.txt")
    deploy(chain(), TARGET, (ADD_MUL, PORTABLE), require=True)


def test_a_delegate_must_not_take_what_is_taken() -> None:
    thief = Delegate(
        "thief",
        partition=lambda graph, _free, _target: Partition((graph.nodes,)),
        preprocess=ADD_MUL.preprocess,
    )
    with pytest.raises(InternalError, match="thief takes a node twice, or one that is not free"):
        deploy(chain(), TARGET, (ADD_MUL, thief))


def test_partition_and_preprocess_belong_together() -> None:
    with pytest.raises(InternalError, match="only one of partition and preprocess"):
        Delegate("half", partition=ADD_MUL.partition)


# ---------------------------------------------------------------- names


def test_registered_delegates_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegates, "_REGISTERED", {})
    register_delegate(SINE)
    register_delegate(SINE)
    assert delegates_named(["sine", "portable"]) == (SINE, PORTABLE)
    assert "sine" in delegates.delegate_names()
    with pytest.raises(UsageError, match="there is a delegate sine already"):
        register_delegate(Delegate("sine"))
    with pytest.raises(UsageError, match="there is a delegate portable already"):
        register_delegate(Delegate("portable"))


def test_unknown_names() -> None:
    with pytest.raises(UsageError, match="no delegate called cmsis, gpu") as caught:
        delegates_named(["cmsis", "portable", "gpu"])
    assert caught.value.hint is not None
    assert "cortex_m" in caught.value.hint


def install(folder: Path, body: str, entry: str) -> None:
    """A package with an entry point, as pip would leave it."""
    (folder / "their_backend.py").write_text(body, encoding="utf-8")
    info = folder / "their_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: their_backend\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(f"[tinyet.delegates]\n{entry}\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_backend", raising=False)
    return tmp_path


def test_a_package_brings_a_delegate(site: Path) -> None:
    body = "from tinyet.delegates import Delegate\nBACKEND = Delegate('theirs')\n"
    install(site, body, "theirs = their_backend:BACKEND")
    assert "theirs" in delegates.delegate_names()
    (found,) = delegates_named(["theirs"])
    assert found.name == "theirs"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise RuntimeError('no licence')", "delegate theirs cannot be loaded: no licence"),
        ("BACKEND = 3", "entry point theirs is no delegate of that name, but 3"),
    ],
)
def test_a_broken_package_is_named(site: Path, body: str, message: str) -> None:
    install(site, body, "theirs = their_backend:BACKEND")
    with pytest.raises(UsageError, match=message):
        delegates_named(["theirs"])
    assert delegates_named(["portable"]) == (PORTABLE,)
