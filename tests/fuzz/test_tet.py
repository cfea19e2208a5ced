# SPDX-License-Identifier: Apache-2.0
"""What .tet files from strangers have done before, each by name; and some thousands of mutants."""

from __future__ import annotations

import dataclasses
import json
import random
import resource
from collections.abc import Callable

import pytest

from tests.fuzz import tet_mutations
from tests.fuzz.run import Case, Outcome, Result, run, run_here, table
from tests.fuzz.tet import TetFiles
from tests.fuzz.tet_seeds import F32, node, program, seeds, value
from tinyet.errors import InternalError, ProgramError
from tinyet.ir import Attrs
from tinyet.ops.clamp import Clamp
from tinyet.ops.unary import Unary
from tinyet.opset import Call, LiteralArg, Struct, attributes
from tinyet.program import from_bytes
from tinyet.tet import wire
from tinyet.tet.format import DIGEST_BYTES, seal
from tinyet.tet.wire import GraphRecord, ProgramRecord, QuantRecord

SEEDS = {p.name: p for p in seeds()}
Change = Callable[[ProgramRecord], None]


def changed(name: str, change: Change) -> bytes:
    """A seed's file after something was done to its records."""
    record = wire.root_of(SEEDS[name].data[:-DIGEST_BYTES])[2]()
    change(record)
    return seal(wire.write(record))


def refusal_of(name: str, change: Change) -> str:
    with pytest.raises(ProgramError) as caught:
        from_bytes(changed(name, change), "strange.tet")
    assert caught.value.where == "strange.tet"
    assert caught.value.hint
    return caught.value.what


def attribute(**values: object) -> Change:
    """Attributes of the first node."""

    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        first = record.graph.nodes[0]
        first.attrs = json.dumps({**json.loads(first.attrs), **values})

    return change


def tensor(index: int, **values: object) -> Change:
    """Fields of a tensor."""

    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        record.graph.tensors[index] = dataclasses.replace(record.graph.tensors[index], **values)  # type: ignore[arg-type]

    return change


def attrs_text(text: str) -> Change:
    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        record.graph.nodes[0].attrs = text

    return change


def both(*changes: Change) -> Change:
    def change(record: ProgramRecord) -> None:
        for each in changes:
            each(record)

    return change


def graph_of(change: Callable[[GraphRecord], None]) -> Change:
    def changed_graph(record: ProgramRecord) -> None:
        assert record.graph is not None
        change(record.graph)

    return changed_graph


def _states(*indices: int) -> Change:
    def change(graph: GraphRecord) -> None:
        if len(graph.tensors) - 1 not in indices:  # its constant, which nothing else uses
            graph.tensors.pop()
        graph.initial = indices

    return graph_of(change)


def _reads(number: int, *indices: int) -> Change:
    """What a node reads, by its place."""

    def change(graph: GraphRecord) -> None:
        graph.nodes[number].inputs = indices

    return graph_of(change)


def _index(name: str, of: str) -> int:
    graph = SEEDS[name].graph
    tensors = [*graph.inputs, *(t for n in graph.nodes for t in n.outputs), *graph.initial]
    return [t.name for t in tensors].index(of)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("sum_kept_s8", _states(99), "no tensor 99 among its states"),
        ("sum_kept_s8", _states(0), "what it is at first is no constant"),
        ("sum_kept_s8", _states(*[_index("sum_kept_s8", "h_initial")] * 3), "3 states need an input"),
        ("sum_kept_s8", _states(), "is kept, and is no state"),
        ("sum_kept_s8", tensor(_index("sum_kept_s8", "h_initial"), quant=QuantRecord((0.1,), (0,))), "when read"),
        ("delay_kept_s8", _reads(3, 1, 2), "what is kept lies in state h"),
        ("delay_kept_s8", _reads(2, 0, 2), "is not kept in its place"),
        ("ring_kept_s8", _reads(3, -1, 1), "state_write has no input 0"),
    ],
)  # fmt: skip
def test_states_that_are_none_are_refused(name: str, change: Change, what: str) -> None:
    assert what in refusal_of(name, change)


# ---------------------------------------------------------------- code


COMMAND = 'x_f32(0); system("touch owned"); tinyet_abs'


def test_a_function_that_is_c_is_refused() -> None:
    """It was pasted into the generated C, which `validate --on host` compiled and ran."""
    assert "function is 'x_f32(0); system" in refusal_of("abs_f32", attribute(function=COMMAND))


@pytest.mark.parametrize(
    ("name", "key"), [("pad_f32", "mode"), ("bilinear_f32", "mode"), ("regional", "delegate")]
)
def test_no_attribute_takes_text_of_a_file(name: str, key: str) -> None:
    assert f"{key} is 'x_f32(0); system" in refusal_of(name, attribute(**{key: COMMAND}))


