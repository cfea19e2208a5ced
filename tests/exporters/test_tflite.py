# SPDX-License-Identifier: Apache-2.0
"""Programs as .tflite files: both runtimes compute them to the reference's bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tinyet
from tests import small, streamed
from tests.cli.command import refused
from tests.cli.command import tinyet as command
from tests.exporters.nets import (
    assert_same,
    inputs_for,
    needs_runtimes,
    node_program,
    program_of,
    speaks_of,
    written,
)
from tests.golden import programs
from tests.ops.cases import Case, tensor
from tests.ops.test_adaptive_avg_pool2d import adaptive_avg_pool2d_nodes
from tests.ops.test_add import add_nodes
from tests.ops.test_argmax import argmax_nodes
from tests.ops.test_avg_pool2d import avg_pool2d_nodes
from tests.ops.test_cast import cast_nodes
from tests.ops.test_clamp import clamp_nodes
from tests.ops.test_concat import concat_nodes
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_conv_transpose2d import conv_transpose2d_nodes
from tests.ops.test_dequantize import dequantize_nodes
from tests.ops.test_embedding import embedding_nodes
from tests.ops.test_expand import expand_nodes
from tests.ops.test_flip import flip_nodes
from tests.ops.test_linear import linear_nodes
from tests.ops.test_log_softmax import log_softmax_nodes
from tests.ops.test_lookup import lookup_nodes
from tests.ops.test_matmul import matmul_nodes
from tests.ops.test_max_pool2d import max_pool2d_nodes
from tests.ops.test_maximum import maximum_nodes
from tests.ops.test_minimum import minimum_nodes
from tests.ops.test_mul import mul_nodes
from tests.ops.test_pad import pad_nodes
from tests.ops.test_permute import permute_nodes
from tests.ops.test_prelu import prelu_nodes
from tests.ops.test_quantize import quantize_nodes
from tests.ops.test_reduce import reduce_nodes
from tests.ops.test_requantize import requantize_nodes
from tests.ops.test_reshape import reshape_nodes
from tests.ops.test_resize import resize_nodes
from tests.ops.test_slice import slice_nodes
from tests.ops.test_softmax import softmax_nodes
from tests.ops.test_sub import sub_nodes
from tests.ops.test_unary import unary_nodes
from tests.tflite_files import small_cnn
from tinyet.errors import ProgramError, UnsupportedOp, UsageError
from tinyet.ir import Attrs, DType, Graph, Node, Origin, QuantParams, Tensor, constant
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.cumsum import CumSum
from tinyet.ops.div import Div
from tinyet.ops.lookup import Lookup
from tinyet.ops.shared.table import every_int8
from tinyet.ops.slice import Slice
from tinyet.ops.state_write import StateWrite
from tinyet.ops.unary import Unary
from tinyet.program import Program
from tinyet.tflite import Runtime, read_file
from tinyet.tflite.write import write_model

INTEGERS = (DType.INT8, DType.INT16)
OF_INTEGERS = st.sampled_from(INTEGERS)

DRAWN: dict[str, tuple[st.SearchStrategy[Case], int]] = {
    "adaptive_avg_pool2d": (OF_INTEGERS.flatmap(adaptive_avg_pool2d_nodes), 25),
    "add": (add_nodes(INTEGERS), 20),
    "argmax": (argmax_nodes(), 12),
    "avg_pool2d": (OF_INTEGERS.flatmap(lambda d: avg_pool2d_nodes(d, dilation=1)), 35),
    "cast": (cast_nodes(), 25),
    "clamp": (clamp_nodes(INTEGERS), 20),
    "concat": (concat_nodes(), 15),
    "conv2d": (conv2d_nodes(), 25),
    "conv_transpose2d": (conv_transpose2d_nodes().filter(lambda c: _is_plain(c.node.attrs)), 20),
    "dequantize": (dequantize_nodes(), 10),
    "embedding": (embedding_nodes(), 10),
    "expand": (expand_nodes(), 15),
    "flip": (flip_nodes(), 12),
    "linear": (linear_nodes(), 20),
    "log_softmax": (log_softmax_nodes(scaled=False), 15),
    "lookup": (lookup_nodes(), 20),
    "matmul": (matmul_nodes(), 20),
    "max_pool2d": (OF_INTEGERS.flatmap(lambda d: max_pool2d_nodes(d, dilation=1)), 20),
    "maximum": (maximum_nodes(INTEGERS), 15),
    "minimum": (minimum_nodes(INTEGERS), 15),
    "mul": (mul_nodes(INTEGERS), 25),
    "pad": (pad_nodes(), 25),
    "permute": (permute_nodes(), 15),
    "prelu": (prelu_nodes((DType.INT8,)), 15),
    "quantize": (quantize_nodes(special=False), 12),
    "reduce": (reduce_nodes(dtypes=INTEGERS), 25),
    "requantize": (requantize_nodes(), 15),
    "reshape": (reshape_nodes(), 12),
    "resize": (resize_nodes(free_ratio=False), 25),
    "slice": (slice_nodes(), 15),
    "softmax": (softmax_nodes(), 20),
    "sub": (sub_nodes(INTEGERS), 20),
    "unary": (unary_nodes((DType.INT8,)), 35),
}
"""Nodes as the operators' own tests draw them, and how many."""


