# SPDX-License-Identifier: Apache-2.0
"""Typed pointers into the arena: the names of values in `run`, and the declarations of their places."""

from __future__ import annotations

from collections.abc import Collection

from tinyet.deployment import Deployment, Step
from tinyet.emit.instance import Instance
from tinyet.emit.names import Names
from tinyet.ir import Tensor
from tinyet.opset import InputArg, OutputArg, ScratchArg


class Pointers:
    """The names of a model's values and scratch areas. Each pointer is declared where it is first used.

    names: of every tensor in the arena. scratch: of the memory that a step works in.
    arena_used: whether a declaration has been made that speaks of the arena.
    """

    def __init__(self, deployment: Deployment, instance: Instance, names: Names) -> None:
        self.deployment = deployment
        self.instance = instance
        self.arena_used = False
        tensors = dict.fromkeys((*deployment.graph.inputs, *deployment.plan.storage))
        self.names = {tensor: names.unique(tensor.name) for tensor in tensors}
        # The scratch memory of layers whose rows are in stacked buffers is on top of these.
        areas = deployment.plan.scratch
        steps = [s for s in deployment.steps if ScratchArg() in s.call.args and s.node in areas]
        offsets = {deployment.plan.scratch[s.node] for s in steps}
        shared = names.unique("scratch") if len(offsets) == 1 else ""
        self.scratch = {s: shared or names.unique(f"scratch_{s.index}") for s in steps}
        self._declared: set[Tensor | str] = set()
        self._computed = {t for s in deployment.steps for t in s.node.outputs}
        taken = [s.tiled_input for s in deployment.plan.fusion_groups if s.tiled_input is not None]
        # An input that comes by rows is written here, under the one name that layers read.
        self._computed |= {each.tensor for each in taken}
        self._given = {each.input for each in taken}

    def inputs_read(self) -> list[Tensor]:
        """The model's inputs that a call reads, under their own names or through views of their bytes."""
        found = {
            t for step in self.deployment.steps for read in self._read(step) for t in self._lineage(read)
        }
        return [t for t in self.deployment.graph.inputs if t in found and t not in self._given]

    def _accessor(self, tensor: Tensor) -> str | None:
        """The public function that says where an input or a state lies."""
        graph = self.deployment.graph
        states = [state.value for state in graph.states]
        for kind, tensors in (("input", graph.user_inputs), ("state", states)):
            if tensor in tensors and tensor not in self._given:
                index = list(tensors).index(tensor)
                if kind == "input":
                    return self.instance.end(kind, index)
                return f"{self.instance.name}_{kind}_{index}({self.instance.give})"
        return None

    def for_call(self, step: Step, stacked_buffers: Collection[Tensor] = ()) -> tuple[str, ...]:
        """Declarations of the pointers that a call is the first to use. stacked_buffers: windows whose places
        change."""
        tensors = [t for read in self._read(step) if read not in stacked_buffers for t in self._lineage(read)]
        lines = [self.declare(t) for t in dict.fromkeys(tensors) if t not in self._declared]
        written = [step.node.outputs[arg.index] for arg in step.call.args if isinstance(arg, OutputArg)]
        lines += [self.declare(tensor) for tensor in dict.fromkeys(written) if tensor not in stacked_buffers]
        scratch = self.scratch.get(step)
        if scratch is not None and scratch not in self._declared:
            self._declared.add(scratch)
            lines.append(f"void *const {scratch} = {self.at(self.deployment.plan.scratch[step.node])};")
        return tuple(lines)

    def at(self, offset: int) -> str:
        """The address of bytes in the arena."""
        self.arena_used |= not self.instance.is_second(offset)
        return self.instance.at(offset)

    def declare(self, tensor: Tensor) -> str:
        """The only declaration of a pointer to a tensor."""
        self._declared.add(tensor)
        ctype, name = tensor.dtype.c, self.names[tensor]
        accessor = self._accessor(tensor)
        if accessor is not None:
            return f"const {ctype} *const {name} = {accessor};"
        base = self._base(tensor)
        if base is not None:
            step = (self._offset(tensor) - self._offset(base)) // tensor.dtype.bytes
            there = f"{self.names[base]} + {step}" if step else self.names[base]
            return f"const {ctype} *const {name} = {there};"
        const = "" if tensor in self._computed else "const "
        if self.deployment.plan.is_callers(tensor):
            return f"{const}{ctype} *const {name} = {self._in_buffer(tensor, const)};"
        at = self.at(self._offset(tensor))
        # For larger elements the cast tells compilers that the alignment is intended.
        through = f"({const}void *)" if tensor.dtype.bytes > 1 else ""
        return f"{const}{ctype} *const {name} = ({const}{ctype} *){through}({at});"

    def _in_buffer(self, tensor: Tensor, const: str) -> str:
        """The address of a value that lies in a buffer of the caller's."""
        plan, graph = self.deployment.plan, self.deployment.graph
        sides = (("input", graph.user_inputs), ("output", graph.user_outputs))
        block = plan.storage[tensor].block
        kind, index, end = next(
            (kind, index, t)
            for kind, tensors in sides
            for index, t in enumerate(tensors)
            if plan.storage[t].block == block
        )
        apart, there = plan.offset(tensor) - plan.offset(end), self.instance.end(kind, index)
        if tensor.dtype is not end.dtype:
            byte = f"({const}uint8_t *){there}" + (f" + {apart}" if apart else "")
            return f"({const}{tensor.dtype.c} *)({const}void *)({byte})"
        return f"{there} + {apart // tensor.dtype.bytes}" if apart else there

    def _read(self, step: Step) -> list[Tensor]:
        inputs = [step.node.input(arg.index) for arg in step.call.args if isinstance(arg, InputArg)]
        return [t for t in inputs if not t.is_constant]

    def _lineage(self, tensor: Tensor) -> list[Tensor]:
        """Names of a tensor's bytes: the written values and views, up to the tensor."""
        base = self._base(tensor)
        return [tensor] if base is None else [*self._lineage(base), tensor]

    def _base(self, tensor: Tensor) -> Tensor | None:
        """Of a tensor that no call computes: the one in whose bytes, or at whose head, it lies."""
        node = self.deployment.graph.producer(tensor)
        if node is None or tensor in self._computed:
            return None
        for other in node.inputs:
            if other is None or other.is_constant or other.dtype is not tensor.dtype:
                continue
            distance = self._offset(tensor) - self._offset(other)
            if distance >= 0 and distance % tensor.dtype.bytes == 0:
                return other
        return None

    def _offset(self, tensor: Tensor) -> int:
        return self.deployment.plan.offset(tensor)
