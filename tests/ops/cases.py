# SPDX-License-Identifier: Apache-2.0
"""Many single-operator cases as one generated model: compiled, run, and compared with the reference bit for bit.

Everything between the operator and the machine is the product's own: selection, packing, memory planning and
generated C.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compilers.sanitizers import QUICK
from tests.ops.objects import compiled_object, run
from tinyet import ops
from tinyet.boards.cpus import HOST, Target
from tinyet.delegates import Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.emit.model import model_files
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Shape, Tensor, TensorType
from tinyet.memory import offsets, planner, schedule
from tinyet.ops.state_write import StateWrite
from tinyet.planning import kernel_front, search

_SEEN_AS_CXX: set[frozenset[str]] = set()
"""The headers of models that a C++ compiler of this session has taken."""

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror")
HOST_FLAGS = ("-O0", "-g1", "-ffp-contract=off")
"""For C that runs on this machine under sanitizers, which check what is written: optimizing it takes half as
long again. These say the line; more for a debugger would cost a third of the compiler's time."""

# On a board, a kernel that is made for one call is always inlined, with its constants. Here its C is under test, whose
# meaning is the same: compiled once for all calls of a file, it takes the compiler a tenth of the time.
CALLED = ("-Dalways_inline=unused",)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", *QUICK, *CALLED)
HOST_WITH_DSP = Target("host", frozenset({"dsp"}))

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "cases.h"
static const struct { unsigned offset, bytes; } inputs[] = { %(inputs)s };
static const struct { unsigned offset, bytes; } outputs[] = { %(outputs)s };
int main(void) {
  int next;
  do {
    for (unsigned i = 0; i < sizeof inputs / sizeof *inputs; i++)
      if (fread(cases_arena + inputs[i].offset, 1, inputs[i].bytes, stdin) != inputs[i].bytes) return 2;
    if (cases_run() != TINYET_OK) return 3;
    for (unsigned i = 0; i < sizeof outputs / sizeof *outputs; i++)
      fwrite(cases_arena + outputs[i].offset, 1, outputs[i].bytes, stdout);
    next = getc(stdin);
  } while (next != EOF && ungetc(next, stdin) == next);
  return 0;
}
"""


@dataclass(frozen=True)
class Case:
    """A node and one array for each of its inputs that is not a constant."""

    node: Node
    inputs: tuple[Array, ...]


def tensor(
    name: str, shape: Shape, dtype: DType = DType.INT8, scale: float | None = None, zero_point: int = 0
) -> Tensor:
    """A tensor of the graph; quantized per tensor when a scale is given."""
    quant = None if scale is None else QuantParams.per_tensor(scale, zero_point)
    return Tensor(name, TensorType(tuple(shape), dtype, quant))


def renamed(case: Case, prefix: str) -> Node:
    """The node with its tensors under names of their own."""

    def again(t: Tensor | None, label: str) -> Tensor | None:
        return None if t is None else Tensor(f"{prefix}_{label}", t.type, t.data)

    inputs: list[Tensor | None] = []
    seen: dict[Tensor, Tensor | None] = {}
    for i, t in enumerate(case.node.inputs):
        if t is not None and t not in seen:
            seen[t] = again(t, f"in{i}")
        inputs.append(None if t is None else seen[t])
    outputs = [Tensor(f"{prefix}_out{i}", t.type) for i, t in enumerate(case.node.outputs)]
    return case.node.replace(inputs=inputs, outputs=outputs)


def survive(index: int, node: Node) -> bool:
    """Whether a case's inputs are outputs, too. A state's value is written over, wherever it stands."""
    return index % 2 == 1 and not isinstance(node.attrs, StateWrite)


def build_graph(cases: Sequence[Case]) -> Graph:
    """All cases side by side. In every second one the inputs are outputs of the graph, too: they must survive, so the
    operator cannot work in place there; in the others it may."""
    nodes = [renamed(case, f"c{i}") for i, case in enumerate(cases)]
    inputs, outputs = [], []
    for i, node in enumerate(nodes):
        own = list(dict.fromkeys(t for t in node.inputs if t is not None and not t.is_constant))
        inputs += own
        outputs += list(node.outputs) + (own if survive(i, node) else [])
    graph = Graph("cases", tuple(inputs), tuple(outputs), tuple(nodes))
    return ops.check(graph, "building the cases")


def expected(node: Node, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The reference's outputs; `arrays` are the inputs that are not constants."""
    rest = dict(
        zip(dict.fromkeys(t for t in node.inputs if t is not None and not t.is_constant), arrays, strict=True)
    )
    values = [None if t is None else t.array if t.is_constant else rest[t] for t in node.inputs]
    return ops.evaluate(node, values)


# Other people's libraries, below a folder of their own, may shift negative numbers and let sums wrap.
THIRD_PARTY = ("-fno-sanitize=shift,signed-integer-overflow",)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their relative paths."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def objects_for_host(compiler: Sequence[str], sources: Sequence[Path]) -> list[Path]:
    """The objects of a model's sources that lie side by side. Its kernels are those of the other tests of this machine,
    under the sanitizers; compiler: for what is the model's own, with its flags."""
    of_kernels = ["gcc", "-std=c11", *HOST_FLAGS, *WARNINGS, *SANITIZERS]
    return [
        compiled_object(
            [*(of_kernels if source.name.startswith("tinyet_") else compiler), f"-I{source.parent}"], source
        )
        for source in sources
    ]