def _is_plain(attrs: Attrs) -> bool:
    """Of a transposed convolution: without groups and dilation, which TFLite has not."""
    assert isinstance(attrs, ConvTranspose2d)
    return attrs.groups == attrs.dilation_h == attrs.dilation_w == 1


@needs_runtimes
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_nodes(name: str) -> None:
    nodes, count = DRAWN[name]
    _each(nodes, count)


def _each(nodes: st.SearchStrategy[Case], count: int, least: int = 2) -> None:
    """Draws nodes and runs each; at least so many of them must be taken for either runtime."""
    taken = {"litert": 0, "tflm": 0}

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(nodes)
    def compare(case: Case) -> None:
        for runtime, known in assert_same(*program_of(case)).items():
            taken[runtime] += known

    compare()
    assert min(taken.values()) >= least, taken


# ---------------------------------------------------------------- which operator


def codes(program: Program, runtime: Runtime) -> list[str]:
    """The operators of a program's file."""
    path, _ = written(program, runtime)
    return [op.code for op in read_file(path).subgraphs[0].operators]


def of_int8(attrs: Attrs, out: tuple[float, int], *more: Tensor) -> Program:
    """A function of all int8 values at scale 0.05 and zero point -20."""
    return node_program(attrs, [tensor("x", (1, 256), DType.INT8, 0.05, -20), *more], (1, 256), out)


@needs_runtimes
@pytest.mark.parametrize(
    ("attrs", "out", "litert", "tflm"),
    [
        (Unary("sigmoid"), (1 / 256, -128), ["LOGISTIC"], ["CAST", "ADD", "GATHER"]),
        (Unary("tanh"), (1 / 128, 0), ["TANH"], ["CAST", "ADD", "GATHER"]),
        (Unary("sigmoid"), (0.01, 3), ["CAST", "ADD", "GATHER"], ["CAST", "ADD", "GATHER"]),
        (Unary("hardswish"), (0.05, 3), ["HARD_SWISH"], ["HARD_SWISH"]),
        (Unary("leaky_relu", 0.25), (0.05, 3), ["LEAKY_RELU"], ["LEAKY_RELU"]),
        (Clamp(0.0, math.inf), (0.05, -20), ["RELU"], ["RELU"]),
        (Clamp(-1.0, 2.0), (0.05, -20), ["MAXIMUM", "MINIMUM"], ["MAXIMUM", "MINIMUM"]),
        (Clamp(0.0, 6.0), (0.03, -128), ["RELU6"], ["CAST", "ADD", "GATHER"]),
        (Clamp(-1.0, 2.0), (0.03, 5), ["CAST", "ADD", "GATHER"], ["CAST", "ADD", "GATHER"]),
    ],
)
def test_functions_of_int8(attrs: Attrs, out: tuple[float, int], litert: list[str], tflm: list[str]) -> None:
    """An operator where all 256 values are its, else a table."""
    program = of_int8(attrs, out)
    assert codes(program, "litert") == litert
    assert codes(program, "tflm") == tflm
    assert_same(program, [[every_int8()[None]]])


