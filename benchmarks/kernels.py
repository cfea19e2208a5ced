# SPDX-License-Identifier: Apache-2.0
"""The kernels of cortex_m beside the portable ones: instructions of each layer of DS-CNN and ResNet8, of depthwise
layers of other kinds, of layers with int4 weights, transposed convolutions and pools, and of operators that work
element by element.

    python benchmarks/kernels.py [ds_cnn|resnet8|depthwise|others|elementwise ...] [--board mps2_an386]
                                 [--optimize speed] [--kernel SYMBOL ...] [--each] [--results NAME]

Weights and inputs are random; every output is compared with the operator's reference. Counts are executed
instructions in QEMU, not cycles. --kernel computes every layer by it that it takes; of several the first one that takes
a layer, or with --each one after another, a report each. Flash is what the kernel says it costs, constants and code.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record
from tinyet import ops
from tinyet.boards import Board, Flash, load_board
from tinyet.boards.cpus import RUNS_CODE_OF
from tinyet.build.gcc import build_firmware
from tinyet.build.size import measure
from tinyet.cycles.code import read_code
from tinyet.cycles.estimate import Estimator
from tinyet.cycles.inference import cycle_model
from tinyet.cycles.profile import Profiler
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.device import simavr
from tinyet.device.device import Device, open_device
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.model import model_files
from tinyet.emit.project import project_files
from tinyet.ir import Array, Attrs, DType, Graph, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.requantize import Requantize
from tinyet.ops.resize import Resize
from tinyet.ops.shared.row_sums import RowSums
from tinyet.ops.softmax import Softmax
from tinyet.opset import cost
from tinyet.planning.objective import OPTIMIZE, Objective, Optimize, check_optimize
from tinyet.timing.cores import CORES

RELU = (0.0, math.inf)
NONE = (-math.inf, math.inf)


def activation(name: str, shape: Shape, relu: bool = True) -> Tensor:
    return Tensor(name, TensorType(shape, DType.INT8, QuantParams.per_tensor(0.05, -128 if relu else -3)))


def with_output(attrs: Attrs, inputs: Sequence[Tensor], scale: float, relu: bool) -> Node:
    type_ = TensorType((), DType.INT8, QuantParams.per_tensor(scale, -128 if relu else 5))
    node = Node(attrs, tuple(inputs), (Tensor("y", type_),))
    return node.replace(outputs=[Tensor("y", TensorType(ops.infer(node)[0], DType.INT8, type_.quant))])


def weighted(attrs: Attrs, x: Tensor, shape: Shape, relu: bool) -> Node:
    """A layer with random weights whose outputs fill their range."""
    rng = np.random.default_rng(math.prod(shape))
    w = np.clip(rng.normal(0, 40, shape), -127, 127).astype(np.int8)
    scales = rng.uniform(0.5, 1.0, shape[0]) * 0.01
    bias = rng.integers(-2000, 2000, shape[0]).astype(np.int32)
    spread = 40 * 74 * math.sqrt(math.prod(shape[1:])) * 0.05 * 0.0075
    weights = constant("w", w, QuantParams(tuple(scales), (0,) * shape[0], 0))
    return with_output(attrs, [x, weights, constant("b", bias)], spread / (100 if relu else 50), relu)


def conv(
    size: tuple[int, int, int], out_c: int, kernel: tuple[int, int], stride: int = 1, *, relu: bool = True
) -> Node:
    """With TensorFlow's "same" padding."""
    pads: dict[str, int] = {}
    for letter, sides, length, k in zip(
        "hw", (("top", "bottom"), ("left", "right")), size, kernel, strict=False
    ):
        total = max((-(-length // stride) - 1) * stride + k - length, 0)
        pads |= {f"pad_{sides[0]}": total // 2, f"pad_{sides[1]}": total - total // 2}
        pads[f"stride_{letter}"] = stride
    groups = size[2] if out_c == 0 else 1
    attrs = Conv2d(**pads, groups=groups, clamp=RELU if relu else NONE)
    shape = (out_c or size[2], *kernel, size[2] // groups)
    return weighted(attrs, activation("x", (1, *size)), shape, relu)


def add(size: tuple[int, int, int]) -> Node:
    a, b = activation("a", (1, *size)), activation("b", (1, *size), relu=False)
    return with_output(Add(RELU), [a, b], 0.07, True)


def pool(size: tuple[int, int, int]) -> Node:
    return with_output(
        AvgPool2d(kernel_h=size[0], kernel_w=size[1]), [activation("x", (1, *size))], 0.05, True
    )


def linear(depth: int, count: int) -> Node:
    return weighted(Linear(NONE), activation("x", (1, depth)), (count, depth), False)


MODELS: dict[str, list[Node]] = {
    "ds_cnn": [
        conv((49, 10, 1), 64, (10, 4), 2),
        *[conv((25, 5, 64), n, k) for _ in range(4) for n, k in ((0, (3, 3)), (64, (1, 1)))],
        pool((25, 5, 64)),
        linear(64, 12),
    ],
    "resnet8": [
        conv((32, 32, 3), 16, (3, 3)),
        conv((32, 32, 16), 16, (3, 3)),
        conv((32, 32, 16), 16, (3, 3), relu=False),
        add((32, 32, 16)),
        conv((32, 32, 16), 32, (3, 3), 2),
        conv((16, 16, 32), 32, (3, 3), relu=False),
        conv((32, 32, 16), 32, (1, 1), 2, relu=False),
        add((16, 16, 32)),
        conv((16, 16, 32), 64, (3, 3), 2),
        conv((8, 8, 64), 64, (3, 3), relu=False),
        conv((16, 16, 32), 64, (1, 1), 2, relu=False),
        add((8, 8, 64)),
        pool((8, 8, 64)),
        linear(64, 10),
    ],
    "depthwise": [
        conv((24, 24, 32), 0, (3, 3), 2),
        conv((6, 6, 64), 0, (3, 3)),
        conv((12, 12, 32), 0, (5, 5)),
        conv((49, 1, 32), 0, (9, 1)),
        conv((1, 100, 32), 0, (1, 3)),
    ],
}


def of_one_scale(attrs: Attrs, *inputs: Tensor) -> Node:
    """Whose output is quantized as its first input."""
    node = Node(attrs, inputs, (Tensor("y", inputs[0].type),))
    return node.replace(
        outputs=[Tensor("y", TensorType(ops.infer(node)[0], DType.INT8, inputs[0].type.quant))]
    )


def bilinear(x: Tensor, factor: int, *, aligned: bool) -> Node:
    _, height, width, _ = x.shape
    size = height * factor, width * factor
    ratios = [
        (n - 1) / (m - 1) if aligned else 1 / factor for n, m in zip((height, width), size, strict=True)
    ]
    return of_one_scale(Resize(*size, "bilinear", aligned, not aligned, *ratios), x)


def elementwise() -> list[Node]:
    """Each operator of an image of 16x16x32."""
    size = (1, 16, 16, 32)
    a, b = activation("a", size, relu=False), activation("b", size, relu=False)
    of_channel, of_pixel = activation("b", (1, 1, 1, 32)), activation("b", (1, 16, 16, 1))
    rng = np.random.default_rng(3)
    factors = [constant(n, rng.uniform(0.3, 1.2, 32).astype(np.float32)) for n in ("factor", "offset")]
    shares = TensorType((256, 32), DType.INT8, QuantParams.per_tensor(1 / 256, -128))
    return [
        *[with_output(Add(RELU), [a, other], 0.07, True) for other in (b, of_channel, of_pixel)],
        *[with_output(Mul(NONE), [a, other], 0.07, False) for other in (b, of_channel, of_pixel)],
        of_one_scale(Maximum(), a, b),
        of_one_scale(Clamp(0.0, 3.0), a),
        with_output(Requantize(), [a], 0.07, False),
        with_output(BatchNorm(3, RELU), [a, *factors], 0.05, True),
        bilinear(a, 2, aligned=False),
        bilinear(a, 2, aligned=True),
        with_output(Mean(axes=(1, 2)), [a], 0.01, False),
        Node(Softmax(axis=1), (activation("a", (256, 32), relu=False),), (Tensor("y", shares),)),
    ]


def int4(node: Node) -> Node:
    """The same layer with int4 weights."""
    w = node.input(1)
    values = np.clip(w.array // 16, -7, 7).astype(np.int8)
    return node.replace(
        inputs=[node.input(0), constant("w", values, w.type.quant, DType.INT4), node.inputs[2]]
    )


def transposed(size: tuple[int, int, int], out_c: int, kernel: int) -> Node:
    attrs = ConvTranspose2d(stride_h=2, stride_w=2, clamp=NONE)
    return weighted(attrs, activation("x", (1, *size)), (out_c, kernel, kernel, size[2]), False)


def others() -> list[Node]:
    """Layers with int4 weights, transposed convolutions and pools."""
    pools: list[Attrs] = []
    for kind in (MaxPool2d, AvgPool2d):
        pools.append(kind(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2))
        pools.append(kind(kernel_h=3, kernel_w=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1))
    return [
        int4(conv((16, 16, 64), 64, (1, 1))),
        int4(conv((16, 16, 64), 0, (3, 3))),
        transposed((8, 8, 32), 16, 2),
        transposed((8, 8, 32), 16, 3),
        *[of_one_scale(attrs, activation("x", (1, 16, 16, 32), relu=False)) for attrs in pools],
    ]


LAYERS: dict[str, list[Node]] = {**MODELS, "others": others(), "elementwise": elementwise()}
"""What can be reported, by name."""


def side_by_side(nodes: Sequence[Node]) -> Graph:
    """All layers in one graph, each with inputs and outputs of its own."""
    own = []
    for i, node in enumerate(nodes):
        ins = [None if t is None else Tensor(f"{t.name}{i}", t.type, t.data) for t in node.inputs]
        names = [f"y{i}", *(f"{t.name}{i}" for t in node.outputs[1:])]
        outs = [Tensor(name, t.type) for name, t in zip(names, node.outputs, strict=True)]
        own.append(node.replace(inputs=ins, outputs=outs))
    inputs = [t for node in own for t in node.inputs if t is not None and not t.is_constant]
    return ops.check(
        Graph("layers", tuple(inputs), tuple(t for n in own for t in n.outputs), tuple(own)),
        "building the benchmark",
    )


SHAPE = Flash(wait_states=1, line_bytes=16, code_lines=64, data_lines=8, prefetch=True)
"""The buffers of a flash whose lines are counted: those of the boards that say how theirs waits."""


@dataclass(frozen=True)
class Time:
    """cycles: estimated, or counted by simavr, without waits, on each core that executes the same code. bytes: of
    executed code; next_lines, jumped_lines: of the flash, read for code, right behind the line before and elsewhere;
    data_lines: read for data; all 0 where no flash waits."""

    cycles: Mapping[str, int]
    bytes: int
    jumped_lines: int
    next_lines: int
    data_lines: int


def timed_cores(board: Board) -> list[str]:
    """Those with a model that execute a board's code, or whose cycles simavr counts."""
    if board.simavr is not None:
        return [board.cpu]
    others = [replace(board.target, cpu=cpu) for cpu in CORES if cpu not in RUNS_CODE_OF]
    others += [replace(board.target, cpu=code, timed_as=cpu) for cpu, code in RUNS_CODE_OF.items()]
    return sorted({cost.cycles_of(t) for t in others if cost.core_of(t) == cost.core_of(board.target)})


def timed(board: Board, elf: Path, raw: Sequence[bytes], folder: Path) -> tuple[Time, ...]:
    """Of each layer of a firmware, estimated in an emulator."""
    model, code = cycle_model(board, folder), read_code(elf)
    with Profiler(model.machine, elf, code, model.plugin, folder, SHAPE, timeout=600) as profiler:
        run = profiler.run(raw)
    works = {
        core: Estimator(CORES[core], code, None).mean(profiler.empty, [run])[0] for core in timed_cores(board)
    }
    return tuple(
        Time(
            {core: of_core[i].cycles for core, of_core in works.items()},
            sum(b.count * sum(i.size for i in code.block(b.start, b.instructions)) for b in layer.blocks),
            layer.code_reads - layer.next_reads,
            layer.next_reads,
            layer.data_reads,
        )
        for i, layer in enumerate(run.layers)
    )


def counting_instructions(board: Board, elf: Path) -> Device:
    """The board's emulator, whose counter shows instructions."""
    if board.simavr is None:
        return open_device(board, elf, "qemu")
    link = simavr.start(board, elf, "instructions")
    return Device(
        link,
        elf=elf,
        prefix=board.toolchain.prefix,
        ticks_per_instruction=1.0,
        bytes_per_second=simavr.BYTES_PER_SECOND,
    )


@dataclass(frozen=True)
class Measured:
    """time: cycles and flash lines of each step, of a core with a model and where they are asked for."""

    deployment: Deployment
    counts: tuple[int, ...]
    stack: int
    code: dict[str, int]
    flash: int
    time: tuple[Time, ...] = ()


def run(
    graph: Graph,
    arrays: Sequence[Array],
    board: Board,
    delegates: Sequence[Delegate],
    objective: Objective | None = None,
    *,
    with_stack: bool = False,
    with_time: bool = False,
) -> Measured:
    """Instructions of each layer; raises AssertionError when an output is not the reference's. with_stack: run once
    more for the bytes of stack, which are 0 without; with_time: once more for the time."""
    deployment = deploy(graph, board.target, delegates, objective=objective)
    files = model_files(deployment, graph.name, ["layers"])
    raw = [a.tobytes() for a in arrays]

    def facts(t: Tensor) -> TensorFacts:
        return TensorFacts(t.name, t.dtype, t.shape, t.type.bytes, deployment.plan.offset(t), None, None)

    arena, steps = deployment.plan.arena_bytes, len(deployment.steps)
    tensors = tuple(map(facts, graph.inputs)), tuple(map(facts, graph.outputs))
    described = ModelFacts(graph.name, graph.name.upper(), "0" * 64, arena, steps, *tensors, tuple(raw))
    description = project_files("platformio", board, described, files)["harness/model_desc.c"]
    with tempfile.TemporaryDirectory(prefix="tinyet-kernels-") as where:
        folder = Path(where)
        for name, text in {**files, "model_desc.c": description}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        flags = (board.toolchain.optimization, "-g1")
        elf = build_firmware(board, sorted(folder.rglob("*.c")), [folder], folder / "build", flags=flags)
        size = measure(elf)
        # Without the digest of a kernel's text, and what the compiler adds.
        code = {re.sub(r"(_[0-9a-f]{8})?(\..*)?$", "", s.name): s.bytes for s in size.largest("flash", 1000)}
        with counting_instructions(board, elf) as device:
            result = device.run(raw)
            stack = device.run(raw, uninterrupted=True).stack_bytes if with_stack else 0
        time: tuple[Time, ...] = ()
        if with_time and board.simavr is not None:
            with open_device(board, elf, "simavr") as device:
                counted = device.run(raw).layer_counts
            time = tuple(Time({board.cpu: cycles}, 0, 0, 0, 0) for cycles in counted)
        elif with_time and board.cpu in CORES:
            time = timed(board, elf, raw, folder)
    values = dict(zip(graph.inputs, arrays, strict=True))
    answers = dict(zip(graph.outputs, result.outputs, strict=True))
    for node in graph.nodes:
        if isinstance(node.attrs, RowSums):  # a tile has no value of its own
            continue
        want = ops.evaluate(
            node, [None if t is None else t.array if t.is_constant else values[t] for t in node.inputs]
        )
        for tensor, array in zip(node.outputs, want, strict=True):
            assert is_same(array, answers[tensor]), f"{tensor.name} differs from the reference"
            values[tensor] = array
    return Measured(deployment, result.layer_counts, stack, code, size.flash, time)


def is_same(wanted: Array, found: bytes) -> bool:
    """All bits; of what is not a number none, as IEEE 754 has it."""
    if wanted.dtype != np.float32 or not np.isnan(wanted).any():
        return wanted.tobytes() == found
    got = np.frombuffer(found, np.float32).reshape(wanted.shape)
    bits, others = (np.where(np.isnan(x), np.float32(0), x).tobytes() for x in (wanted, got))
    return bits == others and np.array_equal(np.isnan(wanted), np.isnan(got))


def pinned(graph: Graph, board: Board, symbols: Sequence[str]) -> dict[str, str]:
    """The first of the kernels, by their names, that takes a layer, for every layer that one takes."""
    found: dict[str, str] = {}
    free = deploy(graph, board.target, [CORTEX_M])
    for step in free.steps:
        taking = {variant.choice.kernel.symbol for variant in free.decision.candidates[step.node]}
        for symbol in symbols:
            if symbol in taking:
                found.setdefault(step.name, symbol)
    return found


def report(name: str, board: Board, optimize: Optimize, symbols: Sequence[str]) -> list[dict[str, object]]:
    """Print a row for each layer; the same rows as data."""
    graph = side_by_side(LAYERS[name])
    rng = np.random.default_rng(1)
    arrays: list[Array] = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
    objective = Objective(optimize, pins=pinned(graph, board, symbols))
    ours = run(graph, arrays, board, [CORTEX_M], objective, with_stack=True)
    portable = run(graph, arrays, board, [PORTABLE], with_stack=True)
    print(
        f"{name} on {board.name}: instructions; each: of a MAC, or of a value, by the portable kernel and now"
    )
    print(f"{'layer':36} {'kernel':32} portable cortex_m  ratio    each     now scratch  flash")
    theirs = {step.node: n for step, n in zip(portable.deployment.steps, portable.counts, strict=True)}
    total = [0, 0]
    rows: list[dict[str, object]] = []
    by_index = sorted(
        zip(ours.deployment.steps, ours.counts, strict=True), key=lambda s: graph.nodes.index(s[0].node)
    )
    for step, count in by_index:
        node = step.node
        sizes = "->".join("x".join(map(str, t.shape[1:])) for t in (node.input(0), node.output))
        kernel = "x".join(map(str, node.input(1).shape[1:3])) if isinstance(node.attrs, Conv2d) else ""
        times = step.macs or max(node.input(0).type.count, node.output.type.count)
        before = theirs[node]
        total = [total[0] + before, total[1] + count]
        stated = ours.deployment.decision.chosen[node].cost
        rows.append(
            {
                "op": node.op,
                "name": node.output.name,
                "sizes": sizes,
                "window": kernel,
                "kernel": step.call.kernel,
                "times": times,
                "instructions": count,
                "portable": before,
                "scratch_bytes": step.call.scratch_bytes,
                "constant_bytes": None if stated is None else stated.constants,
                "code_bytes": None if stated is None else stated.code,
            }
        )
        flash = f"{stated.constants + stated.code:6}" if stated is not None else " " * 6
        print(
            f"{node.op + ' ' + kernel + ' ' + sizes:36} {step.call.kernel.removeprefix('tinyet_'):32} "
            f"{before:8} {count:8} {before / count:6.2f} {before / times:7.3f} {count / times:7.3f} "
            f"{step.call.scratch_bytes:7} {flash}"
        )
    print(f"{'sum':69} {total[0]:8} {total[1]:8} {total[0] / total[1]:6.2f}")
    print(f"stack {ours.stack} bytes (portable {portable.stack})")
    print(f"firmware {ours.flash} bytes of flash (portable {portable.flash})\n")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(LAYERS))
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--optimize", choices=OPTIMIZE, default="balanced")
    parser.add_argument("--kernel", action="append", default=[], metavar="SYMBOL")
    parser.add_argument("--each", action="store_true", help="a report for each --kernel by itself")
    record.add_option(parser)
    args = parser.parse_args()
    board = load_board(args.board)
    optimize = check_optimize(args.optimize)
    figures: dict[str, object] = {}
    for name in args.models:
        if args.each:
            figures[name] = {symbol: report(name, board, optimize, [symbol]) for symbol in args.kernel}
        else:
            figures[name] = report(name, board, optimize, args.kernel)
    record.write(args.results, figures)


if __name__ == "__main__":
    main()
