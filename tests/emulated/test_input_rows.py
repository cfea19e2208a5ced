# SPDX-License-Identifier: Apache-2.0
"""Models whose input comes row by row: any portions, half images dropped, in projects of every kind."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.emulated.test_sleep import SANITIZE
from tests.ops.cases import objects_for_host
from tests.streamed import Net, averaged, sequence
from tinyet import assets, ops
from tinyet.analysis import analyze
from tinyet.boards import all_boards
from tinyet.boards.cpus import HOST
from tinyet.deployment import Deployment, deploy
from tinyet.emit.kinds import Kind, kinds_for
from tinyet.emit.model import model_files
from tinyet.errors import UsageError
from tinyet.ir import Array, DType, Graph, Node, Tensor, constant
from tinyet.ops.add import Add
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.opset import rows_of
from tinyet.planning.objective import Objective, Optimize
from tinyet.program import Program
from tinyet.project import Project
from tinyet.reference import evaluate

STRICT = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wcast-qual", "-Werror")

# Takes commands from its input: r; or p COUNT and so many rows' bytes. Tells each status, and outputs that are there.
MAIN = """
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

int main(void) {
  int command;
  while ((command = getchar()) != EOF) {
    if (command == 'r') {
      net_restart_rows();
      continue;
    }
    const uint32_t count = (uint32_t)getchar();
    int8_t *const rows = (int8_t *)malloc(count * NET_INPUT_0_ROW_BYTES + 1u);
    if (fread(rows, NET_INPUT_0_ROW_BYTES, count, stdin) != count) {
      return 1;
    }
    const tinyet_status status = net_push_rows(rows, count);
    free(rows);
    printf("%d", (int)status);
    for (uint32_t i = 0u; status == TINYET_OK && i < NET_OUTPUT_0_COUNT; i++) {
      printf(" %d", net_output_0()[i]);
    }
    printf("\\n");
  }
  return 0;
}
"""


def viewed(graph: Graph) -> Graph:
    """With an input (1, 1, rows, columns * channels), which a view makes the image."""
    image = graph.inputs[0]
    _, rows, columns, channels = image.shape
    flat = Tensor("flat_image", replace(image.type, shape=(1, 1, rows, columns * channels)))
    view = Node(Reshape(shape=image.shape), (flat,), (image,), (small.origin("flat"),))
    return ops.check(graph.replace(inputs=(flat,), nodes=(view, *graph.nodes)), "giving an image by a view")


def skipping(rows: int = 7) -> Graph:
    """A 1 by 1 convolution with strides of 3, to (1, 2, 2, 4) of (1, 7 or more, 6, 4): nobody reads the last rows."""
    graph = small.graph(size=6, channels=4)
    image, out = graph.inputs[0], graph.nodes[0].outputs[0]
    x = Tensor("x", replace(image.type, shape=(1, rows, 6, 4)))
    y = Tensor("y", replace(out.type, shape=(1, (rows - 1) // 3 + 1, 2, 4)))
    given = graph.nodes[0].input(1).array[:, :1, :1, :]
    weights = np.concatenate([given, given[..., :1]], axis=3)
    kernel = constant("w", weights, graph.nodes[0].input(1).type.quant)
    node = Node(
        Conv2d(stride_h=3, stride_w=3), (x, kernel, graph.nodes[0].input(2)), (y,), (small.origin("conv"),)
    )
    return ops.check(Graph("skipping", (x,), (y,), (node,)), "leaving rows out")


def enlarged(*, padded: bool) -> Graph:
    """Twice the size: rows above and below the image are those at its edge, of the input or of what is padded."""
    net = Net(DType.INT8, (1, 6, 5, 4))
    x = net.x
    if padded:
        x = net.add(Pad(((0, 0), (2, 1), (0, 3), (0, 0)), "replicate"), x, like=x)
    _, height, width, _ = x.shape
    attrs = Resize(2 * height, 2 * width, "bilinear", False, True, 0.5, 0.5)
    y = net.add(attrs, x, like=x)
    return net.finish(net.add(MaxPool2d(2, 2, kernel_h=3, kernel_w=3), y, like=y)).graph


def taking(graph: Graph, optimize: Optimize = "balanced") -> Deployment:
    return deploy(graph, HOST, objective=Objective(optimize, input_rows=True))


def commands(images: list[bytes], rows: int, draw: random.Random) -> tuple[bytes, list[int | None]]:
    """Portions of images, some of which are dropped half given; and what each push has to say: the number of the image
    whose outputs are there, None for more rows, -1 for a refusal."""
    text, said = b"", list[int | None]()
    for number, image in enumerate(images):
        size = len(image) // rows
        if draw.random() < 0.5:
            some = draw.randrange(rows)
            text += b"p" + bytes([some]) + draw.randbytes(some * size) + b"r"
            said.append(None)
        at = 0
        while at < rows:
            if draw.random() < 0.2:
                text += b"p" + bytes([rows - at + 1]) + draw.randbytes((rows - at + 1) * size)
                said.append(-1)
            count = min(draw.choice((0, 1, 1, 2, 3, rows)), rows - at)
            text += b"p" + bytes([count]) + image[at * size : (at + count) * size]
            at += count
            said.append(number if at == rows else None)
    return text, said


@pytest.mark.parametrize(
    ("graph", "optimize"),
    [
        (small.graph(size=6), "balanced"),
        (small.graph(size=12), "size"),
        (viewed(small.graph(size=8)), "balanced"),
        (viewed(small.graph(size=8)), "size"),
        (skipping(), "balanced"),
        (skipping(9), "size"),
        (averaged(DType.INT8).graph, "size"),
        (enlarged(padded=False), "size"),
        (enlarged(padded=True), "balanced"),
        (sequence(DType.INT8, 121).graph, "size"),
    ],
    ids=[
        *("image", "image, small", "view", "view, small", "rows unread", "rows unread, small", "rows summed"),
        *("enlarged", "padded and enlarged", "sequence"),
    ],
)
def test_any_portions(graph: Graph, optimize: Optimize, tmp_path: Path) -> None:
    deployment = taking(graph, optimize=optimize)
    given = graph.inputs[0]
    assert deployment.plan.extent(given) < given.type.bytes
    assert deployment.plan.input_line_buffer(given) is not None
    assert deployment.state_bytes > 0
    for name, text in model_files(deployment, "net", ["test"]).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "main.c").write_text(MAIN)
    binary = tmp_path / "net"
    compiler = ["gcc", *STRICT, *SANITIZE]
    objects = objects_for_host(compiler, sorted(tmp_path.glob("*.c")))
    subprocess.run([*compiler, *objects, "-lm", "-o", str(binary)], check=True, timeout=120)

    rng = np.random.default_rng(3)
    images: list[Array] = [rng.integers(-128, 128, given.shape).astype(np.int8) for _ in range(8)]
    (rows,) = (
        rows_of(window.tensor) for window in [deployment.plan.input_line_buffer(given)] if window is not None
    )
    wanted = [evaluate(graph, [image])[graph.outputs[0]].ravel().tolist() for image in images]
    sent, said = commands([image.tobytes() for image in images], rows, random.Random(5))
    done = subprocess.run([str(binary)], input=sent, capture_output=True, check=True, timeout=60)
    lines = done.stdout.decode().splitlines()
    expected = ["2" if n is None else "-2" if n == -1 else " ".join(map(str, (0, *wanted[n]))) for n in said]
    assert lines == expected


def test_what_cannot_be_is_told() -> None:
    graph = small.graph(size=6)
    image = graph.inputs[0]
    turned = Tensor("turned", replace(image.type, shape=(1, 3, 6, 6)))
    permute = Node(Permute((0, 2, 3, 1)), (turned,), (image,), (small.origin("pool"),))
    with pytest.raises(UsageError, match=r"permute needs the whole input.*net\.py:12") as caught:
        taking(graph.replace(inputs=(turned,), nodes=(permute, *graph.nodes)))
    assert "channels_last=True" in str(caught.value)

    flat = Tensor("flat_image", replace(image.type, shape=(1, 108)))
    (head,) = [node for node in graph.nodes if node.op == "linear"]
    weights = constant("w", np.ones((5, 108), np.int8), head.input(1).type.quant)
    linear = Node(head.attrs, (flat, weights, None), head.outputs, (small.origin("head"),))
    with pytest.raises(UsageError, match=r"flat_image has no rows: its shape is \[1, 108\]") as caught:
        taking(Graph("flat", (flat,), head.outputs, (linear,)))
    assert "linear needs the whole input" in str(caught.value)

    other = Tensor("other", image.type)
    total = Tensor("total", image.type)
    both = Node(Add(), (image, other), (total,), (small.origin("conv"),))
    with pytest.raises(UsageError, match=r"has 2 inputs, x, other"):
        taking(Graph("both", (image, other), (total,), (both,)))

    with pytest.raises(UsageError, match=r"conv2d pads an image of float32 above or below.*net\.py:11"):
        taking(small.graph(real=True))


def _program(size: int = 16) -> Program:
    return Program("small", small.graph(size=size), small.graph(real=True, size=size))


@pytest.mark.parametrize("limit", [None, 40_000])
def test_a_firmware(limit: int | None, tmp_path: Path) -> None:
    """Generated, opened again, built, and compared on an emulated board."""
    program = Program("small", small.graph(size=16), small.graph(real=True, size=16))
    made = tinyet.generate(
        program, "mps2_an386", tmp_path / "p", kind="cmake", input_rows=True, max_ram=limit
    )
    again = Project(made.path)
    assert again.input_rows
    image = again.deployment.graph.inputs[0]
    assert again.deployment.plan.arena_bytes == made.manifest["arena_bytes"]
    assert again.deployment.plan.extent(image) < image.type.bytes
    assert (
        analyze(again.program, again.board, input_rows=True, max_ram=limit).arena_bytes
        == again.deployment.plan.arena_bytes
    )
    size = made.build()
    (fusion_group,) = again.deployment.plan.fusion_groups
    kept = [
        s
        for s in size.largest("ram", len(size.symbols))
        if s.name == "small_image" or s.name.startswith("window") or s.name.endswith("_rows")
    ]
    assert sum(symbol.bytes for symbol in kept) == fusion_group.kept_bytes == again.deployment.state_bytes
    samples = np.random.default_rng(1).uniform(-5, 5, (3, 16, 16, 3)).astype(np.float32)
    result = again.validate(samples, on="qemu")
    assert result.bit_exact
    assert result.stack_bytes is not None
    assert result.stack_bound is not None
    assert result.stack_bound.bytes is not None, result.stack_bound.said
    assert 0 < result.stack_bytes <= result.stack_bound.bytes
    assert made.stack.inference.bytes is not None, made.stack.inference.said


@pytest.mark.parametrize("kind", ["arduino", "platformio", "zephyr", "cmake"])
def test_applications_of_every_kind_give_rows(kind: Kind, tmp_path: Path) -> None:
    """What stands in the projects' own files is compiled where it needs no core's headers, and speaks of nothing that a
    model by rows does not have."""
    boards = {
        "arduino": "arduino_nano33ble",
        "platformio": "arduino_uno",
        "zephyr": "nrf52840dk",
        "cmake": "mps2_an386",
    }
    names = [b.name for b in all_boards() if kind in kinds_for(b)]
    board = boards[kind] if boards[kind] in names else names[0]
    made = tinyet.generate(_program(), board, tmp_path / "p", kind=kind, input_rows=True)
    texts = {
        p: p.read_text()
        for p in made.path.rglob("*")
        if p.suffix in (".c", ".cpp", ".ino", ".h", ".md", ".txt")
    }
    for path, text in texts.items():
        for word in (
            "small_run",
            "small_input_0",
            "small_set_input_0",
            "SMALL_INPUT_0_OFFSET",
            "fill_inputs",
        ):
            assert word not in text, (path, word)
    assert sum("small_push_rows" in text for text in texts.values()) >= 4
    (source,) = (p for p in texts if "small_sample_0" in texts[p] and "_sample.h" not in p.name)
    if kind == "zephyr":
        return  # its headers are Zephyr's own
    api = Path(__file__).parents[1] / "arduino_api"
    folders = {p.parent for p in texts if p.suffix == ".h"} | {api, assets.path("firmware") / "include"}
    folders.add(assets.path("firmware") / "platform")
    language = ["-x", "c", "-std=c11"] if source.suffix == ".c" else ["-x", "c++", "-include", "Arduino.h"]
    options = [
        *language,
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        *(f"-I{p}" for p in sorted(folders)),
    ]
    subprocess.run(["gcc", *options, str(source)], check=True, timeout=60)
