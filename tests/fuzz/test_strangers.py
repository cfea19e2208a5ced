# SPDX-License-Identifier: Apache-2.0
"""Some thousands of mutants of board files, .npz files, manifests and harness frames: none of them fails, and they are
neither all refused nor all taken. `python -m tests.fuzz` makes any number of others."""

from __future__ import annotations

import configparser
import dataclasses
from collections.abc import Callable

import pytest
import yaml

from tests import tiny_model
from tests.fuzz.board import BoardFiles, read_back
from tests.fuzz.foreign import ForeignFiles
from tests.fuzz.frames import Frames
from tests.fuzz.manifest import Manifests
from tests.fuzz.npz import NpzFiles
from tests.fuzz.run import Outcome, Target, run_here, table
from tests.fuzz.tflite import TfliteFiles
from tinyet.boards import load_board
from tinyet.emit.kinds import Kind
from tinyet.emit.project import project_files

SEED = 1


@pytest.mark.parametrize(
    ("make", "mutants"),
    [
        (BoardFiles, 1000),
        (NpzFiles, 3000),
        (ForeignFiles, 2000),
        (Manifests, 150),
        (Frames, 800),
        (TfliteFiles, 1500),
    ],
)
def test_no_mutant_fails(make: Callable[[], Target], mutants: int) -> None:
    target = make()
    tally = run_here(target, SEED, range(mutants))
    assert tally.failures == [], table(target.name, tally)
    # A pickle is so dense that few changes of it leave one that is right.
    assert tally.outcomes[Outcome.EXACT] >= mutants // 60, table(target.name, tally)
    assert tally.outcomes[Outcome.REFUSED] >= mutants // 3, table(target.name, tally)


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
