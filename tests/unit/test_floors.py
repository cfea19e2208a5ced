# SPDX-License-Identifier: Apache-2.0
"""A room imports from floors below its own only; rooms on one floor do not import each other.

A room is a folder of tinyet/ (or a module that stands alone at the top); `importers` has a room for each format.
"""

from __future__ import annotations

import ast
from pathlib import Path

import tinyet
from tinyet.moved import MOVED

PACKAGE = Path(tinyet.__file__).parent

# Floor of each room, from the ground up. A room's own modules may import each other.
FLOORS = {
    "bounded": 0,
    "whole": 0,
    "flatbuffer": 0,
    "text": 0,
    "stages": 0,
    "ending": 0,
    "errors": 0.2,
    "arguments": 0.3,
    "foreign": 0.3,
    "version": 0,
    "moved": 0,
    "assets": 0.5,
    "boards": 0.7,
    "stack": 1,
    "ir": 1,
    "numerics": 1.5,
    "opset": 2,
    "ops": 3,
    "custom": 3.5,
    "tflite": 3.7,
    "importers.onnx": 4,
    "importers.tflite": 4,
    "importers.torch": 4,
    "exporters": 4,
    "passes": 4,
    "delegates": 4,
    "memory": 4,
    "reference": 4,
    "over_time": 4.5,
    "data": 4,
    "quantization": 5,
    "tet": 5,
    "planning": 5,
    "deployment": 6,
    "program": 6,
    "budget": 7,
    "emit": 7,
    "build": 8,
    "device": 8.5,
    "cycles": 8.7,
    "compiler": 8,
    "from_files": 8.2,
    "to_files": 8,
    "lower": 9,
    "oracles": 6.5,
    "validate": 9,
    "analyze": 9,
    "project": 10,
    "cli": 11,
    "pytest": 12,
    "__main__": 12,
}
# What builds and runs firmware knows nothing of graphs: it works on what others have written.
BUILD_MAY_IMPORT = {"bounded", "whole", "ending", "text", "errors", "assets", "boards", "build", "device"}
# The only rooms that need torch; importers.onnx for float models alone.
TORCH = ("importers.onnx", "importers.torch", "quantization")
MOST_LINES = 600
# Files that stand alone at the top: foundations, the two pipelines, and what people import by these names.
AT_THE_TOP = {
    "__init__",
    "__main__",
    "arguments",
    "bounded",
    "whole",
    "flatbuffer",
    "text",
    "errors",
    "stages",
    "ending",
    "version",
    "moved",
    "compiler",
    "from_files",
    "to_files",
    "lower",
    "program",
    "deployment",
    "project",
    "validate",
    "analyze",
    "pytest",
}


def room_of(dotted: str) -> str:
    """`ops` for ops.shared.window, `importers.torch` for importers.torch.capture, `program` for program."""
    parts = dotted.split(".")
    return ".".join(parts[:2]) if parts[0] == "importers" and len(parts) > 1 else parts[0]


def room_of_file(path: Path) -> str:
    return room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def imports(path: Path) -> set[str]:
    """Rooms of tinyet that a file imports anywhere, type checking included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {room_of(a.name.partition(".")[2]) for a in node.names if a.name.startswith("tinyet.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tinyet":
            inside = node.module.partition(".")[2]
            for name in node.names:
                dotted = f"{inside}.{name.name}" if inside else name.name
                if inside or dotted in FLOORS:
                    found.add(room_of(dotted))
    return found


def sources() -> list[Path]:
    """All of tinyet's Python but the list of public names, which is on every floor."""
    found = sorted(p for p in PACKAGE.rglob("*.py") if "_assets" not in p.parts)
    return [p for p in found if p != PACKAGE / "__init__.py"]


def test_every_room_has_a_floor() -> None:
    empty = {PACKAGE / "importers" / "__init__.py"}
    assert {room_of_file(p) for p in sources() if p not in empty} == set(FLOORS)


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {imported}"
        for path in sources()
        for imported in sorted(imports(path) - {room_of_file(path)})
        if FLOORS[imported] >= FLOORS[room_of_file(path)]
    ]
    assert wrong == []


def test_what_builds_and_runs_stands_alone() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources()
        if room_of_file(path) in ("build", "device")
        for name in imports(path) - BUILD_MAY_IMPORT
    ]
    assert wrong == []


def test_operators_know_what_they_share_only() -> None:
    """No operator imports another, nor does what they share import one: ops/__init__.py alone knows them all."""
    wrong = []
    paths = [p for p in (PACKAGE / "ops").rglob("*.py") if p != PACKAGE / "ops" / "__init__.py"]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                parts = module.split(".")
                if parts[:2] == ["tinyet", "ops"] and parts[2:3] != ["shared"]:
                    wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert len(paths) > 40
    assert wrong == []


def test_no_importer_knows_another() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources()
        if room_of_file(path).startswith("importers")
        for name in imports(path) - {room_of_file(path)}
        if name.startswith("importers") or name == "quantization"
    ]
    assert wrong == []


def test_torch_is_imported_in_its_rooms_only() -> None:
    """Elsewhere for type checking only."""
    wrong = []
    for path in sources():
        if room_of_file(path) in TORCH:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if id(node) not in typing_only and any(n.split(".")[0] in ("torch", "torchao") for n in names):
                wrong.append(str(path.relative_to(PACKAGE)))
    assert wrong == []


def test_the_top_is_what_a_stranger_reads_first() -> None:
    assert {p.stem for p in PACKAGE.glob("*.py")} == AT_THE_TOP


def test_every_room_says_what_it_is() -> None:
    """In its `__init__`, whose docstring begins with a sentence."""
    silent = []
    for room in {path.parent for path in sources()} - {PACKAGE}:
        place = room / "__init__.py"
        text = ast.get_docstring(ast.parse(place.read_text(encoding="utf-8"))) if place.is_file() else None
        if not (text or "").split("\n\n")[0].rstrip().endswith("."):
            silent.append(str(room.relative_to(PACKAGE)))
    assert silent == []


def test_old_names_are_gone_from_the_tree() -> None:
    present = {name for name in MOVED if PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py").exists()}
    assert present == set()


def test_no_file_is_too_long() -> None:
    lines = {str(p.relative_to(PACKAGE)): len(p.read_text().splitlines()) for p in sources()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
