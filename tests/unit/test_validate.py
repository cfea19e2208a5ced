# SPDX-License-Identifier: Apache-2.0
"""Validation against a device that is the host reference itself, with mistakes made on purpose."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests import small
from tinyet.boards.cpus import Target
from tinyet.data import Samples, make_samples, predicted, prepare_inputs
from tinyet.deployment import Deployment, deploy
from tinyet.device.device import Device, RunResult
from tinyet.device.protocol import Slot
from tinyet.errors import DataError, EmulatorError
from tinyet.ir import Array, Graph, Tensor
from tinyet.program import Program
from tinyet.reference import evaluate
from tinyet.validation import Sizes, ValidationResult, validate

_PROGRAM = small.program()
_DEPLOYMENT = deploy(_PROGRAM.graph, Target("cortex-m4", frozenset({"dsp"})))
_SAMPLES = 3


@dataclass(frozen=True)
class Mistake:
    """From sample number `sample` on, an element of a layer's result is off by `by`; of several mistakes in a
    layer the last one counts."""

    layer: int
    index: tuple[int, ...]
    by: int = 1
    sample: int = 0


@dataclass
class FakeDevice:
    """What the harness does, in numpy: an arena, runs that stop after a layer, counts that can be checked."""

    deployment: Deployment
    mistakes: Sequence[Mistake] = ()
    hash: str = _PROGRAM.hash
    count_unit: str = "instructions"
    stack: int = 200
    forgets: bool = False  # mistakes only in whole runs: nothing to be found when looked at layer by layer
    log: list[tuple[int | None, bool]] = field(default_factory=list)
    _seen: list[bytes] = field(default_factory=list)
    _arena: bytearray = field(default_factory=bytearray)

    def info(self) -> SimpleNamespace:
        graph, plan = self.deployment.graph, self.deployment.plan
        slots = [[Slot(plan.offset(t), t.type.bytes) for t in ts] for ts in (graph.inputs, graph.outputs)]
        layers = len(self.deployment.steps)
        return SimpleNamespace(hash=self.hash, inputs=slots[0], outputs=slots[1], num_layers=layers)

    def run(
        self,
        inputs: Sequence[bytes],
        stop_after: int | None = None,
        *,
        runs: int = 1,
        uninterrupted: bool = False,
    ) -> RunResult:
        assert runs == 1
        self.log.append((stop_after, uninterrupted))
        key = b"".join(inputs)
        if key not in self._seen:
            self._seen.append(key)
        graph = self.deployment.graph
        arrays = [
            np.frombuffer(data, t.dtype.numpy).reshape(t.shape)
            for data, t in zip(inputs, graph.inputs, strict=True)
        ]
        whole = stop_after is None
        values = self._wrong_values(graph, arrays, self._seen.index(key), whole)
        self._arena = bytearray(b"\xaa" * self.deployment.plan.arena_bytes)
        steps = self.deployment.steps[: None if stop_after is None else stop_after + 1]
        for step in steps:
            for tensor in step.node.outputs:
                at = self.deployment.plan.offset(tensor)
                self._arena[at : at + tensor.type.bytes] = values[tensor].tobytes()
        counts = tuple(1000 * (step.index + 1) + self._seen.index(key) for step in steps)
        outputs = tuple(values[t].tobytes() for t in graph.outputs) if whole else ()
        ran = tuple(int(step in steps) for step in self.deployment.steps)
        if uninterrupted:
            return RunResult(outputs, (), 0, self.stack + 8, False, layer_runs=ran)
        return RunResult(outputs, counts, sum(counts) + 7, self.stack, not whole, layer_runs=ran)

    def read(self, offset: int, n: int) -> bytes:
        return bytes(self._arena[offset : offset + n])

    def _wrong_values(
        self, graph: Graph, arrays: Sequence[Array], sample: int, whole: bool
    ) -> Mapping[Tensor, Array]:
        """The reference's values; behind a mistake everything is computed from what is wrong."""
        if self.forgets and not whole:
            return evaluate(graph, arrays)
        node_of = {self.deployment.steps[m.layer].node: m for m in self.mistakes if sample >= m.sample}
        values = dict(evaluate(graph, arrays))
        for number, node in enumerate(graph.nodes):
            mistake = node_of.get(node)
            if mistake is None:
                continue
            result = values[node.output].copy()
            result[mistake.index] = np.int64(int(result[mistake.index]) + mistake.by).astype(result.dtype)
            values[node.output] = result
            # The rest of the graph, reading the wrong value.
            rest = Graph("rest", (node.output,), graph.outputs, graph.nodes[number + 1 :])
            values.update(evaluate(rest, [result]))
        return values


