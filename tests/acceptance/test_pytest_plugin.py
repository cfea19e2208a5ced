# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, used as its users use it: on the host, where no emulator has to be installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.small import images, program
from tinyet import generate
from tinyet.ir import Array
from tinyet.pytest import DeviceResult
from tinyet.quality.alarm import measure

pytest_plugins = "pytester"

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None and shutil.which("cc") is None, reason="no C compiler for this machine"
)

HEAD = """
import warnings
import numpy as np
import pytest
import tinyet

IMAGES = np.load("images.npy")
pytestmark = pytest.mark.tinyet(model="small.tet", board="mps2_an386", on="host")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A directory with a model, samples for it, and the plugin in its conftest.py."""
    program().save(pytester.path / "small.tet")
    np.save(pytester.path / "images.npy", images(4))
    pytester.makeconftest('pytest_plugins = "tinyet.pytest"')
    return pytester


def run(suite: pytest.Pytester, body: str, *options: str, head: str = HEAD) -> pytest.RunResult:
    suite.makepyfile(test_mine=head + body)
    return suite.runpytest("-p", "no:cacheprovider", "-ra", "--strict-markers", *options)


def test_run(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
def test_sample(tinyet_device):
    result = tinyet_device.run(IMAGES[0])
    reference = tinyet_device.program.run(IMAGES[0])
    assert result.bit_exact
    assert np.array_equal(result.output, reference)
    assert result.output.dtype == np.float32
    assert result.raw[0].dtype == np.int8
    assert result.label == reference.argmax()
    assert result.count_unit == "nanoseconds"
    assert result.instructions is None and result.cycles is None and result.stack_bytes is None
    assert (tinyet_device.on, tinyet_device.board.name) == ("host", "mps2_an386")
    assert tinyet_device.arena_bytes == tinyet_device.deployment.plan.arena_bytes > 0

def test_many(tinyet_device):
    labels = np.array([tinyet_device.program.run(x).argmax() for x in IMAGES])
    assert tinyet_device.validate(IMAGES, labels).accuracy == 1.0
    assert tinyet_device.validate(IMAGES, labels=labels + 1).accuracy == 0.0
    assert tinyet_device.validate(IMAGES, max_samples=2).samples == 2
    assert tinyet_device.validate().samples == 1
""",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*tinyet: the greatest of each test*",
            "test_mine.py::test_many *mps2_an386 *host * 11 *",
            "test_mine.py::test_sample *mps2_an386 *host * 1 *",
        ]
    )


def test_answers_beside_the_float_model(suite: pytest.Pytester) -> None:
    """Of a program that was never measured, the samples of a test say it; of one that was, a warning does."""
    samples = [[image[None]] for image in images(4)]
    replace(program(), answers=measure(program(), samples, "calibration")).save(suite.path / "known.tet")
    result = run(
        suite,
        """
def test_unknown(tinyet_device):
    assert tinyet_device.answers is None
    result = tinyet_device.validate(IMAGES)
    assert tinyet_device.answers == result.answers
    assert not tinyet_device.answers.healthy

def test_known(tinyet_devices):
    with pytest.warns(tinyet.TinyetWarning, match="the integers' answers are not the model's"):
        device = tinyet_devices.open(model="known.tet", board="mps2_an386", on="host")
    assert device.answers == device.program.answers
""",
    )
    result.assert_outcomes(passed=2)


def test_a_model_is_generated_and_compiled_once(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
seen = set()

@pytest.mark.parametrize("i", range(3))
def test_sample(tinyet_device, i):
    seen.add(tinyet_device.project.path)
    assert tinyet_device.run(IMAGES[i]).bit_exact
    assert len(seen) == 1

@pytest.mark.tinyet(board="mps2_an385")
def test_other_board(tinyet_device):
    assert tinyet_device.board.name == "mps2_an385"
    assert tinyet_device.project.path not in seen
    assert tinyet_device.run(IMAGES[0]).bit_exact

def test_back(tinyet_devices, tinyet_device):
    assert tinyet_device.run(IMAGES[0]).bit_exact
    again = tinyet_devices.open(model=tinyet_device.program, board="mps2_an386", on="host")
    assert again.run(IMAGES[0]).bit_exact
""",
    )
    result.assert_outcomes(passed=5)


def test_project(suite: pytest.Pytester) -> None:
    """An own project, for its own board and for another; the samples that were stored with it."""
    generate(program(), "mps2_an386", suite.path / "build" / "small")
    result = run(
        suite,
        """
def test_own(tinyet_device):
    assert tinyet_device.project.path.name == "small"
    assert tinyet_device.board.name == "mps2_an386"
    assert tinyet_device.run(IMAGES[0]).bit_exact

@pytest.mark.tinyet(board="nrf51_dk")
def test_other(tinyet_device):
    assert tinyet_device.board.name == "nrf51_dk"
    assert tinyet_device.run(IMAGES[0]).bit_exact
""",
        head=HEAD.replace('model="small.tet", board="mps2_an386"', 'project="build/small"'),
    )
    result.assert_outcomes(passed=2)


