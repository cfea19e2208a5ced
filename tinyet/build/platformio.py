# SPDX-License-Identifier: Apache-2.0
"""Builds generated projects with PlatformIO, from its registry or wholly offline.

PlatformIO needs two packages from its registry: SCons and a compiler. Either is done without when the
machine has it already: SCons from PyPI (registered as PlatformIO's `tool-scons` by three small files in the
core directory), and the board's compiler on PATH (the generated platform then leaves the toolchain package out). The
registry has a suitable compiler only for Arm. An environment with a framework (Arduino, Zephyr) needs the registry's
platform for the board besides, which brings compiler and framework. Missing parts are found before `pio` starts,
because offline it would wait a minute for the registry and then print nothing useful.
"""

from __future__ import annotations

import configparser
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board
from tinyet.build.builder import HARNESS, Builder, OnOutput
from tinyet.build.process import find_tool, install_command, run
from tinyet.errors import ProjectError, ToolchainError, bullet_list

_REGISTRY = ("api.registry.platformio.org", 443)
_REGISTRY_TIMEOUT = 3.0  # seconds

_BUILD_TIMEOUT = 600.0  # seconds; a first build may download a toolchain of 150 MB
_FIRST_BUILD_TIMEOUT = 3600.0  # seconds; that of a framework downloads platform, toolchain and framework
# Compilers that the registry has, too.
_COMPILER_PACKAGES = {"arm-none-eabi-gcc": "toolchain-gccarmnoneeabi"}
_SCONS_PACKAGE = "tool-scons"
_INSTALL = 'pip install "tinyet[build]"'

# Replaces SCons in PlatformIO's package directory: it runs the SCons of the running Python.
_SCONS_STARTER = """\
import sys

from SCons.Script import main

if __name__ == "__main__":
    sys.exit(main())
"""


def core_dir() -> Path:
    """Return PlatformIO's private core directory: packages, and nothing of the user's own PlatformIO.

    `$TINYET_PLATFORMIO_DIR` when set, else `platformio` in tinyet's cache directory. It may not exist yet.
    """
    override = os.environ.get("TINYET_PLATFORMIO_DIR")
    return Path(override).expanduser().absolute() if override else assets.cache_dir() / "platformio"


def build(project_dir: Path, env: str, *, on_output: Callable[[str], None] | None = None) -> Path:
    """Build one environment of a generated project, as build_all does, and return its ELF file."""
    return build_all(project_dir, [env], on_output=on_output)[0]


def build_all(
    project_dir: Path, envs: Sequence[str], *, on_output: Callable[[str], None] | None = None
) -> list[Path]:
    """Build environments of a generated project by one start of PlatformIO and return their ELF files.

    envs: `harness`, the board's name for the application, or others that its platformio.ini has.
    on_output: called with each line that the build prints, as it appears.

    Builds of several projects may run side by side; in one project only the caller that holds its lock may build
    (`tree.building`): SCons's own database does not stand two. Raises ProjectError when the directory is not a
    PlatformIO project, ToolchainError when something is missing (at once, with the command that installs it) or when
    the build fails.
    """
    project_dir = project_dir.absolute()
    if not (project_dir / "platformio.ini").is_file():
        raise ProjectError(
            what="there is no platformio.ini here",
            where=str(project_dir),
            hint="generate the project first: tinyet generate MODEL.tet --kind platformio",
        )
    core = core_dir()
    here = True
    for platform in dict.fromkeys(_registry_platform(project_dir, env) for env in envs):
        had = platform is None or _have_platform(
            platform, (core / "platforms", project_dir / "platform" / "link")
        )
        compiler = _compiler(project_dir) if platform is None else None
        prepare(core, compiler, platform=None if had else platform)
        here = here and had
    chosen = [word for env in envs for word in ("-e", env)]
    run(
        [sys.executable, "-m", "platformio", "run", "-d", project_dir, *chosen],
        cwd=project_dir,
        timeout=_BUILD_TIMEOUT if here else _FIRST_BUILD_TIMEOUT,
        env=environment(core),
        what=f"building {project_dir.name} {' '.join(f'[env:{env}]' for env in envs)} with PlatformIO",
        on_output=on_output,
    )
    elfs = [elf_path(project_dir, env) for env in envs]
    for elf in elfs:
        if not elf.is_file():
            raise ToolchainError(
                what="PlatformIO reported success and wrote no firmware",
                where=str(elf),
                hint="set no build_dir in platformio.ini or user.ini",
            )
    return elfs


