# SPDX-License-Identifier: Apache-2.0
"""Small networks whose layers can be computed by rows, made by hand, and what runs them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tests.calls.board import STRICT
from tests.ops.cases import write_files
from tinyet import ops
from tinyet.boards import Board, load_board
from tinyet.boards.cpus import Target
from tinyet.build.gcc import build_firmware
from tinyet.data import Samples, make_samples
from tinyet.delegates import Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.device import host
from tinyet.device.device import open_device
from tinyet.emit.facts import facts_of
from tinyet.emit.model import model_files
from tinyet.emit.project import project_files
from tinyet.ir import Array, Attrs, DType, Graph, Node, Origin, QuantParams, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.permute import Permute
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.validation import Sizes, ValidationResult, validate

BY_ROWS = Objective("size")
_RELU = (0.0, float("inf"))


class Net:
    """Appends one layer after the other; each stands on a line of an imagined net.py."""

    def __init__(self, dtype: DType = DType.INT8, shape: tuple[int, ...] = (1, 18, 10, 4)) -> None:
        self.dtype = dtype
        self.nodes: list[Node] = []
        self.rng = np.random.default_rng(7)
        self.numbers = itertools.count()
        self.x = Tensor("x", self.type(shape, dtype, 0.05))

    @staticmethod
    def type(shape: tuple[int, ...], dtype: DType, scale: float = 0.08) -> TensorType:
        match dtype:
            case DType.INT8:
                return TensorType(shape, dtype, QuantParams.per_tensor(scale, -11))
            case DType.INT16:
                return TensorType(shape, dtype, QuantParams.per_tensor(scale / 256, 0))
            case _:
                return TensorType(shape, dtype)

    def constant(self, data: Array, quant: QuantParams | None = None) -> Tensor:
        return constant(f"constant_{next(self.numbers)}", data, quant)

    def add(
        self, attrs: Attrs, *inputs: Tensor, dtype: DType | None = None, like: Tensor | None = None
    ) -> Tensor:
        """The output of a layer. like: what it shares its type's parameters with."""
        number = len(self.nodes)
        name = f"{attrs.name}_{number}"
        (shape,) = ops.infer(Node(attrs, inputs, (Tensor(name, TensorType((), DType.FLOAT32)),)))
        kind = self.type(shape, dtype or self.dtype)
        if like is not None:
            kind = TensorType(shape, like.dtype, like.type.quant)
        output = Tensor(name, kind)
        origin = Origin(f"aten.{attrs.name}", f"layer{number}", "net.py", 10 + number, f"y = {name}(x)", name)
        self.nodes.append(Node(attrs, inputs, (output,), (origin,)))
        return output

    def conv(
        self, x: Tensor, channels: int, kernel: int = 3, *, pads: int | tuple[int, int, int, int] | None = None,
        stride: int = 1, dilation: int = 1, depthwise: bool = False, clamp: bool = True,
    ) -> Tensor:  # fmt: skip
        """pads: top, bottom, left and right, or one for all; by default as many as leave the size as it is. Over a
        sequence, an image of one line, kernels have one line, too."""
        line = self.x.shape[1] == 1
        depth = 1 if depthwise else x.shape[-1]
        if pads is None:
            pads = dilation * (kernel // 2)
        top, bottom, left, right = (pads,) * 4 if isinstance(pads, int) else pads
        if line:
            top = bottom = 0
        attrs = Conv2d(
            stride_h=1 if line else stride, stride_w=stride, dilation_h=dilation, dilation_w=dilation,
            pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right,
            groups=channels if depthwise else 1, clamp=_RELU if clamp else Conv2d().clamp,
        )  # fmt: skip
        shape = channels, 1 if line else kernel, kernel, depth
        if x.dtype is DType.FLOAT32:
            weights = self.constant((self.rng.standard_normal(shape) / 4).astype(np.float32))
            return self.add(attrs, x, weights, self.constant(np.linspace(-1, 1, channels).astype(np.float32)))
        scales = tuple(0.004 + 0.0007 * i for i in range(channels))
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        weights = self.constant(data, QuantParams(scales, (0,) * channels, 0))
        wide = np.int64 if x.dtype is DType.INT16 else np.int32
        bias = self.constant(self.rng.integers(-900, 900, channels).astype(wide))
        return self.add(attrs, x, weights, bias)

    def linear(self, x: Tensor, channels: int) -> Tensor:
        scales = tuple(0.004 + 0.0007 * i for i in range(channels))
        data = self.rng.integers(-127, 128, (channels, x.shape[-1])).astype(np.int8)
        return self.add(Linear(), x, self.constant(data, QuantParams(scales, (0,) * channels, 0)))

    def moved(self, attrs: Attrs, x: Tensor) -> Tensor:
        """Values in other places."""
        return self.add(attrs, x, like=x)

    @property
    def shares(self) -> Tensor:
        """Of the type of what adds up to one."""
        one = QuantParams.per_tensor(2**-15, 0)
        if self.dtype is DType.INT8:
            one = QuantParams.per_tensor(2**-8, -128)
        return Tensor("shares", TensorType((), self.dtype, one))

    def pointwise(self, x: Tensor, channels: int, *, clamp: bool = True, stride: int = 1) -> Tensor:
        return self.conv(x, channels, 1, pads=0, clamp=clamp, stride=stride)

    def depthwise(self, x: Tensor, kernel: int = 3, stride: int = 1, dilation: int = 1) -> Tensor:
        return self.conv(x, x.shape[-1], kernel, stride=stride, dilation=dilation, depthwise=True)

    def finish(self, *outputs: Tensor) -> Program:
        graph = Graph("streamed", (self.x,), outputs, tuple(self.nodes))
        for node in graph.nodes:
            complaint = ops.op_of(node).check(node)
            assert complaint is None, f"{node.op}: {complaint}"
        return Program("streamed", ops.check(graph, "building it by hand"))


def chain(dtype: DType) -> Program:
    """A strided convolution, depthwise and pointwise ones, and a head that needs all rows."""
    net = Net(dtype)
    y = net.pointwise(net.depthwise(net.conv(net.x, 16)), 16)
    y = net.pointwise(net.depthwise(y, stride=2), 8)
    return net.finish(net.conv(y, 4, pads=(0, 0, 1, 1), clamp=False))


def residual(dtype: DType) -> Program:
    """Two blocks; the second one halves the image, and its shortcut with it."""
    net = Net(dtype)
    y = net.conv(net.x, 8)
    z = net.conv(net.conv(y, 8), 8, clamp=False)
    y = net.add(Add(clamp=_RELU), y, z)
    z = net.conv(net.conv(y, 8, stride=2), 8, clamp=False)
    return net.finish(net.add(Add(), z, net.pointwise(y, 8, stride=2, clamp=False)))


def inverted(dtype: DType) -> Program:
    """Expanded, depthwise, and back, with what came in added."""
    net = Net(dtype)
    y = net.pointwise(net.x, 4)
    z = net.pointwise(net.depthwise(net.pointwise(y, 16)), 4, clamp=False)
    y = net.add(Add(), y, z)
    return net.finish(net.pointwise(net.depthwise(net.pointwise(y, 16), stride=2), 8, clamp=False))


def dilated(dtype: DType) -> Program:
    """Taps apart, more padding above than below, and rows at the bottom that no stride reaches."""
    net = Net(dtype, (1, 32, 9, 4))
    y = net.conv(net.x, 16, dilation=2)
    y = net.depthwise(y, dilation=3)
    y = net.conv(y, 8, 5, pads=(2, 0, 1, 2), stride=3)
    return net.finish(net.conv(y, 4, 2, pads=(1, 0, 0, 0)))


def pools(dtype: DType) -> Program:
    """Pooling with and without padding, in steps and overlapping."""
    net = Net(dtype)
    y = net.conv(net.x, 8)
    y = net.add(
        MaxPool2d(kernel_h=3, kernel_w=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1), y, like=y
    )
    y = net.add(AvgPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), y, like=y)
    y = net.conv(y, 8)
    return net.finish(net.add(MaxPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), y, like=y))


