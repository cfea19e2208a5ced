# SPDX-License-Identifier: Apache-2.0
"""A small network that wakes a large one: most seconds are silent, and only the others cost a run of keyword spotting.

python examples/cascade/demo.py [--board mps2_an386] [--out build/cascade] [--train]

Both are in one project and one arena, as they never run at the same time; on an emulated board.
"""

import argparse
import sys
from functools import cache
from importlib import util
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "keyword_spotting"))

import gallery
import words

import tinyet

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE / "wake.pt"
# Seed of the recordings that the firmware holds: voices that nothing else here has heard.
HEARD = 710_000
SCHEDULE = "wake | keywords"


@cache
def keywords() -> ModuleType:
    """The example keyword_spotting, whose features both networks take."""
    spec = util.spec_from_file_location("keywords_of_the_cascade", HERE.parent / "keyword_spotting/model.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Wake(nn.Module):
    """(N, 1, 49, 13) features to (N, 1), positive where somebody speaks: means of seven frames, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AvgPool2d((7, 1)), nn.Flatten(), nn.Linear(7 * 13, 12), nn.ReLU(), nn.Linear(12, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def train(network: nn.Module) -> None:
    """On recordings of silence and of words."""
    inputs, labels = keywords()._recorded(120, seed=1_000)
    speech = (labels > 0).float()[:, None]

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        # One recording in six is silence.
        return F.binary_cross_entropy_with_logits(output, target, pos_weight=torch.tensor(0.2))

    gallery.fit(network, inputs, speech, loss, epochs=100)


def wake() -> nn.Module:
    """The small network, with the weights that it ships with."""
    return gallery.trained(Wake, train, WEIGHTS)


def programs() -> list[tinyet.Program]:
    """Both, calibrated on the same recordings."""
    calibration = keywords().calibration()
    first = (calibration[0][:1],)
    return [
        tinyet.compile(wake(), first, calibration=calibration, name="wake"),
        tinyet.compile(
            keywords().model(), first, calibration=calibration, name="keywords", labels=words.CLASSES
        ),
    ]


def heard_by_the_host(both: list[tinyet.Program], windows: np.ndarray) -> list[str]:
    """What the firmware has to print: a class, or that it slept."""
    small, large = both
    said = []
    for window in windows:
        awake = float(np.ravel(small.run(window))[0]) > 0
        said.append(words.CLASSES[int(np.ravel(large.run(window)).argmax())] if awake else "asleep")
    return said


def application(windows: np.ndarray) -> dict[str, str]:
    """main.c, and setup.h with the seconds that a real board would get from its microphone."""
    flat = windows.reshape(len(windows), -1).astype(np.float32)
    rows = ",\n".join("{" + ", ".join(float(v).hex() + "f" for v in row) + "}" for row in flat)
    setup = f"#define WINDOWS {len(flat)}u\nstatic const float windows[WINDOWS][{flat.shape[1]}] = {{\n{rows}}};\n"
    return {"main.c": (HERE / "main.c").read_text(encoding="utf-8"), "setup.h": setup}


def windows_heard() -> np.ndarray:
    """Seconds of silence between words, as features."""
    inputs, labels = keywords()._recorded(8, seed=HEARD)
    silence = [i for i, label in enumerate(labels) if label == 0]
    words_said = [i for i, label in enumerate(labels) if label > 1]
    order = [index for pair in zip(words_said, silence, strict=False) for index in pair]
    return np.asarray(inputs[order])


def generate(both: list[tinyet.Program], board: str, out: Path) -> tinyet.TogetherProject:
    """One project of both."""
    project = tinyet.generate(both, board, out, kind="cmake", name="cascade", schedule=SCHEDULE)
    assert isinstance(project, tinyet.TogetherProject)
    return project


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--out", type=Path, default=Path("build/cascade"))
    parser.add_argument("--train", action="store_true", help="train the small network again")
    options = parser.parse_args()
    if options.train:
        WEIGHTS.unlink(missing_ok=True)
    both = programs()
    project = generate(both, options.board, options.out)
    print(f"one arena of {project.shared.arena_bytes:,} bytes; apart {project.shared.apart_bytes:,}")
    project.build()
    print(f"each alone and in turns, device = host reference: {project.validate_each().bit_exact}")
    windows = windows_heard()
    gallery.use_application(project, application(windows))
    project.build()
    heard = gallery.run_application(project)
    wanted = heard_by_the_host(both, windows)
    print("\n".join(heard))
    print(f"as the host hears it: {heard == wanted}")
    return int(heard != wanted)


if __name__ == "__main__":
    sys.exit(main())
