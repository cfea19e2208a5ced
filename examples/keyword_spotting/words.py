# SPDX-License-Identifier: Apache-2.0
"""Words spoken by a small synthesiser: harmonics of a voice shaped by three formants, and noise in a band.

Each utterance has a speaker of its own (pitch, length of the vocal tract, speed, how clear the vowels are), a place in
the second that is recorded, a level, and background noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RATE = 16000
CLASSES = ("silence", "unknown", "yes", "no", "stop", "go")

Reals = npt.NDArray[np.float64]
Recording = npt.NDArray[np.int16]

# A control value every 5 ms; samples between two of them are interpolated.
STEP = RATE // 200
BANDWIDTHS = (70.0, 90.0, 140.0)
LOUDNESS = (1.0, 0.55, 0.3)


@dataclass(frozen=True)
class Phone:
    """A sound of speech: Hz of three formants, and of the middle and width of the noise; seconds."""

    seconds: float
    voice: float = 0.0
    formants: tuple[float, float, float] = (500.0, 1500.0, 2500.0)
    noise: float = 0.0
    middle: float = 4000.0
    width: float = 1000.0


def _vowel(seconds: float, *formants: float) -> Phone:
    return Phone(seconds, 1.0, (formants[0], formants[1], formants[2]))


def _hiss(seconds: float, loudness: float, middle: float, width: float) -> Phone:
    return Phone(seconds, noise=loudness, middle=middle, width=width)


PHONES = {
    "i": _vowel(0.14, 280, 2250, 2900),
    "I": _vowel(0.09, 400, 1950, 2550),
    "e": _vowel(0.14, 530, 1840, 2480),
    "a": _vowel(0.16, 730, 1100, 2450),
    "o": _vowel(0.14, 520, 880, 2400),
    "u": _vowel(0.12, 310, 870, 2250),
    "3": _vowel(0.16, 490, 1350, 1700),
    "j": Phone(0.06, 0.7, (270.0, 2300.0, 3000.0)),
    "w": Phone(0.07, 0.7, (300.0, 650.0, 2200.0)),
    "r": Phone(0.07, 0.6, (420.0, 1200.0, 1600.0)),
    "l": Phone(0.07, 0.6, (360.0, 1100.0, 2700.0)),
    "n": Phone(0.09, 0.4, (250.0, 1500.0, 2400.0)),
    "s": _hiss(0.13, 0.30, 6000, 1200),
    "f": _hiss(0.11, 0.12, 4500, 3000),
    "h": _hiss(0.07, 0.12, 1500, 1200),
    "t": _hiss(0.02, 0.60, 4500, 1500),
    "k": _hiss(0.025, 0.50, 2200, 700),
    "p": _hiss(0.02, 0.40, 900, 600),
    "g": Phone(0.03, 0.3, (300.0, 1900.0, 2300.0), 0.3, 2000.0, 600.0),
    "b": Phone(0.03, 0.3, (250.0, 900.0, 2200.0), 0.1, 800.0, 500.0),
    "d": Phone(0.03, 0.3, (250.0, 1700.0, 2600.0), 0.2, 3500.0, 1200.0),
    "_": Phone(0.05),
}

WORDS = {"yes": "jes", "no": "nou", "stop": "s_ta_p", "go": "gou"}
OTHERS = ("lef_t", "b3d", "haus", "_tri", "sI_ks", "wau", "_p3_p3", "ni")


def _tracks(word: str, rng: np.random.Generator) -> Reals:
    """The control values (7, steps): voice, three formants, noise, middle and width."""
    tract = rng.uniform(0.87, 1.18)
    speed = rng.uniform(0.85, 1.3)
    rows: list[Reals] = []
    for letter in word:
        phone = PHONES[letter]
        steps = max(2, round(phone.seconds * speed * rng.uniform(0.8, 1.2) * RATE / STEP))
        formants = np.array(phone.formants) * tract * rng.normal(1.0, 0.03, 3)
        row = np.array(
            [phone.voice, *formants, phone.noise * rng.uniform(0.7, 1.3), phone.middle * tract, phone.width]
        )
        rows += [row] * steps
    tracks = np.array(rows).T
    # Articulators are slow, the glottis and bursts are fast; at both ends the sound fades from and to nothing.
    slow = np.array([_smooth(track, 9) for track in tracks[1:4]])
    fast = np.array([_smooth(np.pad(track, 2), 3)[2:-2] for track in tracks[[0, 4]]])
    return np.array([fast[0], *slow, fast[1], tracks[5], tracks[6]])


def _smooth(track: Reals, length: int) -> Reals:
    """A running mean that keeps the ends."""
    padded = np.pad(track, length // 2, mode="edge")
    return np.convolve(padded, np.ones(length) / length, mode="valid")


def _voice(tracks: Reals, rng: np.random.Generator) -> Reals:
    """Harmonics of a gliding pitch, each as loud as the formants make it."""
    steps = tracks.shape[1]
    at, controls = np.arange(steps * STEP), np.arange(steps) * STEP
    base = np.exp(rng.uniform(np.log(95.0), np.log(240.0)))
    glide = 1.0 + np.linspace(rng.uniform(-0.05, 0.15), rng.uniform(-0.15, 0.05), steps)
    pitch = base * glide * (1.0 + 0.01 * rng.standard_normal(steps))
    phase = 2 * np.pi * np.cumsum(np.interp(at, controls, pitch)) / RATE
    tilt = rng.uniform(0.6, 1.1)
    # sin(n x) follows from the two before it.
    twice, previous, current = 2.0 * np.cos(phase), np.zeros(len(at)), np.sin(phase)
    sound = np.zeros(len(at))
    for n in range(1, int(4200.0 / base) + 1):
        distance = (n * pitch - tracks[1:4]) / np.array(BANDWIDTHS)[:, None]
        shape = np.array(LOUDNESS) @ (1.0 / np.sqrt(1.0 + distance**2))
        sound += np.interp(at, controls, tracks[0] * shape * n**-tilt) * current
        previous, current = current, twice * current - previous
    return sound


def _noise(tracks: Reals, rng: np.random.Generator) -> Reals:
    """Noise in a band, frame by frame, each fading into the next."""
    length = tracks.shape[1] * STEP
    spectra = np.fft.rfft(rng.standard_normal((tracks.shape[1], 2 * STEP)))
    hertz = np.fft.rfftfreq(2 * STEP, 1 / RATE)
    band = np.exp(-0.5 * ((hertz - tracks[5][:, None]) / tracks[6][:, None]) ** 2)
    pieces = np.fft.irfft(spectra * band * tracks[4][:, None]) * np.hanning(2 * STEP)
    sound = np.zeros(length + STEP)
    for i, piece in enumerate(pieces):
        sound[i * STEP : (i + 2) * STEP] += piece
    return sound[:length]


def _background(rng: np.random.Generator) -> Reals:
    """A second of a room: anything from white noise to a deep rumble, and sometimes mains hum. RMS 1."""
    spectrum = np.fft.rfft(rng.standard_normal(RATE))
    hertz = np.fft.rfftfreq(RATE, 1 / RATE)
    sound = np.fft.irfft(spectrum / np.maximum(hertz, 40.0) ** rng.uniform(0.0, 0.9))
    sound /= sound.std()
    if rng.random() < 0.3:
        time = np.arange(RATE) / RATE
        sound += rng.uniform(0.3, 1.0) * sum(
            np.sin(2 * np.pi * 50 * n * time + rng.uniform(0, 6)) / n for n in (1, 2, 3, 5)
        )
    return sound / sound.std()


def record(label: int, seed: int) -> Recording:
    """A second of sound, (16000,) int16, of the class `label`; the same for the same seed."""
    rng = np.random.default_rng([label, seed])
    noise = _background(rng)
    name = CLASSES[label]
    level = np.exp(rng.uniform(np.log(0.02), np.log(0.25)))
    if name == "silence":
        sound = noise * level * rng.uniform(0.005, 0.3)
    else:
        word = WORDS.get(name) or OTHERS[rng.integers(len(OTHERS))]
        tracks = _tracks(word, rng)
        spoken = _voice(tracks, rng) + _noise(tracks, rng)
        spoken *= level / spoken[np.abs(spoken) > 0.01].std()
        start = rng.integers(400, max(RATE - len(spoken) - 400, 401))
        sound = noise * level * 10 ** (-rng.uniform(5.0, 25.0) / 20)
        length = min(len(spoken), RATE - start)
        sound[start : start + length] += spoken[:length]
    return np.clip(np.rint(sound * 32767), -32768, 32767).astype(np.int16)


def recordings(each: int, seed: int) -> tuple[Recording, npt.NDArray[np.int64]]:
    """`each` seconds of sound of every class, (n, 16000), in turn, and their labels."""
    labels = np.tile(np.arange(len(CLASSES)), each)
    sounds = [record(int(label), seed + i) for i, label in enumerate(labels)]
    return np.stack(sounds), labels
