# SPDX-License-Identifier: Apache-2.0
"""A module imports only from floors below its own; siblings on a floor do not import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import tinyet

PACKAGE = Path(tinyet.__file__).parent

# Floor of each module or package of tinyet/. A package's own modules may import each other.
FLOORS = {
    "errors": 0,
    "assets": 0.5,
    "templating": 0.6,
    "boards": 0.7,
    "ir": 1,
    "numerics": 1.5,
    "float32": 1.5,
    "opset": 2,
    "ops": 3,
    "custom": 3.5,
    "frontend": 4,
    "passes": 4,
    "delegates": 4,
    "memory": 4,
    "select": 5,
    "reference": 5,
    "deployment": 6,
    "program_format": 6,
    "program": 6.5,
    "twin": 6.5,
    "emit": 7,
    "fit": 7,
    "toolchain": 8,
    "compiler": 8,
    "data": 8,
    "validate": 9,
    "analyze": 9,
    "lower": 9,
    "project": 10,
    "ui": 10,
    "cli": 11,
    "pytest": 12,
}
# The runtime half of the toolchain knows nothing of graphs: it builds and runs what others have written.
TOOLCHAIN_MAY_IMPORT = {"errors", "assets", "boards", "templating", "toolchain"}


def module_name(path: Path) -> str:
    """`ops` for tinyet/ops/conv2d.py, `ir` for tinyet/ir.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """First-level modules of tinyet that a file imports anywhere, type checking included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("tinyet.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tinyet":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {a.name for a in node.names if a.name in FLOORS}
    return found


def sources() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "_assets" not in p.parts)


def floor_of(name: str) -> float:
    return FLOORS[name] if not name.startswith("cli") else FLOORS["cli"]


def test_every_module_has_a_floor() -> None:
    names = {module_name(p) for p in sources()} - {"__init__", "__main__"}
    assert {n for n in names if n not in FLOORS and not n.startswith("cli")} == set()


def test_imports_point_down() -> None:
    wrong = []
    for path in sources():
        name = module_name(path)
        if name in ("__init__", "__main__"):
            continue
        for imported in imports(path):
            if imported == name or (name.startswith("cli") and imported.startswith("cli")):
                continue
            if floor_of(imported) >= floor_of(name):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {imported}")
    assert wrong == []


def test_toolchain_stands_alone() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources()
        if module_name(path) == "toolchain"
        for name in imports(path) - TOOLCHAIN_MAY_IMPORT
    ]
    assert wrong == []


def test_only_the_frontend_imports_torch() -> None:
    wrong = []
    for path in sources():
        if module_name(path) in ("frontend", "compiler", "lower"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(n.split(".")[0] in ("torch", "torchao") for n in names):
                wrong.append(str(path.relative_to(PACKAGE)))
    assert wrong == []


def test_no_file_is_too_long() -> None:
    long = {str(p.relative_to(PACKAGE)): n for p in sources() if (n := len(p.read_text().splitlines())) > 600}
    assert long == {}
