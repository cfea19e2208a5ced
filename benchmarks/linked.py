# SPDX-License-Identifier: Apache-2.0
"""What the linker makes of every kernel on a core, and of what a firmware has around a model: flash and stack.

    python benchmarks/linked.py --board mps2_an386 library            functions of the library: code, stack
    python benchmarks/linked.py --board mps2_an386 made [KERNEL ...]  made for layers: stack, error of the code
    python benchmarks/linked.py around [BOARD ...]                    what the firmware of each board has beside a model

Writes tinyet/budget/linked/, from which `generate` and `analyze` know flash and stack before anything is built. Needs
the board's compiler; nothing runs. Functions that are made for layers are those of `benchmarks/costs.py`, which states
their code; what is learned here is by how much the compiler's is larger.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import costs, linked_avr
from benchmarks import kernels as layers
from tinyet import assets, ops
from tinyet.boards import Board, all_boards, load_board
from tinyet.boards.linker import linker_script
from tinyet.budget.code import plain_name
from tinyet.budget.room import CALL, flash_of
from tinyet.budget.tables import AROUND, LINKED, Around, Core, core_table, support_of, table_of
from tinyet.build.gcc import build_firmware
from tinyet.build.objects import compile_objects
from tinyet.build.size import measure
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate, kernel_sources
from tinyet.delegates.delegate import own_files
from tinyet.deployment import Deployment, deploy
from tinyet.emit.kernels import definitions
from tinyet.emit.model import model_files
from tinyet.emit.symbols import symbols_of
from tinyet.ir import Attrs, DType, Graph, Node, Tensor, TensorType
from tinyet.ops.add import Add
from tinyet.ops.argmax import ArgMax
from tinyet.ops.dequantize import Dequantize
from tinyet.opset import Definition, Kernel
from tinyet.program import Program
from tinyet.projects.one import generate
from tinyet.stack.bound import Stack

NOTHING = "int main(void);\nint main(void) { return 0; }\n"
ONCE = '#include "layers.h"\nint main(void);\nint main(void) { return (int)layers_run(); }\n'
CASES = 28
"""Layers that are drawn for a kernel that makes functions, those of known networks first."""
KINDS = ("quantized", "real", "whole")


def sizes_of(elf: Path) -> dict[str, int]:
    """Bytes of flash of every function and constant, at multiples of four, by its name in C; of what other files do not
    see with that of its file. Of several names of one thing the first."""
    at: dict[int, tuple[str, int]] = {}
    with elf.open("rb") as file:
        image = ELFFile(file)
        flags = [part["sh_flags"] for part in image.iter_sections()]
        table = image.get_section_by_name(".symtab")
        assert table is not None
        home = ""
        for symbol in table.iter_symbols():
            kind, section = symbol["st_info"]["type"], symbol["st_shndx"]
            if kind == "STT_FILE":
                home = f"{symbol.name}:"
            if (
                kind not in ("STT_FUNC", "STT_OBJECT")
                or not symbol["st_size"]
                or not isinstance(section, int)
            ):
                continue
            if flags[section] & SH_FLAGS.SHF_ALLOC and not flags[section] & SH_FLAGS.SHF_WRITE:
                local = symbol["st_info"]["bind"] == "STB_LOCAL"
                name = (home if local else "") + plain_name(symbol.name)
                found = name, -(-symbol["st_size"] // 4) * 4
                at[symbol["st_value"] & ~1] = min(found, at.get(symbol["st_value"] & ~1, found))
    sizes: dict[str, int] = {}
    end = 0
    for address, (name, size) in sorted(at.items()):
        # A function that one begins in the midst of has been counted with that one.
        if address + size > end:
            sizes[name] = sizes.get(name, 0) + address + size - max(address, end)
            end = address + size
    return sizes


# ---------------------------------------------------------------- the library


def library_sources(board: Board) -> list[str]:
    """The names of the C files of all kernels of tinyet's own that run on a board."""
    homes = [home for home in (PORTABLE, CORTEX_M) if home.supports(board.target) is None]
    kernels = [kernel for home in homes for found in home.kernels.values() for kernel in found]
    names = {name for kernel in kernels for name in own_files(kernel.headers, kernel.sources)}
    return sorted(name for name in names if name.endswith(".c"))


