# SPDX-License-Identifier: Apache-2.0
"""TinyetQuantizer: says which values of a captured graph become int8, and which share their parameters.

It only annotates; torchao observes, calibrates and converts. The scheme is TFLite's int8 specification:
weights per output channel, symmetric, -127..127; activations per tensor, affine, -128..127; biases stay
float here and become int32 when the graph is imported.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tinyet.errors import QuantizationError
from tinyet.frontend import annotate as rules
from tinyet.frontend.origins import module_stack
from tinyet.frontend.quiet import quiet

with quiet():
    from torchao.quantization.pt2e.observer import (
        HistogramObserver,
        MinMaxObserver,
        MovingAverageMinMaxObserver,
        PerChannelMinMaxObserver,
    )
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


class WeightPerChannelObserver(PerChannelMinMaxObserver):  # type: ignore[misc]
    """Smallest and largest weight of each channel. A channel of zeros (training leaves such) takes the
    largest scale of the others instead of a tiny one, by which its bias would not fit into 32 bits."""

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        scale, zero_point = super().calculate_qparams()
        dead = (self.min_val == 0) & (self.max_val == 0)
        if bool(dead.any()):
            usual = scale[~dead].max() if bool((~dead).any()) else torch.ones((), dtype=scale.dtype)
            scale = torch.where(dead, usual, scale)
        return scale, zero_point


OBSERVERS: dict[str, Any] = {
    "histogram": HistogramObserver,
    "minmax": MinMaxObserver,
    "moving_average": MovingAverageMinMaxObserver,
}


@dataclass(frozen=True)
class QuantConfig:
    """How activations and weights are quantized; `fixed` false observes softmax and its like as any other
    op."""

    activation: QuantizationSpec
    weight: QuantizationSpec
    fixed: bool = True


def int8_config(observer: str = "histogram") -> QuantConfig:
    """int8 weights per channel and int8 activations per tensor.

    observer: "histogram" (least squared error), "minmax" (never clips what was calibrated) or
    "moving_average".
    """
    if observer not in OBSERVERS:
        raise QuantizationError(f"there is no observer {observer!r}", hint=f"one of {', '.join(OBSERVERS)}")
    return QuantConfig(
        activation=QuantizationSpec(torch.int8, OBSERVERS[observer], -128, 127, torch.per_tensor_affine),
        weight=QuantizationSpec(
            torch.int8, WeightPerChannelObserver, -127, 127, torch.per_channel_symmetric, 0
        ),
    )


def _with_axis(spec: QuantizationSpec, axis: int) -> QuantizationSpec:
    return QuantizationSpec(
        spec.dtype, spec.observer_or_fake_quant_ctr, spec.quant_min, spec.quant_max, spec.qscheme, axis
    )


class TinyetQuantizer(Quantizer):  # type: ignore[misc]
    """Annotates for tinyet's integer kernels. Every `set_` method returns the quantizer; None means: leave
    in float.

    The most telling setting wins: the longest module name that holds the node, then the operator, then the
    type of the innermost module that has a setting, then the global one.
    """

    def __init__(self, config: QuantConfig | None = None) -> None:
        super().__init__()
        self._global: QuantConfig | None = config or int8_config()
        self._names: dict[str, QuantConfig | None] = {}
        self._types: dict[str, QuantConfig | None] = {}
        self._ops: dict[str, QuantConfig | None] = {}

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

    def config_of(self, node: fx.Node) -> QuantConfig | None:
        """The setting that holds for the node."""
        stack = module_stack(node)
        paths = [path for path, _ in stack]
        named = [n for n in self._names if any(p == n or p.startswith(n + ".") for p in paths)]
        if named:
            return self._names[max(named, key=len)]
        for name in sorted(rules.op_names(node), key=len, reverse=True):
            if name in self._ops:
                return self._ops[name]
        for _, kind in reversed(stack):
            if kind in self._types:
                return self._types[kind]
        return self._global

    def transform_for_annotation(self, model: fx.GraphModule) -> fx.GraphModule:
        return model

    def annotate(self, model: fx.GraphModule) -> fx.GraphModule:
        """Annotate every node that has a rule and a setting. Operators that only move data follow their
        source: behind a value that stays float they stay float."""
        self._check_names(model.graph)
        for node in model.graph.nodes:
            if node.op != "call_function" or _KEY in node.meta:
                continue
            config = self.config_of(node)
            if config is not None:
                self._annotate_node(node, config)
        self._release_idle_movers(model.graph)
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

    def _annotate_node(self, node: fx.Node, config: QuantConfig) -> None:
        target = node.target
        if target in rules.WEIGHTED:
            self._annotate_weighted(node, config)
        elif target in rules.BINARY and rules.is_float(node):
            inputs = rules.float_inputs(node)
            self._finish(node, {source: self._edge(source, config) for source in inputs}, config)
        elif target is aten.constant_pad_nd.default and len(node.args) > 2 and node.args[2]:
            # the value padded with may lie outside the input's range
            self._annotate_unary(node, config, config.activation)
        elif target in rules.SAME_AS_INPUT or target in rules.SEVERAL_OUTPUTS:
            self._annotate_mover(node, config)
        elif target in rules.ALL_SAME and rules.is_float(node):
            self._annotate_all_same(node, config)
        elif target in rules.FIXED:
            scale, zero_point = rules.FIXED[target]
            spec = FixedQParamsQuantizationSpec(
                torch.int8, scale, zero_point, -128, 127, torch.per_tensor_affine
            )
            self._annotate_unary(node, config, spec if config.fixed else config.activation)
        elif target in rules.UNARY:
            self._annotate_unary(node, config, config.activation)
        elif target in rules.INPUT_ONLY:
            self._annotate_unary(node, config, None)
        elif target is aten.embedding.default:
            self._annotate_embedding(node, config)

    def _edge(self, source: fx.Node, config: QuantConfig) -> QuantizationSpecBase:
        """The spec of reading `source`: its own parameters when it has some, so that nothing is quantized
        twice."""
        return SharedQuantizationSpec(source) if _output_spec(source) is not None else config.activation

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
            inputs[weight] = _with_axis(config.weight, _channel_axis(node, weight))
        elif node.target is aten.linear.default:
            inputs[weight] = self._edge(weight, config)  # a product of two activations
        else:
            return
        self._finish(node, inputs, config)

    def _annotate_mover(self, node: fx.Node, config: QuantConfig) -> None:
        source = node.args[0]
        if not isinstance(source, fx.Node) or not rules.is_float(source):
            return
        if source.op == "call_function" and _output_spec(source) is None:
            return
        _set(node, {source: self._edge(source, config)}, None)
        shared = SharedQuantizationSpec((source, node))
        if node.target in rules.SEVERAL_OUTPUTS:
            for user in node.users:
                if rules.is_float(user):
                    _set(user, {}, shared)
        else:
            node.meta[_KEY].output_qspec = shared

    def _annotate_all_same(self, node: fx.Node, config: QuantConfig) -> None:
        inputs = rules.float_inputs(node)
        if not inputs or all(s.op == "call_function" and _output_spec(s) is None for s in inputs):
            return
        first = inputs[0]
        roots = [_root(source) for source in inputs]
        # one fixed input must not force its range on the others
        alike = all(root == roots[0] for root in roots) or not isinstance(
            roots[0], FixedQParamsQuantizationSpec
        )
        edges: dict[fx.Node, QuantizationSpecBase] = {
            first: self._edge(first, config) if alike else config.activation
        }
        shared = SharedQuantizationSpec((first, node))
        edges.update(dict.fromkeys(inputs[1:], shared))
        _set(node, edges, shared)

    def _annotate_unary(
        self, node: fx.Node, config: QuantConfig, output: QuantizationSpecBase | None
    ) -> None:
        source = node.args[0]
        if isinstance(source, fx.Node) and rules.is_float(source):
            _set(node, {source: self._edge(source, config)}, output)

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


def _root(node: fx.Node) -> QuantizationSpecBase | None:
    """The spec that decides the parameters of the node's value, through all that it shares with."""
    spec = _output_spec(node)
    while isinstance(spec, SharedQuantizationSpec):
        place = spec.edge_or_node
        if isinstance(place, tuple):
            source, reader = place
            spec = reader.meta[_KEY].input_qspec_map[source]
        else:
            spec = _output_spec(place)
    return spec


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
