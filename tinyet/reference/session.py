# SPDX-License-Identifier: Apache-2.0
"""A graph in use: run after run, with what it keeps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyet.errors import DataError
from tinyet.ir import Array, Graph, Tensor
from tinyet.reference.evaluate import evaluate


class States(Mapping[str, Array]):
    """The states of a graph, by name: arrays of the states' own dtypes. They are read-only; to set one, replace it:
    `states["h"] = array`."""

    def __init__(self, graph: Graph) -> None:
        self._tensors = {state.name: state.value for state in graph.states}
        self._arrays: dict[str, Array] = {}
        for state in graph.states:
            self[state.name] = state.initial.array

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __setitem__(self, name: str, array: Array) -> None:
        """Raises DataError for a name that no state has, or an array of another shape or dtype than it."""
        tensor = self._tensors.get(name)
        if tensor is None:
            names = ", ".join(self._tensors) or "none"
            raise DataError(f"there is no state {name!r}", hint=f"states are: {names}")
        if tuple(array.shape) != tensor.shape or array.dtype != tensor.dtype.numpy:
            given = f"{array.dtype}{list(array.shape)}"
            raise DataError(f"state {name} is {tensor.type}, the array is {given}")
        kept = array.copy()
        kept.flags.writeable = False
        self._arrays[name] = kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<states {', '.join(f'{name}: {tensor.type}' for name, tensor in self._tensors.items())}>"


class Session:
    """Runs of a graph one after the other: each reads the states that the one before left.

    state: what the graph keeps, as the next run will read it; may be set (see `States`).
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.state = States(graph)

    def reset(self) -> None:
        """Make the states what they are before the first run."""
        for state in self.graph.states:
            self.state[state.name] = state.initial.array

    def values(self, inputs: Sequence[Array]) -> Mapping[Tensor, Array]:
        """One run: every value of the graph, constants included, the states as they were read among them.

        inputs: one array for each of `user_inputs`, of exactly its shape and dtype. Raises DataError when they are not;
        the states are then as before.
        """
        if len(inputs) != len(self.graph.user_inputs):
            count = len(self.graph.user_inputs)
            raise DataError(f"{self.graph.name} has {count} inputs, {len(inputs)} arrays were given")
        values = evaluate(self.graph, [*inputs, *self.state.values()])
        for state in self.graph.states:
            self.state[state.name] = values[state.next]
        return values

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """One run: an array for each of `user_outputs`. inputs: as `values` takes them."""
        values = self.values(inputs)
        return [values[tensor] for tensor in self.graph.user_outputs]
