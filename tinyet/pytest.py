# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: your own tests of your model on an emulated board, or on a real one. In the top conftest.py:

    pytest_plugins = "tinyet.pytest"

and in a test:

    @pytest.mark.tinyet(model="model.py", board="mps2_an386")
    def test_on_the_board(tinyet_device):
        result = tinyet_device.run(sample)
        assert result.label == 2 and result.bit_exact
        tinyet_device.check(instructions=50_000, stack_bytes=512)

docs/hardware-in-the-loop.md has the rest.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyet.answers import Answers
from tinyet.bench.harness import Harness
from tinyet.boards import Board, load_board
from tinyet.build.ending import ended_by_signals
from tinyet.data import Data, predicted, prepare_inputs
from tinyet.deployment import Deployment
from tinyet.emit.kinds import PROJECT_KINDS, kinds_for
from tinyet.errors import MissingTool, TinyetError, TinyetWarning, UsageError, bullet_list
from tinyet.ir import Array, Graph, Tensor
from tinyet.mismatch.sizes import request
from tinyet.numerics import dequantize
from tinyet.opening import ModelOptions, Opened, look_closer, read
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects import open_project
from tinyet.projects.one import generate
from tinyet.reference import Session
from tinyet.survey.as_tests import BudgetFile
from tinyet.validation import DEFAULT_SQNR_SAMPLES, Counted, Sizes, ValidationResult, as_bytes, validate