def _validate(
    device: FakeDevice,
    samples: Samples | None = None,
    program: Program = _PROGRAM,
    sqnr_samples: int = 2,
) -> ValidationResult:
    return validate(
        program,
        device.deployment,
        cast(Device, device),
        samples or make_samples(program.inputs, [small.images(_SAMPLES)]),
        on="qemu",
        board="mps2_an386",
        sizes=Sizes(1234, 5678),
        sqnr_samples=sqnr_samples,
    )


# ---- a device that is right ----


def test_a_right_device_is_bit_exact_and_everything_is_counted() -> None:
    device = FakeDevice(_DEPLOYMENT)
    result = _validate(device)
    assert result.bit_exact
    assert (result.samples, result.mismatches, result.first_mismatch) == (_SAMPLES, 0, None)
    # The first run of sample i counts 1000, 2000, 3000 for the layers, each i more, and 7 between them.
    assert [layer.count for layer in result.layers] == [1001, 2001, 3001]
    assert result.count == result.instructions == 6003 + 7
    assert result.cycles is None
    assert result.stack_bytes == 208  # of the uninterrupted run at the end
    assert device.log == [(None, False)] * _SAMPLES + [(None, True)]
    assert (result.ram_bytes, result.flash_bytes) == (1234, 5678)
    assert result.macs == 6 * 6 * 4 * 27 + 36 * 5
    assert result.arena_bytes == _DEPLOYMENT.plan.arena_bytes
    assert [layer.op for layer in result.layers] == ["conv2d", "max_pool2d", "linear"]
    assert result.layers[0].source == "net.py:11: x = F.relu(self.conv(x))"
    for i, outputs in enumerate(result.outputs):
        np.testing.assert_array_equal(outputs[0], _PROGRAM.run(small.images(_SAMPLES)[i], as_float=False))


def test_sqnr_is_that_of_the_formula() -> None:
    """10 log10 of the float signal's power over the error's, summed over the samples that are compared."""
    result = _validate(FakeDevice(_DEPLOYMENT))
    assert _PROGRAM.float_graph is not None
    signal = noise = 0.0
    for image in small.images(2):
        exact = evaluate(_PROGRAM.float_graph, [image[None]])[_PROGRAM.float_graph.outputs[0]]
        got = np.asarray(_PROGRAM.run(image, as_float=True))
        signal += float(np.sum(exact.astype(np.float64) ** 2))
        noise += float(np.sum((got.astype(np.float64) - exact.astype(np.float64)) ** 2))
    # The float model's sums are rounded once, those of its reference one after the other.
    assert result.layers[-1].sqnr_db == pytest.approx(10 * np.log10(signal / noise), rel=1e-6)


def test_a_program_without_a_float_graph_has_no_sqnr_and_no_float_accuracy() -> None:
    program = Program("small", small.graph())
    deployment = deploy(program.graph, _DEPLOYMENT.target)
    samples = make_samples(program.inputs, [small.images(2)], np.array([0, 1]))
    result = _validate(FakeDevice(deployment, hash=program.hash), samples, program)
    assert [layer.sqnr_db for layer in result.layers] == [None, None, None]
    assert result.float_accuracy is None
    assert result.accuracy is not None


def test_a_stack_that_cannot_be_measured_is_none() -> None:
    assert _validate(FakeDevice(_DEPLOYMENT, stack=-8)).stack_bytes is None


