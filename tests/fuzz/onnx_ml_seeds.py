# SPDX-License-Identifier: Apache-2.0
"""Models of ai.onnx.ml, one for each of its operators, as scikit-learn's converters write them."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.importers.test_onnx_classical import MODELS, model_of

DOMAIN = "ai.onnx.ml"


def ml_seeds() -> list[Any]:
    """The label of a classifier that has a ZipMap behind its scores is the only output: maps are none."""
    found = []
    for nodes in MODELS.values():
        names = list(nodes[-1].output)
        own = list(nodes)
        if names == ["label", "scores"]:
            own.append(
                helper.make_node("ZipMap", ["scores"], ["map"], domain=DOMAIN, classlabels_int64s=[0, 1, 2])
            )
            names = ["label"]
        kinds = {name: int(TensorProto.INT64 if name == "label" else TensorProto.FLOAT) for name in names}
        found.append(onnx.load_from_string(model_of(own, kinds)))
    return found


def operators() -> set[str]:
    """Those that the seeds have, as importers name them."""
    nodes = [node for seed in ml_seeds() for node in seed.graph.node]
    return {f"{DOMAIN}.{node.op_type}" for node in nodes if node.domain == DOMAIN}
