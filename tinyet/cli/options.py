# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from tinyet.delegates import Delegate, delegates_named
from tinyet.errors import UsageError
from tinyet.errors.arguments import place_given
from tinyet.importers.tflite.context import Rounding

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20}


def size_in_bytes(text: str | int) -> int:
    """`65536`, `64k`, `64K`, `64KiB`, `1.5M`: bytes, K = 1024, M = 1024 K."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([km])(?:i?b)?)?", text.strip().lower())
    size = float(match[1]) * _FACTORS[match[2] or ""] if match else 0.0
    if size < 1 or size != int(size):
        raise typer.BadParameter(f"{text!r} is not a size; write 65536, 64K or 1.5M")
    return int(size)


def delegates_of(names: str | None, require: bool) -> tuple[Delegate, ...] | None:
    """The delegates of `--delegate a,b`; None, which means the usual ones, without."""
    if names is None:
        if require:
            raise UsageError(
                "--require-delegate needs --delegate", hint="--delegate cmsis_nn --require-delegate"
            )
        return None
    return delegates_named([name.strip() for name in names.split(",") if name.strip()])


def pins_of(texts: Sequence[str] | None) -> dict[str, str]:
    """The pins of `--pin layer=kernel`."""
    found = {}
    for text in texts or ():
        layer, equals, kernel = text.partition("=")
        if not (layer and equals and kernel):
            raise UsageError(f"--pin {text} names no layer and kernel", hint="--pin conv1=tinyet_conv2d_s8")
        found[layer] = kernel
    return found


def place_to_run(text: str) -> str:
    """One of the places that `validate` can run on."""
    try:
        return place_given(text)
    except UsageError as error:
        raise typer.BadParameter(error.what) from error


def rounding_of(text: str) -> Rounding:
    """Whose arithmetic `--rounding` names."""
    known: dict[str, Rounding] = {each: each for each in get_args(Rounding)}
    if text not in known:
        raise UsageError(f"--rounding {text} is not known", hint=f"--rounding {' or '.join(known)}")
    return known[text]


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="file.py, file.py:factory, a saved .pt2, a .tflite, or a .tet program"
    ),
]


Directory = Annotated[Path, typer.Argument(metavar="DIR", help="a project that `tinyet generate` made")]


BoardOption = Annotated[
    str, typer.Option("--board", help="a name (see `tinyet boards`), or your own board's .toml file")
]


Calibration = Annotated[
    Path | None,
    typer.Option("--calibration", metavar="NPZ", help="typical inputs, instead of the model's calibration()"),
]


Name = Annotated[
    str | None, typer.Option("--name", help="prefix of the C functions; by default the file's name")
]


Strict = Annotated[bool, typer.Option("--strict", help="fail when a layer computes in float unasked")]


FloatIo = Annotated[bool, typer.Option("--float-io", help="float32 inputs and outputs around the integers")]


ChannelsLast = Annotated[
    bool, typer.Option("--channels-last", help="images are (N, H, W, C) at the boundary, not (N, C, H, W)")
]


DumpIr = Annotated[
    Path | None, typer.Option("--dump-ir", metavar="DIR", help="write the graph as text after each pass")
]


RoundingOption = Annotated[
    str,
    typer.Option(
        "--rounding",
        metavar="WHOSE",
        help="of a .tflite: whose arithmetic where they differ, tflm or litert",
    ),
]


SignatureOption = Annotated[
    str | None, typer.Option("--signature", metavar="KEY", help="of a .tflite: which of its signatures")
]


DelegateNames = Annotated[
    str | None,
    typer.Option(
        "--delegate",
        metavar="NAMES",
        help="who is asked for kernels, in this order, as in cmsis_nn,portable (see `tinyet delegates`)",
    ),
]


OptimizeFor = Annotated[
    str,
    typer.Option(
        "--optimize",
        metavar="FOR",
        help="what kernels are chosen for: speed, balanced, or size, up to ten percent of time for one of flash",
    ),
]


OptimizeAgain = Annotated[
    str | None,
    typer.Option(
        "--optimize", metavar="FOR", help="speed, balanced or size; by default the project's own, or balanced"
    ),
]


MaxRam = Annotated[
    Any,
    typer.Option(
        "--max-ram", parser=size_in_bytes, metavar="BYTES", help="limit for data and stack, as in 64K"
    ),
]


MaxFlash = Annotated[
    Any,
    typer.Option(
        "--max-flash", parser=size_in_bytes, metavar="BYTES", help="limit for code and weights, as in 1M"
    ),
]


CallerStack = Annotated[
    Any,
    typer.Option(
        "--stack",
        parser=size_in_bytes,
        metavar="BYTES",
        help="stack for who calls an inference and for interrupts, by default 1K; what an inference takes is added",
    ),
]


Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="LAYER=KERNEL",
        help="the kernel of a layer, by the names that `analyze` has; again for others",
    ),
]


RequireDelegate = Annotated[
    bool,
    typer.Option(
        "--require-delegate", help="fail when a layer would go to a delegate that --delegate does not name"
    ),
]


SaveEvaluation = Annotated[
    Path | None,
    typer.Option(
        "--save-evaluation",
        metavar="NPZ",
        help="write what the model's evaluation() gives, too, for `generate --evaluation`: a .tet holds no data",
    ),
]


JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="write the report as JSON, too; - prints only that"),
]