def test_progress_is_told_after_each_sample() -> None:
    told: list[tuple[int, int]] = []
    device = FakeDevice(_DEPLOYMENT)
    validate(
        _PROGRAM,
        _DEPLOYMENT,
        cast(Device, device),
        make_samples(_PROGRAM.inputs, [small.images(4)]),
        on="host",
        board="b",
        sizes=Sizes(),
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_accuracy_of_device_host_and_float_model() -> None:
    images = small.images(6)
    assert _PROGRAM.float_graph is not None
    right = [predicted(np.asarray(_PROGRAM.run(image))) for image in images]
    labels = np.array(right)
    labels[:2] = (labels[:2] + 1) % 5
    exact = [
        predicted(evaluate(_PROGRAM.float_graph, [i[None]])[_PROGRAM.float_graph.outputs[0]]) for i in images
    ]
    # A device that always says the last class.
    mistakes = [Mistake(2, (0, k), -100) for k in range(4)]
    wrong = FakeDevice(_DEPLOYMENT)
    result = _validate(wrong, make_samples(_PROGRAM.inputs, [images], labels), sqnr_samples=1)
    assert result.accuracy == result.host_accuracy == pytest.approx(4 / 6)
    assert result.float_accuracy == pytest.approx(np.mean(np.array(exact) == labels))
    broken = FakeDevice(_DEPLOYMENT, mistakes[:1])
    result = _validate(broken, make_samples(_PROGRAM.inputs, [images], labels))
    assert result.host_accuracy == pytest.approx(4 / 6)
    assert not result.bit_exact


# ---- a device that is wrong ----


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_first_layer_that_differs_is_found(layer: int) -> None:
    index = [(0, 5, 2, 3), (0, 1, 2, 0), (0, 4)][layer]
    by = 100  # large enough to come through the pooling
    device = FakeDevice(_DEPLOYMENT, [Mistake(layer, index, by)])
    result = _validate(device)
    assert not result.bit_exact
    found = result.first_mismatch
    assert found is not None
    step = _DEPLOYMENT.steps[layer]
    right = np.asarray(_PROGRAM.values(_prepared(0))[step.node.output])
    assert (found.sample, found.layer, found.name) == (0, layer, step.name)
    assert (found.op, found.kernel) == (step.node.op, step.choice.kernel.symbol)
    assert found.index == index
    assert found.host == int(right[index])
    assert found.device == int(np.int64(int(right[index]) + by).astype(np.int8))
    assert found.count == 1
    key = ["conv", "pool", "head"][layer]
    line, text = small.LINES[key]
    assert found.source == f"{step.name} (net.py:{line}): {text}"
    message = str(found.error())
    for part in (step.name, str(found.device), str(found.host), found.source, ", ".join(map(str, index))):
        assert part in message
    # Layer by layer up to the first that differs, and no further.
    assert [stop for stop, _ in device.log if stop is not None] == list(range(layer + 1))


def _prepared(sample: int) -> list[Array]:
    image = small.images(_SAMPLES)[sample]
    return [np.clip(np.rint(image[None] / np.float32(0.05)) + 3, -128, 127).astype(np.int8)]


def test_with_two_mistakes_the_earlier_layer_is_named() -> None:
    result = _validate(FakeDevice(_DEPLOYMENT, [Mistake(2, (0, 0)), Mistake(1, (0, 0, 0, 0), 50)]))
    assert result.first_mismatch is not None
    assert result.first_mismatch.name == "pool"


def test_only_the_samples_that_differ_are_counted_and_the_first_is_located() -> None:
    result = _validate(FakeDevice(_DEPLOYMENT, [Mistake(2, (0, 1), sample=1)]))
    assert result.mismatches == _SAMPLES - 1
    assert result.first_mismatch is not None
    assert result.first_mismatch.sample == 1


def test_a_mistake_that_cannot_be_found_again_still_counts() -> None:
    result = _validate(FakeDevice(_DEPLOYMENT, [Mistake(2, (0, 1))], forgets=True))
    assert result.mismatches == _SAMPLES
    assert result.first_mismatch is None
    assert not result.bit_exact


def test_a_device_with_another_program_is_refused() -> None:
    with pytest.raises(DataError, match="another program"):
        _validate(FakeDevice(_DEPLOYMENT, hash="0" * 64))


# ---- the report ----

_KEYS = {
    "answers",
    "at_sizes",
    *("version", "on", "board", "bit_exact", "samples", "synthetic", "data_note"),
    *("mismatches", "first_mismatch", "accuracy"),
    *("host_accuracy", "float_accuracy", "instructions", "cycles", "macs"),
    *(
        "arena_bytes",
        "ram_bytes",
        "flash_bytes",
        "stack_bytes",
        "stack_bound",
        "ram_with_stack_bytes",
        "clipped",
        "data_warnings",
        "layers",
    ),
    *("estimate", "oracle", "confusion"),
}
_LAYER_KEYS = {
    *(
        "name",
        "value",
        "op",
        "kernel",
        "line",
        "source",
        "macs",
        "instructions",
        "cycles",
        "sqnr_db",
        "parts",
    ),
    "estimate",
    *("histogram", "at_ends"),
}


def test_histograms_count_the_integers_of_each_layer() -> None:
    images = small.images(_SAMPLES)
    result = _validate(FakeDevice(_DEPLOYMENT))
    for step, layer in zip(_DEPLOYMENT.steps, result.layers, strict=True):
        tensor = step.node.outputs[0]
        graph, samples = _DEPLOYMENT.graph, make_samples(_PROGRAM.inputs, [images]).inputs
        runs = [evaluate(graph, prepare_inputs(graph.user_inputs, list(arrays))) for arrays in samples]
        values = np.concatenate([run[tensor].ravel() for run in runs])
        counts, _ = np.histogram(values, bins=32, range=(-128, 128))
        assert layer.histogram == tuple(counts)
        assert layer.at_ends == np.sum((values == -128) | (values == 127))
    assert any(layer.at_ends for layer in result.layers)


def test_confusion_counts_who_names_what() -> None:
    images, labels = small.images(8), np.arange(8) % 3
    result = _validate(
        FakeDevice(_DEPLOYMENT, [Mistake(2, (0, 0), -100, 1)]),
        make_samples(_PROGRAM.inputs, [images], labels),
    )
    confusion = result.confusion
    assert confusion is not None
    named = [predicted(outputs[0]) for outputs in result.outputs]
    pairs = [(int(label), other) for label, other in zip(labels, named, strict=True)]
    assert confusion.device == tuple((*pair, pairs.count(pair)) for pair in sorted(set(pairs)))
    for cells, share in ((confusion.host, result.host_accuracy), (confusion.float, result.float_accuracy)):
        assert cells is not None
        assert sum(count for *_, count in cells) == len(images)
        assert share == sum(count for label, other, count in cells if label == other) / len(images)
    assert confusion.device != confusion.host
    assert _validate(FakeDevice(_DEPLOYMENT)).confusion is None


def test_json_has_the_documented_keys() -> None:
    result = _validate(FakeDevice(_DEPLOYMENT, [Mistake(0, (0, 0, 0, 0), 90)]))
    record = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert set(record) == _KEYS
    assert set(record["layers"][0]) == _LAYER_KEYS
    assert record["bit_exact"] is False
    assert record["first_mismatch"]["index"] == [0, 0, 0, 0]


@pytest.mark.parametrize("unit", ["instructions", "cycles", "nanoseconds"])
def test_json_never_gives_one_unit_for_another(unit: str) -> None:
    record = json.loads(json.dumps(_validate(FakeDevice(_DEPLOYMENT, count_unit=unit)).to_json()))
    for key in ("instructions", "cycles"):
        assert (record[key] is not None) == (unit == key)
        assert all((layer[key] is not None) == (unit == key) for layer in record["layers"])


def test_a_ratio_without_error_is_null_in_json() -> None:
    """A float model that is its own reference makes no error at all: the ratio is infinite, which JSON lacks."""
    program = Program("small", small.graph(real=True), small.graph(real=True))
    deployment = deploy(program.graph, _DEPLOYMENT.target)
    result = _validate(FakeDevice(deployment, hash=program.hash), program=program)
    assert [layer.sqnr_db for layer in result.layers] == [np.inf] * 3
    record = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [layer["sqnr_db"] for layer in record["layers"]] == [None] * 3


def test_samples_beyond_the_calibrated_range_and_labels_beyond_the_classes_are_told() -> None:
    images = small.images(8)
    good = _validate(FakeDevice(_DEPLOYMENT), make_samples(_PROGRAM.inputs, [images], np.zeros(8, np.int64)))
    assert good.clipped is not None
    assert good.clipped < 0.01
    assert good.data_warnings == ()
    samples = make_samples(_PROGRAM.inputs, [images * 1000], np.full(8, 5))
    result = _validate(FakeDevice(_DEPLOYMENT), samples)
    assert result.clipped is not None
    assert result.clipped > 0.9
    outside, labels = result.data_warnings
    assert "% of the values lie outside of" in outside
    assert "8 of 8 are no class of the model, which are 0 … 4" in labels


# ---- samples ----


@pytest.mark.parametrize(
    ("arrays", "labels", "message"),
    [
        ([], None, "1 input"),
        ([small.images(2)] * 2, None, "the data 2"),
        ([np.zeros((4, 6, 6), np.float32)], None, r"\(samples, 6, 6, 3\)"),
        ([np.zeros((4, 3, 6, 6), np.float32)], None, r"must be"),
        ([np.float32(1)], None, "must be"),
        ([small.images(0)], None, "no sample"),
        ([small.images(3)], np.arange(2), "different numbers"),
        ([small.images(3)], np.zeros((3, 5), np.int64), "one class index"),
        ([small.images(3)], np.array([0.5, 1.0, 2.0]), "one class index"),
    ],
)
def test_data_of_a_wrong_form(arrays: list[Array], labels: Array | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_samples(_PROGRAM.inputs, [np.asarray(a) for a in arrays], labels)


def test_samples_may_carry_the_batch_dimension() -> None:
    images = small.images(2)
    flat = make_samples(_PROGRAM.inputs, [images], np.array([[3], [4]]))
    batched = make_samples(_PROGRAM.inputs, [images[:, None]])
    assert flat.labels == (3, 4)
    first, second = (_validate(FakeDevice(_DEPLOYMENT), s).outputs for s in (flat, batched))
    np.testing.assert_array_equal(first, second)
    assert len(flat.first(1)) == 1
    assert flat.first(1).labels == (3,)
    assert len(flat.first(None)) == 2


# ---- a device that contradicts itself ----


@dataclass
class LyingDevice(FakeDevice):
    """It has the right program's hash, and says one thing of it that is not so."""

    lie: str = ""

    def info(self) -> SimpleNamespace:
        info = super().info()
        match self.lie:
            case "input":
                info.inputs = [Slot(0, 1)]
            case "outputs":
                info.outputs = info.outputs * 2
            case "layers":
                info.num_layers += 1
        return info

    def run(
        self,
        inputs: Sequence[bytes],
        stop_after: int | None = None,
        *,
        runs: int = 1,
        uninterrupted: bool = False,
    ) -> RunResult:
        run = super().run(inputs, stop_after, runs=runs, uninterrupted=uninterrupted)
        match self.lie:
            case "counts":
                return replace(run, layer_counts=(1,) * 9)
            case "runs":
                return replace(run, layer_runs=(1, 6, 1))
            case "parts":
                return replace(run, event_counts=(1,))
            case "stopped":
                return replace(run, outputs=(), stopped=True)
        return run


@pytest.mark.parametrize(
    ("lie", "part"),
    [
        ("input", "inputs, outputs and layers of the sizes"),
        ("outputs", "inputs, outputs and layers of the sizes"),
        ("layers", "inputs, outputs and layers of the sizes"),
        ("counts", "counted 9 layers and 0 parts of layers, where there are 3 and 0"),
        ("parts", "counted 3 layers and 1 parts of layers, where there are 3 and 0"),
        ("runs", r"another number of times than the project:\n.*pool.* 6 times, where it is 1"),
        ("stopped", "stopped before the last layer"),
    ],
)
def test_a_device_that_contradicts_itself_is_told_so(lie: str, part: str) -> None:
    with pytest.raises(EmulatorError, match=part):
        _validate(LyingDevice(_DEPLOYMENT, lie=lie))