# How a program is made of a model, as in `tinyet.open`; and a project of a program, as in `tinyet.generate`.
_OF_MODEL = tuple(
    field.name for field in fields(ModelOptions) if field.name not in ("board", "delegates", "progress")
)
_OF_PROJECT = (
    *("delegates", "require_delegate", "optimize", "max_ram", "max_flash", "stack", "pins", "place"),
    *("input_rows", "buffers", "context", "evaluation", "selftest", "max_step"),
)
OPTIONS = ("model", "project", "board", "on", "timeout", *_OF_MODEL, *_OF_PROJECT)
"""What the marker and `tinyet_devices.open` take."""
_TIMEOUT_SECONDS = 60.0
_RECORD = "tinyet"
# What `check` knows, and where it cannot be measured.
_LIMITS = ("instructions", "cycles", "stack_bytes", "arena_bytes", "ram_bytes", "flash_bytes")


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class DeviceResult(Counted):
    """One inference on the device.

    outputs:   real values, one float32 array an output (whole numbers stay as they are), in the output's shape.
    raw:       the same as the device has stored them.
    expected:  what the host reference gives, to compare with `raw`.
    count:     the inference's cost in `count_unit`: "instructions" in QEMU and Renode, "cycles" in simavr and on
               hardware, "nanoseconds" on the host.
    stack_bytes: the deepest use of the stack; None where it cannot be measured.
    """

    outputs: tuple[Array, ...]
    raw: tuple[Array, ...]
    expected: tuple[Array, ...]
    count: int
    count_unit: str
    stack_bytes: int | None

    @property
    def output(self) -> Array:
        """The first output, real values."""
        return self.outputs[0]

    @property
    def label(self) -> int:
        """The class that a classifier's first output names."""
        return predicted(self.raw[0])

    @property
    def bit_exact(self) -> bool:
        """Whether the device computed exactly what the host reference computes; NaN equals NaN."""
        pairs = zip(self.raw, self.expected, strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


# ---------------------------------------------------------------- what the tests of a session share


class TinyetDevices:
    """Opens devices; what they are made of is kept until the session ends. The fixture `tinyet_devices`.

    on, board: of the command line; they win over a test's own.
    """

    def __init__(self, root: Path, scratch: Path, on: str | None, board: str | None) -> None:
        self._root = root
        self._scratch = scratch
        self._on = on
        self._board = board
        self._sources: dict[object, Opened] = {}
        self._harnesses: dict[object, Harness] = {}

    def open(
        self,
        *,
        model: str | Path | Program | None = None,
        project: str | Path | None = None,
        board: str | Path | None = None,
        on: str | None = None,
        timeout: float = _TIMEOUT_SECONDS,
        **options: Any,
    ) -> TinyetDevice:
        """A model on a board.

        model: what `tinyet.open` makes a program of, or a Program. project: a directory that `tinyet generate` wrote;
        its own build makes the firmware. Paths are relative to pytest's root directory.
        board: a name or a board file; a project has its own. on: "qemu", "renode", "simavr", "host" or "serial:PORT";
        the first emulator that has the board by default. timeout: seconds that an inference may take.
        options: of `tinyet.open`, for a model's file (calibration, float_io, ...), and of `tinyet.generate` (delegates,
        optimize, evaluation, ...). A project has its own; where any is given it is generated anew, from its program.
        """
        if (model is None) == (project is None):
            raise UsageError("say either model or project", hint='model="model.py", board="mps2_an386"')
        wrong = [name for name in options if name not in (*_OF_MODEL, *_OF_PROJECT)]
        if wrong:
            raise UsageError(f"there is no option {', '.join(wrong)}", hint=f"one of {', '.join(OPTIONS)}")
        of_model = {name: value for name, value in options.items() if name in _OF_MODEL}
        of_project = {name: value for name, value in options.items() if name in _OF_PROJECT}
        if of_model and not isinstance(model, (str, Path)):
            raise UsageError(
                f"{', '.join(of_model)}: the program is compiled already", hint="name the model's file"
            )
        own = None if project is None else open_project(self._root / project)
        wanted = self._board or board
        if wanted is not None:
            is_file = isinstance(wanted, Path) or wanted.endswith(".toml")
            wanted = self._root / wanted if is_file else wanted
            target = load_board(wanted)
        elif own is not None:
            target = own.board
        else:
            raise UsageError("the board is missing", hint='board="mps2_an386", or --tinyet-board')
        place = self._on or on or _first_emulator(target)
        as_it_is = own is not None and own.board.name == target.name and not of_project
        what = model.hash if isinstance(model, Program) else str(model or project)
        key = (what, project is None, target.name, place, timeout, _key(options))
        if key not in self._harnesses:
            where = self._scratch / f"{len(self._harnesses)}_{target.name}"
            if own is None or not as_it_is:
                if own is not None:
                    opened = Opened(own.program, own.evaluation)
                    of_project = {"delegates": own.delegates, **of_project}
                else:
                    opened = self._opened(model, of_model)
                own = self._generate(opened, wanted or target, target, of_project, where / "project")
            self._harnesses[key] = Harness(own, place, where, not as_it_is, timeout, self._harnesses)
        return TinyetDevice(self._harnesses[key])

    def _generate(
        self, opened: Opened, name: str | Path | Board, board: Board, options: dict[str, Any], out: Path
    ) -> Project:
        """A project of a kind that the board can have; `name` is what `board` was read from."""
        kind = next(k for k in kinds_for(board) if PROJECT_KINDS[k].application)
        evaluation = options.pop("evaluation", opened.evaluation)
        if isinstance(evaluation, (str, Path)):
            evaluation = self._root / evaluation
        return generate(opened.program, name, out, kind=kind, evaluation=evaluation, **options)

    def _opened(self, model: str | Path | Program | None, options: dict[str, Any]) -> Opened:
        """A program, compiled once for all boards, and the samples that come with it."""
        if isinstance(model, Program):
            return Opened(model)
        path = str(self._root / str(model))
        key = (path, _key(options))
        if key not in self._sources:
            opened = read(path, replace(ModelOptions(), **options))
            answers = opened.program.answers
            alarm = [] if answers is None or answers.healthy else [f"{answers.warning}\n{look_closer(path)}"]
            for line in (*alarm, *opened.warnings):
                warnings.warn(TinyetWarning(line), stacklevel=3)
            self._sources[key] = opened
        return self._sources[key]

    def close(self) -> None:
        for harness in self._harnesses.values():
            harness.close()


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Options as a key: equal ones share a harness."""
    return tuple(sorted((name, repr(value)) for name, value in options.items()))


def _first_emulator(board: Board) -> str:
    if not board.emulators:
        raise UsageError(
            f"no emulator has the board {board.name}",
            hint='say on="host" or on="serial:PORT", in the marker or as --tinyet-on',
        )
    return board.emulators[0]


# ---------------------------------------------------------------- what a test gets


@dataclass
class TinyetDevice:
    """A model on a board, for one test. The fixture `tinyet_device`, or `tinyet_devices.open(…)`.

    The device is started by the first `run` or `validate`, and shared with the other tests of the same model on the
    same board; an inference leaves nothing behind that the next would see, but for the model's states, which each
    test begins anew.
    """

    _harness: Harness
    inferences: int = 0
    _answers: Answers | None = None
    _greatest: dict[str, int] = field(default_factory=dict)
    _session: Session = field(init=False)
    _states: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._session = Session(self.program.graph)
        self.reset()

    def reset(self) -> None:
        """Let the model's states be what they are before the first run."""
        self._session.reset()
        self._states = as_bytes(self._session.state.values())

    @property
    def project(self) -> Project:
        """The project that is run."""
        return self._harness.project

    @property
    def program(self) -> Program:
        """The model; `program.run(x)` is the host reference."""
        return self.project.program

    @property
    def deployment(self) -> Deployment:
        """The model's layers, kernels and memory on this board."""
        return self.project.deployment

    @property
    def board(self) -> Board:
        return self.project.board

    @property
    def on(self) -> str:
        """ "qemu", "renode", "simavr", "host" or "serial:PORT"."""
        return self._harness.on

    @property
    def evaluation(self) -> tuple[tuple[Array, ...], Array | None] | None:
        """The samples that came with the model, one stacked array per input, and their labels; or None."""
        data = self.project.evaluation
        return None if data is None else (data.arrays, data.labels)

    @property
    def answers(self) -> Answers | None:
        """How far the model's integers are from its float model, as was measured when it was compiled, or by the last
        `validate`; None where nobody knows. `healthy` says whether that is near enough."""
        return self._answers or self.program.answers

    @property
    def arena_bytes(self) -> int:
        return self.deployment.plan.arena_bytes

    @property
    def sizes(self) -> Sizes:
        """RAM (without stack) and flash of the application, in bytes; None where it is not built."""
        return self._harness.sizes

    def run(self, *inputs: Array) -> DeviceResult:
        """One inference. inputs: one array per input, in the model's shapes, at any of its sizes where it has some;
        float data is quantized first. The model's states are those that the run before has left on the device.

        Raises DataError for inputs that do not fit, EmulatorError when the device fails.
        """
        given = [np.asarray(x) for x in inputs]
        value = self.program.size_of(given)
        sized = self.deployment.sized
        graph = self.deployment.graph if sized is None or value is None else sized.at[value].graph
        prepared = prepare_inputs(graph.user_inputs, given)
        data = [*request(self.deployment, prepared, value), *self._states]
        with self._closing_on_error():
            counted = self._harness.device.run(data)
            # The counter's interrupt would be in the stack.
            calm = self._harness.device.run(data, uninterrupted=True)
        outputs = graph.user_outputs
        self._states = list(counted.outputs[len(outputs) :])
        raw = tuple(
            np.frombuffer(b[: t.type.bytes], t.dtype.numpy).reshape(t.shape)
            for b, t in zip(counted.outputs, outputs, strict=False)
        )
        values = (
            self._session.values(prepared) if graph is self._session.graph else self._values(graph, prepared)
        )
        result = DeviceResult(
            outputs=tuple(
                a if t.type.quant is None else dequantize(a, t.type.quant)
                for a, t in zip(raw, outputs, strict=True)
            ),
            raw=raw,
            expected=tuple(values[t] for t in graph.user_outputs),
            count=counted.total,
            count_unit=self._harness.device.count_unit,
            stack_bytes=calm.stack_bytes or None,
        )
        self._note(1, result)
        return result

    def _values(self, graph: Graph, prepared: Sequence[Array]) -> Mapping[Tensor, Array]:
        """The host reference's at another size; the states go on."""
        session = Session(graph)
        for name in self._session.state:
            session.state[name] = self._session.state[name]
        values = session.values(prepared)
        for name in self._session.state:
            self._session.state[name] = session.state[name]
        return values

    def validate(
        self,
        *inputs: Array,
        labels: Array | None = None,
        evaluation: Data | str | Path | None = None,
        max_samples: int | None = None,
        sqnr_samples: int = DEFAULT_SQNR_SAMPLES,
        oracle: str | Path | None = None,
    ) -> ValidationResult:
        """Many inferences, each compared with the host reference bit for bit.

        inputs: one stacked array per input; one array more than the model has inputs is the labels. None takes the
        samples that came with the model. The others: as for `Project.validate`.
        """
        if labels is None and len(inputs) == len(self.program.inputs) + 1:
            *inputs_only, labels = inputs
            inputs = tuple(inputs_only)
        samples = self.project.samples(inputs, labels, evaluation).first(max_samples)
        with self._closing_on_error():
            result = validate(
                self.program,
                self.deployment,
                self._harness.device,
                samples,
                on=self.on,
                board=self.board.name,
                sizes=self._harness.sizes,
                sqnr_samples=sqnr_samples,
            )
        self._note(result.samples, result)
        self._answers = result.answers or self._answers
        return result if oracle is None else result.with_oracle(oracle, self.program, samples)

    def check(self, **limits: int) -> None:
        """Fail unless all that this test has run stays within limits; lists everything that does not.

        limits: instructions or cycles (of an inference, the mean where samples were validated), stack_bytes,
        arena_bytes, ram_bytes (static, without the stack), flash_bytes. A limit that cannot be measured where the test
        runs, such as instructions on the host, is a TinyetWarning.
        """
        unknown = [name for name in limits if name not in _LIMITS]
        if unknown:
            raise UsageError(f"no limit is called {', '.join(unknown)}", hint=f"one of {', '.join(_LIMITS)}")
        if self.inferences == 0 and set(limits) & {"instructions", "cycles", "stack_bytes"}:
            raise UsageError("nothing has been run that could be measured", hint="call run or validate first")
        measured = self._measured()
        over = [
            f"{name}: {measured[name]:,}, {measured[name] - limit:,} more than {limit:,}"
            for name, limit in limits.items()
            if name in measured and measured[name] > limit
        ]
        for name in limits:
            if name not in measured:
                message = f"{name} cannot be measured on {self.on} ({self.board.name})"
                warnings.warn(TinyetWarning(message), stacklevel=2)
        if over:
            pytest.fail(f"over the limit on {self.board.name}:\n{bullet_list(over)}", pytrace=False)

    def _measured(self) -> Mapping[str, int]:
        sizes = {"ram_bytes": self.sizes.ram_bytes, "flash_bytes": self.sizes.flash_bytes}
        known = {name: size for name, size in sizes.items() if size is not None}
        return {"arena_bytes": self.arena_bytes, **known, **self._greatest}

    def _note(self, inferences: int, result: DeviceResult | ValidationResult) -> None:
        self.inferences += inferences
        values = {
            "instructions": result.instructions,
            "cycles": result.cycles,
            "stack_bytes": result.stack_bytes,
        }
        for name, value in values.items():
            if value is not None:
                self._greatest[name] = max(value, self._greatest.get(name, 0))

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """A device that has failed is not used again: who needs one next starts another."""
        try:
            yield
        except BaseException:
            self._harness.close()
            raise

    def _record(self) -> dict[str, object]:
        """The line of the terminal summary."""
        return {
            "board": self.board.name,
            "on": self.on,
            "inferences": self.inferences,
            "arena_bytes": self.arena_bytes,
            **self._greatest,
        }


# ---------------------------------------------------------------- pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tinyet", "models on boards")
    group.addoption(
        "--tinyet-on", metavar="PLACE", help="qemu, renode, simavr, host or serial:PORT, for all tests"
    )
    group.addoption("--tinyet-board", metavar="BOARD", help="a board's name or file, for all tests")
    group.addoption(
        "--tinyet-budgets",
        metavar="TOML",
        help="test the models of this file, as pyproject.toml, against their limits there: a test each",
    )
    group.addoption(
        "--tinyet-require",
        action="store_true",
        help="fail tests whose emulator or compiler is not installed, instead of skipping them",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "tinyet(model, project, board, on, timeout, ...): the model and the board of tinyet_device, and the options of "
        "tinyet.open and tinyet.generate",
    )
    # A cancelled job sends SIGTERM: fixtures are torn down, devices closed, folders removed.
    ending = ExitStack()
    ending.enter_context(ended_by_signals(_end_session))
    config.add_cleanup(ending.close)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Budgets are tests wherever the others are, and are chosen with -k as they are."""
    given = config.getoption("tinyet_budgets", None)
    if given is None:
        return
    path = config.invocation_params.dir / given
    try:
        items += BudgetFile.from_parent(session, path=path).collect()
    except TinyetError as error:
        raise pytest.UsageError(str(error)) from error


def _end_session(number: int) -> None:
    pytest.exit(f"ended by {signal.Signals(number).name}", returncode=128 + number)


@pytest.fixture(scope="session")
def tinyet_devices(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TinyetDevices]:
    """Opens devices; for tests that choose the model or the board themselves."""
    config = request.config
    devices = TinyetDevices(
        config.rootpath,
        tmp_path_factory.mktemp("tinyet"),
        # The plugin may be loaded by a test file, too late for its options.
        config.getoption("tinyet_on", None),
        config.getoption("tinyet_board", None),
    )
    yield devices
    devices.close()


@pytest.fixture
def tinyet_device(request: pytest.FixtureRequest, tinyet_devices: TinyetDevices) -> Iterator[TinyetDevice]:
    """The device that the test's marker `tinyet` asks for."""
    device = tinyet_devices.open(**_marked(request.node))
    yield device
    if device.inferences:
        request.node.user_properties.append((_RECORD, device._record()))


def _marked(item: pytest.Item) -> dict[str, Any]:
    """The arguments of all markers of a test; the nearer one wins."""
    chosen: dict[str, Any] = {}
    markers = list(item.iter_markers("tinyet"))
    for marker in reversed(markers):
        wrong = [repr(a) for a in marker.args] + [k for k in marker.kwargs if k not in OPTIONS]
        if wrong:
            raise UsageError(
                f"the marker tinyet does not take {', '.join(wrong)}", hint=f"it takes {', '.join(OPTIONS)}"
            )
        # A test that names a model does not want the module's project, and the other way round.
        for one, other in (("model", "project"), ("project", "model")):
            if one in marker.kwargs and other not in marker.kwargs:
                chosen.pop(other, None)
        chosen |= marker.kwargs
    if not markers:
        raise UsageError(
            "tinyet_device needs a marker that says which model, and which board",
            hint='@pytest.mark.tinyet(model="model.py", board="mps2_an386")',
        )
    return chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """tinyet's message in place of a traceback; a skip where a tool is missing."""
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, TinyetError) and "tinyet_devices" in getattr(item, "fixturenames", ()):
        assert call.excinfo is not None
        instead: BaseException
        if isinstance(error, MissingTool) and not item.config.getoption("tinyet_require", False):
            instead = pytest.skip.Exception(error.what, _use_item_location=True)
        else:
            lines = [e.lineno + 1 for e in call.excinfo.traceback if e.path == item.path]
            place = [f"  in: {item.nodeid.partition('::')[0]}:{line}" for line in lines[-1:]]
            instead = pytest.fail.Exception("\n".join([str(error), *place]), pytrace=False)
        call.excinfo = pytest.ExceptionInfo.from_exception(instead.with_traceback(error.__traceback__))
    return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The measurements: a line a test."""
    rows: list[tuple[str, ...]] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                rows += [
                    _row(report.nodeid, value) for name, value in report.user_properties if name == _RECORD
                ]
    if not rows:
        return
    head = ("test", "board", "on", "inferences", "count", "arena", "stack")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    terminalreporter.section("tinyet: the greatest of each test, bytes")
    for row in (head, *sorted(rows)):
        cells = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        terminalreporter.write_line("  ".join(cells).rstrip())


def _row(test: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    unit = next((u for u in ("instructions", "cycles") if u in record), None)
    count = "-" if unit is None else f"{record[unit]:,} {unit}"
    stack = f"{record['stack_bytes']:,}" if "stack_bytes" in record else "-"
    return (
        test,
        record["board"],
        record["on"],
        str(record["inferences"]),
        count,
        f"{record['arena_bytes']:,}",
        stack,
    )
