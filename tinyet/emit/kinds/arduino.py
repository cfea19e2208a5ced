# SPDX-License-Identifier: Apache-2.0
"""An Arduino library, which the IDE installs from a .zip file, with sketches as its examples. It is a folder of its
own in the project, so that tinyet's other files stay out of the sketchbook.

<Name>/src/<Name>.h          what a sketch includes; <Name>Tflm.h: one that was written for TensorFlow Lite Micro
<Name>/src/<name>/           the model and the kernels it uses
<Name>/examples/Run<Name>/   a sketch: one run on an embedded sample, then whatever the user's sensor gives
<Name>/examples/Harness/     a sketch that serves the model to a host

The IDE compiles all of src/ and gives no flags of a library's own to the compiler. So the harness's sketch compiles
the model's one C file again, with the trace hooks; the linker takes it in place of the library's, which stays in its
archive. The kernels are the library's own objects, so the proof covers them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tinyet.assets.templating import render
from tinyet.boards import Board
from tinyet.delegates import PORTABLE
from tinyet.delegates.delegate import own_files
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.kind import ProjectKind
from tinyet.emit.kinds.tree import (
    TFLM_COMMON,
    Tree,
    basename,
    context_of,
    firmware,
    model_files,
    sample_files,
    template_text,
    tflm_header,
)
from tinyet.errors import InternalError

# The Arduino tools accept names of at most this length.
_LONGEST_NAME = 63
_HARNESS = "examples/Harness"
_HARNESS_HEADERS = (
    *("include/tinyet_frames.h", "include/tinyet_harness.h", "include/tinyet_platform.h"),
    "platform/tinyet_arduino.h",
)


def refusal(board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None."""
    return None if board.arduino else "its file has no [arduino] table with the board's name there"


def library_name(model: str) -> str:
    """The library's name, and that of its header: KeywordSpottingModel for keyword_spotting.

    A name of the model's own alone could be that of another header, on file systems that take upper and lower case for
    the same: Math.h, Wire.h. Only libraries of Arduino's may have "Arduino" in their names.
    """
    parts = re.sub("arduino", "", model, flags=re.IGNORECASE).split("_")
    camel = "".join(part[:1].upper() + part[1:] for part in parts)
    return camel.removesuffix("Model")[: _LONGEST_NAME - len("RunModel")] + "Model"


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    if board.arduino is None:
        raise InternalError(f"the board {board.name} has no name in Arduino")
    library = library_name(facts.name)
    run = f"examples/Run{library}"
    context = context_of(board, facts, model_sources) | {
        "library": library,
        "fqbn": board.arduino.fqbn,
        "core": board.arduino.core,
        "architectures": _architectures(board.arduino.architecture, facts, model_sources),
        "licences": sorted(path for path in model_sources if basename(path) == "LICENSE"),
        "model_include": f"<{library}.h>",
    }
    common = own_files(["tinyet_common.h"], [])
    inside = (
        model_files(f"src/{facts.name}", model_sources)
        | {f"{_HARNESS}/{name}": text for name, text in common.items()}
        | {f"{_HARNESS}/{basename(path)}": firmware(path) for path in _HARNESS_HEADERS}
        | {
            "LICENSE": template_text("common/LICENSE"),
            "README.md": render("project/arduino/README.md.j2", context),
            "keywords.txt": "\n".join(
                render("project/arduino/keywords.txt.j2", {**context, "facts": part}) for part in facts.parts
            ),
            "library.properties": render("project/arduino/library.properties.j2", context),
            f"src/{library}.h": render("project/arduino/library.h.j2", context),
            **_sketch(run, library, facts, context),
            **sample_files(run, context, "arduino"),
            f"{_HARNESS}/Harness.ino": render("project/arduino/harness.ino.j2", context),
            f"{_HARNESS}/model_desc.c": render("project/common/model_desc.c.j2", context),
            **{
                f"{_HARNESS}/traced_model{part.suffix}.c": render(
                    "project/arduino/traced_model.c.j2", {**context, "part": part}
                )
                for part in facts.parts
            },
            f"{_HARNESS}/tinyet_harness.c": _with("TINYET_TRACE", "1", firmware("harness/tinyet_harness.c")),
            f"{_HARNESS}/tinyet_arduino.cpp": _with(
                "TINYET_ARDUINO_BAUD", f"{board.baud}ul", firmware("platform/tinyet_arduino.cpp")
            ),
        }
    )
    if context["tflm_header"]:
        inside[f"src/{library}Tflm.h"] = render("project/arduino/library_tflm.h.j2", context)
    files = {f"{library}/{path}": text for path, text in inside.items()} | {".gitignore": "/build/\n/*.zip\n"}
    yours = tuple(f"{library}/{path}" for path in (f"{run}/Run{library}.ino", "library.properties"))
    return Tree(files, f"{library}/src", f"{library}/{_HARNESS}/model_desc.c", yours)


def _sketch(run: str, library: str, facts: ModelFacts, context: Mapping[str, object]) -> dict[str, str]:
    """The sketch that runs the model, or the models one after another, on samples."""
    if facts.models:
        several = {**context, "sample_in_progmem": True}
        return {f"{run}/Run{library}.ino": render("project/platformio/arduino/main.cpp.j2", several)}
    return {
        f"{run}/Run{library}.ino": render("project/arduino/run.ino.j2", context),
        f"{run}/print_outputs.cpp": render("project/arduino/print_outputs.cpp.j2", context),
        f"{run}/print_outputs.h": render("project/arduino/print_outputs.h.j2", context),
    }


def _architectures(own: str, facts: ModelFacts, model_sources: Mapping[str, str]) -> str:
    """The cores that the library compiles for: every one, or the board's own, for kernels of other delegates use
    instructions of its processor."""
    kernels = [kernel for choices in PORTABLE.kernels.values() for kernel in choices]
    headers = [name for kernel in kernels for name in kernel.headers if name not in kernel.texts]
    sources = [name for kernel in kernels for name in kernel.sources if name not in kernel.texts]
    own_texts = {TFLM_COMMON, tflm_header(facts.name)}.union(
        f"{facts.name}{end}" for end in (".h", ".c", "_kernels.h")
    )
    portable = own_texts.union(PORTABLE.files(headers, sources))
    return "*" if portable >= set(model_sources) else own


def _with(name: str, value: str, source: str) -> str:
    """A C file with a macro that elsewhere is a flag of the compiler's."""
    licence, rest = source.split("\n", 1)
    return f"{licence}\n#define {name} {value} /* added by tinyet */\n{rest}"


KIND = ProjectKind(
    "arduino",
    (
        "`arduino`",
        "the Arduino IDE, arduino-cli: a library to install from its ZIP",
        "boards with an Arduino core",
        "[arduino.md](arduino.md)",
    ),
    refusal,
    tree,
    framework=lambda _board: "arduino",
    library=True,
    archive=library_name,
)