def elf_path(project_dir: Path, env: str) -> Path:
    """Where the firmware of an environment is when built."""
    return project_dir / ".pio" / "build" / env / "firmware.elf"


def environment(core: Path) -> dict[str, str]:
    """Return the environment for `pio`: private core directory, no telemetry, no look for upgrades."""
    # Directories set for another project would send the output elsewhere.
    kept = {k: v for k, v in os.environ.items() if not re.fullmatch(r"PLATFORMIO_\w+_DIR", k)}
    return kept | {
        "PLATFORMIO_CORE_DIR": str(core),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
        "PLATFORMIO_NO_ANSI": "true",
        "PYTHONUNBUFFERED": "1",
    }


def _compiler(project_dir: Path) -> str | None:
    """The compiler that the project's own platform uses; None where it has none, and PlatformIO brings one."""
    for path in sorted((project_dir / "platform" / "boards").glob("*.json")):
        prefix = json.loads(path.read_text(encoding="utf-8"))["build"]["toolchain"]
        return f"{prefix}gcc"
    return None


def _registry_platform(project_dir: Path, env: str) -> str | None:
    """The platform of PlatformIO's registry that an environment needs; None where it is the project's own."""
    ini = configparser.ConfigParser(interpolation=None, strict=False)
    ini.read_string((project_dir / "platformio.ini").read_text(encoding="utf-8"))
    section = f"env:{env}"
    if ini.has_option(section, "extends"):
        section = ini[section]["extends"]
    platform = ini.get(
        section, "platform", fallback=ini.get("env", "platform", fallback="symlink://platform")
    )
    return None if platform.startswith("symlink:") else platform


def _have_platform(platform: str, directories: Sequence[Path]) -> bool:
    """Return whether a platform was downloaded before; a name may stand with owner and version."""
    name = re.split(r"[@ ]", platform.rpartition("/")[2])[0]
    return any(any(directory.glob(f"{name}*/platform.json")) for directory in directories)


def prepare(core: Path, compiler: str | None = None, *, platform: str | None = None) -> None:
    """See to it that a build can start: PlatformIO, SCons and a compiler, each here or within reach.

    compiler: needed on PATH or as a package of PlatformIO's; None: the project's platform brings it. platform: still
    to be downloaded from the registry. Raises ToolchainError that lists everything that is missing, without starting
    PlatformIO.
    """
    if importlib.util.find_spec("platformio") is None:
        raise ToolchainError(
            what="PlatformIO is not installed; building a project needs it",
            where=sys.executable,
            hint=_INSTALL,
        )
    packages = core / "packages"
    missing: dict[str, str] = {}
    if not _have_scons(packages):
        missing[f"SCons {_wanted_scons()[0]}"] = _INSTALL
    if compiler is not None and compiler not in _COMPILER_PACKAGES:
        find_tool(compiler, what="building this project")
    elif compiler is not None and not _have_compiler(compiler, packages):
        missing[compiler] = install_command(compiler)
    if platform is not None:
        missing[f"PlatformIO's platform {platform}, with its compiler and framework"] = (
            "connect to the network: PlatformIO downloads the platform at the first build"
        )
    if missing and not _registry_answers():
        raise ToolchainError(
            what="building needs tools that are not installed, and PlatformIO's registry cannot be reached:\n"
            + bullet_list(list(missing)),
            where=f"https://{_REGISTRY[0]}",
            hint="\n".join(missing.values()),
        )


def _have_compiler(compiler: str, packages: Path) -> bool:
    """Return whether a compiler that the registry has is on PATH, or was downloaded before."""
    package = _COMPILER_PACKAGES[compiler]
    return shutil.which(compiler) is not None or any(packages.glob(f"{package}*/package.json"))


