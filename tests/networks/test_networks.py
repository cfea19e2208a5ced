# SPDX-License-Identifier: Apache-2.0
"""No network is more than 3 dB below plain PT2E, and its C computes what the host reference computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.networks import state, together
from tests.networks.measure import WORSE_DB, Result, measure, sqnr_db
from tests.networks.network import Network
from tests.networks.plain import QuickObserver
from tests.networks.suite import NETWORKS
from tests.ops.emulated import require_emulator
from tinyet.data.samples import prepare_inputs
from tinyet.errors import ModelError
from tinyet.fx.log_filter import quiet

with quiet():
    from torchao.quantization.pt2e.observer import HistogramObserver

AT_ONCE = 15
"""Networks that one program for the host, and one firmware, holds."""

RUNS = 3
BOARD = "mps2_an386"

OPEN = {
    "where with minus infinity": "scores of a narrow range, of which what is masked takes most: 7 below the greatest",
}
"""Networks that are known to be worse, and why."""

GROUPS = [NETWORKS[start : start + AT_ONCE] for start in range(0, len(NETWORKS), AT_ONCE)]


def _name(group: Sequence[Network]) -> str:
    return f"{group[0].name} … {group[-1].name}"


@pytest.mark.emulated
@pytest.mark.parametrize("group", GROUPS, ids=_name)
def test_as_near_as_plain_pt2e_and_exact_in_c(group: Sequence[Network]) -> None:
    results = [measure(network) for network in group]
    worse = {r.network.name: f"{r.ours_db:.1f} dB, plain {r.plain_db:.1f} dB" for r in results if r.worse}
    assert worse.keys() == OPEN.keys() & {network.name for network in group}, (
        f"more than {WORSE_DB:g} dB below plain PT2E: {worse}"
    )
    _check_c(results)


def _check_c(results: Sequence[Result]) -> None:
    """All programs in one C program and in one firmware: RUNS samples each, bit for bit."""
    programs = [result.program for result in results]
    samples = []
    for run in range(RUNS):
        row = []
        for result in results:
            _, evaluation = result.network.samples()
            row += prepare_inputs(result.program.inputs, [x[run : run + 1].numpy() for x in evaluation])
        samples.append(row)
    want = together.wanted(programs, samples)
    graph = together.side_by_side(programs)
    owners = [result.network.name for result in results for _ in result.program.outputs]
    assert not together.differing(owners, want, together.on_host(graph, samples))
    require_emulator(BOARD)
    assert not together.differing(owners, want, together.on_board(graph, samples, BOARD))


def untouched(model: nn.Module) -> bool:
    kept = model.state
    return type(kept) is torch.Tensor and not kept.any()


@pytest.mark.parametrize("make", state.REFUSED)
def test_state_is_refused_with_its_line_and_left_as_it_was(make: type[nn.Module]) -> None:
    model = make().eval()
    with pytest.raises(ModelError, match=r"state\.py:"):
        tinyet.compile(model, (torch.ones(1, 8),), calibration=[torch.ones(32, 8)])
    assert untouched(model)


@pytest.mark.parametrize("make", state.KEPT)
def test_state_in_a_buffer_goes_on_and_is_left_as_it_was(make: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model, steps = make().eval(), torch.randn(24, 1, 8)
    program = tinyet.compile(model, (steps[0],), calibration=list(steps))
    assert untouched(model)
    assert [each.name for each in program.states] == ["state"]
    session = program.session()
    got = np.concatenate([np.asarray(session.run(step.numpy())) for step in steps])
    with torch.no_grad():
        want = torch.cat([model(step).clone() for step in steps]).numpy()
    assert sqnr_db(want, got) > 25


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_the_judges_observer_is_torchaos(scale: float, offset: float) -> None:
    """Number for number, also where float32 has few numbers for the borders of bins."""
    rng = np.random.default_rng(7)
    quick, torchaos = (kind(dtype=torch.int8) for kind in (QuickObserver, HistogramObserver))
    for size in (0.1, 1.0, 0.5, 3.0, 3.1, 2.0):
        drawn = torch.from_numpy(rng.standard_t(3, 300).astype(np.float32)) * size * scale + offset
        quick(drawn)
        torchaos(drawn)
        assert torch.equal(quick.histogram, torchaos.histogram)
        assert quick._non_linear_param_search() == torchaos._non_linear_param_search()


def test_names_are_unique_and_there_are_enough() -> None:
    assert len({network.name for network in NETWORKS}) == len(NETWORKS) >= 120


def test_ratios() -> None:
    exact = np.array([3.0, -4.0])
    assert sqnr_db(exact, exact) == math.inf
    assert sqnr_db(exact, exact * 1.1) == pytest.approx(20)
    assert sqnr_db(exact, np.array([3.0, math.nan])) == -math.inf
    assert sqnr_db(np.zeros(2), np.array([0.0, 1e-9])) == -math.inf
    assert sqnr_db(np.zeros(2), np.zeros(2)) == math.inf


def test_what_is_no_number_is_worse() -> None:
    """A ratio that cannot be compared does not pass for one that is as good."""
    network = NETWORKS[0]
    program = measure(network).program
    assert Result(network, program, math.nan, 40.0).worse
    assert Result(network, program, 40.0, math.nan).worse
    assert Result(network, program, 40.0, 36.9).worse
    assert not Result(network, program, 40.0, 37.1).worse
    assert not Result(network, program, math.inf, 58.0).worse
