# SPDX-License-Identifier: Apache-2.0
"""What Zephyr's build does before it compiles: reads modules, Kconfig and devicetree of an application.

Called by ZephyrConfig.cmake. Ends with a message and status 1 where Zephyr would, and on every warning besides.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import devicetree.edtlib
import kconfiglib
import pykwalify.core
import yaml

HERE = Path(__file__).resolve().parent

# The keys of zephyr/module.yml that generated modules use, as Zephyr's zephyr_module.py wants them.
MODULE_SCHEMA = {
    "type": "map",
    "mapping": {
        "name": {"required": False, "type": "str"},
        "build": {
            "required": False,
            "type": "map",
            "mapping": {"cmake": {"type": "str"}, "kconfig": {"type": "str"}},
        },
    },
}


def fail(text: str) -> NoReturn:
    sys.exit(f"stand-in for Zephyr: {text}")


def module_lines(path: Path) -> tuple[str, Path]:
    """The lines of Kconfig that take in a module, and the directory of its CMakeLists.txt."""
    file = path / "zephyr" / "module.yml"
    meta: dict[str, Any] = yaml.safe_load(file.read_text())
    pykwalify.core.Core(source_data=meta, schema_data=MODULE_SCHEMA).validate(raise_exception=True)
    build = meta.get("build", {})
    cmake, kconfig = path / build.get("cmake", "zephyr"), path / build.get("kconfig", "zephyr/Kconfig")
    for needed in (cmake / "CMakeLists.txt", kconfig):
        if not needed.is_file():
            fail(f"{file} names {needed}, which is not there")
    name = re.sub(r"[^a-zA-Z0-9]", "_", meta.get("name", path.name)).upper()
    own = f"config ZEPHYR_{name}_MODULE\n\tbool\n\tdefault y"
    lines = ['menu "module"', f'osource "{kconfig}"', own, "endmenu"]
    return "\n".join(lines) + "\n", cmake


def read_kconfig(application: Path, files: list[Path]) -> kconfiglib.Kconfig:
    """The application's options after all its files. Every warning is an error, and so is an assignment that does not
    hold in the end."""
    own = application / "Kconfig"
    kconf = kconfiglib.Kconfig(str(own if own.is_file() else HERE / "Kconfig.zephyr"), warn_to_stderr=False)
    kconf.warn_assign_override = False
    kconf.warn_assign_redun = False
    assigned: dict[str, str] = {}
    for number, file in enumerate(files):
        if not file.is_file():
            fail(f"there is no {file}")
        kconf.load_config(str(file), replace=number == 0)
        for line in file.read_text().splitlines():
            if match := re.fullmatch(r"CONFIG_(\w+)=(.*)", line):
                assigned[match[1]] = match[2].strip('"')
            elif line and not line.startswith("#"):
                fail(f"{file}: {line!r} is no assignment")
    problems = list(kconf.warnings)
    for name, value in assigned.items():
        symbol = kconf.syms.get(name)
        if symbol is None or not symbol.nodes:
            problems.append(f"{name} is not defined")
        elif symbol.str_value != value:
            problems.append(f"{name} was set to {value} and is {symbol.str_value}")
    if problems:
        fail("\n".join(problems))
    return kconf


def console_address(overlays: list[Path], output: Path) -> int:
    """The address of /chosen/zephyr,console in the board's devicetree with the overlays."""
    text = "".join(file.read_text() for file in (HERE / "dts" / "board.dts", *overlays))
    merged = output / "zephyr.dts"
    merged.write_text(text)
    edt = devicetree.edtlib.EDT(str(merged), [str(HERE / "dts" / "bindings")])
    node = edt.chosen_node("zephyr,console")
    if node is None or node.status != "okay":
        fail("there is no zephyr,console, or it is disabled")
    address = node.regs[0].addr
    assert address is not None
    return int(address)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--application", type=Path, required=True)
    parser.add_argument("--board", required=True)
    parser.add_argument("--modules", required=True, help="separated by semicolons")
    parser.add_argument("--extra-conf", required=True, help="separated by semicolons")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    output: Path = arguments.output
    application: Path = arguments.application
    output.mkdir(parents=True, exist_ok=True)
    modules = [module_lines(Path(path)) for path in arguments.modules.split(";") if path]
    (output / "Kconfig.modules").write_text("".join(lines for lines, _ in modules))
    stem = re.sub(r"@[^/]*", "", arguments.board).replace("/", "_")
    files = [application / "prj.conf", application / "boards" / f"{stem}.conf"]
    files = [file for file in files if file.is_file() or file.name == "prj.conf"]
    files += [application / path for path in arguments.extra_conf.split(";") if path]
    kconf = read_kconfig(application, files)
    kconf.write_config(str(output / ".config"))
    kconf.write_autoconf(str(output / "autoconf.h"))
    overlays = [application / "boards" / f"{stem}.overlay", application / "app.overlay"]
    address = console_address([file for file in overlays if file.is_file()][:1], output)
    lines = [f"set(standin_console_address {address:#x})"]
    lines += [f"list(APPEND standin_module_dirs {cmake})" for _, cmake in modules]
    lines += [
        f'set(CONFIG_{symbol.name} "{symbol.str_value}")'
        for symbol in kconf.unique_defined_syms
        if symbol.str_value not in ("", "n")
    ]
    (output / "config.cmake").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
