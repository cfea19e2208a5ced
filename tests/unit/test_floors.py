# SPDX-License-Identifier: Apache-2.0
"""A room imports from floors below its own only; rooms on one floor do not import each other.

A room is a folder of tinyet/ (or a module that stands alone at the top); `importers` has a room for each format.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import tinyet

PACKAGE = Path(tinyet.__file__).parent

# The house, from the ground up: the rooms of each floor. A room's own modules may import each other.
HOUSE: tuple[tuple[str, ...], ...] = (
    ("messages", "timing", "version"),
    ("errors",),
    ("assets", "files", "ir", "tiles"),
    ("answers", "boards", "numerics", "pages", "stack", "tflite"),
    ("build", "fx", "opset"),
    ("device", "features", "ops"),
    (
        *(
            "custom",
            "cycles",
            "data",
            "delegates",
            "exporters",
            "importers.onnx",
            "importers.classical",
            "memory",
        ),
        *("passes", "reference", "sizes", "tet"),
    ),
    ("importers.tflite", "importers.torch", "over_time", "planning", "to_module"),
    ("deployment", "quantization"),
    ("budget", "mismatch", "together"),
    ("emit",),
    ("accounts", "native"),
    ("program",),
    ("anomaly", "oracles", "quality", "to_files"),
    ("compiler", "validation"),
    ("lowering", "profiles", "project"),
    ("advising", "bench", "projects"),
    ("analysis", "auditing", "opening"),
    ("comparison", "survey"),
    ("cli", "pytest"),
    ("__main__",),
)
FLOORS = {room: number for number, rooms in enumerate(HOUSE) for room in rooms}
# What builds and runs firmware knows nothing of graphs: it works on what others have written.
BUILD_MAY_IMPORT = {"messages", "errors", "files", "assets", "boards", "build", "device"}
# The only rooms that need torch.
TORCH = ("features", "fx", "importers.torch", "quality", "quantization", "to_module")
MOST_LINES = 600
# Files that stand alone at the top: foundations, the two pipelines, and what people import by these names.
AT_THE_TOP = {
    "__init__",
    "__main__",
    "version",
    "compiler",
    "to_files",
    "lowering",
    "program",
    "deployment",
    "project",
    "validation",
    "analysis",
    "pytest",
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The imports of a file, inside functions and for type checking included."""
    return tuple(node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom))


def room_of(dotted: str) -> str:
    """`ops` for ops.shared.window, `importers.torch` for importers.torch.capture, `program` for program."""
    parts = dotted.split(".")
    return ".".join(parts[:2]) if parts[0] == "importers" and len(parts) > 1 else parts[0]


def room_of_file(path: Path) -> str:
    return room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


@cache
def imports(path: Path) -> frozenset[str]:
    """Rooms of tinyet that a file imports anywhere, type checking included."""
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {room_of(a.name.partition(".")[2]) for a in node.names if a.name.startswith("tinyet.")}
        elif node.module and node.module.split(".")[0] == "tinyet":
            inside = node.module.partition(".")[2]
            for name in node.names:
                dotted = f"{inside}.{name.name}" if inside else name.name
                if inside or dotted in FLOORS:
                    found.add(room_of(dotted))
    return frozenset(found)


@cache
def sources() -> tuple[Path, ...]:
    """All of tinyet's Python but the list of public names, which is on every floor."""
    found = sorted(p for p in PACKAGE.rglob("*.py") if "_assets" not in p.parts)
    return tuple(p for p in found if p != PACKAGE / "__init__.py")


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


def test_no_room_is_higher_than_it_needs_to_be() -> None:
    """Right above the highest room that it imports."""
    lowest = dict.fromkeys(FLOORS, 0)
    for path in sources():
        room = room_of_file(path)
        if room in FLOORS:
            lowest[room] = max([lowest[room], *(FLOORS[other] + 1 for other in imports(path) - {room})])
    assert lowest == FLOORS


def modules() -> dict[str, Path]:
    """Every module of tinyet but the list of public names."""
    return {".".join(("tinyet", *_parts(path))): path for path in sources()}


def _parts(path: Path) -> tuple[str, ...]:
    place = path.relative_to(PACKAGE)
    return place.parent.parts if path.name == "__init__.py" else place.with_suffix("").parts


def imported_modules(path: Path, known: Mapping[str, Path]) -> set[str]:
    """Modules that a file imports anywhere, inside functions and for type checking included."""
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner if inner <= set(known) else {*inner, node.module}
    return found & set(known)


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """The nodes of a directed graph from which a way leads back to them."""
    left = {name: set(others) for name, others in graph.items()}
    while ready := {name for name, others in left.items() if not others & set(left)}:
        left = {name: others for name, others in left.items() if name not in ready}
    while idle := set(left) - set().union(*left.values()):
        left = {name: others for name, others in left.items() if name not in idle}
    return sorted(left)


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Not even inside a function, or for type checking."""
    known = modules()
    graph = {name: imported_modules(path, known) - {name} for name, path in known.items()}
    assert sum(map(len, graph.values())) > 1000
    assert circles(graph) == []


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
        for node in statements(path):
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
        tree = tree_of(path)
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in statements(path):
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
        text = ast.get_docstring(tree_of(place)) if place.is_file() else None
        if not (text or "").split("\n\n")[0].rstrip().endswith("."):
            silent.append(str(room.relative_to(PACKAGE)))
    assert silent == []


def test_no_file_is_too_long() -> None:
    """Of the sources, in Python and C, and of the tests."""
    root = Path(__file__).parents[2]
    folders = ("tinyet", "firmware", "templates", "qemu", "tests", "benchmarks", "scripts", "examples")
    found = [p for f in folders for p in (root / f).rglob("*") if p.suffix in (".py", ".c", ".h", ".j2")]
    lines = {str(p.relative_to(root)): len(p.read_text(encoding="utf-8").splitlines()) for p in found}
    assert len(lines) > 1000
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