@needs_runtimes
def test_a_table_that_is_a_function_becomes_its_operator() -> None:
    """As .tflite files come in: a table of what LiteRT gives."""
    given = of_int8(Unary("tanh"), (1 / 128, 0))
    table = given.outputs_for([every_int8()[None]])[0]
    held = constant("table", table, QuantParams.per_tensor(1 / 128, 0))
    program = of_int8(Lookup(0), (1 / 128, 0), held)
    assert codes(program, "litert") == ["TANH"]
    assert_same(program, [[every_int8()[None]]])


def conv(attrs: Conv2d) -> Program:
    """A convolution 3x3 of a (1, 7, 6, 2) image."""
    rng = np.random.default_rng(3)
    weights = rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    held = constant("w", weights, QuantParams((0.01, 0.02, 0.03, 0.04), (0,) * 4, 0))
    image = tensor("x", (1, 7, 6, 2), DType.INT8, 0.05, -7)
    return node_program(attrs, [image, held], None, (0.2, 5))


@needs_runtimes
@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        (Conv2d(), ["CONV_2D"]),
        (Conv2d(pad_top=1, pad_bottom=1, pad_left=1, pad_right=1), ["CONV_2D"]),
        (Conv2d(pad_top=1, pad_left=1, pad_right=1), ["PAD", "CONV_2D"]),
        (Conv2d(2, 2, pad_bottom=1, pad_right=1), ["PAD", "CONV_2D"]),
        (Conv2d(1, 2, pad_top=1, pad_bottom=1, pad_right=1), ["CONV_2D"]),
    ],
)
def test_padding(attrs: Conv2d, expected: list[str]) -> None:
    """SAME and VALID where they are meant, what is odd behind; else the padding is an operator."""
    program = conv(attrs)
    assert codes(program, "litert") == expected
    assert_same(program, inputs_for(program, 2))


# ---------------------------------------------------------------- whole programs


@needs_runtimes
def test_a_small_program() -> None:
    program = small.program()
    assert all(assert_same(program, inputs_for(program, 5)).values())
    assert codes(program, "litert")[-2:] == ["CONV_2D", "RESHAPE"]
    assert codes(program, "tflm")[-1] == "FULLY_CONNECTED"
    path, notes = written(program, "litert")
    assert notes == ()
    assert read_file(path).signatures[0].inputs[0][0] == program.inputs[0].name
    assert speaks_of(written(program, "tflm")[1], "litert")


WHOLE: dict[str, Callable[[], Program]] = {
    "branches": programs.branches,
    "mixed": programs.mixed,
    "nested": programs.nested,
    "separable": programs.separable,
    "everything_int8": lambda: streamed.everything(DType.INT8),
    "dilated_int16": lambda: streamed.dilated(DType.INT16),
    "pools_int16": lambda: streamed.pools(DType.INT16),
}


@needs_runtimes
@pytest.mark.parametrize("name", WHOLE)
def test_whole_programs(name: str) -> None:
    program = WHOLE[name]()
    assert all(assert_same(program, inputs_for(program, 2)).values())


@needs_runtimes
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_there_and_back(tmp_path: Path, kind: str) -> None:
    """A file, its program, a file of that, its program: the same answers at the same border."""
    first = tmp_path / "first.tflite"
    first.write_bytes(write_model(small_cnn(kind)))
    program = tinyet.from_tflite(first)
    runs = inputs_for(program, 5)
    assert all(assert_same(program, runs).values())
    tinyet.export_tflite(program, tmp_path / "second.tflite")
    again = tinyet.from_tflite(tmp_path / "second.tflite", name=program.name)
    assert [t.type for t in again.inputs] == [t.type for t in program.inputs]
    named = read_file(tmp_path / "second.tflite").signatures[0]
    assert [name for name, _ in named.outputs] == [t.name for t in program.outputs]
    for run in runs:
        assert np.array_equal(again.outputs_for(run)[0], program.outputs_for(run)[0])
    tinyet.export_tflite(program, tmp_path / "third.tflite")
    assert (tmp_path / "third.tflite").read_bytes() == (tmp_path / "second.tflite").read_bytes()


