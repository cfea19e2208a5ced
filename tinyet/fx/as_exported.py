# SPDX-License-Identifier: Apache-2.0
"""An ExportedProgram of a graph module whose nodes are operators already, without running it through torch.export.

torch.export would trace such a module to find the nodes that it has, at some milliseconds each, twice for a model that
is compiled, more often with remedies. What a trace adds is the shape and type of each value, constants as inputs, and
names; all that is done here, node by node, and torch verifies the result as it does its own.
"""

from __future__ import annotations

import copy
import operator
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from torch import Tensor, fx, nn
from torch._export.verifier import TrainingIRVerifier
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.graph import CodeGen, _PyTreeCodeGen
from torch.utils import _pytree as pytree

from tinyet.fx.examples import Inputs
from tinyet.fx.known_forms import fake_of, result_of

_PREFIX = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_", InputKind.CONSTANT_TENSOR: "c_"}
_SYMBOLS = re.compile(r"[^a-zA-Z0-9]")
_KEPT_META = ("stack_trace", "nn_module_stack", "custom", "quantization_tag", "torch_fn", "source_fn_stack")


def as_exported(module: fx.GraphModule, inputs: Inputs) -> ExportedProgram | None:
    """The program, as torch.export makes it of the module; None where a node is none of its operators, so that
    it must be traced.

    inputs: one for each of the module's placeholders.
    """
    if not _is_plain(module, inputs):
        return None
    return _OfModule(module, inputs).program()


def _is_plain(module: fx.GraphModule, inputs: Inputs) -> bool:
    entries = 0
    for node in module.graph.nodes:
        if node.op == "placeholder":
            entries += 1
        elif node.op == "get_attr":
            if type(_attribute(module, node.target)) not in (Tensor, nn.Parameter):
                return False
        elif node.op == "call_function":
            if not (isinstance(node.target, OpOverload) or _takes_result(node)):
                return False
        elif node.op != "output":
            return False
    leaves = pytree.tree_leaves(module.graph.output_node().args[0])
    whole = entries == len(inputs) and all(isinstance(leaf, fx.Node) for leaf in leaves)
    return whole and _argument_names(module.graph, len(inputs)) is not None


def _argument_names(graph: fx.Graph, count: int) -> list[str] | None:
    """The names of forward()'s arguments where these are `count` tensors, one for each placeholder; else None."""
    codegen = graph._codegen
    if isinstance(codegen, _PyTreeCodeGen):
        info = codegen.pytree_info
        flat = pytree.tree_structure((tuple(range(count)), {}))
        return info.orig_args if info.in_spec == flat and len(info.orig_args) == count else None
    names = [str(node.target) for node in graph.nodes if node.op == "placeholder"]
    return names if type(codegen) is CodeGen and all(map(str.isidentifier, names)) else None


def _takes_result(node: fx.Node) -> bool:
    """Whether the node is one of several results of an operator."""
    of = node.args[0]
    return node.target is operator.getitem and isinstance(of, fx.Node) and isinstance(of.target, OpOverload)


def _attribute(module: nn.Module, path: object) -> Any:
    value: Any = module
    for part in str(path).split("."):
        value = getattr(value, part, None)
    return value


class _Names:
    """Names as torch.export gives them: who comes later gets a number, one behind the largest of its name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: defaultdict[str, int] = defaultdict(int)

    def take(self, name: str, *, numbered: bool = True) -> str:
        """numbered: a number at the end of `name` is one of these."""
        match = re.match(r"(.*)_(\d+)", name)
        base = match[1] if match and numbered else name
        if name in self._taken:
            name = f"{base}_{self._last[base] + 1}"
        match = re.match(r"(.*)_(\d+)", name)
        if match:
            self._last[match[1]] = max(self._last[match[1]], int(match[2]))
        self._taken.add(name)
        return name


class Copy:
    """A graph in the making, call by call, in torch's order and with torch's names."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.copies: dict[fx.Node, fx.Node] = {}
        self.parts: dict[fx.Node, list[fx.Node]] = {}

    def take(self, node: fx.Node) -> None:
        """One of several results, which its operator's call has made."""
        of: Any = node.args[0]
        index: Any = node.args[1]
        self.copies[node] = self.parts[of][index]

    def call(self, of: fx.Node, target: OpOverload, args: Any, kwargs: Any, value: Any) -> None:
        """The copy of `of`: a call of `target` that gives `value`, from where `of` is from.

        args, kwargs: of the original graph.
        """
        args, kwargs = fx.map_arg((args, kwargs), self.copies.__getitem__)
        made = self._make(of, target, target.overloadpacket.__name__, args, kwargs, value)
        self.copies[of] = made
        if isinstance(value, (tuple, list)):
            # Of an operator with several results, each is there at once, used or not.
            take = operator.getitem
            self.parts[of] = [
                self._make(of, take, take.__name__, (made, index), {}, part)
                for index, part in enumerate(value)
            ]

    def _make(self, of: fx.Node, target: Any, name: str, args: Any, kwargs: Any, value: Any) -> fx.Node:
        made = self.graph.create_node("call_function", target, args, kwargs, self.graph._target_to_str(name))
        made.meta["val"] = value
        made.meta.update({key: copy.copy(of.meta[key]) for key in _KEPT_META if key in of.meta})
        return made


