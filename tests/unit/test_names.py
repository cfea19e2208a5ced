# SPDX-License-Identifier: Apache-2.0
"""Names in the generated C: valid, unique, no one else's, and those that a person would give."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.programs import Builder, bias_s32, input_s8, nested, weights_s8
from tinyet.boards.cpus import Target
from tinyet.deployment import deploy
from tinyet.emit.model import model_files
from tinyet.emit.names import RESERVED, Names, declared
from tinyet.files.model_name import interface
from tinyet.ir import Graph, Origin
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.planning.layer_names import common_module, identifier
from tinyet.program import Program

M4 = Target("cortex-m4", frozenset({"dsp", "fpu"}))
M3 = Target("cortex-m3", frozenset())
QUANT = (0.05, -3)

wishes = st.one_of(
    st.text(max_size=6), st.sampled_from(sorted(RESERVED)), st.sampled_from(["x", "X", "x_2", "_x", "x__2"])
)


@given(st.lists(wishes, max_size=12))
def test_any_names_become_identifiers_that_nobody_has(wanted: list[str]) -> None:
    names = Names({"taken"})
    given_names = [names.unique(name) for name in [*wanted, "taken"]]
    assert len(set(given_names)) == len(given_names)
    for name in given_names:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
        assert "__" not in name
        assert name not in RESERVED
        assert name != "taken"
    again = Names({"taken"})
    assert [again.unique(name) for name in [*wanted, "taken"]] == given_names


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("relu_1", "relu_1"),
        ("features.0", "features_0"),
        ("_private__name_", "private_name"),
        ("größe", "gr_e"),
        ("默认", "value"),
        ("5", "value_5"),
        ("NULL", "null"),
        ("int", "int_"),
        ("exp", "exp_"),
        ("expf", "expf_"),
        ("uint8_t", "uint8_t_"),
    ],
)
def test_a_name_is_changed_only_where_it_must_be(wanted: str, name: str) -> None:
    assert Names().unique(wanted) == name


def test_what_headers_declare() -> None:
    header = """
    /* int commented(void); */
    #ifndef GUARD_H
    #define GUARD_H
    #include <stdint.h>
    #ifdef __cplusplus
    extern "C" {
    #endif
    #define lower_case_macro(x) \\
      hidden_in_macro(x)
    typedef int8_t element;
    typedef struct { int32_t a_field; } structure;
    enum kind { FIRST = 3, second, third /* the last */ };
    extern const uint8_t table[2][3];
    void function(const int8_t *a_parameter, structure *b);
    static inline int with_body(int x) { const int a_local = called(x); { return a_local; } }
    static int counter = 0;
    int attributed(void) __attribute__((noinline));
    #ifdef __cplusplus
    }
    #endif
    #endif
    """
    found = declared(header)
    assert found >= {
        "GUARD_H", "lower_case_macro", "element", "structure", "FIRST", "second", "third", "table", "function",
        "with_body", "counter", "attributed",
    }  # fmt: skip
    assert not found & {"commented", "a_field", "a_parameter", "a_local", "x", "b", "hidden_in_macro"}


# ---------------------------------------------------------------- layers


def named(*layers: tuple[str, str]) -> list[str]:
    """The names of layers (operator, module path) one after another; `linear` is one with weights."""
    b = Builder("named")
    x = y = input_s8("x", (1, 4), *QUANT)
    for i, (op, module) in enumerate(layers):
        if op == "linear":
            inputs = (y, weights_s8(f"w{i}", (4, 4), 31 + 2 * i), bias_s32(f"b{i}", 4, 11))
            y = b.add(Linear(), *inputs, out=f"y{i}", source="", quant=QUANT, module=module)
        else:
            y = b.add(Add(), y, y, out=f"y{i}", source="", quant=QUANT, module=module)
    return [step.name for step in deploy(b.finish((x,), y).graph, M3).steps]


def test_layers_are_called_after_their_modules() -> None:
    assert named(("linear", "features.0"), ("linear", "features.2")) == ["features.0", "features.2"]
    assert named(("linear", "0"), ("linear", "2.head")) == ["0", "2.head"]
    assert named(("linear", ""), ("add", "")) == ["linear_0", "add_1"]


def test_what_a_module_computes_beside_its_weights_has_the_operator_behind_it() -> None:
    assert named(("linear", "head"), ("add", "head")) == ["head", "head.add"]
    assert named(("linear", "block.fc"), ("add", "block")) == ["block.fc", "block.add"]
    assert named(("linear", "block.fc"), ("linear", "block")) == ["block.fc", "block.linear"]
    assert named(("add", "act")) == ["act"]
    assert named(("add", "act"), ("add", "act")) == ["act.add", "act.add_2"]


def test_a_module_that_is_called_again_has_a_number_that_no_other_has() -> None:
    assert named(("linear", "fc"), ("linear", "fc")) == ["fc", "fc_2"]
    assert named(("linear", "fc"), ("linear", "fc"), ("linear", "fc.2")) == [
        "fc.linear",
        "fc.linear_2",
        "fc.2",
    ]
    assert named(("linear", "fc"), ("linear", "fc"), ("linear", "fc_2")) == ["fc", "fc_3", "fc_2"]


def test_a_layer_is_named_after_its_own_operator_not_what_was_folded_into_it() -> None:
    b = Builder("folded")
    x = input_s8("x", (1, 4), *QUANT)
    y = b.add(
        Linear(),
        x,
        weights_s8("w", (4, 4), 31),
        bias_s32("b", 4, 11),
        out="y",
        source="",
        quant=QUANT,
        module="fc",
    )
    node = b.nodes[0].replace(
        origins=[Origin("aten.pad.default", "pad"), *b.nodes[0].origins, Origin("aten.relu.default", "act")]
    )
    graph = Graph("folded", (x,), (y,), (node,))
    assert [str(step) for step in deploy(graph, M3).steps] == ["fc (model.py:10)"]


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        (["a.b.c", "a.b.d"], "a.b"),
        (["a.b", "a.b"], "a.b"),
        (["a", "b"], ""),
        (["ab", "a"], ""),
        (["a", ""], ""),
    ],
)
def test_common_module(paths: Sequence[str], common: str) -> None:
    assert common_module(paths) == common


# ---------------------------------------------------------------- the code


def code(program: Program, target: Target) -> str:
    return model_files(deploy(program.graph, target), program.name, [""])[f"{program.name}.c"]


def test_equal_functions_are_there_once_under_a_name_that_fits_all_their_callers() -> None:
    b = Builder("pools")
    x = y = input_s8("x", (1, 6, 6, 4), *QUANT)
    window = {"kernel_h": 3, "kernel_w": 3, "pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}
    for block in range(2):
        y = b.add(
            MaxPool2d(**window), y, out=f"y{block}", source="", quant=QUANT, module=f"blocks.{block}.pool"
        )
    text = code(b.finish((x,), y), M4)
    assert len(re.findall(r"void \w*max_pool2d\(", text)) == 1
    assert text.count("  blocks_max_pool2d(") == 2, "of blocks.0 and blocks.1"
    text = code(nested(), M4)
    assert len(re.findall(r"void blocks_0_body\w*\(", text)) == 1
    assert text.count("  blocks_0_body_conv2d(") == 2, "one module, called twice"


def test_a_function_that_layers_share_is_called_after_what_it_computes() -> None:
    b = Builder("shared")
    x = y = input_s8("x", (1, 8, 8, 4), *QUANT)
    for i, module in enumerate(("stem", "tail", "first", "second")):
        depthwise = i < 2
        size, pad = (3, 1) if depthwise else (1, 0)
        attrs = Conv2d(pad_top=pad, pad_bottom=pad, pad_left=pad, pad_right=pad, groups=4 if depthwise else 1)
        weights = weights_s8(f"w{i}", (4, size, size, 1 if depthwise else 4), 31 + 2 * i)
        y = b.add(
            attrs, y, weights, bias_s32(f"b{i}", 4, 11), out=f"y{i}", source="", quant=QUANT, module=module
        )
    text = code(b.finish((x,), y), M4)
    for name in ("shared_depthwise", "shared_conv2d"):
        assert text.count(f"void {name}(") == 1
        assert text.count(f"  {name}(") == 2


def test_scratch_memory_of_one_offset_has_one_name() -> None:
    b = Builder("alone")
    x = input_s8("scratch", (1, 4), *QUANT)
    y = b.add(
        Linear(),
        x,
        weights_s8("w", (4, 4), 31),
        bias_s32("b", 4, 11),
        out="y",
        source="",
        quant=QUANT,
        module="fc",
    )
    text = code(b.finish((x,), y), M4)
    assert "const int8_t *const scratch = alone_input_0();" in text
    assert re.search(r"void \*const scratch_2 = arena \+ \d+;", text)
    assert "fc_linear(scratch, y, scratch_2, fc_weights);" in text


def hostile(name: str, words: Sequence[str]) -> Program:
    """Every word as a module with weights, as one without, and as a value."""
    b = Builder(name)
    x = y = input_s8("volatile", (1, 4), *QUANT)
    for i, word in enumerate(words):
        weights, bias = weights_s8(f"w{i}", (4, 4), 3 + 2 * i), bias_s32(f"b{i}", 4, 1 + 2 * i)
        y = b.add(Linear(), y, weights, bias, out=word, source="", quant=QUANT, module=word)
        y = b.add(Clamp(0.0, 1.0 + i), y, out=f"{word}_weights", source="", quant=QUANT, module=f"f.{word}")
    return b.finish((x,), y)


@pytest.mark.parametrize("target", [M3, M4], ids=["library kernels", "own functions"])
@pytest.mark.parametrize(
    "compiler", [("gcc", "-xc", "-std=gnu11"), ("g++", "-xc++", "-std=gnu++17")], ids=lambda c: c[0]
)
def test_no_name_is_anyone_elses(compiler: tuple[str, ...], target: Target, tmp_path: Path) -> None:
    """With every header of the C library before it, in GNU mode, where compilers define macros in lower case."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    own = [
        "NULL",
        "EOF",
        "INT8_MAX",
        "input",
        "output",
        "i",
        "values",
        "weights",
        "default",
        "__func__",
        "tinyet",
    ]
    words = [*own, *sorted(interface("hostile", 1, 1)), *sorted(RESERVED - {*own, "volatile"})[::3]]
    words += [
        "tinyet_linear_s8",
        "tinyet_linear_s8_1x4_dsp",
        "tinyet_status",
        "tinyet.linear_s8_params",
        "hostile.run",
    ]
    program = hostile("hostile", words)
    for path, text in model_files(deploy(program.graph, target), program.name, [""]).items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror")
    library = "assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdarg stdbool stddef"
    library += " stdint stdio stdlib string time unistd"
    includes = [part for header in library.split() for part in ("-include", f"{header}.h")]
    command = [*compiler, *warnings, *includes, "-fsyntax-only", "hostile.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_identifier() -> None:
    assert identifier("a.b-c  d") == "a_b_c_d"
    assert identifier("__init__") == "init"
    assert identifier("é") == ""
