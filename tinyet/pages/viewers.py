# SPDX-License-Identifier: Apache-2.0
"""The graph of a report for viewers of graphs: Google's Model Explorer, and Netron by way of ONNX.

Both are made of the JSON of `tinyet analyze`; what `tinyet validate` has measured is laid over it, layer by layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tinyet.errors import ToolchainError
from tinyet.messages.text import printable

Report = Mapping[str, Any]
"""As `to_json()` gives it."""

_STATED = {
    "stated_instructions": "instructions",
    "estimated_cycles": "cycles",
    **{name: name for name in ("macs", "constant_bytes", "output_bytes", "scratch_bytes")},
}
_MEASURED = ("instructions", "cycles", "sqnr_db")
"""What is laid over a graph, where it is known: figures of the analysis by its fields, and those that were measured."""

_INPUT = -1
_DOMAIN = "tinyet"
_GREEN_TO_RED = [{"stop": 0, "bgColor": "#d9f2dd"}, {"stop": 1, "bgColor": "#e5746c"}]
_RED_TO_GREEN = [{"stop": 0, "bgColor": "#e5746c"}, {"stop": 1, "bgColor": "#d9f2dd"}]


def figures_of(analysis: Report, measured: Report | None) -> dict[str, dict[int, float]]:
    """Each figure that is known of a layer, by the layer's index, under a name that says whether it was measured or
    stated. measured: of validate."""
    ran = {} if measured is None else {layer["name"]: layer for layer in measured["layers"]}
    found: dict[str, dict[int, float]] = {}
    for layer in analysis["layers"]:
        own = {name: ran.get(layer["name"], {}).get(name) for name in _MEASURED}
        own |= {name: layer[key] for name, key in _STATED.items()}
        for name, value in own.items():
            if value is not None:
                found.setdefault(name, {})[layer["index"]] = value
    return found


def model_explorer(analysis: Report, measured: Report | None = None) -> dict[str, object]:
    """The graph as Model Explorer opens it: a collection of one graph, modules as nested layers."""
    figures = figures_of(analysis, measured)
    nodes: list[dict[str, object]] = []
    if any(_INPUT in layer["reads"] for layer in analysis["layers"]):
        inputs = [_pair(f"input {i}", text) for i, text in enumerate(analysis["inputs"])]
        nodes.append({"id": _id(_INPUT), "label": "inputs", "attrs": inputs})
    for layer in analysis["layers"]:
        *path, _ = layer["name"].split(".")
        edges = [
            {"sourceNodeId": _id(source), "sourceNodeOutputId": "0", "targetNodeInputId": str(i)}
            for i, source in enumerate(layer["reads"])
        ]
        known = [
            (name, values[layer["index"]]) for name, values in figures.items() if layer["index"] in values
        ]
        attrs = [
            *_said(layer),
            *((name, f"{value:,.6g}" if name == "sqnr_db" else f"{value:,}") for name, value in known),
        ]
        shape = f"{layer['dtype']}[{'x'.join(map(str, layer['shape']))}]"
        nodes.append(
            {
                "id": _id(layer["index"]),
                "label": printable(layer["op"]),
                "namespace": printable("/".join(path)),
                "incomingEdges": edges,
                "attrs": [_pair(*one) for one in attrs],
                "outputsMetadata": [
                    {"id": "0", "attrs": [_pair("tensor_name", layer["value"]), _pair("tensor_shape", shape)]}
                ],
            }
        )
    return {"label": printable(analysis["name"]), "graphs": [{"id": _graph(analysis), "nodes": nodes}]}


def node_data(analysis: Report, measured: Report | None = None) -> dict[str, dict[str, object]]:
    """For each figure Model Explorer's per-node data, which colours the graph: from green to red, what costs most; of
    SQNR what has least."""
    return {
        name: {
            _graph(analysis): {
                "name": name,
                "results": {_id(index): {"value": value} for index, value in values.items()},
                "gradient": _RED_TO_GREEN if name == "sqnr_db" else _GREEN_TO_RED,
            }
        }
        for name, values in figures_of(analysis, measured).items()
    }


def netron(analysis: Report, measured: Report | None = None) -> bytes:
    """The graph as an ONNX file for viewers: operators of the domain `tinyet`, which nothing runs, with their kernels,
    lines and figures as attributes. Raises ToolchainError without the `onnx` package."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        hint = "pip install 'tinyet[onnx]'"
        raise ToolchainError("this needs the onnx package", "Netron's graph", hint) from error
    figures = figures_of(analysis, measured)
    kinds = {"f32": TensorProto.FLOAT, "s16": TensorProto.INT16, "s8": TensorProto.INT8}

    def info(layer: Mapping[str, Any]) -> Any:
        kind = kinds.get(layer["dtype"].rpartition("_")[2], TensorProto.UNDEFINED)
        return helper.make_tensor_value_info(_value(layer), kind, layer["shape"])

    nodes = []
    for layer in analysis["layers"]:
        read = ["inputs" if i < 0 else _value(analysis["layers"][i]) for i in layer["reads"]]
        node = helper.make_node(
            printable(layer["op"]), read, [_value(layer)], name=printable(layer["name"]), domain=_DOMAIN
        )
        own = {name: values[layer["index"]] for name, values in figures.items() if layer["index"] in values}
        made = [*_said(layer), *own.items()]
        node.attribute.extend(helper.make_attribute(key, value) for key, value in made)
        nodes.append(node)
    used = {i for layer in analysis["layers"] for i in layer["reads"]}
    first = helper.make_tensor_value_info("inputs", TensorProto.UNDEFINED, None)
    ends = [info(layer) for layer in analysis["layers"] if layer["index"] not in used]
    between = [info(layer) for layer in analysis["layers"] if layer["index"] in used]
    graph = helper.make_graph(nodes, printable(analysis["name"]), [first], ends, value_info=between)
    model = helper.make_model(graph, producer_name="tinyet", opset_imports=[helper.make_opsetid(_DOMAIN, 1)])
    facts = {
        name: str(analysis[name])
        for name in ("board", "cpu", "optimize", "macs", "arena_bytes", "constant_bytes")
    }
    facts |= {"inputs": ", ".join(analysis["inputs"]), "outputs": ", ".join(analysis["outputs"])}
    helper.set_model_props(model, facts)
    return bytes(model.SerializeToString(deterministic=True))


def _said(layer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a layer's attributes say in words; of empty ones none, which ONNX cannot tell the type of."""
    rows = {
        "layer": layer["name"],
        "kernel": layer["kernel"],
        "delegate": layer["delegate"],
        "source": layer["source"] or layer["line"],
        "call": layer["call"],
        "range": "" if layer["low"] is None else f"{layer['low']:.6g} to {layer['high']:.6g}",
    }
    yield from ((key, printable(text)) for key, text in rows.items() if text)


def _pair(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": printable(value)}


def _id(index: int) -> str:
    return "inputs" if index == _INPUT else f"layer {index}"


def _graph(analysis: Report) -> str:
    return printable(f"{analysis['name']} on {analysis['board']}")


def _value(layer: Mapping[str, Any]) -> str:
    """Names of values are unique in ONNX."""
    return printable(f"{layer['index']}: {layer['value']}")