def branched(dtype: DType) -> Program:
    """Three branches side by side, put together again."""
    net = Net(dtype)
    y = net.conv(net.x, 8)
    wide, narrow = net.conv(y, 8, 5), net.pointwise(y, 4)
    y = net.add(Concat(3), *(net.add(Requantize(), t) for t in (y, wide, narrow)))
    return net.finish(net.pointwise(y, 8))


def elements(dtype: DType) -> Program:
    """Values one by one: tables, products, clamps, other scales."""
    net = Net(dtype)
    y = net.conv(net.x, 8, clamp=False)
    y = net.add(Mul(), y, net.add(Unary("sigmoid"), y))
    y = net.add(Clamp(-2.0, 5.0), y, like=y)
    y = net.depthwise(net.add(Requantize(), y))
    return net.finish(net.add(Mul(), y, y))


def typed(_dtype: DType) -> Program:
    """Real numbers between integers."""
    net = Net(DType.INT8)
    y = net.conv(net.x, 8)
    y = net.add(Dequantize(), y, dtype=DType.FLOAT32)
    y = net.add(Unary("tanh"), y, dtype=DType.FLOAT32)
    y = net.add(Quantize(), y)
    return net.finish(net.conv(y, 8, stride=2))


def everything(_dtype: DType) -> Program:
    """A layer of each kind: for one firmware."""
    net = Net(DType.INT8, (1, 24, 10, 4))
    y = net.conv(net.x, 12)
    y = net.depthwise(y, dilation=2)
    y = net.add(Add(clamp=_RELU), y, net.pointwise(y, 12, clamp=False))
    y = net.add(
        MaxPool2d(kernel_h=3, kernel_w=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1), y, like=y
    )
    y = net.add(Mul(), y, net.add(Unary("sigmoid"), y))
    y = net.depthwise(net.add(Concat(3), y, net.pointwise(y, 4)), stride=2)
    net.dtype = DType.INT16
    y = net.conv(net.add(Requantize(), y), 8)
    y = net.add(AvgPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), y, like=y)
    return net.finish(net.conv(y, 4, pads=(0, 0, 1, 1), clamp=False))


