# SPDX-License-Identifier: Apache-2.0
"""A network with states of each type, on every kind of core: kept from run to run, set, read, reset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ops.emulated import require_emulator
from tests.streamed import Net, deployed, harness, host_harness, validated
from tinyet.boards import load_board
from tinyet.device.device import Device, open_device
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.ops.concat import Concat
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.mul import Mul
from tinyet.ops.requantize import Requantize
from tinyet.ops.slice import Slice
from tinyet.ops.svdf import Svdf
from tinyet.passes.states import write_states
from tinyet.program import Program, from_bytes
from tinyet.projects.one import generate
from tinyet.reference import Session
from tinyet.validation import as_bytes

BOARDS = [
    *("nrf51_dk", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547", "riscv32_virt"),
]


def remembering() -> Program:
    """A window of five frames for a convolution, a running sum in float, a mean in int16 that begins with different
    values, and two frames that wait behind one another and change places with nobody."""
    net = Net(DType.INT8, (1, 1, 6, 4))
    ring = Tensor("ring", net.type((1, 4, 6, 4), DType.INT8, 0.05))
    first, second = (Tensor(name, net.x.type) for name in ("first", "second"))
    window = net.add(Concat(1), ring, net.x, like=net.x)
    y = net.conv(window, 4, 5, pads=(0, 0, 2, 2))
    total = Tensor("total", net.type(y.shape, DType.FLOAT32))
    summed = net.add(Add(), total, net.add(Dequantize(), y, dtype=DType.FLOAT32), dtype=DType.FLOAT32)
    mean = Tensor("mean", net.type(y.shape, DType.INT16, 1.0))
    wide = net.add(Requantize(), y, dtype=DType.INT16)
    half = net.constant(np.full((1, 1, 1, 1), 0.5 * 2**15, np.int16), net.type((), DType.INT16, 2**-7).quant)
    following = net.add(Mul(), net.add(Add(), mean, wide, like=mean), half, like=mean)
    late = net.add(Add(), second, net.x)
    moved = net.add(Slice(1, 1, 5), window, like=net.x)
    states = {ring: moved, total: summed, mean: following, first: net.x, second: first}
    initial = [net.constant(np.full(t.shape, _zero(t), t.dtype.numpy), t.type.quant) for t in states]
    drawn = np.random.default_rng(3).integers(-999, 999, mean.shape).astype(np.int16)
    initial[2] = net.constant(drawn, mean.type.quant)
    outputs = (y, late, summed, *states.values())
    graph = Graph("remembering", (net.x, *states), outputs, tuple(net.nodes), tuple(initial))
    # By way of its file, whose door it must pass.
    return from_bytes(Program("remembering", write_states(graph)).data, "remembering")


def low_rank() -> Program:
    """Two layers of SVDF behind one another, a step a run: a state of int8, whose zero point is not 0, and one of
    int16."""
    rng, nodes, states = np.random.default_rng(2), [], {}
    x = result = Tensor("x", TensorType((1, 10), DType.INT8, QuantParams.per_tensor(0.05, 3)))
    for dtype, (low, high), zero_point in ((DType.INT8, (-127, 128), -50), (DType.INT16, (-32767, 32768), 0)):
        inputs, filters, memory = result.shape[1], 12, 5
        scale = 60 / high
        kind = TensorType((1, filters * memory), dtype, QuantParams.per_tensor(scale, zero_point))
        before, behind = (Tensor(f"{name}_{dtype.value}", kind) for name in ("state", "behind"))
        features = rng.integers(-127, 128, (filters, inputs)).astype(np.int8)
        times = rng.integers(low, high, (filters, memory)).astype(dtype.numpy)
        weights = (
            constant(f"feature_{dtype.value}", features, QuantParams.per_tensor(0.05, 0)),
            constant(f"time_{dtype.value}", times, QuantParams.per_tensor(1 / high, 0)),
            constant(f"bias_{dtype.value}", rng.integers(-500, 500, filters // 2).astype(np.int32)),
        )
        quant = QuantParams.per_tensor(0.4, -7)
        y = Tensor(f"y_{dtype.value}", TensorType((1, filters // 2), DType.INT8, quant))
        nodes.append(Node(Svdf(2), (result, before, *weights), (y, behind)))
        states[before], result = behind, y
    initial = [
        constant(f"{t.name}_0", np.full(t.shape, _zero(t), t.dtype.numpy), t.type.quant) for t in states
    ]
    graph = Graph("low_rank", (x, *states), (result, *states.values()), tuple(nodes), tuple(initial))
    return from_bytes(Program("low_rank", write_states(graph)).data, "low_rank")


def _zero(tensor: Tensor) -> int:
    return 0 if tensor.type.quant is None else tensor.type.quant.one_zero_point


def follow(device: Device, session: Session, frames: list[np.ndarray]) -> None:
    """Run them one after the other on what the device itself has kept, and compare all that it has in the end."""
    for frame in frames:
        values = session.values([frame])
        run = device.run([frame.tobytes()])
        assert list(run.outputs) == as_bytes(values[t] for t in session.graph.outputs)


def exercise(device: Device, program: Program) -> None:
    rng = np.random.default_rng(5)
    shape = program.inputs[0].shape
    frames = [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(12)]
    session = Session(program.graph)
    follow(device, session, frames)  # from power-up
    device.reset()
    session.reset()
    follow(device, session, frames[:5])
    for name in session.state:
        session.state[name] = rng.permutation(session.state[name].ravel()).reshape(session.state[name].shape)
    given = as_bytes([frames[5], *session.state.values()])
    wanted = session.values([frames[5]])
    assert list(device.run(given).outputs) == as_bytes(wanted[t] for t in program.graph.outputs)
    follow(device, session, frames[6:])


@pytest.mark.emulated
@pytest.mark.parametrize("name", BOARDS)
def test_states(name: str, tmp_path: Path) -> None:
    require_emulator(name)
    board, program = load_board(name), remembering()
    deployment = deployed(program, board.target)
    with open_device(board, harness(program, deployment, board, tmp_path)) as device:
        assert device.info().num_states == 5
        exercise(device, program)


def test_on_the_host(tmp_path: Path) -> None:
    """Under the sanitizers; set before the first run, too."""
    board, program = load_board("mps2_an386"), remembering()
    deployment = deployed(program, board.target)
    elf = host_harness(program, deployment, tmp_path)
    with open_device(board, elf, "host") as device:
        exercise(device, program)
    with open_device(board, elf, "host") as device:
        graph = program.graph
        session = Session(graph)
        session.state["total"] = np.full_like(session.state["total"], 1.5)
        frame = np.zeros(program.inputs[0].shape, np.int8)
        given = as_bytes([frame, *session.state.values()])
        wanted = session.values([frame])
        assert list(device.run(given).outputs) == as_bytes(wanted[t] for t in graph.outputs)


@pytest.mark.parametrize("name", ["host", pytest.param("mps2_an386", marks=pytest.mark.emulated)])
def test_svdf(name: str, tmp_path: Path) -> None:
    """Its states are written over in their places: the arena has no room for two of each."""
    board, program = load_board("mps2_an386"), low_rank()
    deployment = deployed(program, board.target)
    if name == "host":
        elf = host_harness(program, deployment, tmp_path)
    else:
        require_emulator(name)
        elf = harness(program, deployment, board, tmp_path)
    with open_device(board, elf, *(["host"] if name == "host" else [])) as device:
        exercise(device, program)


def test_validate_says_which_state_is_wrong(tmp_path: Path) -> None:
    """A StateWrite that writes nothing: the outputs of the first run are right, and its states are not."""
    board, program = load_board("mps2_an386"), remembering()
    deployment = deployed(program, board.target)

    def forgets(text: str) -> str:
        (line,) = (line for line in text.splitlines() if "mean_next, &" in line)
        return text.replace(
            line,
            line.replace("mean_next, &", "(void *)mean, &").replace("tinyet_copy(", "if (0) tinyet_copy("),
        )

    right = host_harness(program, deployment, tmp_path / "right")
    result = validated(program, deployment, right, "host", board, 6)
    assert result.bit_exact
    assert result.samples == 6
    wrong = validated(
        program, deployment, host_harness(program, deployment, tmp_path / "wrong", forgets), "host", board, 6
    )
    assert wrong.mismatches == 6
    assert wrong.first_mismatch is not None
    assert (wrong.first_mismatch.op, wrong.first_mismatch.sample) == ("state_write", 0)


def test_a_project_says_what_it_keeps(tmp_path: Path) -> None:
    """Header and arena map; the functions are those of docs/state.md."""
    program = remembering()
    project = generate(program, board="mps2_an386", out=tmp_path / "project")
    header = next(project.path.rglob("remembering.h")).read_text()
    assert "#define REMEMBERING_NUM_STATES 5" in header
    assert "void remembering_reset(void);" in header
    assert "State 2, mean, int16" in header
