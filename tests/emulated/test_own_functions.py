# SPDX-License-Identifier: Apache-2.0
"""Kernels whose C is made for each call, as machine code on emulated cores, also those that would not be chosen."""

from __future__ import annotations

import functools

import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import check_own
from tests.delegates import cmsis_nodes, test_access_order, test_cortex_m, test_cortex_m_s16
from tests.ops.test_tree_ensemble import tree_ensemble_nodes
from tinyet import assets
from tinyet.delegates import PORTABLE, Delegate
from tinyet.ir import DType
from tinyet.ops.tree_ensemble import BRANCHES, SIGNATURES

CORTEX_M = {
    **{symbol: nodes for symbol, nodes in test_cortex_m.NODES.items() if symbol not in test_cortex_m.LIBRARY},
    **test_cortex_m_s16.NODES,
}

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize(
    ("image", "count"), [(board.M4, 10), (board.M4_CLANG, 5), (board.M7, 5), (board.M33, 5)], ids=str
)
def test_cortex_m_instructions(image: Image, count: int) -> None:
    check_own(CORTEX_M, test_cortex_m.only, image, count)


@pytest.mark.parametrize(
    ("image", "count"), [(board.M0, 2), (board.M4, 6), (board.M55, 6), (board.M55_CLANG, 4)], ids=str
)
def test_cmsis_nn(image: Image, count: int) -> None:
    if assets.cmsis_nn_dir() is None:
        pytest.skip(f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here")
    check_own(cmsis_nodes.NODES, cmsis_nodes.only, image, count)


def only_portable(symbol: str) -> Delegate:
    kernels = PORTABLE.kernels.items()
    by_op = {op: tuple(k for k in own if k.symbol == symbol) for op, own in kernels}
    return Delegate("only", {op: own for op, own in by_op.items() if own}, files=PORTABLE.files)


@pytest.mark.parametrize("image", [board.M0, board.M4], ids=str)
def test_trees_as_code(image: Image) -> None:
    symbols = [f"{BRANCHES}_{dtypes}" for dtypes in SIGNATURES if not dtypes.startswith("f32")]
    nodes = functools.partial(tree_ensemble_nodes, (DType.INT16, DType.INT8))
    check_own(dict.fromkeys(symbols, nodes), only_portable, image, 4)


@pytest.mark.parametrize("image", [board.M4, board.M7], ids=str)
def test_images_of_several_tiles(image: Image) -> None:
    """Exactly over the input, and as near as the kernel allows."""
    large = {
        symbol: functools.partial(
            test_access_order.tiles,
            DType.INT16 if "s16" in symbol else DType.INT8,
            3 if "3x3" in symbol else 5,
        )
        for symbol in test_access_order.REPLACING
    }
    check_own(large, test_cortex_m.only, image, 5)
