# SPDX-License-Identifier: Apache-2.0
"""The keyword spotter's front end: C on this machine and on emulated boards = the reference in numpy, to the last bit;
and both near to the same coefficients in float64."""

from __future__ import annotations

import shutil
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.examples.loading import EXAMPLES, load
from tests.ops.emulated import require_emulator
from tinyet import assets
from tinyet.boards import load_board
from tinyet.build import process
from tinyet.build.gcc import build_firmware
from tinyet.device import qemu
from tinyet.device.child import Child
from tinyet.device.links import Link, PipeLink
from tinyet.errors import ToolchainError

Samples = npt.NDArray[np.int16]

SOURCE = EXAMPLES / "keyword_spotting" / "mfcc.c"
MAIN = Path(__file__).with_name("mfcc_main.c")
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror")
# Steps of 2^-7 that a coefficient may be off: half a one by its own rounding, the rest by all that went before.
# Full-scale tones and clicks leave next to nothing in most bands, which shows more.
TOLERANCE, TOLERANCE_ARTIFICIAL = 1.5, 2.5

reference = load("keyword_spotting/mfcc.py")
words = load("keyword_spotting/words.py")
gallery = load("gallery.py")


def artificial() -> dict[str, Samples]:
    """Buffers that speech does not come near to, the largest and the smallest numbers among them."""
    rng = np.random.default_rng(1)
    at = np.arange(reference.SAMPLES)
    wave = np.sin(2 * np.pi * 440.0 / reference.RATE * at)
    lowest, highest = -32768, 32767
    sounds: dict[str, npt.NDArray[Any]] = {
        "zeros": 0 * at,
        "lowest": lowest + 0 * at,
        "highest": highest + 0 * at,
        "square": np.where(wave > 0, highest, lowest),
        "alternating": np.where(at % 2, highest, lowest),
        "fours": np.where(at % 4 < 2, highest, lowest),
        "impulses": np.where(at % 400 == 7, lowest, 0),
        "least": rng.integers(-1, 2, len(at)),
        "loudest": np.where(rng.random(len(at)) < 0.5, highest, lowest),
        "tone": np.rint(20000 * np.sin(2 * np.pi * 1000.0 / reference.RATE * at)),
        "chirp": np.rint(32767 * np.sin(np.pi * 0.5 * at**2 / len(at))),
        "ramp": at % 65536 + lowest,
    }
    return {name: sound.astype(np.int16) for name, sound in sounds.items()}


def drawn() -> Samples:
    """Noise of every loudness."""
    rng = np.random.default_rng(2)
    levels = np.geomspace(1, 20000, 8)[:, None]
    noise = levels * rng.standard_normal((8, reference.SAMPLES))
    return np.clip(np.rint(noise), -32768, 32767).astype(np.int16)


@cache
def buffers() -> Samples:
    """32 seconds of sound: artificial, noise, and two of each class of the words."""
    return np.concatenate([np.stack(list(artificial().values())), drawn(), words.recordings(2, 500_000)[0]])


def prepare(folder: Path, sounds: Samples, tables: str = "") -> None:
    """The headers that the C includes; `tables` is the text of mfcc_tables.h, the reference's own by default."""
    shutil.copy(SOURCE.with_suffix(".h"), folder)
    (folder / "mfcc_tables.h").write_text(tables or reference.tables())
    rows = gallery.c_array(sounds)
    (folder / "sounds.h").write_text(f"static const int16_t sounds[][MFCC_SAMPLES] = {rows};\n")


def read(link: Link, count: int, seconds: float) -> npt.NDArray[np.int16]:
    """The cepstra (count, 49, 13) of as many buffers."""
    deadline, got = time.monotonic() + seconds, b""
    try:
        while len(got) < 2 * count * reference.FRAMES * reference.CEPSTRA:
            got += link.read(deadline)
    finally:
        link.close()
    return np.frombuffer(got, np.int16).reshape(count, reference.FRAMES, reference.CEPSTRA)


