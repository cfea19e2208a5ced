# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share, and how their text is read.

An option has the name of the parameter in Python: `--float-io` is float_io. One that may be given several times has the
singular of that name: `--pin` is pins.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from tinyet.anomaly import FALSE_ALARMS
from tinyet.errors import UsageError
from tinyet.errors.arguments import place_given
from tinyet.files.reading import read_bounded
from tinyet.pages.pictures import PICTURES
from tinyet.planning.places import ARENA, AUTO, STATE, WEIGHTS
from tinyet.tflite import Runtime

if TYPE_CHECKING:
    from tinyet.delegates import Delegate
    from tinyet.opening import ModelOptions

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20}
_LABEL_BYTES = 1 << 20


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
    """The delegates of `--delegates a,b`; None, which means the usual ones, without."""
    if names is None:
        if require:
            raise UsageError(
                "--require-delegate needs --delegates", hint="--delegates cmsis_nn --require-delegate"
            )
        return None
    from tinyet.delegates import delegates_named

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


def place_of(texts: Sequence[str] | None) -> dict[str, str]:
    """What is placed by `--place object=memory`; `--place auto` leaves all to the estimate."""
    found = dict[str, str]()
    for text in texts or ():
        if text == AUTO:
            found |= dict.fromkeys((ARENA, STATE, WEIGHTS), AUTO)
            continue
        what, equals, memory = text.partition("=")
        if not (what and equals and memory):
            raise UsageError(
                f"--place {text} names no object and memory",
                hint="--place arena=dtcm, --place weights=auto, or --place auto",
            )
        found[what] = memory
    return found


def pictures_of(texts: Sequence[str] | None) -> dict[str, Path]:
    """Files by picture, of `--svg arena=FILE`. Raises UsageError for what is no picture."""
    found = {}
    for text in texts or ():
        picture, equals, file = text.partition("=")
        if not (equals and file) or picture not in PICTURES:
            hint = " or ".join(f"--svg {name}={name}.svg" for name in PICTURES)
            raise UsageError(f"--svg {text} names no picture and file", hint=hint)
        found[picture] = Path(file)
    return found


def labels_in(path: Path | None) -> list[str] | None:
    """The names of the classes in a text file, one a line."""
    if path is None:
        return None
    try:
        text = read_bounded(path, _LABEL_BYTES).decode()
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"the labels cannot be read: {error}", str(path), "a text file, one name a line"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def place_to_run(text: str) -> str:
    """One of the places that `validate` can run on."""
    try:
        return place_given(text)
    except UsageError as error:
        raise typer.BadParameter(error.what) from error


def runtime_of(text: str) -> Runtime:
    """Whose kernels `--runtime` names."""
    known: dict[str, Runtime] = {each: each for each in get_args(Runtime)}
    if text not in known:
        raise UsageError(f"--runtime {text} is not known", hint=f"--runtime {' or '.join(known)}")
    return known[text]


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="file.py, file.py:factory, a saved .pt2, a .tflite, an .onnx, or a .tet program"
    ),
]


Directory = Annotated[Path, typer.Argument(metavar="DIR", help="a project that `tinyet generate` made")]


HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="write the report as a page to look at, too: one file, for any browser"
    ),
]


Svg = Annotated[
    list[str] | None,
    typer.Option(
        "--svg",
        metavar="PICTURE=FILE",
        help="write a single picture, too: arena=FILE.svg, or layers=FILE.svg; may be given several times",
    ),
]


BoardOption = Annotated[
    str, typer.Option("--board", help="a name (see `tinyet boards`), or your own board's .toml file")
]


DelegateNames = Annotated[
    str | None,
    typer.Option(
        "--delegates",
        metavar="NAMES",
        help="delegates to ask for kernels, in this order, as in cmsis_nn,portable (see `tinyet delegates`)",
    ),
]


Optimize = Annotated[
    str | None,
    typer.Option(
        "--optimize",
        metavar="FOR",
        help="aim of the choice of kernels: speed, size (up to five percent of time for one of flash), or balanced, "
        "the default; for a project its own",
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
        help="stack for callers of an inference and for interrupts, by default 1K; the inference's own is added",
    ),
]


Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="LAYER=KERNEL",
        help="the kernel of a layer, by names as in `analyze`; may be repeated",
    ),
]


Place = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="NAME=MEMORY",
        help="put the arena, the state, the weights or those of a layer into a memory of the board; arena=ONE+OTHER: "
        "the arena in two, as much in the first as it has room for; NAME=arena: weights are copied ahead of their "
        "layer; auto: by the estimate of accesses; may be repeated",
    ),
]


RequireDelegate = Annotated[
    bool,
    typer.Option(
        "--require-delegate", help="fail when a layer would go to a delegate that --delegates does not name"
    ),
]


Buffers = Annotated[
    str | None,
    typer.Option(
        "--buffers",
        metavar="WHERE",
        help="inputs and outputs lie in the arena, or with the caller, who gives each run their buffers: arena, caller",
    ),
]


InputRows = Annotated[
    bool,
    typer.Option(
        "--input-rows", help="the model takes its input row by row, and never holds the whole of it"
    ),
]


MaxSamples = Annotated[
    int | None, typer.Option("--max-samples", min=1, metavar="N", help="run no more samples than this")
]


SaveEvaluation = Annotated[
    Path | None,
    typer.Option(
        "--save-evaluation",
        metavar="NPZ",
        help="write the model's evaluation() data, too, for `generate --evaluation`: a .tet holds no data",
    ),
]


JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="write the report as JSON, too; - prints only that"),
]


