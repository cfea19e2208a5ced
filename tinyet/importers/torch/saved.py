# SPDX-License-Identifier: Apache-2.0
"""A `.pt2` file of anyone's → an ExportedProgram, without running anything that the file brings.

torch.export.load unpickles sample inputs, tensor subclasses and objects, loads shared libraries, evaluates the
expressions of symbolic shapes as Python, calls any function below `torch` that the graph names, and writes names of
the file into Python source that it executes. So torch does not see the file. Only the graph (JSON) and the raw bytes
of weights are read here; both are checked against the needs of a static graph of ATen operators, everything else is
refused or left out, and torch loads a new archive that is written from the rest.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.pt2_archive._package import PT2ArchiveWriter

from tinyet.custom import registered
from tinyet.errors import DynamicShape, ModelError, bullet_list
from tinyet.files.reading import read_bounded
from tinyet.fx.capture import STATIC_HINT
from tinyet.fx.examples import EXAMPLE_HINT
from tinyet.fx.log_filter import quiet
from tinyet.fx.origins import handle_only
from tinyet.fx.source_locations import message_of
from tinyet.messages.text import shown

_MOST_BYTES = 1 << 28
_MOST_JSON_BYTES = 1 << 25
_MOST_ENTRIES = 100_000
_MOST_DEPTH = 60
_MOST_COMPLAINTS = 20

_MODEL = "models/model.json"
# Folder of the payloads, its table in it, the prefix of their names.
_WEIGHTS = ("data/weights/", "model_weights_config.json", "weight_")
_CONSTANTS = ("data/constants/", "model_constants_config.json", "tensor_")

# A name of Python's and of FX's; a path of such names. Neither has characters that could end it in source text.
_NAME = re.compile(r"(?:[A-Za-z_]\w*)?", re.ASCII)
_PATH = re.compile(r"(?:(?!__)\w+(?:\.(?!__)\w+)*)?", re.ASCII)
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?", re.ASCII)
_NAMESPACES = ("aten", "quantized_decomposed", "torchao")
_HIGHER_ORDER = ("wrap_with_set_grad_enabled",)
_TREES = ("builtins.tuple", "builtins.list", "builtins.dict")
# Unions of the schema that hold objects or code.
_OBJECTS = ("as_custom_obj", "as_operator", "custom_obj")


def load_saved(path: Path) -> ExportedProgram:
    """Load a program that torch.export.save wrote. Its sample inputs are not read.

    Raises ModelError: the file is none, or holds more than a graph of known operators and tensors, all of which is
    listed; DynamicShape for shapes with symbols.
    """
    try:
        data = read_bounded(path, _MOST_BYTES)
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = _entries(archive, len(data))
        copy = _Checked(entries).archive(path)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise _no_program(path, message_of(error)) from error
    # Errors of JSON, of numbers of thousands of digits, of deep nesting, and of missing parts.
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise _no_program(path, message_of(error)) from error
    try:
        with quiet():
            return torch.export.load(copy)
    except Exception as error:
        raise _no_program(path, message_of(error)) from error


def _no_program(path: Path, why: str) -> ModelError:
    return ModelError(f"{path.name} is not a program saved by torch.export.save: {why}", str(path))


def _entries(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    """The entries of the archive, without the folder around them. Raises BadZipFile for anything that torch would not
    write."""
    infos = archive.infolist()
    if not infos or len(infos) > _MOST_ENTRIES:
        raise zipfile.BadZipFile(f"the archive has {len(infos)} entries")
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise zipfile.BadZipFile("the archive is compressed")
    if sum(info.file_size for info in infos) > size:
        raise zipfile.BadZipFile("the entries of the archive overlap")
    root = infos[0].filename.partition("/")[0] + "/"
    entries: dict[str, bytes] = {}
    for info in infos:
        name = info.filename.removeprefix(root)
        if name in entries:
            raise zipfile.BadZipFile(f"the archive holds {name} twice")
        entries[name] = archive.read(info)
    return entries


@dataclass
class _Checked:
    """The parts of an archive that are read.

    problems: refusals. symbols: the values whose shapes are expressions.
    """

    entries: Mapping[str, bytes]
    problems: dict[str, None] = field(default_factory=dict)
    symbols: dict[str, None] = field(default_factory=dict)

    def archive(self, path: Path) -> io.BytesIO:
        """An archive of checked parts only. Raises ModelError, and a damaged file's errors."""
        self._names()
        graph = self._graph() if _MODEL in self.entries else None
        if graph is None and not self.problems:
            raise KeyError(f"there is no {_MODEL} in it")
        payloads = [*self._payloads(*_WEIGHTS), *self._payloads(*_CONSTANTS)] if graph is not None else []
        if self.symbols:
            lines = bullet_list([f"value {name}" for name in list(self.symbols)[:8]])
            raise DynamicShape(f"shapes that are not known when compiling:\n{lines}", str(path), STATIC_HINT)
        if self.problems:
            listed = [*self.problems][:_MOST_COMPLAINTS]
            raise ModelError(
                f"{path.name} holds what only runs or unpickles: {len(self.problems)}\n{bullet_list(listed)}",
                str(path),
                "have the model saved again with torch.export.save, as plain tensors and ATen operators; or, if you "
                "trust its author, load it with torch.export.load in a model.py of yours: that is code, and runs",
            )
        copy = io.BytesIO()
        with PT2ArchiveWriter(copy) as writer:
            writer.write_bytes(_MODEL, json.dumps(graph).encode())
            for name, content in payloads:
                writer.write_bytes(name, content)
            writer.write_bytes("data/sample_inputs/model.pt", b"")
        copy.seek(0)
        return copy

    def _names(self) -> None:
        """Parts of an archive that torch would run or unpickle, by their names."""
        for name in self.entries:
            if name.startswith("data/aotinductor/"):
                self._refuse(f"{name}: compiled code")
            elif name.startswith(("data/weights/", "data/constants/")) and name.endswith(".pt"):
                self._refuse(f"{name}: a pickle, as old versions of torch saved weights")
        if any("serialized_exported_program" in name for name in self.entries):
            self._refuse("weights in a pickle: it was saved by torch 2.7 or older")

    def _refuse(self, problem: str) -> None:
        self.problems[problem] = None

    # ------------------------------------------------------------ payloads

    def _payloads(self, folder: str, table: str, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The entries of weights or constants, the table among them."""
        read = _json(self.entries[folder + table])
        config = read["config"]
        yield folder + table, json.dumps({"config": config}).encode()
        done = set()
        for key, meta in config.items():
            name = meta["path_name"]
            if not _PATH.fullmatch(key) or not re.fullmatch(rf"{prefix}\w+", name, re.ASCII):
                self._refuse(f"{key!r}: {'an object' if _PATH.fullmatch(key) else 'no name of a tensor'}")
            elif meta["use_pickle"] is not False:
                self._refuse(f"{key}: a pickle; only plain tensors are read")
            elif not self._fits(meta["tensor_meta"], len(self.entries[folder + name])):
                self._refuse(f"{key}: its shape leaves its {len(self.entries[folder + name])} bytes")
            elif name not in done:
                done.add(name)
                yield folder + name, self.entries[folder + name]

    def _fits(self, meta: Mapping[str, Any], size: int) -> bool:
        """Whether a tensor of this form lies inside so many bytes."""
        self._check(meta, "tensor_meta", 0)
        sizes, strides = ([int(each["as_int"]) for each in meta[key]] for key in ("sizes", "strides"))
        offset = int(meta["storage_offset"]["as_int"])
        if min([*sizes, *strides, offset, 0]) < 0 or len(sizes) != len(strides) or len(sizes) > 8:
            return False
        if math.prod(sizes) == 0:
            return True
        last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        return (last + 1) * _element_bytes(meta["dtype"]) <= size

    # ------------------------------------------------------------ the graph

    def _graph(self) -> dict[str, Any]:
        """The graph's JSON, without unneeded parts; its errors are noted."""
        graph: dict[str, Any] = _json(self.entries[_MODEL])
        module = graph["graph_module"]
        # Python that torch would evaluate, and ranges of symbols, which a static graph does not have.
        graph |= {"guards_code": [], "range_constraints": {}}
        module |= {"metadata": {}, "treespec_namedtuple_fields": {}}
        self.symbols |= dict.fromkeys(_symbolic(module["graph"]))
        self._check(graph, "", 0)
        self._check_inputs(module["module_call_graph"])
        return graph

    def _check_inputs(self, calls: list[dict[str, Any]]) -> None:
        """The inputs are tensors, one a positional argument. Raises ModelError."""
        positional, keyword = json.loads(calls[0]["signature"]["in_spec"])[1]["children_spec"]
        if keyword["children_spec"]:
            raise ModelError(
                "it was exported with inputs by keyword", hint="export it with positional inputs"
            )
        for index, leaf in enumerate(positional["children_spec"]):
            if leaf["type"] is not None:
                raise ModelError(
                    f"input {index} is a {leaf['type'].removeprefix('builtins.')}, not a tensor",
                    hint=EXAMPLE_HINT,
                )

    def _check(self, value: Any, key: str, depth: int) -> None:
        """Note the errors of a part of the graph; each node keeps only metadata that are read."""
        if depth > _MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(value, dict):
            for name, inner in value.items():
                if name == "metadata":
                    value[name] = _metadata(inner)
                elif name == "as_expr":
                    self.symbols.setdefault(key)
                elif name in _OBJECTS:
                    self._refuse(f"{name.removeprefix('as_')} {shown(inner, 80)}: an object or a function")
                elif not _PATH.fullmatch(name):
                    self._refuse(f"{shown(name, 80)}: no name of a value")
                elif name not in ("as_string", "as_strings"):  # these are printed as Python's own repr
                    self._check(inner, name, depth + 1)
        elif isinstance(value, list):
            for inner in value:
                self._check(inner, key, depth + 1)
        elif isinstance(value, str):
            self._check_text(value, key)

    def _check_text(self, text: str, key: str) -> None:
        if key == "target":
            complaint = _operator_complaint(text)
            if complaint is not None:
                self._refuse(f"{shown(text, 80)}: {complaint}")
        elif key in ("in_spec", "out_spec"):
            if not _is_plain_tree(json.loads(text)[1], 0):
                self._refuse(f"{key}: inputs or outputs in more than tuples, lists and dictionaries")
        elif key == "torch_version":
            if not re.fullmatch(r"[\w.+<=]{1,40}", text, re.ASCII):
                self._refuse(f"{shown(text, 80)}: no version of torch")
        elif not (_NAME if key in ("name", "as_name", "forward_arg_names") else _PATH).fullmatch(text):
            self._refuse(f"{shown(text, 80)}: no name of a value")


def _json(data: bytes) -> Any:
    if len(data) > _MOST_JSON_BYTES:
        raise ValueError(f"a table has {len(data)} bytes")
    return json.loads(data)


def _element_bytes(dtype: int) -> int:
    from torch._export.serde.schema import ScalarType
    from torch._export.serde.serialize import deserialize_scalar_type

    return deserialize_scalar_type(ScalarType(dtype)).itemsize


def _metadata(given: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a node that debug handles need."""
    kept = {key: str(given[key])[:65536] for key in ("stack_trace", "nn_module_stack") if given.get(key)}
    custom = handle_only(json.loads(given["custom"])) if given.get("custom") else {}
    return kept | ({"custom": json.dumps(custom)} if custom else {})


def _symbolic(graph: Mapping[str, Any]) -> Iterator[str]:
    """The values whose shapes, or which themselves, are expressions of symbols."""
    for table in ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values"):
        for name, meta in graph.get(table, {}).items():
            if '"as_expr": {' in json.dumps(meta):
                yield name


def _is_plain_tree(tree: Mapping[str, Any], depth: int) -> bool:
    """Whether a pytree's description names nothing that would be imported: tuples, lists, dictionaries by names."""
    if depth > _MOST_DEPTH:
        return False
    if tree["type"] is None:
        return tree["context"] is None and tree["children_spec"] == []
    context = json.loads(tree["context"])
    names = context if isinstance(context, list) else []
    return (
        tree["type"] in _TREES
        and (context is None or isinstance(context, list))
        and all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)
        and all(_is_plain_tree(child, depth + 1) for child in tree["children_spec"])
    )


_OWN = frozenset({"lowered", "lstm", "gru", "rnn"})
"""Operators that captured programs may call, and that are registered here."""


def _operator_complaint(target: str) -> str | None:
    """Why a graph of a stranger's may not call a function, or None."""
    if target == "_operator.getitem":
        return None
    found = _OPERATOR.fullmatch(target)
    if found is None:
        return "a function, not an operator"
    namespace, name, overload = found.groups()
    if namespace == "higher_order":
        return None if name in _HIGHER_ORDER else "an operator that takes functions"
    is_known = namespace in _NAMESPACES or (namespace == "tinyet" and name in _OWN)
    if not is_known and registered(f"{namespace}.{name}.{overload}") is None:
        return "an operator that is not known here: register it with tinyet.custom_op, and give the file with --plugin"
    operator = getattr(getattr(getattr(torch.ops, namespace), name, None), overload or "default", None)
    if not isinstance(operator, torch._ops.OpOverload):
        return "there is no such operator"
    # The others are TorchScript's own: they print, and write to files.
    is_kernel = torch._C._dispatch_has_kernel(operator.name())
    if not is_kernel or any(argument.name == "filename" for argument in operator._schema.arguments):
        return "it does more than compute tensors"
    return None
