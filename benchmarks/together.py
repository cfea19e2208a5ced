# SPDX-License-Identifier: Apache-2.0
"""What several models take together, beside each by itself, and what an instance costs that the caller gives memory.

    python benchmarks/together.py [--board mps2_an386] [--json FILE] [--results NAME]

Three models of a device that listens, looks and feels become one project under each of some schedules; the first is
built and run on the emulated board, each model by itself and all in turns, and compared with the host reference.
Then networks are generated twice, with static memory and with contexts, built and run. Fails when one byte differs.
Bytes of RAM are the arena's, with states; instructions are those of a run.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.programs import program_of, show
from benchmarks.record import add_option, write
from benchmarks.streaming import example
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.program import Program
from tinyet.together.arena import share
from tinyet.together.schedule import parse

SCHEDULES = ("keywords | person | anomaly", "keywords | person, anomaly", "person(keywords) | anomaly")
CONTEXT = ("ds_cnn", "resnet8", "keywords")


def of_example(name: str, model: str, shape: tuple[int, ...]) -> Program:
    """An example's trained network, over whole windows."""
    case = example(model, shape)
    calibration = case.calibration() if case.calibration is not None else []
    return tinyet.compile(case.built(), (calibration[0][:1],), calibration=calibration, name=name)


def device_programs() -> dict[str, Program]:
    """Keyword spotting and the anomalies of a motor, of the examples, and MobileNetV1 of width 0.25 for 96x96x3."""
    person, _ = program_of("mobilenet_v1", 1, channels_last=True)
    return {
        "keywords": of_example("keywords", "keyword_spotting", (1, 1, 49, 13)),
        "person": Program("person", person.graph, person.float_graph),
        "anomaly": of_example("anomaly", "anomaly", (1, 64)),
    }


def context_cost(name: str, program: Program, board: str) -> dict[str, object]:
    """Instructions of a run and bytes of flash, with static memory and with a context."""
    instructions, flash = [], []
    for context in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            project = tinyet.generate(program, board, folder, kind="cmake", context=context)
            size = project.build()
            result = project.validate(on="qemu")
            if not result.bit_exact:
                raise SystemExit(f"{name} differs")
            instructions.append(result.instructions)
            flash.append(size.flash - size.sample)
    return {"name": name, "instructions": instructions, "flash": flash}


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_option(parser)
    options = parser.parse_args()
    board = load_board(options.board)
    programs = device_programs()
    apart = {name: deploy(program.graph, board.target) for name, program in programs.items()}
    found = {text: share(parse(text, list(programs)), apart) for text in SCHEDULES}
    with tempfile.TemporaryDirectory() as folder:
        project = tinyet.generate(
            list(programs.values()), options.board, folder, kind="cmake", schedule=SCHEDULES[0]
        )
        project.build()
        assert isinstance(project, tinyet.TogetherProject)
        if not project.validate_each(on="qemu").bit_exact:
            raise SystemExit("the models differ from the host reference")
    figures = {
        "apart": {name: each.plan.arena_bytes for name, each in apart.items()},
        "together": {text: shared.arena_bytes for text, shared in found.items()},
        "context": [
            context_cost(name, programs.get(name) or program_of(name, 1)[0], options.board)
            for name in CONTEXT
        ],
    }
    console = Console()
    total = sum(figures["apart"].values())  # type: ignore[attr-defined]
    rows = [("apart", f"{total:,}"), *((text, f"{size:,}") for text, size in figures["together"].items())]  # type: ignore[attr-defined]
    show(console, f"bytes of arena on {options.board}", ("schedule", "bytes"), rows, 1)
    rows_of_contexts = [
        (row["name"], *(f"{n:,}" for n in (*row["instructions"], *row["flash"])))
        for row in figures["context"]
    ]
    heads = ("network", "instructions, static", "context", "flash, static", "context")
    show(console, "what a context costs", heads, rows_of_contexts, 1)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    write(options.results, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
