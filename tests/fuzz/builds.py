# SPDX-License-Identifier: Apache-2.0
"""What becomes of a program that was taken from a mutant: planned, analyzed, generated, and its C, hundreds at a time,
run under sanitizers to the reference's bits."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from tests.fuzz.run import Case, Outcome, Result, refusal
from tests.fuzz.tet_batch import Batch, Model
from tests.ops.cases import HOST_WITH_DSP
from tinyet.analysis import analyze_deployment
from tinyet.boards import Board, load_board
from tinyet.boards.cpus import HOST
from tinyet.delegates import CMSIS_NN, CORTEX_M, DEFAULT, PORTABLE
from tinyet.deployment import Deployment, deploy
from tinyet.emit.model import model_files
from tinyet.errors import ProgramError
from tinyet.ir import Array, Graph, Tensor
from tinyet.program import Program, from_bytes
from tinyet.reference import Session

HERE = ((HOST, (PORTABLE,)), (HOST_WITH_DSP, (CORTEX_M, PORTABLE)))
"""What runs: the portable kernels, and those for DSP with their instructions in C."""

ELSEWHERE = (
    ("mps2_an386", DEFAULT), ("mps3_an547", (CMSIS_NN, PORTABLE)), ("mps2_an386", (CMSIS_NN, PORTABLE)),
    ("arduino_uno", DEFAULT), ("microbit", DEFAULT), ("riscv32_virt", DEFAULT), ("xtensa_lx60", DEFAULT),
)  # fmt: skip
"""Boards and delegates for which kernels are only chosen and memory is planned."""

MAX_WORK = 200_000
"""Elements and multiply-accumulates of a mutant that is run: the reference in Python takes that long."""

MAX_TAPS = 10_000
"""The reference's steps in Python: windows and groups of one node."""

RUNS = 2


class Builds:
    """Programs that wait for their C to be compiled with that of hundreds of others."""

    def __init__(self) -> None:
        self.batch = Batch()
        self.seen: set[bytes] = set()

    def add(self, case: Case, program: Program, die: int) -> Outcome | None:
        """What becomes of it; None where `flush` will tell. die: chooses kernels and boards."""
        with refusal() as refused:
            deployment = deploy(program.graph, *HERE[die % len(HERE)])
            analyze_deployment(program, deployment, board())
            files = model_files(deployment, NAME, ["mutant"], labels=program.labels)
            other, delegates = ELSEWHERE[die // len(HERE) % len(ELSEWHERE)]
            deploy(program.graph, load_board(other).target, delegates)
        if refused:
            return Outcome.REFUSED_LATER
        key = hashlib.sha256("".join(files[f] for f in (f"{NAME}.h", f"{NAME}.c")).encode()).digest()
        if key in self.seen:
            return Outcome.SAME
        self.seen.add(key)
        if work(deployment) > MAX_WORK or _steps(deployment) > MAX_TAPS:
            return Outcome.UNUSED
        rng = np.random.default_rng(list(key))
        with np.errstate(all="ignore"):
            samples = [inputs(program.graph, rng, wild=bool(n)) for n in range(RUNS)]
            session = Session(program.graph)
            outputs = [session.outputs(sample) for sample in samples]
        self.batch.add(Model(case, NAME, files, _spans(deployment), [_joined(s) for s in samples], outputs))
        return None

    def add_imported(self, case: Case, load: Callable[[], Program], die: int) -> Outcome | None:
        """The same for what an importer makes of a file. It refuses it, or makes a program that a .tet file holds."""
        with refusal() as refused:
            program = load()
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        try:
            assert from_bytes(program.data, "mutant").hash == program.hash
        except ProgramError as error:
            raise AssertionError(f"what was taken is no program: {error}") from error
        return self.add(case, program, die)

    def flush(self) -> list[Result]:
        return self.batch.run()


NAME = "mutant"


@functools.cache
def board() -> Board:
    return load_board("mps2_an385")


def work(deployment: Deployment) -> int:
    """Elements that are computed, and multiply-accumulates."""
    graph = deployment.graph
    values = [*graph.inputs, *graph.constants, *(t for n in graph.nodes for t in n.outputs)]
    return deployment.macs + sum(t.type.count for t in values)


def _steps(deployment: Deployment) -> int:
    """Of the reference that Python makes, one by one: windows, channels, what is added up."""
    steps = 0
    for node in deployment.graph.nodes:
        inputs = [t for t in node.inputs if t is not None]
        if node.op in ("conv2d", "conv_transpose2d", "dynamic_conv2d", "linear"):
            steps += node.input(1).type.count
        elif node.op in ("mean", "sum", "amax", "amin", "matmul", "adaptive_avg_pool2d", "layer_norm"):
            steps += inputs[0].type.count
        else:
            steps += getattr(node.attrs, "kernel_h", 1) * getattr(node.attrs, "kernel_w", 1)
    return steps


def inputs(graph: Graph, rng: np.random.Generator, *, wild: bool) -> list[Array]:
    """One array for each input of the caller's: integers over the whole range with its ends, ordinary floats; wild:
    floats of every size, infinities and NaN among them."""
    made: list[Array] = []
    for tensor in graph.user_inputs:
        if tensor.dtype.value == "float32":
            values = rng.standard_normal(tensor.shape) * 3
            if wild:
                special = np.array([0.0, -0.0, 1e-40, -1e30, 3e38, np.inf, -np.inf, np.nan, 0.5, -2.5])
                values = np.where(rng.random(tensor.shape) < 0.3, rng.choice(special, tensor.shape), values)
        else:
            low, high = tensor.dtype.range
            edges = rng.choice(np.array([low, high, 0, -1]), tensor.shape)
            values = np.where(
                rng.random(tensor.shape) < 0.2, edges, rng.integers(low, high + 1, tensor.shape)
            )
        made.append(np.asarray(values, tensor.dtype.numpy))
    return made


def _joined(arrays: Sequence[Array]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def _spans(deployment: Deployment) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where the arena has inputs and outputs: (offset, bytes)."""

    def at(tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
        return [(deployment.plan.offset(t), t.type.bytes) for t in tensors]

    return at(deployment.graph.user_inputs), at(deployment.graph.user_outputs)
