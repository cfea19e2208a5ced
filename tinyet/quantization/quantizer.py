# SPDX-License-Identifier: Apache-2.0
"""TinyetQuantizer: says which values of a captured graph become integers, and which share their parameters.

It only annotates; torchao observes, calibrates and converts. How (int8, int16 activations, int4 weights, at run
time) is said by a `QuantConfig` for each layer; biases stay float here and become integers when the graph is
imported.

Between layers of different types: a value has the type of the layer that computes it, and a reader of another
type quantizes it once more for itself. Parameters are shared between values of one type only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import fx

from tinyet.custom import CustomOp, registered
from tinyet.errors import QuantizationError, bullet_list
from tinyet.fx.edit import get_constant
from tinyet.fx.log_filter import quiet
from tinyet.fx.origins import module_stack, origin_of
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.fx.signals import is_signal
from tinyet.quantization import annotate as rules
from tinyet.quantization import recurrent
from tinyet.quantization.config import KnownRangeSpec, QuantConfig, int8_config
from tinyet.quantization.divisors import multiply_for_divisors
from tinyet.quantization.masks import sight_of, sink_masks
from tinyet.quantization.pixels import Pixels, parameters_of, pixels_of
from tinyet.quantization.saturation import saturating

with quiet():
    from torchao.quantization.pt2e.quantizer.quantizer import (
        FixedQParamsQuantizationSpec,
        QuantizationAnnotation,
        QuantizationSpec,
        QuantizationSpecBase,
        Quantizer,
        SharedQuantizationSpec,
    )

_KEY = "quantization_annotation"
aten = torch.ops.aten


class TinyetQuantizer(Quantizer):  # type: ignore[misc]
    """Annotates for tinyet's integer kernels. Every `set_` method returns the quantizer; None means: leave
    in float.

    The most telling setting wins: that of the one operator, then the longest module name that holds the node, then the
    operators of a kind, then the type of the innermost module that has a setting, then the global one. Features of
    signals in front of the first learned layer (`fx.signals`) stay in float where none but the global one holds.
    """

    def __init__(self, config: QuantConfig | None = None) -> None:
        super().__init__()
        self._global: QuantConfig | None = config or int8_config()
        self._names: dict[str, QuantConfig | None] = {}
        self._types: dict[str, QuantConfig | None] = {}
        self._ops: dict[str, QuantConfig | None] = {}
        self._operators: dict[str, QuantConfig | None] = {}

    def set_global(self, config: QuantConfig | None) -> TinyetQuantizer:
        """For everything that no other setting names."""
        self._global = config
        return self

    def set_module_name(self, name: str, config: QuantConfig | None) -> TinyetQuantizer:
        """For the submodule with this path (`blocks.0.conv`) and all inside it. An unknown path is an error
        later."""
        self._names[name] = config
        return self

    def set_module_type(self, kind: type[torch.nn.Module], config: QuantConfig | None) -> TinyetQuantizer:
        """For modules of exactly this class and what they compute, inner modules included."""
        self._types[f"{kind.__module__}.{kind.__qualname__}"] = config
        return self

    def set_op(self, op: object, config: QuantConfig | None) -> TinyetQuantizer:
        """For an operator: `torch.ops.aten.softmax.int`, `torch.ops.aten.softmax`, "aten.softmax.int" or
        "softmax"."""
        self._ops[str(op)] = config
        return self

    def set_operator(self, name: str, config: QuantConfig | None) -> TinyetQuantizer:
        """For one operator, by its name in the captured graph (`log`, `matmul_1`), as `tinyet quantize --report` names
        it. An unknown name is an error later."""
        self._operators[name] = config
        return self

    def with_operators(self, configs: Mapping[str, QuantConfig | None]) -> TinyetQuantizer:
        """A copy with settings for single operators, as of `set_operator`, on top of the others."""
        other = self.copy()
        other._operators.update(configs)
        return other

    def is_free(self, node: fx.Node) -> bool:
        """Whether only the global setting says how the node is quantized."""
        told = self._setting_of(node) is not None or origin_of(node).key in self._operators
        return not told and not is_signal(node)

    @property
    def needs_calibration(self) -> bool:
        """Whether any setting observes activations; where all quantize at run time none does."""
        named = (self._names, self._types, self._ops, self._operators)
        settings = [self._global, *(config for table in named for config in table.values())]
        return any(config is not None and not config.dynamic for config in settings)

    def copy(self) -> TinyetQuantizer:
        """Another quantizer with the same settings."""
        return self._mapped(lambda config: config)

    def for_training(self) -> TinyetQuantizer:
        """A copy that puts fake quantizers where this one puts observers. Raises QuantizationError for settings
        that quantize at run time."""
        return self._mapped(lambda config: None if config is None else config.for_training())

    def _mapped(self, change: Callable[[QuantConfig | None], QuantConfig | None]) -> TinyetQuantizer:
        other = TinyetQuantizer().set_global(change(self._global))
        for mine, its in (
            (self._names, other._names),
            (self._types, other._types),
            (self._ops, other._ops),
            (self._operators, other._operators),
        ):
            its.update({name: change(config) for name, config in mine.items()})
        return other

    def config_of(self, node: fx.Node) -> QuantConfig | None:
        """The setting that holds for the node."""
        if self._operators and (key := origin_of(node).key) in self._operators:
            return self._operators[key]
        found = self._setting_of(node)
        if found is not None:
            return found[0]
        return None if is_signal(node) else self._global

    def _setting_of(self, node: fx.Node) -> tuple[QuantConfig | None] | None:
        """The most telling setting, in a tuple; None where there is only the global one."""
        stack = module_stack(node)
        paths = [path for path, _ in stack]
        named = [n for n in self._names if any(p == n or p.startswith(n + ".") for p in paths)]
        if named:
            return (self._names[max(named, key=len)],)
        for name in sorted(rules.op_names(node), key=len, reverse=True):
            if name in self._ops:
                return (self._ops[name],)
        for _, kind in reversed(stack):
            if kind in self._types:
                return (self._types[kind],)
        return None

    def transform_for_annotation(self, model: fx.GraphModule) -> fx.GraphModule:
        """Before annotation: constant masks move to the softmax that sees them, where that is quantized, recurrent
        layers show the states behind all of their steps, and what is divided by a constant in int16 is multiplied."""
        sink_masks(
            model, lambda reader: (config := self.config_of(reader)) is not None and not config.dynamic
        )
        recurrent.show_all_steps(model)
        multiply_for_divisors(
            model,
            lambda node: (
                (config := self.config_of(node)) is not None and config.activation.dtype is torch.int16
            ),
        )
        return model

    def annotate(self, model: fx.GraphModule) -> fx.GraphModule:
        """Annotate every node that has a rule and a setting. Operators that only move data follow their
        source: behind a value that stays float they stay float."""
        self._check_names(model.graph)
        pixels = pixels_of(model)
        for node in model.graph.nodes:
            if node in pixels:
                if any(user not in pixels for user in node.users):
                    self._annotate_pixels(node, pixels[node])
                continue
            if node.op != "call_function" or _KEY in node.meta:
                continue
            config = self.config_of(node)
            if config is not None:
                self._annotate_node(node, config)
        self._release_idle_movers(model.graph)
        for node in model.graph.nodes:
            if _KEY in node.meta and isinstance(node.target, torch._ops.OpOverload):
                _saturate(node)
        _check_constants(model)
        return model

    def validate(self, model: fx.GraphModule) -> None:
        """Nothing to refuse: an operator without a rule stays in float."""

    def _check_names(self, graph: fx.Graph) -> None:
        present = {path for node in graph.nodes for path, _ in module_stack(node) if path}
        unknown = [n for n in self._names if not any(p == n or p.startswith(n + ".") for p in present)]
        if unknown:
            raise QuantizationError(
                f"no module is called {', '.join(unknown)}", hint="modules: " + ", ".join(sorted(present))
            )
        operators = {origin_of(node).key for node in graph.nodes if node.op == "call_function"}
        missing = [name for name in self._operators if name not in operators]
        if missing:
            raise QuantizationError(
                f"no operator is called {', '.join(missing)}",
                hint="operators: " + ", ".join(sorted(operators)),
            )

    def _annotate_node(self, node: fx.Node, config: QuantConfig) -> None:
        target = node.target
        custom = registered(target)
        if custom is not None:
            self._annotate_custom(node, custom, config)
        elif config.dynamic:
            if target in rules.DYNAMIC:
                self._annotate_dynamic(node, config)
        elif target in rules.WEIGHTED:
            self._annotate_weighted(node, config)
        elif target in RECURRENT:
            self._annotate_recurrent(node, config)
        elif target in rules.BINARY and rules.is_float(node):
            inputs = rules.float_inputs(node)
            self._finish(node, {source: self._edge(source, config) for source in inputs}, config)
        elif rules.padded_with(node):
            # the value padded with may lie outside the input's range
            self._annotate_unary(node, config, config.activation)
        elif target in rules.SAME_AS_INPUT or target in rules.SEVERAL_OUTPUTS:
            self._annotate_mover(node, config)
        elif target in rules.ALL_SAME and rules.is_float(node):
            self._annotate_all_same(node, config)
        elif target in rules.FIXED:
            self._annotate_unary(node, config, _known_spec(target, config))
        elif target in rules.UNARY:
            self._annotate_unary(node, config, config.activation)
        elif target in rules.INPUT_ONLY:
            self._annotate_unary(node, config, None)
        elif target is aten.embedding.default:
            self._annotate_embedding(node, config)

    def _edge(self, source: fx.Node, config: QuantConfig) -> QuantizationSpecBase:
        """The spec of reading `source`: its own parameters when it has some of the reader's type, so that
        nothing is quantized twice."""
        root = _root(source)
        shared = root is not None and root.dtype == config.activation.dtype
        return SharedQuantizationSpec(source) if shared else config.activation

    def _finish(
        self, node: fx.Node, inputs: dict[fx.Node, QuantizationSpecBase], config: QuantConfig
    ) -> None:
        """Annotate node and the clamp that is fused into it, of which only the result is observed then."""
        clamp = self._fusable_clamp(node)
        if clamp is None:
            _set(node, inputs, config.activation)
        else:
            _set(node, inputs, None)
            _set(clamp, {}, config.activation)

    def _fusable_clamp(self, node: fx.Node) -> fx.Node | None:
        if len(node.users) != 1:
            return None
        (user,) = node.users
        bounds = list(user.args[1:]) + list(user.kwargs.values())
        fits = user.op == "call_function" and user.target in rules.CLAMPS and self.config_of(user) is not None
        return user if fits and not any(isinstance(b, fx.Node) for b in bounds) else None

    def _annotate_weighted(self, node: fx.Node, config: QuantConfig) -> None:
        source, weight = node.args[0], node.args[1]
        if not (isinstance(source, fx.Node) and isinstance(weight, fx.Node) and rules.is_float(source)):
            return
        inputs = {source: self._edge(source, config)}
        if weight.op == "get_attr":
            inputs[weight] = _weight_spec(node, weight, config)
        elif node.target is aten.linear.default:
            inputs[weight] = self._edge(weight, config)  # a product of two activations
        else:
            return
        self._finish(node, inputs, config)

    def _annotate_dynamic(self, node: fx.Node, config: QuantConfig) -> None:
        """The input is quantized when the layer runs; what comes out is float."""
        source, weight = node.args[0], node.args[1]
        if rules.is_float(source) and isinstance(weight, fx.Node) and weight.op == "get_attr":
            assert isinstance(source, fx.Node)
            _set(node, {source: config.activation, weight: _weight_spec(node, weight, config)}, None)

    def _annotate_recurrent(self, node: fx.Node, config: QuantConfig) -> None:
        """In int8 and in int16, but for what has no form there."""
        source, narrow = node.args[0], config.activation.dtype is torch.int8
        if not isinstance(source, fx.Node) or not (narrow or recurrent.has_int16_form(node)):
            return
        inputs, outputs = recurrent.specs(node, self._edge(source, config), config)
        _set(node, inputs, None)
        for result, spec in outputs.items():
            _set(result, {}, spec)

    def _annotate_mover(self, node: fx.Node, config: QuantConfig) -> None:
        source = node.args[0]
        if not isinstance(source, fx.Node) or not rules.is_float(source):
            return
        if source.op == "call_function" and _output_spec(source) is None:
            return
        root, edge = _root(source), self._edge(source, config)
        if isinstance(root, recurrent.CellSpec):
            edge = SharedQuantizationSpec(source)
        elif root is None and node in recurrent.ways_to_cells(node.graph):
            edge = recurrent.cell_spec(config)
        _set(node, {source: edge}, None)
        shared = SharedQuantizationSpec((source, node))
        if node.target in rules.CLAMPS | rules.AVERAGING:
            # Parameters of its own, unless calibration finds that it can share the source's (`sharing`).
            node.meta[_KEY].output_qspec = config.activation
        elif node.target in rules.SEVERAL_OUTPUTS:
            for user in node.users:
                if rules.is_float(user):
                    _set(user, {}, shared)
        else:
            node.meta[_KEY].output_qspec = shared

    def _annotate_all_same(self, node: fx.Node, config: QuantConfig) -> None:
        inputs = rules.float_inputs(node)
        if not inputs or all(s.op == "call_function" and _output_spec(s) is None for s in inputs):
            return
        owners, roots = zip(*map(_owner, inputs), strict=True)
        if all(isinstance(root, recurrent.CellSpec) for root in roots):
            # In int16 all of them, at the scale of the largest.
            shared = SharedQuantizationSpec((inputs[0], node))
            _set(
                node,
                {inputs[0]: SharedQuantizationSpec(inputs[0]), **dict.fromkeys(inputs[1:], shared)},
                shared,
            )
            return
        alike = _is_known(roots[0]) and all(r == roots[0] for r in roots)
        fixed = alike and isinstance(roots[0], FixedQParamsQuantizationSpec)
        if roots[0] is not None and (fixed or len(set(owners)) == 1):
            # alike without being asked: parts of one value and what repeats it, or all of one known range
            _set(node, {s: self._edge(s, config) for s in inputs}, SharedQuantizationSpec((inputs[0], node)))
            return
        # Who is read by nobody else takes the result's parameters: it loses nothing that the result would keep. All
        # others keep their own, and are requantized on this edge, unless calibration finds them close (`sharing`).
        edges = {source: self._edge(source, config) for source in inputs}
        own = [
            source
            for source, root in zip(inputs, roots, strict=True)
            if (alike or not _is_known(root)) and _read_once(source)
        ]
        if not own:
            _set(node, edges, config.activation)
            return
        own.sort(
            key=lambda source: source.op == "get_attr"
        )  # a constant has no parameters that it could give
        shared = SharedQuantizationSpec((own[0], node))
        edges.update(dict.fromkeys(own[1:], shared))
        # First what the others refer to: torchao makes the observers in this order.
        _set(node, {own[0]: edges.pop(own[0]), **edges}, shared)

    def _annotate_unary(
        self, node: fx.Node, config: QuantConfig, output: QuantizationSpecBase | None
    ) -> None:
        source = node.args[0]
        if isinstance(source, fx.Node) and rules.is_float(source):
            _set(node, {source: self._edge(source, config)}, output)

    def _annotate_pixels(self, node: fx.Node, pixels: Pixels) -> None:
        """Values made of bytes have known parameters; intermediate values have none."""
        config = self.config_of(node)
        if config is None or config.dynamic:
            return
        spec = config.activation
        low, high = int(spec.quant_min or 0), int(spec.quant_max or 0)
        known = parameters_of(pixels, low, high, symmetric=spec.dtype is torch.int16)
        _set(node, {}, FixedQParamsQuantizationSpec(spec.dtype, *known, low, high, torch.per_tensor_affine))

    def _annotate_custom(self, node: fx.Node, custom: CustomOp, config: QuantConfig) -> None:
        """An operator of the user's: its computed inputs are quantized, its constants stay float."""
        inputs = [source for source in rules.float_inputs(node) if source.op != "get_attr"]
        if custom.output is None or not inputs or config.dynamic or config.activation.dtype is not torch.int8:
            return
        output: QuantizationSpecBase = config.activation
        if custom.output == "same":
            output = SharedQuantizationSpec((inputs[0], node))
        elif isinstance(custom.output, tuple):
            scale, zero_point = custom.output
            output = FixedQParamsQuantizationSpec(
                torch.int8, scale, zero_point, -128, 127, torch.per_tensor_affine
            )
        _set(node, {source: self._edge(source, config) for source in inputs}, output)

    def _annotate_embedding(self, node: fx.Node, config: QuantConfig) -> None:
        table = node.args[0]
        if isinstance(table, fx.Node) and table.op == "get_attr":
            _set(node, {table: config.activation}, SharedQuantizationSpec((table, node)))

    def _release_idle_movers(self, graph: fx.Graph) -> None:
        """A model input that is only moved about on its way to float operators needs no quantizing."""
        for node in reversed(list(graph.nodes)):
            several = node.target in rules.SEVERAL_OUTPUTS
            if _KEY not in node.meta or not _moves_an_input(node):
                continue
            parts = list(node.users) if several else [node]
            if not any(_KEY in reader.meta for part in parts for reader in part.users):
                for part in {node, *parts}:
                    part.meta.pop(_KEY, None)


