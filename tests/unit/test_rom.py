# SPDX-License-Identifier: Apache-2.0
"""Which constants the generated C keeps in program memory, and where parameters are copied from there."""

from __future__ import annotations

import re

import pytest

from tests.golden.programs import Builder, weights_f32
from tests.golden_files import Golden
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.emit.model import model_files
from tinyet.ir import DType, Graph, Tensor, TensorType
from tinyet.ops.add import Add
from tinyet.ops.linear import Linear


def graph(layers: int = 1) -> Graph:
    """x through equal linear layers, plus their bias: the same numbers as a weight and as an operand."""
    b = Builder("twice")
    x = y = Tensor("x", TensorType((1, 6), DType.FLOAT32))
    weights, bias = weights_f32("weights", (6, 6), 41), weights_f32("bias", (6,), 17)
    for i in range(layers):
        y = b.add(Linear(), y, weights, bias, out=f"y{i}", source="y = self.linear(y)")
    return b.finish((x,), b.add(Add(), y, bias, out="z", source="return y + self.linear.bias")).graph


def text_for(board: str, layers: int = 1) -> str:
    return model_files(deploy(graph(layers), load_board(board).target), "twice", ["twice"])["twice.c"]


@pytest.mark.parametrize("board", ["arduino_uno", "mps2_an386"])
def test_operands_are_not_in_rom_and_share_nothing_with_what_is(board: str) -> None:
    text = text_for(board)
    assert "static const TINYET_ROM float linear_0_bias[6]" in text
    assert "static const float add_1_input_1[6]" in text
    first, second = re.findall(r"_(?:bias|input_1)\[6\][^{]*\{\n(.*)\n\}", text)
    assert first == second
    assert ".bias = linear_0_bias," in text
    assert re.search(r"tinyet_add_f32\(.*, add_1_input_1, ", text)


def test_parameters_are_copied_from_rom_for_each_call(golden: Golden) -> None:
    text = text_for("arduino_uno", layers=3)
    golden(text, "twice_avr.c")
    calls = re.findall(
        r"\{\n    const (\w+) params = (\w+);\n    (\w+)\(.*, &params\);\n  \}\n  TINYET_LAYER_END", text
    )
    assert [call for _, _, call in calls] == ["tinyet_linear_f32"] * 3 + ["tinyet_add_f32"]
    # Equal parameters are there once.
    assert [name for _, name, _ in calls] == ["linear_0_params"] * 3 + ["add_3_params"]
    assert len(re.findall(r"static const TINYET_ROM \w+_params \w+ = \{", text)) == 2


def test_elsewhere_parameters_are_used_where_they_are() -> None:
    text = text_for("mps2_an386", layers=2)
    assert re.search(r"^  tinyet_linear_f32\(.*, &linear_1_params\);$", text, re.MULTILINE)
    assert not re.search(r"TINYET_ROM \w+_params", text)
    assert "params params" not in text
