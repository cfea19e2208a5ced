# SPDX-License-Identifier: Apache-2.0
"""TFLM's custom operators on signals: each alone over several runs, a whole front end, and damaged options."""

from __future__ import annotations

import os
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.ops.emulated import require_emulator
from tests.ops.signalling import needs_tflm, numbers
from tests.oracle import tflm
from tests.tflite_files import Writer
from tinyet import from_tflite, generate
from tinyet.errors import RefusedError, UnsupportedShape
from tinyet.importers.tflite.flexbuffer import integers_of
from tinyet.ir import Array, DType
from tinyet.ops.signal_pcan import ENTRIES
from tinyet.oracles.tflite import run_tflm
from tinyet.tflite.options import AddOptions, DivOptions, MulOptions

Options = Mapping[str, int | bool]
S16, U32, F32 = DType.INT16, DType.UINT32, DType.FLOAT32
SMOOTHING: Options = {
    "smoothing": 409,
    "one_minus_smoothing": 15975,
    "alternate_smoothing": 983,
    "alternate_one_minus_smoothing": 15401,
    "min_signal_remaining": 819,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
    "clamping": False,
}
# Name in TFLM, options, constants by shape, the input, and the outputs.
ONE = [
    ("SignalWindow", {"shift": 12}, [(8,)], ((1, 8), S16), [((1, 8), "int16")]),
    ("SignalRfft", {"fft_length": 16, "T": 7}, [], ((12,), S16), [((18,), "int16")]),
    ("SignalRfft", {"fft_length": 10, "T": 0}, [], ((2, 10), F32), [((2, 12), "float32")]),
    ("SignalIrfft", {"fft_length": 12, "T": 7}, [], ((14,), S16), [((12,), "int16")]),
    ("SignalEnergy", {"start_index": 0, "end_index": 5}, [], ((10,), S16), [((5,), "uint32")]),
    ("SignalFftAutoScale", {}, [], ((6,), S16), [((6,), "int16"), ((), "int32")]),
    (
        "SignalFilterBankLog",
        {"output_scale": 64, "input_correction_bits": 3},
        [],
        ((7,), U32),
        [((7,), "int16")],
    ),
    (
        "SignalFilterBankSpectralSubtraction",
        {**SMOOTHING, "num_channels": 6},
        [],
        ((6,), U32),
        [((6,), "uint32"), ((6,), "uint32")],
    ),
    ("SignalDelay", {"delay_length": 5}, [], ((2, 4), S16), [((2, 4), "int16")]),
    (
        "SignalFramer",
        {"frame_size": 6, "frame_step": 2, "prefill": True},
        [],
        ((1, 4), S16),
        [((1, 2, 6), "int16"), ((), "bool")],
    ),
    (
        "SignalStacker",
        {"num_channels": 3, "stacker_left_context": 2, "stacker_right_context": 0, "stacker_step": 1},
        [],
        ((3,), S16),
        [((9,), "int16"), ((), "bool")],
    ),
    ("SignalOverlapAdd", {"T": 7, "frame_step": 3}, [], ((2, 5), S16), [((6,), "int16")]),
]


def of(found: object) -> list[Array]:
    return list(found) if isinstance(found, list | tuple) else [np.asarray(found)]


def same(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want).astype(np.asarray(got).dtype))