def _known_spec(target: object, config: QuantConfig) -> QuantizationSpecBase:
    """The spec of a result whose range is known in advance; that of any other where LiteRT fixes nothing."""
    table = rules.FIXED if config.activation.dtype is torch.int8 else rules.FIXED_INT16
    return config.of_known_range(table[target]) if target in table else config.activation


def _is_known(spec: QuantizationSpecBase | None) -> bool:
    """Whether the parameters are, or may be, those of a range known in advance."""
    return isinstance(spec, FixedQParamsQuantizationSpec | KnownRangeSpec)


def _weight_spec(node: fx.Node, weight: fx.Node, config: QuantConfig) -> QuantizationSpec:
    """Per output channel. Transposed convolutions have no kernel for fewer than eight bits, and take int8."""
    axis = _channel_axis(node, weight)
    if rules.WEIGHTED[node.target] == 1:
        return replace(config.weight, ch_axis=axis, quant_min=-127, quant_max=127)
    return replace(config.weight, ch_axis=axis)


def _channel_axis(node: fx.Node, weight: fx.Node) -> int:
    """The axis of the weight that counts output channels; in a transposed convolution with one channel a
    group the first does, because the second has size 1."""
    axis = rules.WEIGHTED[node.target]
    groups = node.args[6] if axis == 1 and len(node.args) > 6 else 1
    return 0 if groups != 1 and tuple(weight.meta["val"].shape[:2]) == (groups, 1) else axis


