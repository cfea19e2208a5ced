# SPDX-License-Identifier: Apache-2.0
"""The costs that kernels state, measured: instructions by the emulator, code by the linker, over grids of shapes.

    python benchmarks/costs.py --board mps2_an386 [KERNEL ...]          compare what is stated with what is measured
    python benchmarks/costs.py --board mps2_an386 --write [KERNEL ...]  measure the rates, and write them
    python benchmarks/costs.py --board mps2_an386 --write --again       the same of the kernels that are in the table
    python benchmarks/costs.py --board mps2_an386 --cycles [KERNEL ...] write the cycles that the table lacks, alone

Of kernels that are named, only the cycles of those cores are written that all others have; --again is for cores whose
model is new. So is --cycles, which measures fewer layers and leaves all else as it is. The rates of a core are in
tinyet/opset/measured/; the grid that they are fitted to and the one that they are compared on are different ones. Needs
the board's compiler and QEMU, and for kernels of cmsis_nn its sources. Every output is compared with the operator's
reference.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import kernels as layers
from benchmarks.cost_code import library_functions, own_code, wrappers
from benchmarks.cost_grids import DRAWN, of_type
from benchmarks.cost_rates import (
    LEAST_CASES,
    Sample,
    add_time,
    coefficients_of,
    cores_without,
    cycles_said,
    entry_of,
    exactly,
    fit_said,
    joined,
    leave_known_cores,
    of_kinds,
    some_of,
    store,
)
from benchmarks.cost_sums import alone, row_sums
from tinyet import ops
from tinyet.boards import Board, load_board
from tinyet.build.gcc import build_firmware
from tinyet.build.size import measure
from tinyet.delegates import DELEGATES, PORTABLE, Delegate
from tinyet.ir import Array, Attrs, DType, Graph, Node, QuantParams, Tensor, TensorType
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.shared.row_sums import RowSums
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.opset import Definition, Kernel, complaints, cost
from tinyet.opset.cost import MEASURED
from tinyet.program import Program
from tinyet.projects.one import generate

FIT, COMPARE = 1, 2
"""Seeds of the two grids."""
MOST_MACS = 300_000
CASES = FIT_CASES = 56
KIND_CASES = 420
FEWEST, EACH_PART = 12, 1.5
"""Cases that cycles alone are fitted to: so many for each part of the work, at least and at most as many as above."""
"""Cases that rates are fitted to; more where calls are of several kinds."""
AT_ONCE = 60
"""Cases of one firmware: planning the memory of many takes long."""
SMALL_MACS, SMALL_BYTES = 60_000, 6_000
"""Of a layer for a core with 16-bit addresses: at most so many products, and bytes of activations, and of constants."""
ROOM = 20_000
"""Bytes of each that one firmware has there for all its cases."""
DRAWS = 12000
POSITIVE = ("log", "log1p", "pow", "rsqrt", "sqrt")
"""Functions that are measured where they are defined."""
LIMIT = 0.03

ROOMY = {"cortex-m0": "mps2_an385"}
"""Boards with the memory that a grid takes, for cores whose own have too little: of a core that executes the same
instructions."""

# ---------------------------------------------------------------- the grids


def convolution(rng: np.random.Generator, *, depthwise: bool) -> Node | None:
    """A convolution of a network's kind: any kernel, stride, padding and number of channels."""
    size = [int(rng.choice([1, 4, 5, 7, 8, 10, 12, 14, 16, 25])) for _ in range(2)]
    channels = int(rng.choice([1, 2, 3, 4, 5, 8, 12, 15, 16, 24, 32, 48, 64, 96]))
    kernel = [int(k) for k in (rng.choice([[1, 1], [3, 3], [3, 3], [5, 5], [1, 3], [3, 1], [4, 10], [2, 2]]))]
    stride = int(rng.choice([1, 1, 2]))
    dilation = int(rng.choice([1, 1, 1, 1, 2]))
    attrs = {"stride_h": stride, "stride_w": stride}
    if stride == 1:
        attrs |= {"dilation_h": dilation, "dilation_w": dilation}
    for axis, sides, k in zip("hw", (("top", "bottom"), ("left", "right")), kernel, strict=True):
        before = int(rng.integers(0, k // 2 + 1)) if rng.random() < 0.7 else k // 2
        attrs |= {f"pad_{sides[0]}": before, f"pad_{sides[1]}": before}
        if size["hw".index(axis)] + 2 * before < (k - 1) * attrs.get(f"dilation_{axis}", 1) + 1:
            return None
    out_c = channels if depthwise else int(rng.choice([1, 2, 4, 7, 8, 10, 16, 24, 32, 64, 96]))
    groups = channels if depthwise else 1
    relu = bool(rng.random() < 0.6)
    clamp = layers.RELU if relu else layers.NONE
    made = Conv2d(**attrs, groups=groups, clamp=clamp)
    x = layers.activation("x", (1, *size, channels))
    return layers.weighted(made, x, (out_c, *kernel, channels // groups), relu)


def grouped(rng: np.random.Generator) -> Node | None:
    """A convolution of several slabs of whole vectors of channels, each of one group and more."""
    own, slabs, k = (
        int(rng.choice([2, 4, 8, 16, 32])),
        int(rng.choice([2, 3, 4, 8])),
        int(rng.choice([1, 3, 3, 5])),
    )
    channels = slabs * max(own, 16)
    size, stride = [int(rng.choice([4, 5, 7, 8, 12])) for _ in range(2)], int(rng.choice([1, 1, 2]))
    if min(size) < k:
        return None
    pads = dict.fromkeys(("pad_top", "pad_bottom", "pad_left", "pad_right"), int(rng.integers(0, k // 2 + 1)))
    relu = bool(rng.random() < 0.6)
    clamp = layers.RELU if relu else layers.NONE
    made = Conv2d(**pads, stride_h=stride, stride_w=stride, groups=channels // own, clamp=clamp)
    out_c = channels // own * int(rng.choice([own // 2, own, own, 3]))
    x = layers.activation("x", (1, *size, channels))
    return layers.weighted(made, x, (out_c, k, k, own), relu)


def transposed(rng: np.random.Generator) -> Node:
    """A transposed convolution of a decoder's kind."""
    size = int(rng.integers(1, 9)), int(rng.integers(4, 17))
    kernel, stride = (rng.choice([[2, 2], [3, 2], [4, 2], [3, 1], [5, 3]])).tolist()
    pad = int(rng.integers(0, min(kernel, (kernel + size[0]) // 2)) // 2)
    in_c, out_c = int(rng.choice([1, 3, 4, 8, 16, 24, 32])), int(rng.choice([1, 2, 3, 8, 16, 24]))
    made = ConvTranspose2d(
        stride_h=stride, stride_w=stride, pad_top=pad, pad_left=pad, pad_bottom=pad, pad_right=pad
    )
    return layers.weighted(
        made, layers.activation("x", (1, *size, in_c)), (out_c, kernel, kernel, in_c), False
    )


def fully_connected(rng: np.random.Generator) -> Node:
    rows = int(rng.choice([1, 1, 1, 2, 4, 5, 9]))
    depth, count = int(rng.integers(3, 300)), int(rng.integers(1, 100))
    relu = bool(rng.random() < 0.5)
    made = Linear(layers.RELU if relu else layers.NONE)
    return layers.weighted(made, layers.activation("x", (rows, depth)), (count, depth), relu)


def pointwise(attrs: Attrs, rng: np.random.Generator) -> Node:
    """Two operands of one shape, or one with a value for each row or column of the other."""
    shapes = [(int(rng.integers(1, 50)), int(rng.integers(1, 65)))] * 2
    kind = int(rng.choice([0, 0, 1, 2]))
    if kind:
        shapes[1] = (shapes[0][0], 1) if kind == 1 else (1, shapes[0][1])
    a, b = (layers.activation(n, shape, n == "a") for n, shape in zip("ab", shapes, strict=True))
    return layers.with_output(attrs, [a, b], 0.07, isinstance(attrs, Add) and bool(rng.random() < 0.7))


def pool(kind: type[AvgPool2d] | type[MaxPool2d], rng: np.random.Generator) -> Node | None:
    size = (int(rng.integers(2, 13)), int(rng.integers(2, 13)), int(rng.choice([3, 4, 8, 10, 16, 20, 64])))
    whole = rng.random() < 0.5
    window = size[:2] if whole else (int(rng.integers(2, 4)),) * 2
    stride = 1 if whole else int(rng.integers(1, 3))
    before = 0 if whole or rng.random() < 0.5 else 1
    if min(size[:2]) < 3:
        return None
    made = kind(
        kernel_h=window[0],
        kernel_w=window[1],
        stride_h=stride,
        stride_w=stride,
        pad_top=before,
        pad_left=before,
    )
    x = layers.activation("x", (1, *size), relu=False)
    node = Node(made, (x,), (Tensor("y", x.type),))
    return node.replace(outputs=[Tensor("y", TensorType(ops.infer(node)[0], DType.INT8, x.type.quant))])


def reduction(kind: type[Mean] | type[Sum], rng: np.random.Generator) -> Node:
    """Over all pixels; over all channels where there are whole fours of rows."""
    largest = 33 if rng.random() < 0.25 else 13
    pixels = int(rng.integers(2, largest)), int(rng.integers(2, largest))
    size = (1, *pixels, int(rng.choice([4, 8, 10, 16, 20, 64])))
    axes = (3,) if pixels[0] % 4 == 0 else (1, 2)
    return layers.with_output(kind(axes=axes), [layers.activation("x", size)], 0.5, False)


def softmax(rng: np.random.Generator) -> Node:
    """Odd numbers of rows at LiteRT's output scale, even ones at another."""
    x = layers.activation("x", (int(rng.integers(1, 6)), int(rng.integers(2, 60))), relu=False)
    quant = QuantParams.per_tensor(1 / 256 if x.shape[0] % 2 else 1 / 800, -128)
    type_ = TensorType(x.shape, DType.INT8, quant)
    return Node(Softmax(axis=1), (x,), (Tensor("y", type_),))


def drawn(attrs: type[Attrs], rng: np.random.Generator) -> Node | None:
    match attrs:
        case _ if attrs is Conv2d:
            return convolution(rng, depthwise=bool(rng.random() < 0.4))
        case _ if attrs is ConvTranspose2d:
            return transposed(rng)
        case _ if attrs is Linear:
            return fully_connected(rng)
        case _ if attrs in (Add, Sub, Mul):
            return pointwise(attrs(layers.RELU if rng.random() < 0.5 else layers.NONE), rng)
        case _ if attrs in (AvgPool2d, MaxPool2d):
            return pool(attrs, rng)
        case _ if attrs in (Mean, Sum):
            return reduction(attrs, rng)
        case _ if attrs is Softmax:
            return softmax(rng)
        case _ if attrs is RowSums:
            return row_sums(rng)
        case _ if attrs in DRAWN:
            return DRAWN[attrs](rng)
    return None


def grid(attrs: type[Attrs], kernel: Kernel, board: Board, seed: int, cases: int = CASES) -> list[Node]:
    """Nodes that the kernel takes, the layers of known networks among them."""
    rng = np.random.default_rng([seed, *kernel.symbol.encode()])
    known = [node for model in layers.MODELS.values() for node in model if type(node.attrs) is attrs]
    stream: Iterator[Node | None] = (
        grouped(rng) if "_slabs_" in kernel.symbol else drawn(attrs, rng) for _ in range(DRAWS)
    )
    found: list[Node] = []
    for plain in itertools.chain(known, stream) if seed == COMPARE else stream:
        if len(found) == cases:
            break
        if plain is None:
            continue
        node = of_type(plain, kernel.dtypes)
        macs = ops.op_of(node).macs(node)
        small = macs <= MOST_MACS or plain in known
        if board.simavr is not None:
            small = macs <= SMALL_MACS and max(sizes_of(node)) <= SMALL_BYTES
        valid = attrs is RowSums or not complaints(ops.op_of(node), node)
        if small and valid and kernel.why_not(node, board.target) is None:
            found.append(node)
    return found


def sizes_of(node: Node) -> tuple[int, int]:
    """Bytes of a node's activations, and of its constants."""
    tensors = [t for t in (*node.inputs, *node.outputs) if t is not None]
    there, constant = ([t for t in tensors if t.is_constant is fixed] for fixed in (False, True))
    return sum(t.type.bytes for t in there), sum(t.type.bytes for t in constant)


def firmwares(cases: Sequence[tuple[Node, Kernel]], board: Board) -> Iterator[Sequence[tuple[Node, Kernel]]]:
    """Nodes and kernels for them, in pieces that one firmware holds each."""
    found: list[tuple[Node, Kernel]] = []
    used = 0, 0
    for node, kernel in cases:
        call = kernel.lower(node, board.target)
        own = sizes_of(node)[0], sum(constant.data.nbytes for constant in call.constants)
        if isinstance(
            call.symbol, Definition
        ):  # a function whose code is made of constants is about as large
            own = own[0], own[1] + sizes_of(node)[1]
        used = used[0] + own[0], used[1] + own[1]
        if len(found) == AT_ONCE or (board.simavr is not None and max(used) > ROOM):
            yield found
            found, used = [], own
        found.append((node, kernel))
    yield found


# ---------------------------------------------------------------- measuring


def sampled(
    kernel: Kernel,
    home: Delegate,
    attrs: type[Attrs],
    nodes: Sequence[Node],
    board: Board,
    keep: Path | None,
    *,
    code: bool = True,
) -> Sample:
    """What `sample` gives, from a file where it has been measured before."""
    weights = [t.array.tobytes() for node in nodes for t in node.inputs if t is not None and t.is_constant]
    text = "\n".join(f"{n.attrs} {n.input(0).shape} {n.outputs[0].type}" for n in nodes)
    digest = hashlib.sha256(text.encode() + b"".join(weights)).hexdigest()[:16]
    name = f"{cost.core_of(board.target)}-{kernel.symbol}-{digest}{'' if code else '-time'}.json"
    place = None if keep is None else keep / name
    if place is not None and place.is_file():
        return Sample(**json.loads(place.read_text(encoding="utf-8")))
    some = firmwares([(node, kernel) for node in nodes], board)
    found = joined(
        [sample(kernel, home, attrs, [node for node, _ in each], board, code=code) for each in some]
    )
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(dataclasses.asdict(found)), encoding="utf-8")
    return found


def values(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Random ones, of the whole range where it is one of integers."""
    if tensor.dtype is DType.FLOAT32:
        return rng.normal(size=tensor.shape).astype(np.float32)
    low, high = tensor.dtype.range
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)


def inputs_of(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """Random ones; not below zero for functions that are not defined there."""
    defined = {
        node.input(0)
        for node in graph.nodes
        if isinstance(node.attrs, Unary) and node.attrs.function in POSITIVE
    }
    return [abs(values(t, rng)) if t in defined else values(t, rng) for t in graph.inputs]


def sample(
    kernel: Kernel, home: Delegate, attrs: type[Attrs], nodes: Sequence[Node], board: Board, *, code: bool
) -> Sample:
    """One firmware of all nodes, each computed by the kernel. code: whether its bytes are measured, too."""
    only = dataclasses.replace(home, kernels={attrs: (kernel,)})
    graph = layers.side_by_side(nodes)
    rng = np.random.default_rng(7)
    measured = layers.run(graph, inputs_of(graph, rng), board, [only], with_time=True)
    place = {node: i for i, node in enumerate(graph.nodes)}
    counts, own = [0] * len(nodes), [0.0] * len(nodes)
    none = dict.fromkeys(measured.time[0].cycles, 0) if measured.time else {}
    time: list[Mapping[str, Any]] = [{"cycles": none}] * len(nodes) if measured.time else []
    for step, found in zip(measured.deployment.steps, measured.time, strict=bool(measured.time)):
        time[place[step.node]] = dataclasses.asdict(found)
    for step, count in zip(measured.deployment.steps, measured.counts, strict=True):
        counts[place[step.node]] = count
    if not code:
        return Sample(counts, own, {}, (), time)
    sizes, text = own_code(measured.deployment, graph, board)
    functions = wrappers(measured.deployment, sizes, text)
    for step in measured.deployment.steps:
        size = (sizes["layers_run"]) / len(nodes)
        if isinstance(step.call.symbol, Definition):
            size += -(-functions[step.call.symbol] // 4) * 4
        own[place[step.node]] = size
    words = {word for word in re.findall(r"\b\w+\b", text) if not word.startswith(("tinyet_", "arm_"))}
    return Sample(counts, own, measured.code, sorted(words), time)


def kernels_of(board: Board, wanted: Sequence[str]) -> Iterator[tuple[Delegate, type[Attrs], Kernel]]:
    """Each kernel once, for the first operator of which a node can be drawn that it takes."""
    seen: set[str] = set()
    for delegate in DELEGATES:
        if delegate.supports(board.target) is not None:
            continue
        for attrs, kernels in delegate.kernels.items():
            for kernel in kernels:
                asked = not wanted or kernel.symbol in wanted
                if kernel.cost_model is None or kernel.symbol in seen or not asked:
                    continue
                if grid(attrs, kernel, board, FIT, 1):
                    seen.add(kernel.symbol)
                    yield delegate, attrs, alone(attrs, kernel)


def with_memory(board: Board) -> Board:
    """A board that runs the same code and has the memory for a grid."""
    other = ROOMY.get(board.cpu)
    return board if other is None else dataclasses.replace(load_board(other), target=board.target)


def computed(nodes: Sequence[Node], found: Sample) -> tuple[list[Node], Sample]:
    """Without the nodes that need no call, because memory planning finds their output in the input's place."""
    there = [i for i, count in enumerate(found.instructions) if count]
    return [nodes[i] for i in there], some_of(found, there)


def one_layer() -> Graph:
    pair = [layers.activation(name, (1, 8)) for name in "ab"]
    return layers.side_by_side([layers.with_output(Add(layers.NONE), pair, 0.1, False)])


def present_anyway(board: Board) -> dict[str, int]:
    """Functions of a firmware of one layer, but for the layer's own."""
    graph = one_layer()
    zeros: list[Array] = [np.zeros((1, 8), np.int8)] * len(graph.inputs)
    run = layers.run(graph, zeros, board, [PORTABLE])
    own = ("tinyet_lut", "tinyet_affine", "tinyet_add", "row")
    return {name: size for name, size in run.code.items() if not name.startswith(own)}


def base_bytes(board: Board) -> int:
    """Flash of an application around its model: startup, C library, main."""
    with tempfile.TemporaryDirectory(prefix="tinyet-costs-") as where:
        project = generate(Program("one", one_layer()), board, Path(where) / "one", kind="cmake")
        if board.simavr is not None:  # there is no program of tinyet's own
            main = Path(where) / "main.c"
            main.write_text('#include "one.h"\nint main(void) { return (int)one_run(); }\n', encoding="utf-8")
            model = project.path / str(project.manifest["model_dir"])
            sources = [main, *sorted(model.rglob("*.c"))]
            size = measure(build_firmware(board, sources, [model], Path(where) / "made", harness=False))
            return size.flash - project.deployment.decision.kernels.figures.flash
        size = project.build()
        return size.flash - size.sample - project.deployment.decision.kernels.figures.flash


def write(board: Board, wanted: Sequence[str], keep: Path | None, *, again: bool) -> None:
    core = cost.core_of(board.target)
    path = MEASURED / f"{core}.json"
    if again:
        wanted = sorted(json.loads(path.read_text(encoding="utf-8"))["kernels"])
    version = subprocess.run(
        [board.toolchain.compiler, "--version"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[0]
    base = present_anyway(board)
    for home, attrs, kernel in kernels_of(board, wanted):
        assert kernel.cost_model is not None
        cases = FIT_CASES if kernel.cost_model.kind is None else KIND_CASES
        cases *= 2 if kernel.cost_model.apart else 1
        nodes = grid(attrs, kernel, board, FIT, cases)
        shared_of: dict[str, dict[str, int]] = {}
        if kernel.cost_model.apart:
            each = of_kinds(kernel.cost_model, nodes)
            kinds = {kind: [nodes[i] for i in which[:LEAST_CASES]] for kind, which in each.items()}
            samples = {kind: sampled(kernel, home, attrs, of, board, keep) for kind, of in kinds.items()}
            nodes, found = [node for of in kinds.values() for node in of], joined([*samples.values()])
            shared_of = {kind: library_functions(sample, base) for kind, sample in samples.items()}
        elif len(nodes) >= LEAST_CASES:
            nodes, found = computed(nodes, sampled(kernel, home, attrs, nodes, board, keep))
        if len(nodes) < LEAST_CASES:
            print(f"{kernel.symbol}: {len(nodes)} cases only, left out")
            continue
        printed = {name for node in nodes for name in exactly(kernel.cost_model, node).functions}
        shared = {} if shared_of else library_functions(found, base)
        shared = {name: size for name, size in shared.items() if name not in printed}
        coefficients = coefficients_of(kernel.cost_model, nodes, found, shared)
        coefficients = dataclasses.replace(coefficients, shared_of=shared_of)
        # Read late: others may write what they have measured of the same core.
        table: dict[str, Any] = {"base": 0, "kernels": {}}
        if path.is_file():
            table = json.loads(path.read_text(encoding="utf-8"))
        table["kernels"][kernel.symbol] = entry = entry_of(coefficients)
        if not again:
            others = [e for symbol, e in table["kernels"].items() if symbol not in wanted]
            leave_known_cores(entry, others)
        table |= {
            "board": board.name,
            "core": core,
            "toolchain": f"{version}, {board.toolchain.optimization}",
        }
        store(path, table | {"line_bytes": layers.SHAPE.line_bytes})
        print(
            f"{kernel.symbol:36} {len(nodes):3} cases, "
            + fit_said(kernel.cost_model, coefficients, nodes, found)
        )


def write_cycles(board: Board, wanted: Sequence[str], keep: Path | None) -> None:
    """The cycles of cores that the table lacks; without names of kernels of all that lack some."""
    path = MEASURED / f"{cost.core_of(board.target)}.json"
    cores = layers.timed_cores(board)
    entries = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    asked = wanted or [symbol for symbol, entry in entries.items() if cores_without(entry, cores)]
    for home, attrs, kernel in kernels_of(board, asked) if asked else ():
        model = kernel.cost_model
        assert model is not None
        entry = entries[kernel.symbol]
        cases = min(max(round(EACH_PART * len(entry["work"])), FEWEST), FIT_CASES)
        nodes = grid(attrs, kernel, board, FIT, KIND_CASES // 3 if entry["kinds"] else cases)
        nodes, found = computed(nodes, sampled(kernel, home, attrs, nodes, board, keep, code=False))
        table = json.loads(path.read_text(encoding="utf-8"))  # late: others may write, too
        entry = table["kernels"][kernel.symbol]
        add_time(entry, model, nodes, found)
        store(path, table)
        said = cycles_said(model, cost.coefficients_in(entry), nodes, found)
        print(f"{kernel.symbol:36} {len(nodes):3} cases, {said}", flush=True)


def write_base(board: Board) -> None:
    path = MEASURED / f"{cost.core_of(board.target)}.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    table["base"] = base_bytes(board)
    store(path, table)
    print(f"{table['base']} bytes of flash around a model")


def compare(board: Board, wanted: Sequence[str], keep: Path | None) -> bool:
    """Print what is stated and measured; whether all is within the limit."""
    worst = 0.0
    print(f"{'kernel':36} cases   instructions          flash")
    for home, attrs, kernel in kernels_of(board, wanted):
        asked = [
            (node, kernel.cost(node, board.target, kernel.lower(node, board.target)))
            for node in grid(attrs, kernel, board, COMPARE)
        ]
        stated = [(node, said) for node, said in asked if said is not None]
        if not stated:
            continue
        nodes, found = computed(
            [n for n, _ in stated], sampled(kernel, home, attrs, [n for n, _ in stated], board, keep)
        )
        said_of = dict(stated)
        errors, flash = [], []
        for node, count, code in zip(nodes, found.instructions, found.code, strict=True):
            said = said_of[node]
            errors.append(said.instructions / count - 1)
            flash.append((said.code + said.constants) / (code + said.constants) - 1)
        largest = max(errors, key=abs)
        worst = max(worst, abs(largest))
        node = nodes[errors.index(largest)]
        shape = "->".join("x".join(map(str, t.shape[1:])) for t in (node.input(0), node.outputs[0]))
        print(
            f"{kernel.symbol:36} {len(nodes):4} {largest:+7.1%} {np.mean(np.abs(errors)):6.2%}   "
            f"{max(flash, key=abs):+7.1%} {np.mean(np.abs(flash)):6.2%}   {shape} {node.attrs}",
            flush=True,
        )
    return worst <= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true", help="with --write: all kernels of the core's table")
    parser.add_argument("--cycles", action="store_true", help="write the cycles that the core's table lacks")
    parser.add_argument("--keep", type=Path, help="a directory that keeps what was measured, to fit it again")
    args = parser.parse_args()
    board = load_board(args.board)
    if args.cycles:
        write_cycles(with_memory(board), args.kernels, args.keep)
        return 0
    if args.write:
        write(with_memory(board), args.kernels, args.keep, again=args.again)
        write_base(board)
        return 0
    return 0 if compare(with_memory(board), args.kernels, args.keep) else 1


if __name__ == "__main__":
    sys.exit(main())