def ring() -> Program:
    """A state of six values, of which each run drops the oldest two for its input."""
    x, state = tensor("x", (1, 2), DType.INT8, 0.1, 3), tensor("past", (1, 6), DType.INT8, 0.1, 3)
    kept, both = tensor("kept", (1, 4), DType.INT8, 0.1, 3), tensor("both", (1, 6), DType.INT8, 0.1, 3)
    first = constant("first", np.arange(6, dtype=np.int8)[None], QuantParams.per_tensor(0.1, 3))
    y, after = tensor("y", (1, 6), DType.INT8, 0.1, 3), tensor("after", (1, 6), DType.INT8, 0.1, 3)
    nodes = (
        Node(Slice(1, 2, 6), (state,), (kept,)),
        Node(Concat(1), (kept, x), (both,)),
        Node(Clamp(-5.0, 5.0), (both,), (y,)),
        Node(StateWrite(), (both, state), (after,)),
    )
    return Program("ring", Graph("ring", (x, state), (y, after), nodes, (first,)))


@needs_runtimes
def test_states_are_variables() -> None:
    """Set before the first run, and carried on."""
    program = ring()
    assert all(assert_same(program, inputs_for(program, 6)).values())
    assert codes(program, "litert")[:3] == ["CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE"]


# ---------------------------------------------------------------- refusals


def refusals() -> Program:
    """A division and a cumulative sum of int8, and between them what can be."""
    q = DType.INT8, 0.1, 3
    x, a, b, c = (tensor(name, (1, 4), *q) for name in "xabc")
    place = [
        Origin("aten.op", module, "net.py", line, "y = …") for module, line in (("head", 3), ("tail", 9))
    ]
    nodes = (
        Node(Div(), (x, constant("two", np.full((1, 4), 20, np.int8), x.type.quant)), (a,), (place[0],)),
        Node(Clamp(0.0, 1.0), (a,), (b,)),
        Node(CumSum(1), (b,), (c,), (place[1],)),
    )
    return Program("p", Graph("p", (x,), (c,), nodes))


def test_refusals_are_listed_with_their_places(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOp) as caught:
        tinyet.export_tflite(refusals(), tmp_path / "m.tflite")
    for words in (
        "2 operators",
        "div (head (net.py:3)",
        "there is no DIV of int8",
        "cumsum (tail (net.py:9)",
    ):
        assert words in caught.value.what
    assert list(tmp_path.iterdir()) == []


def test_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="runtime='keras'"):
        tinyet.export_tflite(small.program(), tmp_path / "m.tflite", runtime="keras")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes a Program"):
        tinyet.export_tflite(tmp_path, tmp_path / "m.tflite")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="cannot be written"):
        tinyet.export_tflite(small.program(), tmp_path / "nowhere" / "m.tflite")


def test_command_line(tmp_path: Path) -> None:
    model = tmp_path / "small.tet"
    small.program().save(model)
    out = tmp_path / "small.tflite"
    ended = command("export", model, "--out", out, "--runtime", "tflm")
    assert ended.status == 0, ended
    assert "LiteRT rounds FULLY_CONNECTED otherwise" in ended.err
    assert read_file(out).subgraphs[0].operators[-1].code == "FULLY_CONNECTED"
    for words in (["--out", str(tmp_path / "a.txt")], ["--out", str(out), "--runtime", "onnx"], []):
        refused(tmp_path, "usage error", "export", model, *words, status=2)
    refused(tmp_path, "usage error", "export", out, "--out", out, status=2)
    refusals().save(model)
    error = refused(tmp_path, "unsupported operator", "export", model, "--out", tmp_path / "b.tflite")
    assert "there is no DIV of int8" in error