def looked_at(dtype: DType) -> Program:
    """A value inside is an output, too; behind the rows a layer that takes all of them at once."""
    net = Net(dtype)
    inside = net.conv(net.x, 4)
    y = net.depthwise(net.pointwise(inside, 16))
    y = net.pointwise(y, 2, stride=2)
    flat = net.add(Reshape((1, y.type.count)), y, like=y)
    weights = net.rng.integers(-127, 128, (3, y.type.count)).astype(np.int8)
    linear = net.constant(weights, QuantParams((0.01,) * 3, (0,) * 3, 0))
    return net.finish(inside, net.add(Linear(), flat, linear))


def averaged(dtype: DType) -> Program:
    """Rows that end in one value a channel, behind which is a layer of its own."""
    net = Net(dtype)
    y = net.pointwise(net.depthwise(net.conv(net.x, 16)), 12)
    y = net.add(Mean((1, 2)), net.depthwise(y))
    return net.finish(net.add(Mul(), y, y))


def attention(
    net: Net, x: Tensor, heads: int, channels: int, *, packed: bool = False, early: bool = False
) -> Tensor:
    """To itself, of (1, positions, channels of x), with what came in added. packed: queries, keys and values are one
    layer's; early: positions come before the batch, as torch has it."""
    positions, wide = x.shape[1], heads * channels
    first = (positions, 1) if early else (1, positions)
    position, batch = (0, 1) if early else (1, 0)
    y = net.moved(Reshape((positions, 1, x.shape[2])), x) if early else x
    if packed:
        both = net.moved(Reshape((*first, 3, wide)), net.linear(y, 3 * wide))
        parts = [net.moved(Slice(2, n, n + 1, 1), both) for n in range(3)]
    else:
        parts = [net.linear(y, wide) for _ in range(3)]
    query, key, value = (net.moved(Reshape((*first, heads, channels)), part) for part in parts)
    query, value = (net.moved(Permute((batch, 2, position, 3)), each) for each in (query, value))
    scores = net.add(MatMul(), query, net.moved(Permute((batch, 2, 3, position)), key))
    found = net.add(MatMul(), net.add(Softmax(3), scores, like=net.shares), value)
    found = net.moved(Permute((2, 0, 1, 3) if early else (0, 2, 1, 3)), found)
    found = net.linear(net.moved(Reshape((1, positions, wide)), found), x.shape[2])
    return net.add(Add(), x, found)


def heads(dtype: DType) -> Program:
    """Attention of several heads, twice: one layer for each of queries, keys and values, and one for all three."""
    net = Net(dtype, (1, 48, 16))
    y = attention(net, net.x, 4, 4)
    return net.finish(attention(net, y, 2, 8, packed=True, early=True))


def sequence(dtype: DType, samples: int = 331) -> Program:
    """Over samples of two sensors, an odd number of them, to one value a channel: tiles do not come out even, and
    padding is no whole word."""
    net = Net(dtype, (1, 1, samples, 2))
    y = net.conv(net.x, 16, 7, stride=2)
    z = net.conv(net.depthwise(y, 5), 16, 3, clamp=False)
    y = net.add(Add(clamp=_RELU), y, z)
    y = net.add(MaxPool2d(kernel_w=2, stride_w=2), y, like=y)
    return net.finish(net.add(Mean((1, 2)), net.pointwise(y, 24)))


