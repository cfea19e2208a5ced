# SPDX-License-Identifier: Apache-2.0
"""Constants that models of one project have in common: there once, right for all, and found in the
firmware."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.emulated.test_together import giving
from tests.ops.emulated import require_emulator
from tinyet.auditing.owners import Owner
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.emit.constants import common_of
from tinyet.ir import Graph, constant
from tinyet.program import Program
from tinyet.projects.together import TogetherProject

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def with_another_head(graph: Graph) -> Graph:
    """The same layers up to the last, whose weights are others."""
    head = graph.nodes[-1]
    weights = head.input(1)
    rng = np.random.default_rng(9)
    other = constant("other", rng.integers(-127, 128, weights.shape).astype(np.int8), weights.type.quant)
    return graph.replace(
        nodes=(*graph.nodes[:-1], head.replace(inputs=(head.inputs[0], other, *head.inputs[2:])))
    )


def programs() -> list[Program]:
    graph = small.graph(size=8, channels=8)
    return [Program("first", graph), Program("second", with_another_head(graph)), giving()]


def made(tmp_path: Path) -> TogetherProject:
    options = {"schedule": "first | second | giving", "kind": "cmake", "name": "heads", "optimize": "size"}
    found = tinyet.generate(programs(), "mps2_an386", tmp_path / "p", **options)  # type: ignore[arg-type]
    assert isinstance(found, TogetherProject)
    return found


def test_what_is_in_common() -> None:
    target = load_board("mps2_an386").target
    deployments = {p.name: deploy(p.graph, target) for p in programs()}
    common = common_of("heads", deployments)
    apart = sum(d.constant_bytes for d in deployments.values())
    every = {(key, a.bytes) for d in deployments.values() for a in d.arrays for key in [a.key]}
    assert common.saved_bytes == apart - sum(size for _, size in every) > 0
    assert {each.models for each in common.arrays.values()} >= {("first", "second")}
    assert not common_of(
        "heads", {"first": deployments["first"], "giving": deployments["giving"]}
    ).saved_bytes


def test_each_is_there_once(tmp_path: Path) -> None:
    project = made(tmp_path)
    assert project.validate_each(on="host", max_samples=2).bit_exact
    texts = {p.name: p.read_text() for p in (project.path / "lib/heads/src").iterdir()}
    for name, each in ((array.name, array) for array in project.common.arrays.values()):
        text = texts["heads_constants.c"]
        assert len(re.findall(rf"\b{name}\[\d+\] TINYET_ALIGNED\({each.stored.align}\)", text)) == 1
        for model in each.models:
            assert re.search(rf"\b{name}\b", texts[f"{model}.c"])
    own = {
        m: re.findall(r"^static const [\w ]+ (\w+_weights)\[", texts[f"{m}.c"], re.MULTILINE)
        for m in ("first", "second")
    }
    assert own == {"first": ["head_weights"], "second": ["head_weights"]}
    assert f"{project.common.saved_bytes} fewer" in (project.path / "README.md").read_text()


@pytest.mark.emulated
def test_a_firmware_is_audited(tmp_path: Path) -> None:
    """And smaller by what is saved, but for the linker's padding."""
    require_emulator("mps2_an386")
    project = made(tmp_path)
    size = project.build()
    assert project.validate_each(on="qemu", max_samples=2).bit_exact
    found = tinyet.audit(project)
    assert found.ok, found.faults
    names = [(array.name, array.address) for array in found.arrays]
    assert {each.name for each in project.common.arrays.values()} <= {name for name, _ in names}
    assert len(names) == len(set(names))
    assert {weights.layer.partition(":")[0] for weights in found.weights} == {"first", "second", "giving"}
    weights = sum(each.constant_bytes for each in project.shared.deployments.values())
    assert found.bytes_of(Owner.WEIGHTS) == weights - project.common.saved_bytes
    assert size.flash > weights - project.common.saved_bytes
    image = bytearray(found.elf.read_bytes())
    array = next(a for a in found.arrays if a.name in {each.name for each in project.common.arrays.values()})
    data = next(e.stored.data for e in project.common.arrays.values() if e.name == array.name).tobytes()
    at = image.find(data)
    image[at] ^= 1
    broken = tmp_path / "broken.elf"
    broken.write_bytes(image)
    spoilt = tinyet.audit(project, broken)
    assert not spoilt.ok
    assert any(array.name in fault for fault in spoilt.faults)