def test_own_board(suite: pytest.Pytester) -> None:
    own = (Path(__file__).parents[2] / "boards" / "mps2_an385.toml").read_text()
    (suite.path / "mine.toml").write_text(own)
    result = run(
        suite,
        """
def test_sample(tinyet_device):
    assert tinyet_device.board.name == "mine"
    assert tinyet_device.run(IMAGES[0]).bit_exact
""",
        "--tinyet-board=mine.toml",
    )
    result.assert_outcomes(passed=1)


def test_the_command_line_wins(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
def test_sample(tinyet_device):
    assert (tinyet_device.on, tinyet_device.board.name) == ("host", "mps2_an385")
    assert tinyet_device.run(IMAGES[0]).bit_exact
""",
        "--tinyet-on=host",
        "--tinyet-board=mps2_an385",
        head=HEAD.replace('on="host"', 'on="qemu"'),
    )
    result.assert_outcomes(passed=1)


def test_errors_are_tinyets_own(suite: pytest.Pytester) -> None:
    """One block and the line of the test: no traceback through tinyet; `pytest.raises` sees the error itself."""
    result = run(
        suite,
        """
def test_shape(tinyet_device):
    tinyet_device.run(IMAGES[0][:, :3])

def test_expected(tinyet_device):
    with pytest.raises(tinyet.TinyetError, match="has shape"):
        tinyet_device.run(IMAGES[0][:, :3])

@pytest.mark.tinyet(board="mps2_an38")
def test_board(tinyet_device):
    pass
""",
    )
    result.assert_outcomes(passed=1, failed=1, errors=1)
    text = result.stdout.str()
    lines = (suite.path / "test_mine.py").read_text().splitlines()
    line = lines.index("    tinyet_device.run(IMAGES[0][:, :3])") + 1
    assert f"in: test_mine.py:{line}\n" in text
    assert "\ndata error: input x has shape" in text
    assert "did you mean mps2_an386" in text
    assert "Traceback" not in text
    assert "tinyet/program.py" not in text
    assert "tinyet/boards/" not in text


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('model="small.tet"', "the board is missing"),
        ('board="mps2_an386"', "say either model or project"),
        ('model="a.tet", project="b", board="mps2_an386"', "say either model or project"),
        ('"small.tet", colour="red"', "does not take 'small.tet', colour"),
        ('model="none.tet", board="mps2_an386"', "there is no file"),
        ('model="small.tet", board="nano_33_ble", delegates=["fast"]', "no delegate called fast"),
        ('model="small.tet", board="teensy41"', "no emulator has the board teensy41"),
    ],
)
def test_wrong_markers(suite: pytest.Pytester, marker: str, message: str) -> None:
    head = HEAD.replace('model="small.tet", board="mps2_an386", on="host"', marker)
    result = run(suite, "\ndef test_it(tinyet_device):\n    tinyet_device.run(IMAGES[0])\n", head=head)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_without_a_marker(suite: pytest.Pytester) -> None:
    result = run(suite, "\ndef test_it(tinyet_device):\n    pass\n", head="")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs a marker that says which model*"])


def test_skips_by_name_where_the_emulator_is_missing(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PATH with the compiler for this machine only: not the board's, and no emulator."""
    bin_dir = suite.path / "bin"
    bin_dir.mkdir()
    for tool in ("gcc", "cc", "as", "ld"):
        if found := shutil.which(tool):
            (bin_dir / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(bin_dir))
    monkeypatch.delenv("TINYET_RENODE", raising=False)
    body = """
def test_qemu(tinyet_device):
    tinyet_device.run(IMAGES[0])
"""
    head = HEAD.replace('on="host"', 'on="qemu"')
    result = run(suite, body, head=head)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * test_mine.py:*: arm-none-eabi-gcc is not installed*"])
    result = run(suite, body, "--tinyet-require", head=head)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*toolchain error: arm-none-eabi-gcc is not installed*", "*do: *"])


def test_budget(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
def test_within(tinyet_device):
    tinyet_device.check(arena_bytes=10_000)

def test_over(tinyet_device):
    tinyet_device.check(arena_bytes=1)

def test_early(tinyet_device):
    tinyet_device.check(stack_bytes=1)

def test_unknown(tinyet_device):
    tinyet_device.check(ram=1)

def test_not_here(tinyet_device):
    tinyet_device.run(IMAGES[0])
    with pytest.warns(UserWarning, match="instructions cannot be measured on host"):
        tinyet_device.check(instructions=1)
""",
    )
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        ["*over the limit on mps2_an386:*", "*  - arena_bytes: * more than 1*", "*nothing has been run*"]
    )
    assert "no limit is called ram" in result.stdout.str()


@pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="arm-none-eabi-gcc or qemu-system-arm is not installed",
)
@pytest.mark.emulated
def test_in_qemu(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
def test_sample(tinyet_device):
    result = tinyet_device.run(IMAGES[0])
    assert result.bit_exact and result.instructions > 100 and result.cycles is None
    assert 0 < result.stack_bytes < 4096
    assert tinyet_device.run(IMAGES[1]).instructions == pytest.approx(result.instructions, rel=0.05)
    many = tinyet_device.validate(IMAGES)
    assert many.bit_exact and many.flash_bytes > 1000 and many.ram_bytes >= tinyet_device.arena_bytes
    tinyet_device.check(
        instructions=many.instructions + 100, stack_bytes=1000, flash_bytes=many.flash_bytes, ram_bytes=many.ram_bytes
    )

def test_over(tinyet_device):
    size = tinyet_device.run(IMAGES[0])
    tinyet_device.check(instructions=size.instructions - 1, flash_bytes=100)
""",
        head=HEAD.replace(', on="host"', ""),
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*  - instructions: *, 1 more than *", "*  - flash_bytes: *"])
    result.stdout.fnmatch_lines(["test_mine.py::test_sample *mps2_an386 *qemu * 6 * instructions *"])


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_on_a_serial_port(suite: pytest.Pytester) -> None:
    """A harness behind a pseudo-terminal, for the model it has and for another."""
    project = generate(program(), "mps2_an386", suite.path / "project")
    executable = project.firmware("host", suite.path)
    program(channels=3).save(suite.path / "other.tet")
    master, slave = os.openpty()
    try:
        with subprocess.Popen([executable], stdin=master, stdout=master) as harness:
            result = run(
                suite,
                """
def test_sample(tinyet_device):
    assert tinyet_device.run(IMAGES[0]).bit_exact
    assert tinyet_device.validate(IMAGES).bit_exact

@pytest.mark.tinyet(model="other.tet")
def test_other(tinyet_device):
    tinyet_device.run(IMAGES[0])
""",
                f"--tinyet-on=serial:{os.ttyname(slave)}",
            )
            harness.kill()
    finally:
        os.close(master)
        os.close(slave)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*data error: the device holds another program than the test wants*"])


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_cancelled_session_tears_its_fixtures_down(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_mine="""
import os, signal
import pytest

@pytest.fixture
def opened():
    yield
    print("closed in the end")

def test_cancelled(opened):
    os.kill(os.getpid(), signal.SIGTERM)

def test_next():
    print("not reached")
"""
    )
    result = suite.runpytest_subprocess("-p", "no:cacheprovider", "-s")
    assert result.ret == 128 + signal.SIGTERM
    text = result.stdout.str() + result.stderr.str()
    assert "closed in the end" in text
    assert "ended by SIGTERM" in text
    assert "not reached" not in text


@pytest.mark.skipif(os.name == "nt", reason="a killed process ends otherwise on Windows")
def test_a_device_that_fails_is_started_again(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
def test_dies(tinyet_device):
    tinyet_device.run(IMAGES[0])
    tinyet_device._harness.device._link.child.process.kill()
    tinyet_device.run(IMAGES[0])

def test_next(tinyet_device):
    assert tinyet_device.run(IMAGES[0]).bit_exact
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*device error: the device ended while it answered RUN*"])


@pytest.mark.parametrize(
    ("device", "host", "exact"),
    [
        (np.array([1, 2], np.int8), np.array([1, 2], np.int8), True),
        (np.array([1, 2], np.int8), np.array([1, 3], np.int8), False),
        (np.array([1.0, np.nan], np.float32), np.array([1.0, np.nan], np.float32), True),
        (np.array([1.0, np.nan], np.float32), np.array([np.nan, 1.0], np.float32), False),
    ],
)
def test_one_wrong_element_is_not_bit_exact(device: Array, host: Array, exact: bool) -> None:
    same = np.zeros(3, np.int8)
    result = DeviceResult((device, same), (device, same), (host, same), 1, "instructions", None)
    assert result.bit_exact is exact


def test_budgets_are_tests(suite: pytest.Pytester) -> None:
    """In a file of its own folder, whatever is collected besides: one holds, two do not, and say why."""
    (suite.path / "limits.toml").write_text(
        """
[[tool.tinyet.budgets]]
model = "small.tet"
board = "mps2_an386"
arena_bytes = "8K"

[[tool.tinyet.budgets]]
model = "small.tet"
board = "microbit"
arena_bytes = 8
macs = 9

[[tool.tinyet.budgets]]
model = "missing.tet"
board = "microbit"
macs = "1M"
"""
    )
    body = "def test_mine():\n    pass\n"
    result = run(suite, body, "--tinyet-budgets", "limits.toml", "-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "limits.toml::budget?0: small.tet on mps2_an386? PASSED*",
            "limits.toml::budget?1: small.tet on microbit? FAILED*",
            "*arena_bytes: *, at most 8*",
        ]
    )
    result.stdout.fnmatch_lines(["*macs: *, at most 9*", "*there is no file*missing.tet*"])
    assert "Traceback" not in result.stdout.str()
    run(suite, body, "--tinyet-budgets", "limits.toml", "-k", "mps2_an386").assert_outcomes(
        passed=1, deselected=3
    )
    run(suite, body).assert_outcomes(passed=1)
    broken = run(suite, body, "--tinyet-budgets", "nothing.toml")
    assert broken.ret == pytest.ExitCode.USAGE_ERROR
    broken.stderr.fnmatch_lines(["*the budgets cannot be read*"])