NETWORKS: Mapping[str, Callable[[DType], Program]] = {
    f.__name__: f
    for f in (
        chain,
        residual,
        inverted,
        dilated,
        pools,
        branched,
        elements,
        typed,
        looked_at,
        everything,
        averaged,
        heads,
        sequence,
    )
}


def deployed(program: Program, target: Target, delegates: Sequence[Delegate] = ()) -> Deployment:
    """By rows as far as they save memory."""
    chosen = (delegates,) if delegates else ()
    return deploy(program.graph, target, *chosen, objective=BY_ROWS)


def samples(program: Program, count: int = 2) -> Samples:
    """Real values that leave the inputs' ranges here and there."""
    rng = np.random.default_rng(11)
    images = [rng.standard_normal((count, *t.shape[1:])).astype(np.float32) * 3 for t in program.inputs]
    return make_samples(program.inputs, images)


def validated(
    program: Program, deployment: Deployment, elf: Path, on: str, board: Board, count: int = 2
) -> ValidationResult:
    with open_device(board, elf, on) as device:
        return validate(
            program, deployment, device, samples(program, count), on=on, board=board.name, sizes=Sizes()
        )


def sources(
    program: Program, deployment: Deployment, where: Path, spoil: Callable[[str], str] = str
) -> list[Path]:
    """Write the model with the harness's description; the C files. spoil: what becomes of the model's own source."""
    files = model_files(deployment, program.name, [program.name], program_hash=program.hash)
    files[f"{program.name}.c"] = spoil(files[f"{program.name}.c"])
    zeros = [np.zeros(t.shape, t.dtype.numpy) for t in deployment.graph.user_inputs]
    facts = facts_of(deployment, program.name, program.hash, zeros, [])
    description = project_files("platformio", load_board("mps2_an386"), facts, files)["harness/model_desc.c"]
    files["model_desc.c"] = description
    write_files(where, files)
    return [where / name for name in sorted(files) if name.endswith(".c")]


def host_harness(
    program: Program, deployment: Deployment, where: Path, spoil: Callable[[str], str] = str
) -> Path:
    """Under the sanitizers."""
    return host.build_host(sources(program, deployment, where, spoil), [where], where / "build")


def harness(
    program: Program, deployment: Deployment, board: Board, where: Path, spoil: Callable[[str], str] = str
) -> Path:
    """The elf for a board."""
    return build_firmware(
        board, sources(program, deployment, where, spoil), [where], where / "build", flags=STRICT
    )


@dataclass(frozen=True)
class Fault:
    """What a spoilt model does behind a run of a layer, where the input's first byte is the fault's number: a bit of
    the byte at `offset` of the arena flips; or the layer returns a status; or the core faults."""

    layer: int
    run: int
    kind: Literal["flip", "status", "fault"] = "flip"
    offset: int = 0


STATUS = -9
_SPOIL = """
static const struct {{ uint32_t layer, run, kind, offset; }} faults[] = {{ {faults} }};
static uint32_t fault, runs;

static tinyet_status spoil(uint32_t layer) {{
  if (fault < sizeof faults / sizeof faults[0] && faults[fault].layer == layer && ++runs == faults[fault].run) {{
    if (faults[fault].kind == 0u) {{
      {name}_arena[faults[fault].offset] ^= 0x40u;
    }} else if (faults[fault].kind == 1u) {{
      return {status};
    }} else {{
      __builtin_trap();
    }}
  }}
  return TINYET_OK;
}}

tinyet_status {name}_run(void) {{
  fault = *(const uint8_t *){name}_input_0();
  runs = 0u;
"""


def spoilt_by(program: Program, faults: Sequence[Fault]) -> Callable[[str], str]:
    kinds = ("flip", "status", "fault")
    table = ", ".join(f"{{{f.layer}u, {f.run}u, {kinds.index(f.kind)}u, {f.offset}u}}" for f in faults)
    head = _SPOIL.format(faults=table, name=program.name, status=STATUS)

    def spoil(text: str) -> str:
        opening = f"\ntinyet_status {program.name}_run(void) {{\n"
        assert text.count(opening) == 1
        text = text.replace(opening, head)
        return re.sub(r"TINYET_LAYER_END\((\d+)u\);", r"TINYET_TRY(spoil(\1u)); TINYET_LAYER_END(\1u);", text)

    return spoil


def choosing(program: Program, number: int) -> list[Array]:
    """Inputs, as they are stored, that choose a fault."""
    rng = np.random.default_rng(3)
    (x,) = program.inputs
    data = rng.integers(-100, 100, x.shape).astype(x.dtype.numpy)
    data.view(np.uint8).reshape(-1)[0] = number
    return [data]