@needs_tflm
@pytest.mark.parametrize(
    ("name", "options", "held", "given", "outputs"), ONE, ids=lambda x: x if isinstance(x, str) else ""
)
def test_one(
    name: str,
    options: Options,
    held: Sequence[tuple[int, ...]],
    given: tuple[tuple[int, ...], DType],
    outputs: Sequence[tuple[tuple[int, ...], str]],
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(7)
    constants = [numbers(rng, shape, S16) for shape in held]
    runs = [[numbers(rng, *given)] for _ in range(6)]
    wanted = tflm.run_custom(name, options, constants, runs, outputs)
    path = tmp_path / "one.tflite"
    path.write_bytes(tflm.custom_model(name, options, constants, runs[0], outputs))
    session = from_tflite(path).session()
    for inputs, want in zip(runs, wanted, strict=True):
        same(of(session.run(*inputs)), want)


# ---------------------------------------------------------------- a front end

FRAME, LENGTH, CHANNELS = 30, 32, 4


class Front(Writer):
    """Writes custom operators by their names."""

    def custom(
        self, name: str, options: Options, inputs: Sequence[int], *outputs: tuple[tuple[int, ...], str]
    ) -> list[int]:
        made = [self.value(shape, kind, None) for shape, kind in outputs]
        data = bytes(flexbuffers.Dumps(dict(options)))
        self.call("CUSTOM", tuple(inputs), tuple(made), custom=name, custom_options=data)
        return made


def front_end() -> bytes:
    """As TFLM's micro_speech makes its features, but smaller: sound (1, 30) in int16 to 4 features in int8."""
    rng, w = np.random.default_rng(3), Front()

    def fixed(values: object, kind: type[np.generic] = np.int16) -> int:
        return w.constant(np.asarray(values, kind))

    x = w.value((1, FRAME), "int16", None)
    (framed,) = w.custom(
        "SignalWindow", {"shift": 12}, (x, fixed(rng.integers(0, 4096, FRAME))), ((1, FRAME), "int16")
    )
    flat = w.call("RESHAPE", (framed, fixed([-1], np.int32)), (w.value((FRAME,), "int16", None),))
    scaled, shift = w.custom("SignalFftAutoScale", {}, (flat,), ((FRAME,), "int16"), ((), "int32"))
    (spectrum,) = w.custom("SignalRfft", {"T": 7, "fft_length": LENGTH}, (scaled,), ((LENGTH + 2,), "int16"))
    count = LENGTH // 2 + 1
    (energy,) = w.custom(
        "SignalEnergy", {"start_index": 1, "end_index": 14}, (spectrum,), ((count,), "uint32")
    )
    signed = w.call("CAST", (energy,), (w.value((count,), "int32", None),))
    unsigned = w.call("CAST", (signed,), (w.value((count,), "uint32", None),))
    starts, widths = [1, 2, 4, 7, 9], [2, 2, 4, 3, 5]
    firsts = np.cumsum(widths) - widths
    total = sum(widths)
    weights = rng.integers(0, 4096, total)
    tables = [fixed(t) for t in (weights, 4096 - weights, starts, firsts, widths)]
    (bank,) = w.custom(
        "SignalFilterBank", {"num_channels": CHANNELS}, (unsigned, *tables), ((CHANNELS,), "uint64")
    )
    (roots,) = w.custom("SignalFilterBankSquareRoot", {}, (bank, shift), ((CHANNELS,), "uint32"))
    clean, noise = w.custom(
        "SignalFilterBankSpectralSubtraction",
        {**SMOOTHING, "num_channels": CHANNELS},
        (roots,),
        ((CHANNELS,), "uint32"),
        ((CHANNELS,), "uint32"),
    )
    gains = fixed(rng.integers(0, 32768, ENTRIES))
    (gained,) = w.custom("SignalPCAN", {"snr_shift": 6}, (clean, noise, gains), ((CHANNELS,), "uint32"))
    log: Options = {"output_scale": 64, "input_correction_bits": 3}
    (loud,) = w.custom("SignalFilterBankLog", log, (gained,), ((CHANNELS,), "int16"))

    def whole() -> int:
        return w.value((CHANNELS,), "int32", None)

    y = w.call("CAST", (loud,), (whole(),))
    for code, number, options in (
        ("MUL", 256, MulOptions()),
        ("ADD", 333, AddOptions()),
        ("DIV", 666, DivOptions()),
        ("ADD", -128, AddOptions()),
        ("MINIMUM", 127, None),
        ("MAXIMUM", -128, None),
    ):
        y = w.call(code, (y, fixed(number, np.int32)), (whole(),), options)
    y = w.call("CAST", (y,), (w.value((CHANNELS,), "int8", None),))
    return w.file((x,), (y,))


def sounds(count: int) -> list[Array]:
    rng = np.random.default_rng(5)
    return [np.asarray(numbers(rng, (1, FRAME), S16) >> np.int16(i % 12)) for i in range(count)]


@needs_tflm
def test_front_end(tmp_path: Path) -> None:
    path = tmp_path / "front.tflite"
    path.write_bytes(front_end())
    program, runs = from_tflite(path), sounds(40)
    session, found = program.session(), []
    for x, want in zip(runs, run_tflm(path, [[x] for x in runs]), strict=True):
        found += of(session.run(x))
        same(found[-1:], want)
    assert len(np.unique(found)) > 20, "features that differ"


@pytest.mark.emulated
@pytest.mark.parametrize("on", ["host", "qemu"])
def test_front_end_on_device(on: str, tmp_path: Path) -> None:
    """The noise goes on from run to run."""
    require_emulator()
    path = tmp_path / "front.tflite"
    path.write_bytes(front_end())
    project = generate(from_tflite(path), "mps2_an386", tmp_path / "project")
    if on == "qemu":
        project.build()
    assert project.validate(np.concatenate(sounds(30)), on=on).bit_exact


@needs_tflm
@pytest.mark.parametrize("name", ["audio_preprocessor_int8.tflite", "audio_preprocessor_float.tflite"])
def test_preprocessor(name: str) -> None:
    """TFLM's own files, on what sound lies beside them and on noise."""
    folder = os.environ.get("TINYET_TFLITE_DIR")
    path = next(iter(Path(folder).rglob(name)), None) if folder else None
    if folder is None or path is None:
        pytest.skip(f"TINYET_TFLITE_DIR has no {name}")
    rng = np.random.default_rng(1)
    runs = [numbers(rng, (1, 480), S16) for _ in range(30)]
    for file in sorted(Path(folder).rglob("*_1000ms.wav")):
        with wave.open(str(file)) as sound:
            heard = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
        runs += [heard[None, at : at + 480] for at in range(0, len(heard) - 480, 320)]
    session = from_tflite(path).session()
    for x, want in zip(runs, run_tflm(path, [[x] for x in runs]), strict=True):
        same(of(session.run(x)), want)


# ---------------------------------------------------------------- what is refused


def test_options() -> None:
    data = bytes(flexbuffers.Dumps({"a": 1, "b": True, "c": "text", "d": 2**40}))
    assert integers_of(data, ["a", "b"]) == {"a": 1, "b": 1}
    with pytest.raises(RefusedError, match="no option c, d, e that"):
        integers_of(data, ["a", "c", "d", "e"])
    with pytest.raises(RefusedError, match="by name"):
        integers_of(bytes(flexbuffers.Dumps([1, 2])), ["a"])


def test_damaged_options() -> None:
    """Whatever the bytes are, numbers or a refusal."""
    data, rng = bytes(flexbuffers.Dumps({"shift": 12, "other": [1, {"a": 2}]})), np.random.default_rng(0)
    for length in range(len(data)):
        with pytest.raises(RefusedError):
            integers_of(data[:length], ["shift", "missing"])
    for _ in range(500):
        mutant = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            mutant[place] = rng.integers(0, 256)
        with pytest.raises(RefusedError):
            integers_of(bytes(mutant), ["shift", "missing"])


def test_frames_must_overlap(tmp_path: Path) -> None:
    path, x = tmp_path / "one.tflite", np.zeros((1, 4), np.int16)
    options: Options = {"frame_size": 2, "frame_step": 2, "prefill": False}
    outputs = [((1, 2, 2), "int16"), ((), "bool")]
    path.write_bytes(tflm.custom_model("SignalFramer", options, [], [x], outputs))
    with pytest.raises(UnsupportedShape, match="do not overlap"):
        from_tflite(path)