def test_what_a_kernel_makes_of_names_is_looked_at_once_more() -> None:
    """Kernels of plugins, too, build the names of functions."""
    for text in (COMMAND, "", "1a", "a\nb"):
        with pytest.raises(InternalError, match="is no name"):
            Call(text, ())
        with pytest.raises(InternalError, match="is no name"):
            Call("f", (), Struct("params", {"shape": Struct(text, {})}))
    # Literals are numbers: mypy refuses a text here.
    assert LiteralArg(7).value == 7


# ---------------------------------------------------------------- sizes


def test_26_gigabytes_when_loading() -> None:
    """Large windows: a table of all taps of all windows was made to count those in the image."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "pads (2147483647" in refusal_of("avg_pool_s8", attribute(kernel_h=2**31 - 1, pad_top=2**31 - 1))
    wide = attribute(
        kernel_h=1, kernel_w=60000, stride_h=1, stride_w=1, pad_left=60000, pad_right=60000, pad_top=0
    )
    assert "windows of 1x60000 pixels" in refusal_of("avg_pool_f32", wide)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_5_terabytes_when_planning() -> None:
    for shape in ((2**20, 2**20, 4), (2**12, 2**12, 2)):
        what = refusal_of("clamp_f32", both(tensor(0, shape=shape), tensor(1, shape=shape)))
        assert "elements" in what


def test_all_values_together_are_bounded() -> None:
    x = value("x", (1 << 24,), F32)
    nodes = [node(Clamp(), [x], F32, None, "y0")]
    for index in range(4):
        nodes.append(node(Clamp(), [nodes[-1].output], F32, None, f"y{index + 1}"))
    with pytest.raises(InternalError, match="what it computes has"):
        program("long", *nodes)


def test_multiply_accumulates_are_bounded() -> None:
    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        for each in record.graph.tensors:
            each.shape = (1 << 12, 1 << 12)

    assert "multiply-accumulates" in refusal_of("matmul_f32", change)


@pytest.mark.parametrize("shape", [(1,) * 9, (1,) * 33, (1,) * 500, (2, 0), (2, -5), (2**31 - 1, 2)])
def test_shapes_that_no_value_has(shape: tuple[int, ...]) -> None:
    what = refusal_of("tanh_s8", both(tensor(0, shape=shape), tensor(1, shape=shape)))
    assert "dimension" in what or "elements" in what


def test_a_small_file_cannot_stand_for_a_large_one() -> None:
    """Ten thousand labels that are all the same kilobytes of the file: without a bound, a file could have billions."""
    record = wire.root_of(SEEDS["linear_f32"].data[:-DIGEST_BYTES])[2]()
    record.labels = ("x", "y")
    data = bytearray(wire.write(record))
    data += bytes(-len(data) % 4)
    field, at, count = _field(data, 8), len(data), 10_000
    data += count.to_bytes(4, "little")
    # Behind them what they lead to: each label begins four bytes behind the one before, and is 96 bytes long.
    texts = at + 4 + 4 * count
    for index in range(count):
        data += (texts + 4 * (index % 700) - (at + 4 + 4 * index)).to_bytes(4, "little")
    data += (96).to_bytes(4, "little") * 800
    data[field : field + 4] = (at - field).to_bytes(4, "little")
    with pytest.raises(ProgramError, match="its parts overlap"):
        from_bytes(seal(bytes(data)), "bomb.tet")


def _field(data: bytearray, slot: int) -> int:
    """Where a field of the root stands."""
    root = int.from_bytes(data[:4], "little")
    layout = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    return root + int.from_bytes(data[layout + 4 + 2 * slot : layout + 6 + 2 * slot], "little")


# ---------------------------------------------------------------- types and numbers


@pytest.mark.parametrize("name", ["div_s8", "minimum_s8", "maximum_s8", "add_s8", "mul_s8"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "int32"])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_mixed_types_that_read_beyond_their_operands(name: str, dtype: str, index: int) -> None:
    """int8 beside float32: the kernel took the one for the other, four bytes where there was one."""
    quant = QuantRecord((0.05,), (0,)) if dtype == "int16" else None
    assert "no form for" in refusal_of(name, tensor(index, dtype=dtype, quant=quant))


@pytest.mark.parametrize(
    ("quant", "words"),
    [
        (QuantRecord((0.0,), (0,)), "positive finite"),
        (QuantRecord((-1.0,), (0,)), "positive finite"),
        (QuantRecord((float("nan"),), (0,)), "positive finite"),
        (QuantRecord((float("inf"),), (0,)), "positive finite"),
        (QuantRecord((1e-40,), (0,)), "no normal float32"),
        (QuantRecord((0.1,), (128,)), "zero point 128"),
        (QuantRecord((0.1,), (-129,)), "zero point -129"),
        (QuantRecord((0.1, 0.2), (0,)), "2 scales beside 1 zero points"),
        (QuantRecord((), ()), "0 scales"),
        (QuantRecord((0.1, 0.2), (0, 0), 0), "per channel, which only constants"),
        (QuantRecord((0.1,), (0,), 7), "axis 7 of 2 dimensions"),
        (QuantRecord((0.1,), (0,), -2), "axis -2 of 2 dimensions"),
        (None, "int8 and not quantized"),
    ],
)
def test_quantization_that_no_value_has(quant: QuantRecord | None, words: str) -> None:
    assert words in refusal_of("tanh_s8", tensor(0, quant=quant))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("max_pool_s8", {"stride_h": 0}, "stride 0x1"),
        ("max_pool_s8", {"pad_top": -1}, "pads (-1"),
        ("conv_s8", {"dilation_h": 2**31 - 1}, "dilation 2147483647"),
        ("transposed_f32", {"stride_h": 60000}, "stride 60000"),
        ("transposed_f32", {"out_pad_h": -1}, "output padding -1"),
        ("nearest_s8", {"out_h": 2**30}, "1073741824x3 pixels"),
        ("nearest_s8", {"ratio_h": 1e30}, "ratios 1e+30"),
        ("adaptive_s8", {"out_h": 2**30}, "1073741824x3 pixels"),
        ("softmax_s8", {"axis": 3}, "no axis 3"),
        ("softmax_s8", {"axis": -1}, "no axis -1"),
        ("mean_s8", {"axes": [1, 1]}, "axes (1, 1)"),
        ("add_f32", {"clamp": [1.0, -1.0]}, "empty range"),
        ("add_f32", {"clamp": [float("nan"), 1.0]}, "clamp is"),
        ("elu_f32", {"alpha": float("inf")}, "parameters inf"),
        ("elu_f32", {"alpha": 1e39}, "alpha is 1e+39"),
        ("celu_f32", {"alpha": 1e-45}, "which is 0"),
        ("slice_s8", {"stop": 99}, "leaves it"),
        ("permute_s8", {"order": [0, 0, 1]}, "no order"),
        ("permute_s8", {"order": [True, 0, 2]}, "order is"),
        ("layer_norm_s8", {"epsilon": -1.0}, "epsilon of -1.0"),
        ("regional", {"graph": 1}, "graph is None"),
        ("regional", {"graph": True}, "graph is True"),
    ],
)
def test_attributes_that_no_compiler_writes(name: str, values: dict[str, object], words: str) -> None:
    assert words in refusal_of(name, attribute(**values))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 20_000, "nested too deep"),
        ('{"axis": 1, "axis": 2}', "stands twice"),
        ('{"axis": ' + "9" * 5000 + "}", "digits"),
        ('{"axis": 99999999999}', "axis is 99999999999"),
        ("{}", "axis is missing"),
        ('{"axis": 2, "axes": 3}', "no attribute 'axes'"),
        ('{"axis": null}', "axis is None"),
        ("null", "a NoneType"),
        ("", "Expecting value"),
    ],
)
def test_json_that_no_compiler_writes(text: str, words: str) -> None:
    assert words in refusal_of("softmax_s8", attrs_text(text))


def test_constants_whose_bytes_are_not_theirs() -> None:
    assert "holds 3 bytes" in refusal_of("linear_f32", tensor(1, data=b"abc"))
    assert "must be constants" in refusal_of("linear_f32", both(tensor(1, data=None), _as_input(1)))
    assert "no int4" in refusal_of("linear_s8w4", tensor(1, data=bytes([100]) * 35))


def _as_input(index: int) -> Change:
    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        record.graph.inputs = (*record.graph.inputs, index)

    return change


# ---------------------------------------------------------------- wiring


def _wired(**values: object) -> Change:
    def change(record: ProgramRecord) -> None:
        assert record.graph is not None
        for key, number in values.items():
            target = record.graph.nodes[0] if key.startswith("node_") else record.graph
            setattr(target, key.removeprefix("node_"), number)

    return change


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("tanh_s8", _wired(node_inputs=()), "0 input(s), unary takes 1"),
        ("tanh_s8", _wired(node_inputs=(0, 0)), "2 input(s), unary takes 1"),
        ("tanh_s8", _wired(node_inputs=(-1,)), "unary has no input 0"),
        ("concat_s8", _wired(node_inputs=(0, -1)), "do not stand in their order"),
        ("tanh_s8", _wired(node_inputs=(9,)), "no tensor 9"),
        ("tanh_s8", _wired(node_outputs=()), "order"),
        ("tanh_s8", _wired(node_outputs=(0,)), "order"),
        ("tanh_s8", _wired(node_origins=(5,)), "no origin 5"),
        ("tanh_s8", _wired(outputs=()), "no outputs"),
        ("tanh_s8", _wired(inputs=()), "order"),
        ("add_s8", _wired(inputs=(0, 0)), "order"),
        ("tanh_s8", tensor(1, name="x"), "two tensors are called x"),
        ("tanh_s8", tensor(1, name="a\x1b[2J"), "which is no name"),
        ("tanh_s8", tensor(1, name="y" * 600), "600 characters"),
        ("tanh_s8", lambda r: setattr(r, "name", "a b"), "no name in C"),
        ("tanh_s8", lambda r: r.notes.append(wire.NoteRecord("n", 4)), "origin 4"),
        ("tanh_s8", lambda r: setattr(r, "graph", None), "there is no graph"),
        ("tanh_s8", lambda r: setattr(r, "subgraphs", [r.graph]), "inner graph 0 is not used"),
        ("labelled", lambda r: setattr(r, "labels", ("a\nb",)), "not a name"),
        ("twin", tensor(0, shape=(5, 2)), "typed (2, 5)"),
    ],
)  # fmt: skip
def test_wiring_that_no_compiler_writes(name: str, change: Change, words: str) -> None:
    assert words in refusal_of(name, change)


def test_graphs_in_graphs_are_bounded() -> None:
    def wrapped(depth: int) -> Change:
        def change(record: ProgramRecord) -> None:
            for _ in range(depth):
                tet_mutations.wrap(record)

        return change

    assert from_bytes(changed("tanh_f32", wrapped(3)), "x.tet").graph.nodes[0].op == "region"
    assert "more than 8 deep" in refusal_of("tanh_f32", wrapped(50))


def test_a_region_that_gives_its_input() -> None:
    def change(record: ProgramRecord) -> None:
        record.subgraphs[0].outputs = record.subgraphs[0].inputs

    assert "gives an input, or one value twice" in refusal_of("regional", change)


def test_everything_that_is_wrong_is_listed() -> None:
    what = refusal_of("add_s8", both(tensor(0, dtype="float64"), tensor(1, shape=(0,)), attribute(clamp="x")))
    assert what.count("\n") == 3
    assert "float64" in what
    assert "clamp is 'x'" in what


def test_every_seed_comes_back() -> None:
    for one in SEEDS.values():
        assert from_bytes(one.data, "seed.tet").data == one.data


# ---------------------------------------------------------------- mutants


MUTANTS = 2000


def test_mutants() -> None:
    """docs/fuzzing.md says how to run a million."""
    tally = run(TetFiles(), 11, MUTANTS)
    assert not tally.failures, table("tet", tally) + "\n" + tally.failures[0].text
    for outcome in (Outcome.REFUSED, Outcome.REFUSED_LATER, Outcome.EXACT):
        assert tally.outcomes[outcome], table("tet", tally)


class WrongOnPurpose(TetFiles):
    """Whose C is of another function than the program says."""

    def mutate(self, rng: random.Random) -> Case:
        kind = rng.choice(("sin", "cos"))
        x = value("x", (2, 5), F32)
        assert kind in ("sin", "cos")
        made = program("trigonometry", node(Unary("sin" if kind == "sin" else "cos"), [x], F32))
        return Case(kind, made.data)

    def flush(self) -> list[Result]:
        """tinyet_cos_f32 where tinyet_sin_f32 was meant, and a read beyond the end."""
        for index, model in enumerate(self.builds.batch.models):
            texts = {
                name: text.replace("tinyet_sin_f32", "tinyet_cos_f32")
                for name, text in model.files.items()
                if "mutant" in name
            }
            if model.case.label == "cos":
                texts = {name: text.replace(".count = 10", ".count = 11") for name, text in texts.items()}
            self.builds.batch.models[index] = dataclasses.replace(model, files={**model.files, **texts})
        return super().flush()


def test_wrong_c_is_seen() -> None:
    target = WrongOnPurpose()
    tally = run_here(target, 1, range(40))
    said = {f.label: f.text for f in tally.failures}
    assert "reference" in said["sin"]
    assert "AddressSanitizer" in said["cos"]
    assert tally.outcomes[Outcome.FAILED] == 2, "each once, the rest is the same C"


def test_no_operator_has_attributes_of_text() -> None:
    """Every use of an attribute in C goes through a number or a Literal, which mypy knows."""
    for one in SEEDS.values():
        for each in one.graph.nodes:
            kind: type[Attrs] = type(each.attrs)
            assert str not in attributes.schema(kind).values()
