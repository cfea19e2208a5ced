# SPDX-License-Identifier: Apache-2.0
"""The wheel in an environment that has only what it declares: no torch, no checkout, no network.

From a `.tet` program on, everything works there. The environment is a real one; its packages are links to
those of the environment that runs the tests, taken from the wheel's own list of requirements. What tinyet
imported and did not declare would be missing.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import numpy as np
import pytest

from tests.golden.programs import mixed, samples, separable
from tests.unit.test_floors import TORCH
from tinyet import assets
from tinyet.boards import board_names
from tinyet.data import Data, encode_data
from tinyet.program import Program
from tinyet.version import __version__

ROOT = Path(__file__).resolve().parents[2]
KINDS: tuple[assets.Kind, ...] = ("templates", "firmware", "boards", "renode", "qemu")


_COMMANDS = """
import sys
from tinyet.cli import run
for line in sys.argv[1:]:
    status = run(line.split())
    assert status == 0, (line, status)
    print(end="\\0")
"""


@dataclass(frozen=True)
class Install:
    """An environment with the wheel in it, and a directory to work in."""

    wheel: Path
    bin: Path
    work: Path

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command of the environment and return what it prints (both streams when it fails)."""
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=self.work,
            env=keep | {"NO_COLOR": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if status == 0 else done.stdout + done.stderr

    def each(self, *lines: str) -> list[str]:
        """Run commands of tinyet as users do, and return what they print."""
        return [self.run("tinyet", *line.split()) for line in lines]

    def together(self, *lines: str) -> list[str]:
        """The same in one process: most of the time of a command is starting it."""
        return self.run("python", "-c", _COMMANDS, *lines).split("\0")[:-1]


def closure(requirements: list[str]) -> list[importlib.metadata.Distribution]:
    """The installed distributions that these requirements (without their extras) come down to."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, importlib.metadata.Distribution] = {}
    todo = list(requirements)
    while todo:
        requirement = Requirement(todo.pop())
        name = canonicalize_name(requirement.name)
        if name in found or (
            requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        distribution = importlib.metadata.distribution(name)
        assert requirement.specifier.contains(distribution.version, prereleases=True), requirement
        found[name] = distribution
        todo += distribution.requires or []
    return list(found.values())


def link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Make a distribution appear in another site-packages directory."""
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        source = Path(str(distribution.locate_file(top)))
        if source.exists() and not (site / top).exists():
            (site / top).symlink_to(source)


def compiled_already(site: Path) -> None:
    """Take what this checkout's modules were compiled to, where the installed ones are the same: pip takes 10 s to
    compile all of it again."""
    for source in (ROOT / "tinyet").rglob("*.py"):
        installed, made = site / source.relative_to(ROOT), Path(cache_from_source(str(source)))
        if made.is_file() and installed.is_file() and installed.read_bytes() == source.read_bytes():
            os.utime(installed, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
            place = Path(cache_from_source(str(installed)))
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(made, place)


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Build the wheel and install it."""
    for name in ("hatchling", "packaging", "pip"):
        pytest.importorskip(name, reason=f"{name} is not installed (pip install 'tinyet[test]')")
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = place.glob("*.whl")
    environment = place / "env"
    venv.EnvBuilder(symlinks=True).create(environment)
    scripts = environment / ("Scripts" if sys.platform == "win32" else "bin")
    (site,) = environment.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"tinyet-{__version__}.dist-info/METADATA").decode()
    for distribution in closure(re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)):
        link(distribution, site)
    pip = [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "--quiet"]
    options = ["--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "install", *options, str(wheel)], check=True, timeout=300)
    compiled_already(site)
    work = place / "work"
    work.mkdir()
    return Install(wheel, scripts, work)


def saved(install: Install, program: Program) -> str:
    """The file of a program in the working directory, and beside it samples with labels."""
    program.save(install.work / f"{program.name}.tet")
    data = Data(tuple(samples(program, 5)), np.arange(5) % 3)
    names = [tensor.name for tensor in program.inputs]
    (install.work / f"{program.name}.npz").write_bytes(encode_data(data, names))
    return f"{program.name}.tet"


def test_every_asset_is_shipped(install: Install) -> None:
    with zipfile.ZipFile(install.wheel) as archive:
        names = set(archive.namelist())
    for kind in KINDS:
        own = {p.relative_to(ROOT).as_posix() for p in (ROOT / kind).rglob("*") if p.is_file()}
        own = {path for path in own if "__pycache__" not in path and not Path(path).name.startswith(".")}
        assert own, kind
        assert {f"tinyet/_assets/{path}" for path in own} <= names
    assert {"tinyet/py.typed", "tinyet/tet/program.fbs"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "examples/", "benchmarks/"))]


def test_the_environment_has_no_torch(install: Install) -> None:
    code = "import importlib.util as u; print([n for n in ('torch', 'torchao') if u.find_spec(n)])"
    assert install.run("python", "-c", code).strip() == "[]"
    place = install.run("python", "-c", "import tinyet; print(tinyet.__file__)").strip()
    assert install.bin.parent in Path(place).parents
    found = install.run("python", "-c", "from tinyet import assets; print(assets.path('boards'))").strip()
    assert install.bin.parent in Path(found).parents


def test_every_module_that_needs_no_torch_can_be_imported(install: Install) -> None:
    # What runs the command line, what is for who has pytest, and what a training is opened by.
    other = ("__main__", "pytest", "survey.as_tests", "opening.training", "_assets")
    code = (
        "import importlib, pkgutil, tinyet\n"
        "count = 0\n"
        "for m in pkgutil.walk_packages(tinyet.__path__, 'tinyet.', onerror=lambda name: None):\n"
        f"    if not m.name.removeprefix('tinyet.').startswith({(*other, *TORCH)}):\n"
        "        importlib.import_module(m.name)\n"
        "        count += 1\n"
        "print(count)\n"
    )
    assert int(install.run("python", "-c", code)) > 600


@pytest.mark.parametrize("make", [separable, mixed], ids=["separable", "mixed"])
def test_from_a_program_to_the_proof_on_this_machine(install: Install, make: object) -> None:
    assert callable(make)
    program: Program = make()
    tet, name = saved(install, program), program.name
    _, said, *analyses = (install.each if make is separable else install.together)(
        f"generate {tet} --board mps2_an386 -o {name}",
        f"validate {name} --on host --evaluation {name}.npz --json {name}.json",
        f"analyze {tet} --json -",
        f"analyze {name} --json -",
    )
    assert "5 of 5 samples" in said
    result = json.loads((install.work / f"{name}.json").read_text(encoding="utf-8"))
    assert (result["bit_exact"], result["samples"], result["mismatches"]) == (True, 5, 0)
    assert len(result["layers"]) == result_layers(program)
    of_program, of_project = map(json.loads, analyses)
    assert of_program["arena_bytes"] == result["arena_bytes"]
    assert of_project["macs"] == result["macs"]


def result_layers(program: Program) -> int:
    """Views are no calls."""
    return sum(node.op != "reshape" for node in program.graph.nodes)


@pytest.mark.emulated
def test_build_and_run_on_a_board(install: Install) -> None:
    for tool in ("cmake", "arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    tet = saved(install, separable())
    install.run("tinyet", "generate", tet, "--board", "mps2_an385", "--kind", "cmake", "-o", "board")
    assert "flash" in install.run("tinyet", "build", "board")
    output = install.run("tinyet", "validate", "board", "--evaluation", "separable.npz", "--json", "-")
    result = json.loads(output)
    assert result["bit_exact"] is True
    assert result["instructions"] > 0
    assert result["cycles"] is None
    assert result["flash_bytes"] > 0


def test_boards_and_doctor(install: Install) -> None:
    text = install.run("tinyet", "boards")
    assert all(name in text for name in board_names())
    assert 'pip install "tinyet[torch]"' in install.run("tinyet", "doctor", status=1)
    assert __version__ in install.run("tinyet", "--version")


def test_what_needs_torch_says_so(install: Install) -> None:
    (install.work / "model.py").write_text("def model():\n    pass\n", encoding="utf-8")
    text = install.run("tinyet", "generate", "model.py", "--board", "mps2_an386", status=1)
    assert "tinyet[torch]" in text
    assert "Traceback" not in text
    assert not (install.work / "build").exists()