def _wanted_scons() -> tuple[str, str]:
    """Return the SCons version that the installed PlatformIO wants: SCons's own number and the registry's.

    The registry writes 4.11.1 as 4.41101 (major 4, then major, minor and patch, two digits each).
    """
    from platformio.dependencies import get_core_dependencies

    requirement = str(get_core_dependencies()[_SCONS_PACKAGE])
    match = re.fullmatch(r"~(\d+)\.(\d)(\d\d)(\d\d)\.\d+", requirement)
    if match is None:
        raise ToolchainError(
            what=f"this PlatformIO asks for SCons {requirement!r}, which tinyet cannot read",
            where=importlib.metadata.version("platformio"),
            hint=_INSTALL,
        )
    _, major, minor, patch = match.groups()
    return f"{major}.{int(minor)}.{int(patch)}", requirement.lstrip("~")


def _have_scons(packages: Path) -> bool:
    """Return whether PlatformIO will find SCons, registering PyPI's when that is the right version."""
    scons, number = _wanted_scons()
    try:
        importable = importlib.metadata.version("scons") == scons
    except importlib.metadata.PackageNotFoundError:
        importable = False
    registered = packages / f"{_SCONS_PACKAGE}@pypi-{number}"
    if importable:
        _register_scons(registered, number)
        return True
    if registered.is_dir():
        # Another Python that has SCons uses this directory too, and PlatformIO would start that package here.
        raise ToolchainError(
            what=f"SCons {scons} is not installed in this Python; building a project needs it",
            where=sys.executable,
            hint=_INSTALL,
        )
    return any(_is_version(manifest, number) for manifest in packages.glob(f"{_SCONS_PACKAGE}*/package.json"))


def _is_version(manifest: Path, number: str) -> bool:
    """Return whether a package has the version `number`, ignoring its last part."""
    try:
        version = str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return False
    return version.rpartition(".")[0] == number.rpartition(".")[0]


def _register_scons(place: Path, number: str) -> None:
    """Write the three files that make PlatformIO take PyPI's SCons for its own package."""
    if place.is_dir():
        return
    spec = {"owner": "platformio", "id": None, "name": _SCONS_PACKAGE, "requirements": None, "uri": None}
    identity = {"name": _SCONS_PACKAGE, "version": number}
    files = {
        "package.json": json.dumps(identity | {"system": "*"}),
        # Without an owner PlatformIO would not accept the package as its own.
        ".piopm": json.dumps(identity | {"type": "tool", "spec": spec}),
        "scons.py": _SCONS_STARTER,
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside the package directory, not in it: PlatformIO reads everything in there.
    staging = Path(tempfile.mkdtemp(prefix=f"{_SCONS_PACKAGE}-", dir=place.parent.parent))
    try:
        for name, text in files.items():
            (staging / name).write_text(text, encoding="utf-8")
        # A rename, so that a build starting at the same moment sees all three files or none.
        with contextlib.suppress(OSError):  # another build was first, and wrote the same
            staging.rename(place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _registry_answers() -> bool:
    """Return whether PlatformIO's registry can be reached, through the user's proxy when one is set."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        # Only PlatformIO knows how to go through it.
        return True
    answered = threading.Event()

    def probe() -> None:
        with contextlib.suppress(OSError):
            socket.create_connection(_REGISTRY, timeout=_REGISTRY_TIMEOUT).close()
            answered.set()

    # In a thread of its own, because looking up the name may take longer than the timeout of the connection.
    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(_REGISTRY_TIMEOUT)
    return answered.is_set()


def _build(project_dir: Path, board: Board, _compiler: str, on_output: OnOutput) -> None:
    build_all(project_dir, [board.name, HARNESS], on_output=on_output)


def _elf(project_dir: Path, _board: Board, _model: str, env: str) -> Path:
    return elf_path(project_dir, env)


def _framework_harness(board: Board) -> str | None:
    """Where a board has a framework and is bare-metal, too, `harness` is the bare-metal one."""
    if board.platformio is None or not board.platformio.framework:
        return None
    if not board.bare_metal:
        return HARNESS
    return "arduino_harness" if board.platformio.framework == "arduino" else None


BUILDER = Builder(
    _build,
    _elf,
    ("platformio", "scons", "arm-none-eabi-gcc", "newlib", "qemu-system-arm"),
    emulated=True,
    framework_harness=_framework_harness,
)
