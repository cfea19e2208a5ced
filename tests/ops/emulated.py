# SPDX-License-Identifier: Apache-2.0
"""Runs a graph of cases on an emulated board, through the product's own harness."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.calls.board import STRICT
from tests.emulated.simavr import build_runner
from tests.ops.cases import placed_quickly, write_files
from tinyet.boards import load_board
from tinyet.build.gcc import build_firmware
from tinyet.delegates import Delegate
from tinyet.deployment import Deployment
from tinyet.device.device import open_device
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.model import model_files
from tinyet.emit.project import project_files
from tinyet.ir import Array, Graph, Tensor
from tinyet.planning.objective import Objective
from tinyet.stack.bound import Stack

HASH = "0" * 64


def require_emulator(board_name: str = "mps2_an386") -> None:
    """Skip, saying what is missing, where the board's cross compiler or its emulator is absent."""
    board = load_board(board_name)
    if board.simavr is not None:
        build_runner()
        return
    toolchain = board.toolchain
    for tool in (toolchain.compiler, str(toolchain.qemu)):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def _facts(tensor: Tensor, deployment: Deployment) -> TensorFacts:
    return TensorFacts(
        tensor.name, tensor.dtype, tensor.shape, tensor.type.bytes, deployment.plan.offset(tensor), None, None
    )


def run_emulated(
    graph: Graph,
    inputs: Sequence[Array],
    board_name: str,
    delegates: Sequence[Delegate] = (),
    compiler: str = "gcc",
    flags: Sequence[str] = STRICT,
    objective: Objective | None = None,
) -> tuple[Deployment, bytes]:
    """The deployment for the board, and the output bytes in order."""
    deployment, (found,) = run_samples(graph, [inputs], board_name, delegates, compiler, flags, objective)
    return deployment, found


def run_samples(
    graph: Graph,
    samples: Sequence[Sequence[Array]],
    board_name: str,
    delegates: Sequence[Delegate] = (),
    compiler: str = "gcc",
    flags: Sequence[str] = STRICT,
    objective: Objective | None = None,
) -> tuple[Deployment, list[bytes]]:
    """The deployment for the board, and the output bytes in order of each of the samples, one run after the other."""
    require_emulator(board_name)
    deployment = placed_quickly(graph, load_board(board_name).target, delegates, objective=objective)
    raw = [[np.ascontiguousarray(a).tobytes() for a in inputs] for inputs in samples]
    return deployment, run_deployment(deployment, raw, board_name, compiler, flags)


def run_deployment(
    deployment: Deployment,
    raw: Sequence[Sequence[bytes]],
    board_name: str,
    compiler: str = "gcc",
    flags: Sequence[str] = STRICT,
) -> list[bytes]:
    """The output bytes in order of each of the samples, whose inputs are given in bytes."""
    board, graph = load_board(board_name), deployment.graph
    files = model_files(deployment, graph.name, [graph.name])
    facts = ModelFacts(
        name=graph.name,
        macro=graph.name.upper(),
        hash=HASH,
        arena_bytes=deployment.plan.arena_bytes,
        layers=len(deployment.steps),
        inputs=tuple(_facts(t, deployment) for t in graph.inputs),
        outputs=tuple(_facts(t, deployment) for t in graph.outputs),
        samples=tuple(raw[0]),
    )
    description = project_files("platformio", board, facts, files)["harness/model_desc.c"]
    with tempfile.TemporaryDirectory(prefix="tinyet-emulated-") as where:
        folder = Path(where)
        write_files(folder, {**files, "model_desc.c": description})
        sources = [folder / name for name in (*sorted(files), "model_desc.c") if name.endswith(".c")]
        elf = build_firmware(board, sources, [folder], folder / "build", flags=flags, compiler=compiler)
        with open_device(board, elf, "qemu") as device:
            results = [device.run(inputs, uninterrupted=inputs is raw[-1]) for inputs in raw]
        taken = results[-1].stack_bytes
        bound = Stack(elf).function(f"{graph.name}_run")
        # Clang aligns frames of vectors by computing on the stack pointer: those have no bound.
        assert bound.bytes is not None or compiler != "gcc", bound.unknown
        assert bound.bytes is None or taken <= bound.bytes, bound.chain
        return [b"".join(result.outputs) for result in results]
