# SPDX-License-Identifier: Apache-2.0
"""Where each operator's strategy is: a function that draws whole nodes with their inputs."""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import strategies as st

from tests.ops.cases import Case
from tinyet import ops

# Operators that share a test file with their kin: the file, and the strategy in it.
SHARED = {
    "amax": ("test_reduce", "reduce_nodes"),
    "amin": ("test_reduce", "reduce_nodes"),
    "mean": ("test_reduce", "reduce_nodes"),
    "sum": ("test_reduce", "reduce_nodes"),
    "copy": ("test_reshape", "copy_nodes"),
    "signal_delay": ("test_signal_frames", "signal_delay_nodes"),
    "signal_energy": ("test_signal_features", "signal_energy_nodes"),
    "signal_fft_auto_scale": ("test_signal_features", "signal_fft_auto_scale_nodes"),
    "signal_filter_bank": ("test_signal_features", "signal_filter_bank_nodes"),
    "signal_filter_bank_log": ("test_signal_features", "signal_filter_bank_log_nodes"),
    "signal_filter_bank_spectral_subtraction": (
        "test_signal_features",
        "signal_filter_bank_spectral_subtraction_nodes",
    ),
    "signal_filter_bank_square_root": ("test_signal_features", "signal_filter_bank_square_root_nodes"),
    "signal_framer": ("test_signal_frames", "signal_framer_nodes"),
    "signal_irfft": ("test_signal_fft", "signal_irfft_nodes"),
    "signal_overlap_add": ("test_signal_frames", "signal_overlap_add_nodes"),
    "signal_pcan": ("test_signal_features", "signal_pcan_nodes"),
    "signal_rfft": ("test_signal_fft", "signal_rfft_nodes"),
    "signal_stacker": ("test_signal_frames", "signal_stacker_nodes"),
    "signal_window": ("test_signal_features", "signal_window_nodes"),
}


def module_of(name: str) -> Any:
    """The test module of an operator. Raises ModuleNotFoundError when it has none."""
    file, _ = SHARED.get(name, (f"test_{name}", ""))
    return importlib.import_module(f"tests.ops.{file}")


def strategy_of(name: str) -> st.SearchStrategy[Case]:
    """Nodes of one operator. Raises AttributeError when its test module has no `<op>_nodes`."""
    _, function = SHARED.get(name, ("", f"{name}_nodes"))
    draw: Any = getattr(module_of(name), function)
    if function == "reduce_nodes":
        op = ops.by_name(name)
        assert op is not None
        shared: st.SearchStrategy[Case] = draw((op.attrs,))
        return shared
    own: st.SearchStrategy[Case] = draw()
    return own
