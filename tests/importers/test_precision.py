# SPDX-License-Identifier: Apache-2.0
"""Models in half, bfloat16 and double: compiled as float32, and said; the user's module stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import ModelError
from tinyet.fx.capture import capture


def _net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    ).eval()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_become_float32_and_it_is_said(dtype: torch.dtype) -> None:
    net = _net().to(dtype)
    x = torch.rand(4, 2, 8, 8).to(dtype)
    program = tinyet.compile(net, (x[:1],), calibration=x.split(1))
    (note,) = [str(n) for n in program.notes if "weights" in str(n)]
    assert str(dtype).removeprefix("torch.") in note
    assert ("exactly" in note) == (dtype is not torch.float64)
    assert {p.dtype for p in net.parameters()} == {dtype}
    exact = tinyet.compile(
        net.float(), (x[:1].float(),), calibration=[x[i : i + 1].float() for i in range(4)]
    )
    assert not [n for n in exact.notes if "weights" in str(n)]
    assert np.array_equal(exact.run(x[0].float().numpy()), program.run(x[0].float().numpy()))


def test_floats_of_two_sizes_in_one_model() -> None:
    net = _net()
    net[4].double()
    net.insert(4, nn.Identity())
    with pytest.raises(RuntimeError):
        net(torch.rand(1, 2, 8, 8))  # torch's own rule
    captured = capture(net, torch.rand(1, 2, 8, 8))
    assert {v.dtype for v in captured.state_dict.values() if v.is_floating_point()} == {torch.float32}


def test_an_exported_program_in_half_says_how_to_export_it() -> None:
    program = torch.export.export(_net().half(), (torch.rand(1, 2, 8, 8).half(),))
    with pytest.raises(ModelError) as caught:
        tinyet.compile(program)
    assert "inputs of float16 (input)" in caught.value.what
    assert "model.float()" in str(caught.value.hint)