@contextmanager
def arenas_of_any_size() -> Iterator[None]:
    """Within, arenas need not be small, kernels need not take less memory, of many choices of kernels nearly as good
    ones are found, and calls stay in order: for layers side by side searching takes as long as the compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "DEFAULT_BUDGET", 0)
        patch.setattr(offsets, "DEFAULT_BUDGET", 1)
        patch.setattr(search, "_MOST_ASSIGNMENTS", 1)
        patch.setattr(kernel_front, "MOST_PARTIAL", 5_000)
        patch.setattr(kernel_front, "MOST_STATES", 1_000)
        patch.setattr(planner, "_MOST_APART", 0)
        yield


def placed_quickly(graph: Graph, target: Target, *args: Any, **options: Any) -> Deployment:
    """`deploy` for cases side by side."""
    with arenas_of_any_size():
        return deploy(graph, target, *args, **options)


def run_on_host(deployment: Deployment, data: bytes, extra: Sequence[str] = SANITIZERS) -> bytes:
    """The generated model under ASan and UBSan: input bytes in order → output bytes in order. data: of one run, or of
    several one after another."""
    flags = (*HOST_FLAGS, *WARNINGS, *extra)
    files = model_files(deployment, "cases", ["cases"])
    # Printed functions of single calls are compiled together, in a tenth of the time. That each file stands alone is
    # tested in tests/tiles, and with the models of boards.
    printed = sorted({name for step in deployment.steps for name in step.call.files if name.endswith(".c")})
    graph, plan = deployment.graph, deployment.plan
    spans = {
        kind: ", ".join(f"{{ {plan.offset(t)}, {t.type.bytes} }}" for t in tensors)
        for kind, tensors in (("inputs", graph.inputs), ("outputs", graph.outputs))
    }
    with tempfile.TemporaryDirectory(prefix="tinyet-case-") as where:
        folder = Path(where)
        together = "".join(f'#include "{name}"\n' for name in printed)
        write_files(folder, {**files, "main.c": MAIN % spans, "printed.c": together})
        objects = []
        for name in files:
            if name.endswith(".c") and name != "cases.c" and name not in printed:
                more = THIRD_PARTY if "/" in name else ()
                compiler = ["gcc", "-std=c11", *flags, *more, f"-I{where}"]
                objects.append(str(compiled_object(compiler, folder / name)))
        binary = str(folder / "cases")
        # What is told of the place, so that the same model in another one is no other program.
        common = [*flags, f"-ffile-prefix-map={where}=.", "-I", where]
        own = [f"{where}/{name}" for name in ("cases.c", "main.c", *(["printed.c"] if printed else []))]
        run(["gcc", "-std=c11", *common, "-o", binary, *own, *objects])
        headers = frozenset(re.findall(r"#include.*", files["cases.c"]))
        if headers not in _SEEN_AS_CXX:  # what calls the same kernels says nothing new to C++
            run(["g++", "-x", "c++", "-std=c++17", *common, "-fsyntax-only", f"{where}/cases.c"])
            _SEEN_AS_CXX.add(headers)
        return run([binary], data)


Runner = Callable[[Graph, Sequence[Array]], tuple[Deployment, bytes]]
"""Runs a graph on inputs: the deployment, and the output bytes in order."""


def assert_exact(
    cases: Sequence[Case], on: str | Runner = "host", delegates: Sequence[Delegate] = ()
) -> Deployment:
    """Fail unless the generated C gives the reference's outputs for every case: integers bit for bit, floats equal
    (NaN equals NaN). on: "host", a board's name for the emulator, or what else runs it. With delegates, the host
    pretends to have DSP instructions."""
    graph = build_graph(cases)
    if on == "host":
        deployment = (
            placed_quickly(graph, HOST_WITH_DSP, delegates) if delegates else placed_quickly(graph, HOST)
        )
        raw = run_on_host(
            deployment, b"".join(np.ascontiguousarray(a).tobytes() for c in cases for a in c.inputs)
        )
    elif callable(on):
        deployment, raw = on(graph, [a for c in cases for a in c.inputs])
    else:
        from tests.ops.emulated import run_emulated

        deployment, raw = run_emulated(graph, [a for c in cases for a in c.inputs], on, delegates)
    position = 0
    for i, (case, node) in enumerate(zip(cases, graph.nodes, strict=True)):
        own = list(dict.fromkeys(t for t in node.inputs if t is not None and not t.is_constant))
        wanted = list(expected(node, case.inputs)) + (list(case.inputs) if survive(i, node) else [])
        tensors = list(node.outputs) + (own if survive(i, node) else [])
        for tensor_, want in zip(tensors, wanted, strict=True):
            assert tuple(want.shape) == tensor_.shape, f"reference gave shape {want.shape} for {tensor_.type}"
            size = tensor_.type.bytes
            got = np.frombuffer(raw[position : position + size], tensor_.dtype.numpy).reshape(tensor_.shape)
            position += size
            same = (got == want) | ((got != got) & (want != want))
            if not np.all(same):
                index = tuple(int(v) for v in np.argwhere(~same)[0])
                kernel = next(
                    (s.choice.kernel.symbol for s in deployment.steps if s.node is node), "(elided)"
                )
                raise AssertionError(
                    f"{kernel} differs at {index} of {tensor_.name}: C {got[index]}, reference {want[index]}; "
                    f"{int((~same).sum())} of {same.size} differ\n{node.attrs}\n"
                    + "\n".join(
                        f"  {t.name}: {t.type}" for t in (*node.inputs, *node.outputs) if t is not None
                    )
                )
    assert position == len(raw)
    return deployment
