# SPDX-License-Identifier: Apache-2.0
"""The .tflite file: written and read, and what is refused at the door."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle import litert
from tests.tflite_files import Writer, small_cnn
from tinyet.errors import ModelError
from tinyet.tflite import (
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    TensorInfo,
    read_file,
    read_model,
)
from tinyet.tflite.options import CLASSES, TYPES, Options, VarHandleOptions
from tinyet.tflite.write import write_model


def every_kind() -> Model:
    """Something of all that records hold."""
    tensors = (
        TensorInfo("x:0", (1, 4), "int8", None, Quantization((0.5,), (3,)), (-1, 4)),
        TensorInfo("w", (2, 4), "int8", bytes(8), Quantization((0.5, 0.25), (0, 0), 0)),
        TensorInfo("wide", (3,), "int64", bytes(24)),
        TensorInfo("kept", (1, 2), "int16", None, Quantization((2.0**-15,), (0,)), (), True),
        TensorInfo("handle", (), "resource"),
    )
    operators = (
        Operator("VAR_HANDLE", (), (4,), VarHandleOptions("", "place")),
        Operator("CUSTOM", (0, -1, 1), (3,), None, "Mine", b"\1\2\3", (2,), 5),
        Operator("ASSIGN_VARIABLE", (4, 3), ()),
    )
    main = Subgraph("main", tensors, (0,), (3,), operators)
    inner = Subgraph("inner", (), (), (), ())
    return Model((main, inner), (Signature("serve", 0, (("in", 0),), (("out", 3),)),), "a model")


@pytest.mark.parametrize("model", [every_kind(), small_cnn(), small_cnn("uint8")])
def test_what_is_written_is_read(model: Model) -> None:
    data = write_model(model)
    assert read_model(data) == model
    assert write_model(read_model(data)) == data


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_options(kind: str) -> None:
    """Each field comes back from its own slot: of two with one value, none could be told from the other."""
    cls = CLASSES[kind]
    unlike = {"b": 3, "i": 1000, "I": 2000, "f": 0.5}
    values: dict[str, object] = {}
    for i, f in enumerate(dataclasses.fields(cls)):
        stored = f.metadata["kind"]
        values[f.name] = (
            unlike[stored] + i
            if stored in unlike
            else {"?": i % 2 == 0, "text": f"t{i}", "[i]": (i, 7)}[stored]
        )
    options: Options = cls(**values)
    assert kind in TYPES
    model = Model((Subgraph("", (), (), (), (Operator("ADD", (), (), options),)),))
    assert read_model(write_model(model)).subgraphs[0].operators[0].options == options


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
def test_litert_reads_what_is_written() -> None:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=write_model(small_cnn("uint8")))
    interpreter.allocate_tensors()
    (taken,), (given,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert (taken["dtype"], tuple(taken["shape"])) == (np.uint8, (1, 8, 8, 2))
    assert taken["quantization"] == (pytest.approx(0.02), 125)
    assert (given["dtype"], tuple(given["shape"])) == (np.uint8, (1, 3))


def changed(model: Model, index: int, **fields: Any) -> Model:
    """The model with other fields of one tensor of its main subgraph."""
    g = model.subgraphs[0]
    made = dataclasses.replace(g.tensors[index], **fields)
    g = dataclasses.replace(g, tensors=(*g.tensors[:index], made, *g.tensors[index + 1 :]))
    return dataclasses.replace(model, subgraphs=(g, *model.subgraphs[1:]))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "TFL3 is not in it"),
        (b"\0" * 64, "TFL3 is not in it"),
        (struct.pack("<I4s", 1 << 20, b"TFL3") + bytes(64), "an offset leads to byte 1048576"),
        (write_model(changed(every_kind(), 1, data=bytes(7))), r"is int8\[2, 4\], 8 bytes, and has 7"),
        (write_model(changed(every_kind(), 0, shape=(1, -4))), "has the shape"),
        (
            write_model(changed(every_kind(), 1, quantization=Quantization((0.5, 1.0), (0, 0, 0)))),
            "3 zero points",
        ),
        (write_model(Model(())), "no subgraph"),
        (write_model(Model((Subgraph("", (), (0,), (), ()),))), "tensor 0 of 0"),
        (
            write_model(Model((Subgraph("", (), (), (), (Operator("ADD", (3,), ()),)),))),
            "ADD has tensor 3 of 0",
        ),
        (
            write_model(dataclasses.replace(every_kind(), signatures=(Signature("s", 9, (), ()),))),
            "names subgraph 9",
        ),
    ],
)
def test_damage_is_told(data: bytes, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        read_model(data, "model.tflite")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_file(tmp_path / "none.tflite")
    (tmp_path / "text.tflite").write_text("nothing of the kind")
    with pytest.raises(ModelError, match="TFL3") as caught:
        read_file(tmp_path / "text.tflite")
    assert "text.tflite" in str(caught.value)


def test_equal_constants_share_their_bytes() -> None:
    w = Writer()
    data = np.arange(4096, dtype=np.int32)
    first = w.file((), (w.constant(data),))
    assert len(w.file((), (w.constant(data),))) < len(first) + 256
