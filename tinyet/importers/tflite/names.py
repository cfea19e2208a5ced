# SPDX-License-Identifier: Apache-2.0
"""Names: of tensors in C, and of the Keras layers that TensorFlow's names lead to."""

from __future__ import annotations

import re

from tinyet.messages.text import c_identifier, unused

# TensorFlow's wrappers of a model; no layers of the user's.
_WRAPPERS = re.compile(
    r"^(serving_default_|StatefulPartitionedCall[:_/]?|PartitionedCall[:_/]?|functional(_\d+)?(_1)?/)+"
)

_WEIGHTED = re.compile(r"/(Conv\w*|DepthwiseConv\w*|depthwise|separable_conv\w*|MatMul|conv\w*_transpose)$")
"""Steps by which TensorFlow ends the path of a layer with weights."""


class Names:
    """Each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """`wanted` (the file's name of a tensor) as a C identifier that nothing else has."""
        return unused(identifier(wanted), self._taken)


def plain(name: str) -> str:
    """A tensor's name without converters' additions: `serving_default_x:0` → `x`. For several fused layers, the name
    of the one with a bias or weights, or the first. (Weights that several layers share are among them, too.)"""
    parts = [re.sub(r":\d+$", "", _WRAPPERS.sub("", part)) for part in name.split(";")]
    named = [part for part in parts if part.strip("0123456789_/")]
    layers = [part for part in named if part.endswith("/BiasAdd")]
    weighted = [part for part in named if _WEIGHTED.search(part)]
    return (layers[:1] or weighted[-1:] or named[:1] or [""])[0]


def identifier(name: str) -> str:
    """The last steps of a layer's path as a C identifier: `model/block/conv/BiasAdd` → `block_conv`."""
    steps = path_of(name).split(".")[-2:]
    return c_identifier(steps)


def path_of(name: str) -> str:
    """The path of the Keras layer that computes a tensor, dots between: `sequential/conv2d/Relu;…` → `conv2d`."""
    steps = [step for step in plain(name).split("/") if step]
    # The last step is TensorFlow's operator, the first the model.
    inner = steps[1:-1] or steps[:-1] or steps
    return ".".join(re.sub(r"[^A-Za-z0-9_]+", "_", step) for step in inner)
