# SPDX-License-Identifier: Apache-2.0
"""A compiled model in this process: its arena as bytes, and one call a run."""

from __future__ import annotations

import _ctypes
import ctypes
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyet.deployment import Deployment
from tinyet.errors import InternalError, ToolchainError
from tinyet.ir import Array, Tensor
from tinyet.native.build import NAME

_lock = threading.Lock()
_loaded: weakref.WeakValueDictionary[Path, _Loaded] = weakref.WeakValueDictionary()


def loaded() -> list[Path]:
    """The libraries in this process."""
    with _lock:
        return list(_loaded)


class _Loaded:
    """A library with its one arena, which all that run it in this process share. Unloaded when the last one is gone."""

    def __init__(self, path: Path, arena_bytes: int, states: bool) -> None:
        library = ctypes.CDLL(str(path))
        weakref.finalize(self, _ctypes.dlclose, library._handle)
        self.lock = threading.Lock()
        self.run = getattr(library, f"{NAME}_run")
        self.run.restype = ctypes.c_int32
        self.reset = getattr(library, f"{NAME}_reset") if states else None
        arena = (ctypes.c_uint8 * arena_bytes).in_dll(library, f"{NAME}_arena")
        self.arena = np.ctypeslib.as_array(arena)


class Library:
    """The compiled C of a deployment. Many of one library do not disturb each other.

    Raises ToolchainError where the library cannot be loaded.
    """

    def __init__(self, path: Path, deployment: Deployment) -> None:
        graph, plan = deployment.graph, deployment.plan
        with _lock:
            found = _loaded.get(path)
            if found is None:
                try:
                    found = _Loaded(path, max(plan.arena_bytes, 1), bool(graph.states))
                except (OSError, AttributeError, ValueError) as error:
                    raise ToolchainError(
                        "the compiled model cannot be loaded", str(path), str(error)
                    ) from error
                _loaded[path] = found
        self._loaded = found
        self._offset = plan.offset
        self._graph = graph

    def run(self, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """One run: the outputs, and the states that the next one reads. inputs, states: arrays of the graph's own
        shapes and dtypes. Raises InternalError where the C gives up."""
        graph, loaded = self._graph, self._loaded
        with loaded.lock:
            if loaded.reset is not None:
                loaded.reset()  # says that the states are set, to which the caller's are then written
            before = (*graph.user_inputs, *(state.value for state in graph.states))
            for tensor, array in zip(before, (*inputs, *states), strict=True):
                self._place(tensor)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            status = loaded.run()
            if status != 0:
                raise InternalError(f"the compiled C of {graph.name} ended with status {status}")
            outputs = [self._read(tensor) for tensor in graph.user_outputs]
            # Where states lie is one place for what is read and what becomes of it.
            return outputs, [self._read(state.value) for state in graph.states]

    def _place(self, tensor: Tensor) -> Array:
        at = self._offset(tensor)
        return self._loaded.arena[at : at + tensor.type.bytes]

    def _read(self, tensor: Tensor) -> Array:
        read: Array = self._place(tensor).copy().view(tensor.dtype.numpy)
        return read.reshape(tensor.shape)