def _set(
    node: fx.Node, inputs: dict[fx.Node, QuantizationSpecBase], output: QuantizationSpecBase | None
) -> None:
    node.meta[_KEY] = QuantizationAnnotation(input_qspec_map=inputs, output_qspec=output, _annotated=True)


def _output_spec(node: fx.Node) -> QuantizationSpecBase | None:
    annotation = node.meta.get(_KEY)
    return annotation.output_qspec if annotation is not None else None


_Place = fx.Node | tuple[fx.Node, fx.Node]
"""A value, or the edge from a value to a reader."""


def _owner(node: fx.Node) -> tuple[_Place, QuantizationSpecBase | None]:
    """The node that owns the parameters of the value, through all sharing, and the spec that decides them."""
    place: _Place = node
    spec = _output_spec(node)
    while isinstance(spec, SharedQuantizationSpec):
        place = spec.edge_or_node
        if isinstance(place, tuple):
            source, reader = place
            spec = reader.meta[_KEY].input_qspec_map[source]
        else:
            spec = _output_spec(place)
    return place, spec


def _check_constants(module: fx.GraphModule) -> None:
    """Raise QuantizationError, listing them, for constants that would be quantized and hold infinities or NaN."""
    lines: dict[str, None] = {}  # each once
    for node in module.graph.nodes:
        annotation = node.meta.get(_KEY)
        for source, spec in (annotation.input_qspec_map if annotation is not None else {}).items():
            constant = get_constant(module, source)
            if spec is not None and constant is not None and not bool(torch.isfinite(constant).all()):
                origin = origin_of(node)
                lines[f"{origin.aten} reads {source.target}\n    at: {origin}"] = None
    if lines:
        raise QuantizationError(
            "integers hold no infinity and no NaN, and these constants do:\n" + bullet_list(list(lines)),
            hint="use finite numbers of the size of the values beside them, or leave the operator in float; -inf may "
            "stay where the one reader is a softmax, or takes the greatest value of rows that are not masked wholly",
        )