def library(board: Board, folder: Path) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """(bytes of every function and constant, {function: what is linked for it, and its stack})."""
    firmware = assets.path("firmware")
    names = library_sources(board)
    sources = kernel_sources.write(folder / "src", names)
    main, script = folder / "main.c", folder / "linker.ld"
    main.write_text(NOTHING, encoding="utf-8")
    script.write_text(linker_script(roomy(board)), encoding="utf-8")
    tool = [board.toolchain.compiler, *board.machine_flags, *board.toolchain.library_flags]
    compiler = [
        *tool,
        *("-std=c11", "-g", "-O2", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off"),
        *(f"-D{name}={value}" for name, value in board.defines),
        *(f"-I{firmware / name}" for name in ("include", "platform")),
    ]
    support = [firmware / name for name in board.support_sources]
    objects = compile_objects(
        compiler, [*support, *sources, main], folder / "objects", what="compiling the library"
    )

    def linked(name: str) -> tuple[dict[str, int], int | None]:
        elf = folder / f"{name or 'nothing'}.elf"
        wanted = [f"-Wl,-u,{name}"] if name else []
        command = [*tool, *wanted, *objects, "-nostartfiles", "-Wl,--gc-sections", f"-T{script}", "-o", elf]
        subprocess.run([str(word) for word in command], check=True)
        stack = Stack(elf).function(name).bytes if name else 0
        sizes = sizes_of(elf)
        elf.unlink()
        return sizes, stack

    empty, _ = linked("")
    functions = sorted({n for name in names for n in definitions("\n".join(own_files([], [name]).values()))})
    sizes: dict[str, int] = {}
    found: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(2) as pool:
        for name, (all_sizes, stack) in zip(functions, pool.map(linked, functions), strict=True):
            needs = {n: size for n, size in all_sizes.items() if n not in empty}
            # Where the linker shortens calls that do not go far, functions have several sizes.
            sizes |= {n: max(size, sizes.get(n, 0)) for n, size in needs.items()}
            if stack is None:
                print(f"{name}: its stack has no bound, left out")
            else:
                found[name] = {"needs": sorted(needs), "stack": stack}
    return dict(sorted(sizes.items())), found


def avr_compiler(board: Board) -> list[str]:
    return [board.toolchain.compiler, *board.machine_flags, *board.toolchain.library_flags]


def avr_objects(board: Board, sources: Sequence[Path], folder: Path, *more: str) -> list[Path]:
    """As a framework compiles them. more: options."""
    standard = ("-std=gnu11", board.toolchain.optimization, "-ffp-contract=off")
    flags = [*standard, "-ffunction-sections", "-fdata-sections", *more]
    include = [f"-I{assets.path('firmware') / 'include'}", f"-I{folder}"]
    command = [*avr_compiler(board), *flags, *include]
    return compile_objects(command, sources, folder / "objects", what="compiling for AVR")


def items_of_avr(board: Board, sources: Sequence[Path], folder: Path) -> dict[int, linked_avr.Item]:
    """Of a program with a main function, in which each function stays one by itself."""
    objects = avr_objects(board, sources, folder, "-fno-inline")
    elf = linked_avr.linked(avr_compiler(board), objects, [], folder / "program.elf")
    return linked_avr.items_of(elf, board)


def library_of_avr(board: Board, folder: Path) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """What `library` gives, of a core whose firmware a framework links."""
    names = library_sources(board)
    sources = kernel_sources.write(folder / "src", names)
    main = folder / "main.c"
    main.write_text(NOTHING, encoding="utf-8")
    compiler, objects = avr_compiler(board), avr_objects(board, [*sources, main], folder)
    functions = sorted({n for name in names for n in definitions("\n".join(own_files([], [name]).values()))})
    empty = linked_avr.items_of(linked_avr.linked(compiler, objects, [], folder / "nothing.elf"), board)
    items = linked_avr.items_of(linked_avr.linked(compiler, objects, functions, folder / "all.elf"), board)
    there = {item.name for item in empty.values()}
    place = {item.name: at for at, item in items.items()}
    sizes: dict[str, int] = {}
    found: dict[str, dict[str, Any]] = {}
    for name in functions:
        own = {items[at].name: items[at].size for at in linked_avr.needs(items, place[name])}
        own = {each: size for each, size in own.items() if each not in there and size}
        deepest = linked_avr.stack(items, place[name])
        sizes |= own
        if deepest is None:
            print(f"{name}: its stack has no bound, left out")
        else:
            found[name] = {"needs": sorted(own), "stack": deepest}
    return dict(sorted(sizes.items())), found


def roomy(board: Board) -> Board:
    """With memory for whatever is linked."""
    flash, ram = (dataclasses.replace(m, bytes=1 << 24) for m in (board.flash, board.ram))
    return dataclasses.replace(board, flash=flash, ram=ram)


# ---------------------------------------------------------------- functions made for layers


def made(board: Board, wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kernel, what was learned of the functions that it makes)."""
    for home, attrs, kernel in costs.kernels_of(board, wanted):
        if home not in (PORTABLE, CORTEX_M):
            continue
        nodes = [
            node
            for node in costs.grid(attrs, kernel, board, costs.COMPARE, CASES)
            if isinstance(kernel.lower(node, board.target).symbol, Definition)
        ]
        if not nodes:
            continue
        rows = functions_made(board, home, attrs, kernel, nodes)
        ratio = sum(linked for _, linked, _, _ in rows) / sum(stated for stated, _, _, _ in rows)
        above = max(0.0, *(linked / (ratio * stated) - 1 for stated, linked, _, _ in rows))
        if not all(alone for *_, alone in rows):
            above = 1.0  # of what is a part of its caller nobody can tell one from another
        stack = max(stack for _, _, stack, _ in rows)
        print(
            f"{kernel.symbol:40} {len(rows):3} functions, ratio {ratio:.3f}, above {above:.3f}, stack {stack}",
            flush=True,
        )
        yield (
            kernel.symbol,
            {"stack": stack, "ratio": round(ratio, 4), "above": math.ceil(1000 * above) / 1000},
        )


def functions_made(
    board: Board, home: Delegate, attrs: type[Attrs], kernel: Kernel, nodes: Sequence[Node]
) -> list[tuple[int, int, int, bool]]:
    """(bytes stated, bytes linked with a call, stack beside the frame that its call states, whether it is a function by
    itself) of each."""
    graph = layers.side_by_side(nodes)
    deployment = deploy(graph, board.target, [dataclasses.replace(home, kernels={attrs: (kernel,)})])
    files = model_files(deployment, graph.name, ["layers"])
    with tempfile.TemporaryDirectory(prefix="tinyet-linked-") as where:
        folder = Path(where)
        for name, text in {**files, "main.c": ONCE}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        sources, names = sorted(folder.rglob("*.c")), symbols_of(deployment, graph.name).functions
        if board.simavr is not None:
            items = items_of_avr(board, sources, folder)
            sizes = {item.name.split(":")[-1]: item.size for item in items.values()}
            places = {item.name.split(":")[-1]: at for at, item in items.items()}

            def bound_of(name: str) -> int | None:
                return linked_avr.stack(items, places[name])

        else:
            elf = build_firmware(roomy(board), sources, [folder], folder / "build", harness=False)
            sizes = {name.split(":")[-1]: size for name, size in sizes_of(elf).items()}
            stack = Stack(elf)

            def bound_of(name: str) -> int | None:
                return stack.function(name).bytes

        found: dict[str, tuple[int, int, int, bool]] = {}
        for step in deployment.steps:
            symbol, cost = step.call.symbol, deployment.decision.chosen[step.node].cost
            if not isinstance(symbol, Definition):
                continue
            name = names[symbol]
            # What the compiler has made part of its caller is a part of that.
            alone = name in sizes
            bound = bound_of(name if alone else "layers_run")
            assert bound is not None, name
            linked = sizes[name] + CALL if alone else sizes["layers_run"] // len(deployment.steps)
            stated = CALL if cost is None else cost.code
            found[name] = stated, linked, bound - step.call.frame_bytes, alone
        return list(found.values())


# ---------------------------------------------------------------- around a model


def tiny(inputs: int, outputs: Sequence[str]) -> Graph:
    """One operator for each output."""
    given = [layers.activation(f"x{i}", (1, 8)) for i in range(inputs)]
    nodes = []
    for i, kind in enumerate(outputs):
        x = given[i % inputs]
        match kind:
            case "quantized":
                node = layers.with_output(Add(layers.NONE), [x, x], 0.1, False)
                type_ = node.outputs[0].type
            case "real":
                node, type_ = Node(Dequantize(), (x,), (x,)), TensorType(x.shape, DType.FLOAT32)
            case _:
                node, type_ = Node(ArgMax(axis=1), (x,), (x,)), TensorType((1,), DType.INT32)
        nodes.append(node.replace(outputs=[Tensor(f"y{i}", type_)]))
    return ops.check(
        Graph("one", tuple(given), tuple(n.outputs[0] for n in nodes), tuple(nodes)), "a tiny graph"
    )


@dataclasses.dataclass(frozen=True)
class Built:
    """A firmware of a tiny graph. flash, ram: without the demonstration's sample, the arena and states. functions: all
    but those of the model and of main.c."""

    deployment: Deployment
    flash: int
    ram: int
    functions: Mapping[str, int]


def built(board: Board, core: Core, inputs: int, outputs: Sequence[str]) -> Built:
    """One project, built."""
    with tempfile.TemporaryDirectory(prefix="tinyet-linked-") as where:
        project = generate(Program("one", tiny(inputs, outputs)), board, Path(where) / "one", kind="cmake")
        project.build()
        elf, deployment = project.elf(board.name), project.deployment
        size, sizes = measure(elf), sizes_of(elf)
    kernels = {f"{name}:" for name in library_sources(board)}
    own = {
        name
        for name in sizes
        if name in core.library or name.startswith(("one", "main")) or name.split(":")[0] + ":" in kernels
    }
    data = deployment.plan.arena_bytes + deployment.state_bytes
    functions = {name: size for name, size in sorted(sizes.items()) if name not in own}
    return Built(deployment, size.flash - size.sample, size.ram - data, functions)


def around(board: Board) -> dict[str, Any]:
    """As `tables.Around`."""
    core = core_table(table_of(board.target))
    assert core is not None, f"{table_of(board.target)}: measure the library first"
    whole, first = (built(board, core, 1, [kind]) for kind in ("whole", "quantized"))
    reals = {name: size for name, size in first.functions.items() if name not in whole.functions}
    nothing = dict.fromkeys(KINDS, 0)
    bare = Around(max(whole.ram, first.ram), whole.functions, reals, nothing, nothing, 0)

    def rest(inputs: int, outputs: Sequence[str]) -> int:
        """Bytes that are neither the model's nor those functions'."""
        one = built(board, core, inputs, outputs)
        return one.flash - flash_of(one.deployment, core, bare).stated

    alone = {kind: rest(1, [kind]) for kind in KINDS}
    more = {kind: (rest(1, [kind] * 3) - alone[kind]) // 2 for kind in KINDS}
    inputs = (rest(3, ["quantized"]) - alone["quantized"]) // 2
    return dataclasses.asdict(dataclasses.replace(bare, first=alone, more=more, input=inputs))


# ---------------------------------------------------------------- the tables


def stored(name: str) -> dict[str, Any]:
    """What a table holds so far."""
    path = LINKED / f"{name}.json"
    empty = {"toolchain": "", "sizes": {}, "library": {}, "made": {}}
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else empty


def store(name: str, table: Mapping[str, Any]) -> None:
    """A line for each entry of each part."""
    LINKED.mkdir(exist_ok=True)
    parts = []
    for key, value in sorted(table.items()):
        text = json.dumps(value)
        if isinstance(value, dict) and value:
            rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value.items())]
            text = "{\n" + ",\n".join(rows) + "\n }"
        parts.append(f" {json.dumps(key)}: {text}")
    (LINKED / f"{name}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def version(board: Board) -> str:
    command = [board.toolchain.compiler, "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return f"{said}, {board.toolchain.optimization}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["library", "made", "around"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--board", default="mps2_an386")
    args = parser.parse_args()
    board = costs.with_memory(load_board(args.board))
    name = table_of(board.target)
    match args.what:
        case "library":
            with tempfile.TemporaryDirectory(prefix="tinyet-linked-") as where:
                measured = library if board.bare_metal else library_of_avr
                sizes, found = measured(board, Path(where))
            store(name, stored(name) | {"toolchain": version(board), "sizes": sizes, "library": found})
            print(
                f"{name}: {len(found)} functions, the deepest {max(f['stack'] for f in found.values())} bytes"
            )
        case "made":
            for kernel, learned in made(board, args.names):
                table = stored(name)
                store(name, table | {"made": table["made"] | {kernel: learned}})
        case _:
            wanted = [load_board(n) for n in args.names] or [b for b in all_boards() if b.bare_metal]
            for one in wanted:
                table = json.loads(AROUND.read_text(encoding="utf-8")) if AROUND.is_file() else {}
                store(AROUND.stem, table | {support_of(one): around(one)})
                print(f"{one.name}: {support_of(one)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
