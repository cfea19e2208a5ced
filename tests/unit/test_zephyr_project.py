# SPDX-License-Identifier: Apache-2.0
"""The text of generated Zephyr projects: what real west makes of the manifest, and what needs no compiler."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from tests import small, tiny_model
from tests.golden_files import Golden
from tests.whole_project import fix_version, whole
from tinyet.boards import Board, PlatformIo, Zephyr, board_names, load_board
from tinyet.build import zephyr as west_build
from tinyet.emit.kinds import console, zephyr
from tinyet.emit.project import project_files
from tinyet.errors import InternalError, ToolchainError, UsageError
from tinyet.ir import DType
from tinyet.projects.one import generate

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

BOARDS = [name for name in board_names() if load_board(name).zephyr is not None]

# As Zephyr's own manifest names them; what they hold does not matter here.
_UPSTREAM = """\
manifest:
  defaults: {remote: upstream}
  remotes: [{name: upstream, url-base: https://example.org}]
  projects:
    - {name: cmsis, revision: main, path: modules/hal/cmsis}
    - {name: cmsis_6, revision: main, path: modules/hal/cmsis_6}
    - {name: hal_espressif, revision: main, path: modules/hal/espressif}
    - {name: hal_nordic, revision: main, path: modules/hal/nordic}
    - {name: hal_rpi_pico, revision: main, path: modules/hal/rpi_pico}
    - {name: hal_stm32, revision: main, path: modules/hal/stm32}
    - {name: lvgl, revision: main, path: modules/lib/gui/lvgl}
  self:
    path: zephyr
    west-commands: scripts/west-commands.yml
"""


def _board(
    name: str = "nrf52840dk/nrf52840", *, cpu: str = "mps2_an386", platform: str = "", **more: str
) -> Board:
    platformio = PlatformIo(platform, "board", "zephyr") if platform else None
    table = Zephyr(name, more.get("conf", ""), more.get("overlay", ""))
    return dataclasses.replace(load_board(cpu), zephyr=table, platformio=platformio)


def _files(board: Board) -> dict[str, str]:
    return project_files("zephyr", board, tiny_model.FACTS, tiny_model.sources())


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_that_zephyr_has_gives_a_whole_project(name: str) -> None:
    board = load_board(name)
    assert board.zephyr is not None
    files = _files(board)
    stem = zephyr.board_file(board.zephyr.board)
    wanted = {"CMakeLists.txt", "Kconfig", "prj.conf", "harness.conf", "west.yml", "sample.yaml", "README.md"}
    wanted |= {"src/main.c", "src/tiny_sample.h", "harness/tinyet_zephyr.c", f"boards/{stem}.conf"}
    wanted |= {f"modules/tiny/zephyr/{file}" for file in ("module.yml", "CMakeLists.txt", "Kconfig")}
    assert wanted <= set(files)
    assert (f"boards/{stem}.overlay" in files) == bool(board.zephyr.overlay)
    assert f"west build -b {board.zephyr.board} -p auto .\n" in files["README.md"]
    for path, text in files.items():
        assert not re.search(r"\{\{|\{%", text), path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path
        if path.endswith((".c", ".overlay")):
            assert text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"), path
        # Whatever a file of the project includes by name is in the project.
        for header in re.findall(r'#include "(.+)"', text):
            assert any(other.endswith(f"/{header}") for other in files), (path, header)
    assert _files(board) == files
    conf = files[f"boards/{stem}.conf"]
    assert f"CONFIG_MAIN_STACK_SIZE={board.stack_bytes}\n" in conf
    assert ("CONFIG_FPU=y\n" in conf) == (board.target.family == "arm" and "fpu" in board.target.features)


def test_whole_project(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    fix_version(monkeypatch)
    overlay = "&uart0 {\n\tcurrent-speed = <9600>;\n};\n"
    golden(whole(_files(_board(conf="CONFIG_GPIO=n\n", overlay=overlay))), "zephyr.txt")


def test_a_board_that_zephyr_does_not_have_is_refused() -> None:
    board = dataclasses.replace(load_board("mps2_an386"), zephyr=None)
    with pytest.raises(UsageError, match=r"\[zephyr\] table") as caught:
        _files(board)
    assert caught.value.hint is not None
    assert "cmake" in caught.value.hint
    with pytest.raises(InternalError):
        zephyr.platformio_files(board, tiny_model.FACTS, tiny_model.sources())


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("nucleo_f446re", "nucleo_f446re"),
        ("nrf5340dk/nrf5340/cpuapp", "nrf5340dk_nrf5340_cpuapp"),
        ("nrf9160dk@0.14.0/nrf9160/ns", "nrf9160dk_nrf9160_ns"),
        ("esp32_devkitc@1/esp32/procpu", "esp32_devkitc_esp32_procpu"),
        ("rpi_pico@2", "rpi_pico"),
        ("bl5340_dvk//cpuapp", "bl5340_dvk__cpuapp"),
    ],
)
def test_files_of_a_board_are_named_as_zephyr_looks_for_them(name: str, stem: str) -> None:
    assert zephyr.board_file(name) == stem


def test_the_board_file_adds_options_and_devicetree() -> None:
    overlay = "&uart0 {\n\tcurrent-speed = <9600>;\n};\n"
    files = _files(_board(conf="CONFIG_USB_DEVICE_STACK=y\nCONFIG_GPIO=n\n", overlay=overlay))
    assert files["boards/nrf52840dk_nrf52840.conf"].endswith("CONFIG_USB_DEVICE_STACK=y\nCONFIG_GPIO=n\n")
    assert files["boards/nrf52840dk_nrf52840.overlay"].endswith(overlay)
    assert "current-speed" not in "".join(
        text for path, text in files.items() if not path.endswith(".overlay")
    )


@pytest.mark.parametrize("name", BOARDS)
def test_what_board_files_add_is_of_the_right_form(name: str, tmp_path: Path) -> None:
    dtlib = pytest.importorskip("devicetree.dtlib", reason="devicetree is not installed")
    table = load_board(name).zephyr
    assert table is not None
    for line in table.conf.splitlines():
        assert re.fullmatch(r"CONFIG_[A-Z0-9_]+=(y|n|\d+|0x[0-9a-fA-F]+|\".*\")", line), line
    # A devicetree that has whatever the overlay only refers to.
    own = set(re.findall(r"(\w+):", table.overlay))
    nodes = "".join(
        f"\t{label}: {label} {{ }};\n" for label in sorted(set(re.findall(r"&(\w+)", table.overlay)) - own)
    )
    merged = tmp_path / "merged.dts"
    merged.write_text(f"/dts-v1/;\n/ {{\n\tchosen {{ }};\n{nodes}}};\n{table.overlay}")
    tree = dtlib.DT(str(merged))
    console = tree.get_node("/chosen").props.get("zephyr,console")
    if console is not None:
        # A UART that the overlay makes, over USB, or one that it turns on.
        node = console.to_path()
        assert {"compatible", "status"} & set(node.props)


# ---- the manifest ----


@pytest.mark.parametrize(
    ("board", "projects"),
    [
        (_board("nrf52840dk/nrf52840"), ["cmsis_6", "hal_nordic"]),
        (_board("bbc_microbit"), ["cmsis_6", "hal_nordic"]),
        (_board("arduino_nano_33_ble"), ["cmsis_6", "hal_nordic"]),
        (_board("nucleo_f446re"), ["cmsis_6", "hal_stm32"]),
        (_board("rpi_pico"), ["cmsis_6", "hal_rpi_pico"]),
        (_board("mps2/an386"), ["cmsis_6"]),
        # The name says nothing, PlatformIO's platform does.
        (_board("blackpill", platform="ststm32"), ["cmsis_6", "hal_stm32"]),
        (_board("esp32c3_devkitm", cpu="riscv32_virt"), ["hal_espressif"]),
        (_board("qemu_riscv32", cpu="riscv32_virt"), []),
        (
            _board("of_my_own"),
            ["cmsis", "cmsis_6", "hal_espressif", "hal_nordic", "hal_rpi_pico", "hal_stm32", "lvgl"],
        ),
    ],
    ids=lambda value: value.zephyr.board if isinstance(value, Board) and value.zephyr else "",
)
def test_west_fetches_what_the_board_needs(board: Board, projects: list[str]) -> None:
    manifest = pytest.importorskip("west.manifest", reason="west is not installed")
    text = _files(board)["west.yml"]
    # west asks for the manifest of the project it imports from.
    read = manifest.Manifest.from_data(text, importer=lambda _project, _path: _UPSTREAM)
    own, kernel, *modules = read.projects
    assert isinstance(own, manifest.ManifestProject)
    assert (kernel.name, kernel.revision) == ("zephyr", zephyr.ZEPHYR_VERSION)
    assert kernel.url == "https://github.com/zephyrproject-rtos/zephyr"
    assert re.fullmatch(r"v\d+\.\d+\.\d+", kernel.revision)
    # Without this, `west build` would be unknown.
    assert kernel.west_commands == ["scripts/west-commands.yml"]
    assert sorted(project.name for project in modules) == projects


# ---- PlatformIO ----


def test_platformio_gets_its_part(golden: Golden) -> None:
    board = _board(conf="CONFIG_GPIO=y", overlay="/ {\n};\n")
    files = zephyr.platformio_files(board, tiny_model.FACTS, tiny_model.sources())
    assert set(files) == {
        *(
            f"zephyr/{name}"
            for name in ("CMakeLists.txt", "Kconfig", "prj.conf", "harness.conf", "app.overlay")
        ),
        *(
            f"harness/tinyet_{name}"
            for name in ("frames.h", "harness.c", "harness.h", "platform.h", "zephyr.c")
        ),
        "harness/model_desc.c",
        "src/main.c",
        "src/tiny_sample.h",
    }
    part = {path: text for path, text in files.items() if path.startswith("zephyr/")}
    golden(whole(part), "platformio.txt")
    # PlatformIO has no place for options of a board.
    assert f"CONFIG_MAIN_STACK_SIZE={board.stack_bytes}\n" in files["zephyr/prj.conf"]
    assert files["zephyr/prj.conf"].endswith("CONFIG_GPIO=y\n")
    assert "TINYET_TINY" not in files["zephyr/prj.conf"] + files["zephyr/Kconfig"]
    assert files["src/main.c"] == _files(board)["src/main.c"]


# ---- what the console shows ----


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (1.0, "1.0000"),
        (-2.5, "-2.5000"),
        (0.99999, "1.0000"),
        (0.01, "0.0100"),
        (0.002, "0.0200e-1"),
        (123456.0, "123456.0000"),
        (3e9, "300000.0000e4"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_real_numbers_are_told_as_the_application_prints_them(value: float, text: str) -> None:
    assert console.real(np.float32(value)) == text


def test_the_console_is_told_line_by_line() -> None:
    pairs, mean = tiny_model.expected(tiny_model.SAMPLE)
    expected = (struct.pack("4b", *pairs), struct.pack("<f", mean))
    facts = dataclasses.replace(tiny_model.FACTS, expected=expected)
    best = pairs.index(max(pairs))
    assert console.printed_outputs(facts) == [
        "output 0: " + " ".join(map(str, pairs)),
        f"  largest: index {best}, value {(pairs[best] + 3) * 0.5:.4f}",
        f"output 1: {mean:.4f}",
        f"  largest: index 0, value {mean:.4f}",
    ]
    regexes = zephyr.console_regexes(facts)
    assert re.search(regexes[0], "tiny: 1234 us")
    assert re.search(regexes[1], "output 0: " + " ".join(map(str, pairs)))
    assert not re.search(regexes[1], "output 0: " + " ".join(map(str, pairs)) + "0")
    # Nothing is known of the outputs: only that there is an end.
    assert len(zephyr.console_regexes(tiny_model.FACTS)) == 2
    with pytest.raises(InternalError, match="expected"):
        dataclasses.replace(tiny_model.FACTS, expected=(b"",))


def test_long_outputs_are_cut_as_the_application_does() -> None:
    tensor = dataclasses.replace(
        tiny_model.FACTS.outputs[0], dtype=DType.INT32, shape=(17,), bytes=68, scale=None, zero_point=None
    )
    data = np.arange(17, dtype=np.int32).tobytes()
    facts = dataclasses.replace(tiny_model.FACTS, outputs=(tensor,), expected=(data,))
    first, second = console.printed_outputs(facts)
    assert first == "output 0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ..."
    assert second == "  largest: index 16, value 16"


def test_twister_finds_the_board_and_the_regexes() -> None:
    sample = yaml.safe_load(_files(_board())["sample.yaml"])
    assert sample["common"]["platform_allow"] == ["nrf52840dk/nrf52840"]
    application, harness = sample["tests"].values()
    assert application["harness"] == "console"
    assert application["harness_config"]["regex"] == zephyr.console_regexes(tiny_model.FACTS)
    assert harness == {"build_only": True, "extra_args": "EXTRA_CONF_FILE=harness.conf"}


# ---- building ----


def test_building_without_zephyr_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    project = generate(small.program(), "mps2_an386", tmp_path / "p", kind="zephyr")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ToolchainError) as caught:
        west_build.build(project.path, _board("mps2/an386"))
    assert "west, Zephyr's tool, is not installed" in caught.value.what
    assert "no workspace" in caught.value.what
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"pip install west\nwest init -l {project.path}\n")
    # A workspace that only ZEPHYR_BASE names.
    (tmp_path / "Kconfig.zephyr").write_text("")
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    with pytest.raises(ToolchainError) as caught:
        west_build.build(project.path, _board("mps2/an386"))
    assert "no workspace" not in caught.value.what
    assert caught.value.hint == "pip install west"
    manifest = json.loads((project.path / "tinyet.json").read_text())
    assert (manifest["model_dir"], manifest["yours"]) == (
        "modules/small/src",
        ["src/main.c", "prj.conf", "west.yml"],
    )


def test_the_users_options_and_modules_stay_when_the_model_changes(tmp_path: Path) -> None:
    """Nothing in these files is tinyet's: what the model needs of Kconfig stands in Kconfig."""
    project = generate(small.program(), "nano_33_ble", tmp_path / "p", kind="zephyr")
    mine = {}
    for name in ("prj.conf", "west.yml"):
        path = project.path / name
        assert "do not edit" not in path.read_text()
        mine[path] = path.read_text() + "# mine\n"
        path.write_text(mine[path])
    (project.path / "user.cmake").write_text("# mine, too\n")
    generate(small.program(channels=8), "nano_33_ble", tmp_path / "p", kind="zephyr", name="other")
    assert {path: path.read_text() for path in mine} == mine
    assert "TINYET_SMALL" not in (project.path / "prj.conf").read_text()
    assert "config TINYET_OTHER\n\tdefault y\n" in (project.path / "Kconfig").read_text()
    assert "include(user.cmake OPTIONAL)" in (project.path / "CMakeLists.txt").read_text()
