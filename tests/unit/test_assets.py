# SPDX-License-Identifier: Apache-2.0
"""The files that are not Python are found in a checkout and travel in the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args

import pytest

import tinyet
from tinyet import assets
from tinyet.errors import InternalError

_ROOT = Path(tinyet.__file__).resolve().parent.parent
_KINDS: tuple[assets.Kind, ...] = get_args(assets.Kind)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(directory), str(_ROOT)],
        check=True,
        capture_output=True,
        text=True,
    )
    (found,) = directory.glob("tinyet-*.whl")
    return found


def _is_junk(path: Path) -> bool:
    return "__pycache__" in path.parts or path.suffix == ".pyc" or path.name.startswith(".")


@pytest.mark.parametrize("kind", _KINDS)
def test_a_checkout_has_every_kind(kind: assets.Kind) -> None:
    assert assets.path(kind) == _ROOT / kind
    assert any(assets.path(kind).iterdir())


def test_the_wheel_has_every_asset_and_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    wanted = {
        f"tinyet/_assets/{path.relative_to(_ROOT).as_posix()}"
        for kind in _KINDS
        for path in (_ROOT / kind).rglob("*")
        if path.is_file() and not _is_junk(path)
    }
    wanted |= {
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / "tinyet").rglob("*")
        if path.is_file() and not _is_junk(path)
    }
    assert "tinyet/_assets/templates/project/platformio/platformio.ini.j2" in wanted
    assert "tinyet/py.typed" in wanted
    assert {name for name in inside if ".dist-info/" not in name} == wanted


def test_the_wheel_has_the_licence_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        assert archive.read(inside["LICENSE"]) == (_ROOT / "LICENSE").read_bytes()
        assert "tinyet = tinyet.cli:main" in archive.read(inside["entry_points.txt"]).decode()
        assert f"Version: {tinyet.__version__}" in archive.read(inside["METADATA"]).decode()


def test_an_installed_wheel_finds_its_own_assets(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "from tinyet import assets\nfor kind in ('templates', 'boards'): print(assets.path(kind))"
    # -P and an empty directory: the checkout is not on the path.
    answer = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    places = answer.stdout.split()
    assert places == [
        str(tmp_path.resolve() / "tinyet" / "_assets" / kind) for kind in ("templates", "boards")
    ]


def test_a_broken_installation_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(assets, "_PACKAGE", tmp_path / "tinyet")
    with pytest.raises(InternalError, match="firmware"):
        assets.path("firmware")


def test_cache_and_cmsis_nn_directories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TINYET_CMSIS_NN", raising=False)
    assert assets.cache_dir() == tmp_path / "tinyet"
    assert assets.cmsis_nn_dir() is None
    in_cache = tmp_path / "tinyet" / "cmsis-nn" / assets.CMSIS_NN_VERSION
    for place in (in_cache, tmp_path / "elsewhere"):
        (place / "Include").mkdir(parents=True)
        (place / "Include" / "arm_nnfunctions.h").touch()
    assert assets.cmsis_nn_dir() == assets.cmsis_nn_place() == in_cache
    assert not assets.cmsis_nn_is_given()
    monkeypatch.setenv("TINYET_CMSIS_NN", str(tmp_path / "elsewhere"))
    assert assets.cmsis_nn_dir() == assets.cmsis_nn_place() == tmp_path / "elsewhere"
    assert assets.cmsis_nn_is_given()
    monkeypatch.setenv("TINYET_CMSIS_NN", str(tmp_path / "nowhere"))
    assert assets.cmsis_nn_dir() is None