def on_host(folder: Path, count: int) -> npt.NDArray[np.int16]:
    """Compiled for this machine under sanitizers, which stop at the first overflow."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    firmware = assets.path("firmware")
    process.run(
        [
            *("gcc", "-std=c11", "-O1", "-g", *STRICT),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
            *(f"-I{path}" for path in (firmware / "include", folder)),
            *(SOURCE, MAIN, firmware / "platform" / "tinyet_posix.c", "-o", folder / "front_end"),
        ],
        timeout=120.0,
        what="building the front end for this machine",
    )
    return read(PipeLink(Child([str(folder / "front_end")], pipes=True)), count, 60.0)


def assert_equal(got: npt.NDArray[np.int16], sounds: Samples) -> None:
    wanted = reference.mfcc(sounds)
    different = np.argwhere(got != wanted)
    assert len(different) == 0, (
        f"{len(different)} differ, first at (buffer, frame, coefficient) {different[0]}"
    )


def test_there_are_buffers_enough() -> None:
    sounds = buffers()
    assert sounds.shape == (32, reference.SAMPLES)
    # Three constants and what lies above all bands are silence; nothing else is the same.
    assert len(np.unique(reference.mfcc(sounds).reshape(32, -1), axis=0)) == 29


def test_the_host_computes_what_the_reference_computes(tmp_path: Path) -> None:
    prepare(tmp_path, buffers())
    assert_equal(on_host(tmp_path, len(buffers())), buffers())


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("board_name", "step"), [("mps2_an386", 1), ("nrf51_dk", 6), ("mps2_an385", 6), ("mps3_an547", 6)]
)
def test_a_board_computes_what_the_reference_computes(board_name: str, step: int, tmp_path: Path) -> None:
    """Cortex-M4 with all buffers; M0, whose 64-bit products are library calls, M3 and M55 with every sixth."""
    require_emulator()
    board = load_board(board_name)
    sounds = buffers()[::step]
    prepare(tmp_path, sounds)
    flags = ("-O2", "-g1", *STRICT)
    elf = build_firmware(board, [SOURCE, MAIN], [tmp_path], tmp_path / "out", harness=False, flags=flags)
    assert_equal(read(qemu.start(board, elf), len(sounds), 120.0), sounds)


def test_a_mistake_is_found(tmp_path: Path) -> None:
    """One entry of one table wrong by one: the comparison sees it."""
    sounds, value = buffers()[-4:], int(reference.DCT[1][3])
    text = reference.tables()
    assert f" {value}," in text
    prepare(tmp_path, sounds, text.replace(f" {value},", f" {value + 1},", 1))
    got = on_host(tmp_path, len(sounds))
    with pytest.raises(AssertionError, match="differ"):
        assert_equal(got, sounds)


@pytest.mark.parametrize("constant", ["MFCC_FRAME != 512", "MFCC_BANDS != 32", "MFCC_CEPSTRA != 13"])
def test_tables_of_other_sizes_are_refused(constant: str, tmp_path: Path) -> None:
    text = reference.tables()
    assert constant in text
    prepare(tmp_path, buffers()[:1], text.replace(constant, f"{constant}0"))
    with pytest.raises(ToolchainError, match=r"mfcc\.h and mfcc\.py have different constants"):
        on_host(tmp_path, 1)


def test_it_is_near_to_float64() -> None:
    """A coefficient of noise or speech, loud or quiet, is off by less than 0.012; on average, by a quarter step."""
    error = np.abs(reference.mfcc(buffers()) - reference.exact(buffers()) * 2**reference.FRACTION)
    natural, strange = error[len(artificial()) :], error[: len(artificial())]
    assert natural.max() < TOLERANCE
    assert strange.max() < TOLERANCE_ARTIFICIAL
    assert natural.mean() < 0.3


def test_the_exact_one_is_a_mfcc() -> None:
    """Properties that hold for any: of a level, of time, and of where a tone lies."""
    sound = drawn()[6].astype(np.float64)
    louder = reference.exact(np.rint(sound * 0.5)) - reference.exact(np.rint(sound * 0.25))
    # Twice the amplitude is four times the energy in all bands: the mean of logarithms moves, their shape does not.
    assert louder[:, 0] == pytest.approx(np.log(4) * np.sqrt(reference.BANDS), abs=0.02)
    assert np.abs(louder[:, 1:]).max() < 0.05
    shifted = reference.exact(np.roll(sound, -reference.HOP))
    np.testing.assert_allclose(shifted[:-2], reference.exact(sound)[1:-1], atol=1e-9)
    low, high = (
        reference.exact(
            np.rint(8000 * np.sin(2 * np.pi * f / reference.RATE * np.arange(reference.SAMPLES)))
        )[5, 1]
        for f in (300, 5000)
    )
    assert low > 5 > -5 > high
