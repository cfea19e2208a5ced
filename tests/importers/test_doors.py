# SPDX-License-Identifier: Apache-2.0
"""Whatever importers trip over in a file is an error with the operator's name and index, and all of it is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import helper, model, node, onnx, value
from tests.tflite_files import Writer
from tinyet.errors import (
    Complaints,
    InternalError,
    ModelError,
    RefusedError,
    TinyetError,
    UnsupportedOp,
    UnsupportedShape,
)
from tinyet.importers.onnx.importer import import_model
from tinyet.importers.onnx.read import read_model
from tinyet.opening.files import from_tflite
from tinyet.tflite import Quantization
from tinyet.tflite.options import AddOptions, ConcatenationOptions, CumsumOptions, StridedSliceOptions
from tinyet.tflite.write import write_model

FORGED = "relu\n  at: /etc/passwd\n  do: rm -rf ~\x1b[2J"


def read(proto: Any) -> Any:
    return read_model(proto.SerializeToString(), "a.onnx", "a.onnx")


def quantized(nodes: list[Any], constants: Mapping[str, Any], outputs: tuple[str, ...] = ("y",)) -> str:
    """What is said of a model whose x, (1, 4), is quantized."""
    pair = [
        node("QuantizeLinear", ["x", "scale", "zero"], "q"),
        node("DequantizeLinear", ["q", "scale", "zero"], "dq"),
    ]
    given: dict[str, Any] = {"scale": np.array(0.1, np.float32), "zero": np.array(0, np.int8), **constants}
    with pytest.raises(TinyetError) as refused:
        import_model(read(model([*pair, *nodes], {"x": (1, 4)}, given, outputs)), name="a")
    assert not isinstance(refused.value, InternalError)
    return str(refused.value)


def of_floats(nodes: list[Any], constants: Mapping[str, Any], shape: tuple[int, ...] = (1, 2, 4, 4)) -> str:
    """What is said of a float model."""
    with pytest.raises(ModelError) as refused:
        import_model(read(model(nodes, {"x": shape}, constants)), name="a")
    return str(refused.value)


# ---------------------------------------------------------------- names


def test_any_name_of_a_node_can_be() -> None:
    """Names of what modules have themselves, and a name that is taken by what another became."""
    torch = pytest.importorskip("torch")
    from tinyet.to_module.convert import to_module

    names = [
        "inputs/a",
        "outputs/a",
        "steps/a",
        "origins",
        "place/b",
        "training",
        "forward/x",
        "_modules/c",
        "T_destination",
    ]
    names += [
        "a",
        "a",
        "a_1",
        "a/b",
        "a/b",
        "node/function",
        "node",
        "function",
        "",
        ".",
        "//",
        "a.b::c",
        "__class__",
    ]
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"], name=name) for i, name in enumerate(names)]
    nodes[0].input[0] = "x"
    nodes.append(helper.make_node("Identity", [f"v{len(names)}"], ["y"]))
    graph, _ = import_model(read(model(nodes, {"x": (1, 4)}, {})), name="a")
    module, _ = to_module(graph)
    x = torch.randn(1, 4)
    assert torch.equal(module(x), x if len(names) % 2 == 0 else -x)
    assert len(module.origins) == len(names)


def test_names_forge_no_lines(tmp_path: Path) -> None:
    nodes = [helper.make_node(FORGED, ["dq"], ["y"], name=FORGED)]
    for text in (
        quantized(nodes, {}),
        of_floats([helper.make_node("Conv", ["x", "w"], ["y"], name=FORGED)], {"w": np.ones(3)}),
    ):
        assert sum(line.startswith(("  at:", "  do:")) for line in text.splitlines()) <= 2
        assert "passwd" not in [line.strip() for line in text.splitlines()]
        assert not any(line.startswith(("  at: /etc", "  do: rm")) for line in text.splitlines()), text
    w = Writer()
    x = w.value((1, 4))
    w.call("TOPK_V2", (x,), (w.value((1, 4)),))
    made = w.model((x,), (1,))
    tensors = tuple(
        type(t)(FORGED, t.shape, t.type, t.data, t.quantization) for t in made.subgraphs[0].tensors
    )
    main = made.subgraphs[0]
    forged = type(made)((type(main)(main.name, tensors, main.inputs, main.outputs, main.operators),))
    path = tmp_path / "a.tflite"
    path.write_bytes(write_model(forged))
    with pytest.raises(UnsupportedOp) as refused:
        from_tflite(path)
    text = str(refused.value)
    assert "TOPK_V2, operator 0" in text
    assert not any(line.startswith(("  at: /etc", "  do: rm")) for line in text.splitlines()), text


# ---------------------------------------------------------------- all at once


def test_all_that_an_onnx_file_holds_is_listed_at_once() -> None:
    """Operators behind refused ones, too, and inputs beside operators."""
    nodes = [
        node("TopK", ["dq"], "a"),
        node("Relu", ["a"], "b"),
        node("Unique", ["b"], "c"),
        node("Hardmax", ["dq"], "y"),
    ]
    text = quantized(nodes, {}, ("c", "y"))
    assert "3 operators" in text
    for title in ("TopK, node 2 ('net/a')", "Unique, node 4 ('net/c')", "Hardmax, node 5 ('net/y')"):
        assert title in text
    text = of_floats([node("TopK", ["x"], "a"), node("Unique", ["a"], "y")], {})
    assert "TopK, node 0 ('net/a')" in text
    assert "Unique, node 1 ('net/y')" in text


def test_all_of_a_damaged_onnx_file_is_listed_at_once() -> None:
    proto = model([node("Neg", ["x"], "y")], {"x": (1, "n", "m")}, {"a": np.ones(2, np.complex64)})
    proto.graph.input.append(value("z", (1, 2), onnx.TensorProto.STRING))
    proto.graph.initializer.append(helper.make_tensor("b", onnx.TensorProto.BFLOAT16, (1,), [1.0]))
    with pytest.raises(ModelError) as refused:
        read(proto)
    for part in (
        "4 things",
        "constant 'a' is complex64",
        "constant 'b' is bfloat16",
        "dimension 1 of input 'x' is 'n'",
        "input 'z' is object",
    ):
        assert part in str(refused.value)


def test_other_domains_are_named() -> None:
    nodes = [helper.make_node("Shrink9", ["dq"], ["y"], name="n", domain="my.own")]
    text = quantized(nodes, {})
    assert "my.own.Shrink9, node 2 ('n')" in text
    assert "ONNX's own operators" in text


# ---------------------------------------------------------------- what layers cannot be


def test_weights_of_integers() -> None:
    for op, shape in (("Conv", (2, 2, 1, 1)), ("ConvTranspose", (2, 2, 1, 1))):
        text = of_floats([node(op, ["x", "w"], "y")], {"w": np.ones(shape, np.int64)})
        assert f"{op}, node 0 ('net/y'): has a weight of int64" in text
    constants = {str(i): np.ones(2, np.int32) for i in range(4)}
    assert "has a weight of int32" in of_floats(
        [node("BatchNormalization", ["x", *constants], "y")], constants
    )


def test_shapes_that_do_not_broadcast() -> None:
    wide = {"w": np.ones((3,), np.float32)}
    assert "Add, node 2 ('net/y')" in quantized([node("Add", ["dq", "w"], "y")], wide)
    assert "Add, node 0 ('net/y')" in of_floats([node("Add", ["x", "w"], "y")], wide)
    more = {"w": np.ones((1, 4, 1), np.float32)}
    assert "Concat, node 2 ('net/y')" in quantized([node("Concat", ["dq", "w"], "y", axis=1)], more)
    assert "Concat, node 0 ('net/y')" in of_floats([node("Concat", ["x", "w"], "y", axis=1)], more)


def test_activations_by_channel(tmp_path: Path) -> None:
    scales: dict[str, Any] = {"s": np.array([0.1, 0.2, 0.3, 0.4], np.float32), "z": np.zeros(4, np.int8)}
    nodes = [
        node("QuantizeLinear", ["dq", "s", "z"], "r", axis=1),
        node("DequantizeLinear", ["r", "s", "z"], "y", axis=1),
    ]
    assert "QuantizeLinear, node 2 ('net/r'): quantizes activations by channel" in quantized(nodes, scales)
    w = Writer()
    x = w.value((1, 2))
    tensor = w.tensors[x]
    w.tensors[x] = type(tensor)("x", (1, 2), "int8", None, Quantization((0.1, 0.2), (0, 0), 1))
    w.call("ADD", (x, x), (w.value((1, 2)),), AddOptions())
    path = tmp_path / "a.tflite"
    path.write_bytes(w.file((x,), (1,)))
    with pytest.raises(TinyetError, match=r"input 0 .*quantized along axis 1"):
        from_tflite(path)


def test_joining_unequal_ranks(tmp_path: Path) -> None:
    w = Writer()
    a, b = w.value((1, 2, 3)), w.value((1, 2))
    w.call("CONCATENATION", (a, b), (w.value((1, 4, 3)),), ConcatenationOptions(1))
    path = tmp_path / "a.tflite"
    path.write_bytes(w.file((a, b), (2,)))
    with pytest.raises(TinyetError, match="CONCATENATION, operator 0"):
        from_tflite(path)


def test_several_ellipses_and_sums_of_another_type(tmp_path: Path) -> None:
    w = Writer()
    x = w.value((2, 3), "float32", None)
    ends = [w.constant(np.array(numbers, np.int32)) for numbers in ([0, 0], [2, 3], [1, 1])]
    options = StridedSliceOptions(0, 0, 3)
    w.call("STRIDED_SLICE", (x, *ends), (y := w.value((2, 3), "float32", None),), options)
    whole = w.value((2, 3))
    axis = w.constant(np.array(1, np.int32))
    w.call("CUMSUM", (whole, axis), (z := w.value((2, 3), "float32", None),), CumsumOptions())
    path = tmp_path / "a.tflite"
    path.write_bytes(w.file((x, whole), (y, z)))
    with pytest.raises(UnsupportedShape) as refused:
        from_tflite(path)
    assert "has several ellipses" in str(refused.value)
    assert "sums int8 as float32" in str(refused.value)


def test_what_an_importer_trips_over_says_where() -> None:
    def trip() -> None:
        raise KeyError("x\ny")

    with pytest.raises(InternalError, match=r"Conv, node 3: KeyError: .*x\\\\ny"):
        Complaints("a.onnx").attempt("Conv, node 3", trip)

    def refuse() -> None:
        raise RefusedError("is too much")

    complaints = Complaints("a.onnx")
    assert not complaints.attempt("Conv, node 3", refuse)
    with pytest.raises(ModelError, match="Conv, node 3: is too much"):
        complaints.raise_any()


def test_inputs_that_no_operator_has() -> None:
    for op, inputs in (("Add", ["x"] * 3), ("Relu", ["x"] * 2)):
        with pytest.raises(
            ModelError, match=rf"{op}, node 0 .* has {len(inputs)} inputs, at most {len(inputs) - 1}"
        ):
            read(model([node(op, inputs, "y")], {"x": (1, 4)}, {}))