@dataclass(frozen=True)
class ModelFlags:
    """How a program is made of MODEL: the options of every command that takes one. The names are those of
    `opening.ModelOptions`; arguments without a form on a command line (quantizer, progress) are not among them, nor
    those of a board."""

    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration", metavar="NPZ", help="typical inputs, instead of the model's calibration()"
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="prefix of the C functions; by default of the file, the class or the folder"
        ),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="TXT", help="names of the classes, one a line, instead of the model's labels"
        ),
    ] = None
    channels_last: Annotated[
        bool,
        typer.Option("--channels-last", help="images are (N, H, W, C) at the boundary, not (N, C, H, W)"),
    ] = False
    float_io: Annotated[
        bool, typer.Option("--float-io", help="float32 inputs and outputs around the integers")
    ] = False
    equalize: Annotated[bool, typer.Option("--equalize", help="balance channels between layers")] = False
    correct_bias: Annotated[bool, typer.Option("--correct-bias", help="correct the mean error in biases")] = (
        False
    )
    learn_rounding: Annotated[
        bool, typer.Option("--learn-rounding", help="round weights as their layer's output wants them; slow")
    ] = False
    prune: Annotated[
        bool,
        typer.Option("--prune/--no-prune", help="remove channels that are constant or unread"),
    ] = True
    stateful: Annotated[
        bool,
        typer.Option("--stateful", help="recurrent layers continue from the previous run"),
    ] = False
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="fail when a layer computes in float unasked, or when the integers' answers are not the model's",
        ),
    ] = False
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            metavar="NAME",
            help="of a .tflite: the arithmetic to follow, tflm or litert",
        ),
    ] = "tflm"
    signature: Annotated[
        str | None,
        typer.Option("--signature", metavar="KEY", help="of a .tflite: which of its signatures"),
    ] = None
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="of a quantized .onnx: refuse nodes that may differ from ONNX Runtime by a last bit",
        ),
    ] = False
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="of a classical model: what its outputs are, with commas between: predict, predict_proba, "
            "decision_function, score_samples, transform",
        ),
    ] = None
    input_dtype: Annotated[
        str,
        typer.Option(
            "--input-dtype", metavar="TYPE", help="of a classical model's features: float32, int16 or int8"
        ),
    ] = "float32"
    input_scale: Annotated[
        float,
        typer.Option("--input-scale", metavar="SCALE", help="what a step of integer features stands for"),
    ] = 1.0
    input_zero_point: Annotated[
        int, typer.Option("--input-zero-point", metavar="Q", help="the integer feature that stands for 0")
    ] = 0
    missing_values: Annotated[
        bool, typer.Option("--missing-values", help="a classical model's features may be NaN")
    ] = False
    leaf_dtype: Annotated[
        str,
        typer.Option(
            "--leaf-dtype", metavar="TYPE", help="of what trees add up: float32, or int16, without any float"
        ),
    ] = "float32"
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="of a .joblib or .pkl: run the code in it, for it is your own"),
    ] = False
    flag: Annotated[
        Path | None,
        typer.Option(
            "--flag",
            metavar="FILE",
            help="samples (.npz), maybe with labels 0 and 1: one more output says whether the last, a score, is above "
            "a threshold chosen on them",
        ),
    ] = None
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms", metavar="SHARE", help="of the samples of --flag, that are flagged at most"
        ),
    ] = FALSE_ALARMS
    drift: Annotated[
        Path | None,
        typer.Option(
            "--drift",
            metavar="FILE",
            help="samples (.npz): one more output says how far an input is from them",
        ),
    ] = None
    streaming: Annotated[
        int | None,
        typer.Option(
            "--streaming",
            metavar="AXIS",
            help="this axis of the inputs is time: the program takes the newest frames only; of a .tet, too",
        ),
    ] = None
    hop: Annotated[
        int | None, typer.Option("--hop", metavar="FRAMES", help="with --streaming: frames of a run")
    ] = None
    edges: Annotated[
        str,
        typer.Option(
            "--edges",
            metavar="WORD",
            help="with --streaming: exact, or continue to have frames in the place of padding in time",
        ),
    ] = "exact"
    dump: Annotated[
        Path | None,
        typer.Option("--dump", metavar="DIR", help="write the graph as text after each pass"),
    ] = None

    def options(self, **more: Any) -> ModelOptions:
        """The same in the form of `opening.read`; more: a command's further options."""
        from tinyet.opening import ModelOptions

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given |= {"labels": labels_in(self.labels), "runtime": runtime_of(self.runtime)}
        if self.methods is not None:
            given["methods"] = tuple(word.strip() for word in self.methods.split(",") if word.strip())
        return ModelOptions(**{**given, **more})


def takes_model(*only: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For a command whose last parameter is `flags: ModelFlags`: all options of ModelFlags, or only those named, are
    shown and read in its place."""
    hints = get_type_hints(ModelFlags, include_extras=True)
    wanted = [field for field in fields(ModelFlags) if not only or field.name in only]

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True).parameters
        taken = [
            field for field in wanted if field.name not in own
        ]  # a command may mean an option in its own way
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [p.replace(kind=keyword) for p in own.values() if p.name != "flags"]
        parameters += [
            inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name]) for f in taken
        ]

        def with_flags(**given: Any) -> Any:
            flags = ModelFlags(**{field.name: given.pop(field.name) for field in taken})
            return command(**given, flags=flags)

        with_flags.__doc__ = command.__doc__
        with_flags.__name__ = command.__name__
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_flags

    return decorated
