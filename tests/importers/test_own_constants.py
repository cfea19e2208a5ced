# SPDX-License-Identifier: Apache-2.0
"""A program is what its model was when it was compiled."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import tinyet


def test_a_model_that_is_trained_on_leaves_its_program_as_it_was() -> None:
    model, x = nn.Linear(4, 3).eval(), torch.ones(1, 4)
    program = tinyet.compile(model, (x,))
    before = np.asarray(program.run(x.numpy()))
    with torch.no_grad():
        model.weight.mul_(2)
        model.bias.add_(1)
    np.testing.assert_array_equal(np.asarray(program.run(x.numpy())), before)
