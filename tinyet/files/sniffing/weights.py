# SPDX-License-Identifier: Apache-2.0
"""The content of a file of torch.save or of safetensors: its kind, and the names and shapes of its weights."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from tinyet.files.sniffing.pickled import MOST_BYTES, Made, Named, Stored, pickled, text_of

# How torch.save began before its files were archives: a pickled magic number.
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LEGACY_PICKLES = 4  # magic number, version, facts of the machine, the object
_MOST_WEIGHTS = 10_000
_LONGEST = 200
# Under which names training loops keep the weights in a checkpoint, the usual ones first.
_USUAL = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params", "ema")
_DTYPES = {"Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64"}


@dataclass(frozen=True)
class Weight:
    """name: as a state dict has it. dtype: torch's name for it, or empty. shape: None where it could not be read."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" {self.shape}"
        return f"{self.name}: {self.dtype}{shape}".rstrip()


@dataclass(frozen=True)
class Saved:
    """The content of a file.

    key: under which entry of a checkpoint the weights are; empty for weights alone. others: the checkpoint's other
    entries. owner: the class of a module that was pickled whole; empty for weights. lightning: PyTorch Lightning wrote
    it.
    """

    weights: tuple[Weight, ...]
    key: str = ""
    others: tuple[str, ...] = ()
    owner: str = ""
    lightning: bool = False


def of_archive(archive: zipfile.ZipFile) -> Saved:
    """The content of an archive of torch.save. Raises ValueError where it cannot be told."""
    return _saved(_root(archive))


def _root(archive: zipfile.ZipFile) -> object:
    """The object that the archive's pickle would make."""
    name = next((n for n in archive.namelist() if n.endswith("data.pkl") and n.count("/") <= 1), None)
    if name is None:
        raise ValueError("there is no data.pkl in it")
    with archive.open(name) as file:
        return pickled(file.read(MOST_BYTES + 1))[0]


def of_torchscript(archive: zipfile.ZipFile) -> tuple[Weight, ...]:
    """The weights of what torch.jit.save wrote. Raises ValueError where they cannot be told."""
    root = _root(archive)
    return tuple(_of_module(root)) if isinstance(root, Made) else ()


def of_legacy(file: BinaryIO) -> Saved:
    """The content of a file of torch.save from before its files were archives. Raises ValueError where it cannot be
    told."""
    return _saved(pickled(file.read(MOST_BYTES), _LEGACY_PICKLES)[-1])


def of_safetensors(file: BinaryIO) -> Saved:
    """The weights of a .safetensors file. Raises ValueError where it is none."""
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MOST_BYTES:
        raise ValueError(f"its header has {length:,} bytes")
    try:
        header = json.loads(file.read(length))
    except RecursionError as error:
        raise ValueError("its header is nested too deeply") from error
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    found = []
    for name, entry in list(header.items())[:_MOST_WEIGHTS]:
        if name != "__metadata__" and isinstance(entry, dict):
            found.append(Weight(name, str(entry.get("dtype", "")), _shape(entry.get("shape"))))
    return Saved(tuple(found))


def _saved(root: object) -> Saved:
    alone = _alone(root)
    if alone is not None:
        return alone
    pairs = root.pairs if isinstance(root, Made) else []
    names = tuple(key for key, _ in pairs if isinstance(key, str))
    # Of a key that is there twice, the first counts, as in Made.get.
    inside = {key: value for key, value in reversed(pairs) if isinstance(key, str)}
    for key in sorted(names, key=lambda n: n not in _USUAL):
        found = _alone(inside[key])
        if found is not None:
            others = tuple(name for name in names if name != key)
            lightning = not found.owner and any("lightning" in name for name in names)
            return replace(found, key=key, others=others, lightning=lightning)
    raise ValueError("it holds neither weights nor a module")


def _alone(value: object) -> Saved | None:
    """Weights by their names, or a module that was pickled whole; None for anything else."""
    if not isinstance(value, Made):
        return None
    weights = tuple(_weights(value))
    if weights:
        return Saved(weights)
    if isinstance(value.state, Made) and value.state.get("_modules") is not None:
        return Saved(tuple(_of_module(value)), owner=value.name)
    return None


def _weights(container: Made) -> Iterator[Weight]:
    """The tensors that it holds by name."""
    for name, value in container.pairs[:_MOST_WEIGHTS]:
        weight = _weight(text_of(name), value)
        if weight is not None:
            yield weight


def _of_module(root: Made) -> Iterator[Weight]:
    """The parameters and buffers of a pickled module, by their paths; each module once, however often it is held."""
    seen: set[int] = set()
    waiting = [("", root)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen or not isinstance(module.state, Made):
            continue
        seen.add(id(module))
        for weight in _weights(module.state):  # of TorchScript, which keeps no tables
            yield replace(weight, name=path + weight.name)
        for table in ("_parameters", "_buffers"):
            held = module.state.get(table)
            for weight in _weights(held) if isinstance(held, Made) else ():
                yield replace(weight, name=path + weight.name)
        children = module.state.get("_modules")
        pairs = children.pairs if isinstance(children, Made) else module.state.pairs
        inner = [
            (f"{path}{text_of(name)}."[-_LONGEST:], child) for name, child in pairs if isinstance(child, Made)
        ]
        waiting += reversed(inner)


def _weight(name: str, value: object) -> Weight | None:
    """A tensor that the pickle would rebuild; None for anything else."""
    if not isinstance(value, Made) or not isinstance(value.args, tuple) or not value.args:
        return None
    if value.name.startswith("torch._utils._rebuild_parameter"):
        return _weight(name, value.args[0])
    if not value.name.startswith("torch._utils._rebuild_"):
        return None
    shape = _shape(value.args[2]) if len(value.args) > 2 else None
    return Weight(name, _dtype(value.args[0]), shape)


def _dtype(storage: object) -> str:
    description = storage.description if isinstance(storage, Stored) else None
    for part in description if isinstance(description, tuple) else ():
        if isinstance(part, Named):
            kind = part.path.rpartition(".")[2].removesuffix("Storage")
            return _DTYPES.get(kind, kind.lower())
    return ""


def _shape(value: object) -> tuple[int, ...] | None:
    is_shape = isinstance(value, (tuple, list)) and len(value) <= 8 and all(type(n) is int for n in value)
    return tuple(value) if is_shape and isinstance(value, (tuple, list)) else None
