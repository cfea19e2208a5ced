# SPDX-License-Identifier: Apache-2.0
"""Frames one after the other on an emulated M4: after each the answer of the network over the newest window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ops.emulated import require_emulator
from tests.over_time_nets import Drawn, Layer
from tests.streamed import deployed, harness, host_harness
from tinyet.boards import load_board
from tinyet.device.device import open_device
from tinyet.ir import DType
from tinyet.over_time import stream
from tinyet.program import Program, from_bytes
from tinyet.reference import run_graph

FRAMES = 32
NETS = {
    # Causal and dilated, with shortcuts: the last step is made of 21 frames.
    "tcn": Drawn(
        "line", DType.INT8, tuple(Layer("residual", 3, 1, d, before=2 * d) for d in (1, 2, 4)), "last"
    ),
    # An image whose height is time: strides, pools, shortcuts that wait, and a mean of what is left of the window.
    "image": Drawn(
        "rows",
        DType.INT8,
        (Layer("conv", 3, 2), Layer("residual", 3), Layer("max", 2, 2), Layer("both", 2), Layer("conv", 1)),
        "mean",
    ),
}


def test_from_the_reset_on(tmp_path: Path) -> None:
    """Under the sanitizers: causal padding, that of a float maximum too, infinite, is what states are first."""
    board = load_board("mps2_an386")
    layers = Layer("max", 3, before=2), Layer("conv", 3, 1, 2, before=4), Layer("avg", 2, before=1)
    drawn = Drawn("rows", DType.FLOAT32, layers, "last")
    found = stream(drawn.graph(4), (drawn.axis,))
    assert found.warm_up is None
    program = Program("causal", found.graph)
    data = drawn.data(9, 1)
    elf = host_harness(program, deployed(program, board.target), tmp_path)
    with open_device(board, elf, "host") as device:
        for _ in range(2):
            for end in range(1, 10):
                got = device.run([np.ascontiguousarray(data[:, end - 1 : end]).tobytes()]).outputs[0]
                if end > 1:
                    (wanted,) = run_graph(drawn.graph(end), [np.ascontiguousarray(data[:, :end])])
                    assert got == wanted.tobytes(), f"after {end} frames"
            device.reset()


@pytest.mark.emulated
@pytest.mark.parametrize("name", NETS)
def test_many_frames(name: str, tmp_path: Path) -> None:
    board_name = "mps2_an386"
    require_emulator(board_name)
    board, drawn = load_board(board_name), NETS[name]
    graph = drawn.graph(FRAMES)
    found = stream(graph, (drawn.axis,))
    assert found.warm_up is not None
    assert found.warm_up <= FRAMES
    program = from_bytes(Program(name, found.graph).data, name)
    data = drawn.data(400, 1)
    with open_device(board, harness(program, deployed(program, board.target), board, tmp_path)) as device:
        for end in range(found.hop, data.shape[drawn.axis] + 1, found.hop):
            frames = np.ascontiguousarray(data.take(range(end - found.hop, end), drawn.axis))
            got = device.run([frames.tobytes()]).outputs[0]
            if end >= FRAMES:
                window = np.ascontiguousarray(data.take(range(end - FRAMES, end), drawn.axis))
                assert got == run_graph(graph, [window])[0].tobytes(), f"after {end} frames"
