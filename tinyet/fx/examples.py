# SPDX-License-Identifier: Apache-2.0
"""Example inputs: a tensor, or a tuple, list or dict of tensors, numbers and None, in whatever they are nested.

The tensors are the program's inputs, in the order in which they stand there. Numbers and None are constants of the
program, as torch.export takes them. A dict as the whole holds arguments by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tinyet.errors import ModelError, QuantizationError
from tinyet.errors.arguments import described

Inputs = tuple[torch.Tensor, ...]

EXAMPLE_HINT = "let example_inputs() return what forward() takes: a tensor or a tuple of tensors"
_ARRAY_HINT = "torch.from_numpy(x) makes a tensor of an array"


@dataclass(frozen=True)
class Example:
    """tensors: the program's inputs, floats in float32. What else there is, and how all of it is nested, in `_leaves`
    and `_spec`, of (arguments, arguments by name)."""

    tensors: Inputs
    _leaves: tuple[Any, ...] = field(repr=False)
    _spec: pytree.TreeSpec = field(repr=False)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.tensors)

    @property
    def is_plain(self) -> bool:
        """Whether forward() takes the tensors one by one, and nothing else."""
        return self._spec == pytree.tree_structure((tuple(self.tensors), {})) and not self.constants

    @property
    def constants(self) -> tuple[str, ...]:
        """The numbers, as one calls them: example input 1 (1.1)."""
        paths = _paths(self.arguments)
        values = zip(paths, self._leaves, strict=True)
        return tuple(f"{path} ({value})" for path, value in values if isinstance(value, (bool, int, float)))

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of forward(): (arguments, arguments by name)."""
        rest = iter(self.tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return args, kwargs

    def replaced(self, tensors: Sequence[torch.Tensor]) -> Example:
        """With other tensors, in the same places."""
        return replace(self, tensors=tuple(tensors))

    def run(self, module: nn.Module) -> Any:
        """The module's result for copies of the tensors."""
        args, kwargs = self.copied().arguments
        return module(*args, **kwargs)

    def copied(self) -> Example:
        """With copies of the tensors."""
        return self.replaced([value.detach().clone() for value in self.tensors])

    def flat(self, batch: Any, label: str) -> Any:
        """A batch of calibration data that is nested as the example is, as its tensors; what is a tensor, or one tensor
        an input already, as it is. label: the batch, for errors. Raises QuantizationError for other structures."""
        listed = isinstance(batch, (tuple, list)) and all(isinstance(v, torch.Tensor) for v in batch)
        if isinstance(batch, torch.Tensor) or (listed and len(batch) == len(self.tensors)):
            return batch
        given = ((), batch) if isinstance(batch, dict) else (tuple(batch), {}) if listed else (batch, {})
        try:
            leaves = self._spec.flatten_up_to(given)
        except (ValueError, TypeError, KeyError) as error:
            raise QuantizationError(
                f"{label} is nested otherwise than the example inputs: {described(batch)}",
                hint="give each batch as the example inputs are, or as a tuple of one tensor per input",
            ) from error
        return tuple(v for v, own in zip(leaves, self._leaves, strict=True) if isinstance(own, torch.Tensor))

    def batches(self, given: Any) -> Any:
        """Calibration data of which each batch is nested as the example."""
        if self.is_plain or isinstance(given, torch.Tensor) or not isinstance(given, Iterable):
            return given
        return _Batches(self, given)


@dataclass(frozen=True)
class _Batches:
    """Batches, flat, as often as they are asked for."""

    example: Example
    given: Iterable[Any]

    def __iter__(self) -> Iterator[Any]:
        for index, batch in enumerate(self.given):
            yield self.example.flat(batch, f"calibration batch {index}")


def example_of(inputs: object) -> Example:
    """The given example inputs. Raises ModelError that names an invalid one."""
    if isinstance(inputs, Example):
        return inputs
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not isinstance(inputs, (tuple, list, dict)) or not inputs:
        hint = _ARRAY_HINT if hasattr(inputs, "__array__") else EXAMPLE_HINT
        raise ModelError(f"example inputs are {described(inputs)}", hint=hint)
    if isinstance(inputs, dict) and not all(isinstance(key, str) for key in inputs):
        raise ModelError("example inputs are a dict whose keys are no names", hint=EXAMPLE_HINT)
    arguments = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    leaves, spec = pytree.tree_flatten(arguments)
    tensors: list[torch.Tensor] = []
    some = any(isinstance(leaf, torch.Tensor) for leaf in leaves)
    for path, leaf in zip(_paths(arguments), leaves, strict=True):
        if isinstance(leaf, torch.Tensor):
            if leaf.device.type != "cpu":
                raise ModelError(f"{path} is on {leaf.device}", hint="move model and inputs with .cpu()")
            tensors.append(leaf.float() if leaf.is_floating_point() else leaf)
        elif not some or not (leaf is None or isinstance(leaf, (bool, int, float))):
            raise ModelError(f"{path} is {described(leaf)}, not a tensor", hint=_instead(leaf, leaves))
    return Example(tuple(tensors), tuple(leaves), spec)


def _instead(leaf: object, leaves: Sequence[object]) -> str:
    """A substitute for a value that is no tensor."""
    if leaves and all(type(size) is int for size in leaves):
        return f"give a tensor of that shape: torch.zeros({', '.join(map(str, leaves))})"
    if isinstance(leaf, (int, float)):
        return f"give it as a tensor, torch.tensor({float(leaf)}), or make it a constant of the model"
    if hasattr(leaf, "__array__"):
        return _ARRAY_HINT
    return "give tensors, numbers and None, in tuples, lists and dicts; make anything else a constant of the model"


def _paths(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> list[str]:
    """Names of the leaves in errors: example input 1, example input 0['mask'], example input 'mask'."""
    paths = []
    for path, _ in pytree.tree_flatten_with_path(arguments)[0]:
        _, first, *inner = path
        name = first.idx if isinstance(first, pytree.SequenceKey) else pytree.keystr((first,))[1:-1]
        paths.append(f"example input {name}{pytree.keystr(tuple(inner))}")
    return paths


def check_inputs(inputs: object) -> Inputs:
    """The tensors of what was given as example inputs; raises what `example_of` raises."""
    return example_of(inputs).tensors