def _saturate(node: fx.Node) -> None:
    """Let a softmax's (or its kind's) input be observed as the softmax sees it, if nobody else reads it."""
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or not _read_once(source):
        return
    edge = node.meta[_KEY].input_qspec_map.get(source)
    place, spec = _owner(source) if isinstance(edge, SharedQuantizationSpec) else ((source, node), edge)
    if not isinstance(spec, QuantizationSpec):
        return
    sight = sight_of(node, torch.iinfo(spec.dtype).bits)
    if sight is None:
        return
    wanted = replace(spec, observer_or_fake_quant_ctr=saturating(spec.observer_or_fake_quant_ctr, sight))
    if isinstance(place, tuple):
        place[1].meta[_KEY].input_qspec_map[place[0]] = wanted
    else:
        place.meta[_KEY].output_qspec = wanted


def _root(node: fx.Node) -> QuantizationSpecBase | None:
    """The spec that decides the parameters of the node's value."""
    return _owner(node)[1]


def _read_once(node: fx.Node) -> bool:
    """Whether the value, and what it has its parameters from, is read by one node alone."""
    while len(node.users) == 1:
        spec = _output_spec(node)
        if not isinstance(spec, SharedQuantizationSpec):
            return True
        place = spec.edge_or_node
        node = place[0] if isinstance(place, tuple) else place
    return False


def _moves_an_input(node: fx.Node) -> bool:
    """Whether the node only moves data that comes, through nothing but movers, from an input of the model."""
    while node.op == "call_function":
        if (
            node.target is not operator.getitem
            and node.target not in rules.SAME_AS_INPUT | rules.SEVERAL_OUTPUTS
        ):
            return False
        source = node.args[0]
        if not isinstance(source, fx.Node):
            return False
        node = source
    return node.op == "placeholder"