class _OfModule(Copy):
    """What the module's graph has, with constants as inputs, and values of this moment."""

    def __init__(self, module: fx.GraphModule, inputs: Inputs) -> None:
        super().__init__()
        self.module, self.inputs = module, inputs
        self.mode = FakeTensorMode(shape_env=ShapeEnv(), export=True)
        self.held: dict[str, fx.Node] = {}
        self.constants: dict[str, Any] = {}
        self.specs: list[InputSpec] = []

    def program(self) -> ExportedProgram:
        self._enter_constants()
        self._enter_inputs()
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                self.copies[node] = self.held[str(node.target)]
            elif node.op == "call_function":
                self._call(node)
        for path, node in self.held.items():
            node.meta["val"].requires_grad = _attribute(self.module, path).requires_grad
        return self._finish()

    def _enter(self, name: str, value: Tensor) -> fx.Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = fake_of(value, self.mode)
        return node

    def _hold(self, kind: InputKind, path: str, value: Tensor, persistent: bool | None = None) -> None:
        node = self._enter(f"arg{len(self.specs)}_1", value)
        self.held[path] = node
        self.specs.append(InputSpec(kind, TensorArgument(node.name), path, persistent))

    def _enter_constants(self) -> None:
        module = self.module
        for path, value in module.named_parameters(remove_duplicate=False):
            self._hold(InputKind.PARAMETER, path, value)
        lasting = set(module.state_dict(keep_vars=True))
        for path, buffer in module.named_buffers(remove_duplicate=False):
            if path not in lasting:
                self.constants[path] = buffer
            self._hold(InputKind.BUFFER, path, buffer, path in lasting)
        for node in module.graph.nodes:
            if node.op == "get_attr" and str(node.target) not in self.held:
                self.constants[str(node.target)] = constant = _attribute(module, node.target)
                self._hold(InputKind.CONSTANT_TENSOR, str(node.target), constant)

    def _enter_inputs(self) -> None:
        entries = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        for entry, value in zip(entries, self.inputs, strict=True):
            node = self._enter(f"arg{len(self.specs)}_1", value)
            self.copies[entry] = node
            self.specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))

    def _call(self, node: fx.Node) -> None:
        target: Any = node.target
        if target is operator.getitem:
            self.take(node)
            return
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: self.copies[n].meta["val"])
        self.call(node, target, node.args, node.kwargs, result_of(target, args, kwargs, self.mode))

    def _finish(self) -> ExportedProgram:
        leaves, out_spec = pytree.tree_flatten(self.module.graph.output_node().args[0])
        codegen = self.module.graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            given = codegen.pytree_info.out_spec
            assert given is not None
            out_spec = given
        results = tuple(self.copies[leaf] for leaf in leaves)
        self.graph.output(results)
        names = _argument_names(self.module.graph, len(self.inputs))
        assert names is not None
        self._name_all(names)
        in_spec = pytree.tree_structure((tuple(self.inputs), {}))
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in results]
        signature = ModuleCallSignature([], [], in_spec, out_spec, names)
        parts = [path for path, _ in self.module.named_modules(remove_duplicate=False)]
        return ExportedProgram(
            root=nn.Module(),
            graph=self.graph,
            graph_signature=ExportGraphSignature(self.specs, outputs),
            state_dict=self._state(),
            range_constraints={},
            module_call_graph=[ModuleCallEntry(path, None if path else signature) for path in parts],
            example_inputs=(tuple(self.inputs), {}),
            constants=self.constants,
            verifiers=[TrainingIRVerifier],
        )

    def _state(self) -> dict[str, Tensor]:
        """What of the constants is saved with a module."""
        kept = (InputKind.PARAMETER, InputKind.BUFFER)
        paths = [str(s.target) for s in self.specs if s.kind in kept and s.target not in self.constants]
        return {path: _attribute(self.module, path) for path in paths}

    def _name_all(self, arguments: Sequence[str]) -> None:
        """arguments: the names of forward()'s."""
        names = _Names()
        nodes = list(self.graph.nodes)
        entries = dict(zip((spec.arg.name for spec in self.specs), nodes, strict=False))
        of_user = [spec for spec in self.specs if spec.kind is InputKind.USER_INPUT]
        given = {spec.arg.name: name.lower() for spec, name in zip(of_user, arguments, strict=True)}
        for spec in (*of_user, *(spec for spec in self.specs if spec.kind is not InputKind.USER_INPUT)):
            title = given.get(spec.arg.name)
            if title is None:
                title = _PREFIX[spec.kind] + _SYMBOLS.sub("_", str(spec.target)).lower()
            node = entries[spec.arg.name]
            node.name = node.target = names.take(title, numbered=False)
            spec.arg.name = node.name
        for node in nodes:
            if node.op == "call_function":
                node.name = names.take(node.name)
