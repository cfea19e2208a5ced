# SPDX-License-Identifier: Apache-2.0
"""Some thousands of mutants of files of every kind but .tet: none of them fails, and they are neither all refused nor
all taken. `python -m tests.fuzz` makes any number of others."""

from __future__ import annotations

import configparser
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests import tiny_model
from tests.fuzz.board import BoardFiles, read_back
from tests.fuzz.frames import Frames
from tests.fuzz.manifest import Manifests
from tests.fuzz.npz import NpzFiles
from tests.fuzz.onnx import OnnxFiles, OnnxFloatFiles
from tests.fuzz.onnx_ml_seeds import ml_seeds, operators
from tests.fuzz.onnx_seeds import FOLDS, LAYERS, float_seeds, quantized_seeds
from tests.fuzz.projects import Projects
from tests.fuzz.run import BYTES, Outcome, Target, run_here, table
from tests.fuzz.sniffing import SniffedFiles
from tests.fuzz.tflite import TfliteFiles, TfliteFloatFiles
from tests.fuzz.tflite_seeds import seeds
from tinyet.boards import load_board
from tinyet.emit.kinds import Kind
from tinyet.emit.project import project_files
from tinyet.importers.onnx import handlers as onnx_rows
from tinyet.importers.onnx.dynamic import CONVOLUTION, LINEAR
from tinyet.importers.onnx.fold import FOLDED
from tinyet.importers.onnx.importer import import_model
from tinyet.importers.onnx.qoperator import TAKEN
from tinyet.importers.onnx.read import read_model
from tinyet.importers.tflite.handlers import BUILTIN, CUSTOMS
from tinyet.opening.files import from_tflite
from tinyet.tflite.write import write_model

SEED = 1


@pytest.mark.parametrize(
    ("make", "mutants"),
    [
        (BoardFiles, 1000),
        (NpzFiles, 3000),
        (SniffedFiles, 2000),
        (Manifests, 150),
        (Frames, 800),
        (TfliteFiles, 300),
        (TfliteFloatFiles, 600),
        (OnnxFiles, 300),
        (OnnxFloatFiles, 150),
        (Projects, 40),
    ],
)
def test_no_mutant_fails(make: Callable[[], Target], mutants: int) -> None:
    target = make()
    tally = run_here(target, SEED, range(mutants))
    assert tally.failures == [], table(target.name, tally)
    # A pickle is so dense that few changes of it leave one that is right.
    assert tally.outcomes[Outcome.EXACT] >= mutants // 60, table(target.name, tally)
    assert tally.outcomes[Outcome.REFUSED] >= mutants // 6, table(target.name, tally)
    assert tally.largest is not None
    assert tally.largest.grown < BYTES, table(target.name, tally)


def test_every_tflite_operator_has_a_seed(tmp_path: Path) -> None:
    """Each is taken as it is, and each operator with a row is in one."""
    used: set[str] = set()
    path = tmp_path / "seed.tflite"
    for number, model in enumerate(seeds()):
        path.write_bytes(write_model(model))
        assert from_tflite(path).graph.nodes, number
        used |= {op.custom or op.code for subgraph in model.subgraphs for op in subgraph.operators}
    assert {*BUILTIN, *CUSTOMS} - used == set(), "add them to tests/fuzz/tflite_seeds.py"


def test_every_onnx_operator_has_a_seed() -> None:
    for proto in (*quantized_seeds(), *float_seeds(), *ml_seeds()):
        import_model(read_model(proto.SerializeToString(), "seed", "seed"), name="seed")
    used = {layer.op for layer in LAYERS} | {"QuantizeLinear", "DequantizeLinear", LINEAR, CONVOLUTION}
    used |= operators()
    assert onnx_rows.ALL - used == set(), "add them to LAYERS of tests/fuzz/onnx_seeds.py"
    assert TAKEN - {node.op_type for proto in quantized_seeds() for node in proto.graph.node} == set(), (
        "add them to QOPERATORS of tests/fuzz/onnx_seeds.py"
    )
    assert FOLDED - {layer.op for layer in FOLDS} == set(), "add them to FOLDS of tests/fuzz/onnx_seeds.py"


@pytest.mark.parametrize(
    ("kind", "board", "path", "evil"),
    [
        ("cmake", "mps2_an386", "cmake/mps2_an386.cmake", "# x\nfile(WRITE pwned x)\n"),
        ("cmake", "mps2_an386", "platform/support/linker.ld", "/* x */ pwned */\n"),
        ("cmake", "mps2_an386", "src/main.c", "/* */ int pwned;\n"),
        ("platformio", "uno_r4_wifi", "platformio.ini", "\n[env:pwned]\nplatform = x\n"),
        ("platformio", "uno_r4_wifi", "platformio.ini", "  and more\n"),
        ("zephyr", "nano_33_ble", "boards/arduino_nano_33_ble.conf", 'CONFIG_COMPILER_OPT="x"\n'),
        ("zephyr", "nano_33_ble", "boards/arduino_nano_33_ble.overlay", '#include "x"\n'),
        ("zephyr", "nano_33_ble", "README.md", "\x1b[2J"),
        ("zephyr", "nano_33_ble", "sample.yaml", "common: {platform_allow: [x]}\n"),
    ],
)
def test_what_gets_out_of_its_place_is_seen(kind: Kind, board: str, path: str, evil: str) -> None:
    """The judge of board files finds what a template that forgets would let through."""
    own = dataclasses.replace(load_board(board), title="pwned")
    files = project_files(kind, own, tiny_model.FACTS, tiny_model.sources())
    read_back(own, path, files[path])
    with pytest.raises((AssertionError, ValueError, configparser.Error, yaml.YAMLError)):
        read_back(own, path, files[path] + evil)
