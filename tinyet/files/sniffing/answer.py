# SPDX-License-Identifier: Apache-2.0
"""The answer to a file that is no model as tinyet takes one: what it is, what it holds, and the code that leads on."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tinyet.errors import UsageError, bullet_list
from tinyet.files.reading import open_regular
from tinyet.files.sniffing.weights import (
    LEGACY,
    Saved,
    Weight,
    of_archive,
    of_legacy,
    of_safetensors,
    of_torchscript,
)
from tinyet.messages.text import printable, shown

_UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)
_SHOWN = 5
_MOST_ENTRIES = 200_000
_PYTORCH = "tinyet takes PyTorch models: "
_REBUILD = (
    "build the same layers as an nn.Module in a model.py, copy the weights into it, and check that both give the same "
    "outputs"
)
# Files that are told by how they begin (at which byte), in words, and what to do.
_BEGINNINGS: tuple[tuple[int, bytes, str, str], ...] = (
    (
        4,
        b"TFL3",
        "a TensorFlow Lite model",
        "give it the ending .tflite: that is how tinyet knows what to read",
    ),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras saves models and weights", _PYTORCH + _REBUILD),
    (0, b"GGUF", "a GGUF file: weights of a language model", _PYTORCH + _REBUILD),
    (
        0,
        b"\x93NUMPY",
        "an array of numpy's: data, not a model",
        "give data by --calibration or --evaluation, as .npz",
    ),
)
_KINDS = "MODEL is file.py, file.py:factory, a .pt2 saved by torch.export.save, a .tflite, an .onnx, or a .tet program"


def sniffed_error(path: Path) -> UsageError:
    """The error for a file that is no .py, .pt2 or .tet: its format, found without running anything of it."""
    return sniff(path) or UsageError(f"{path} is no kind of model that tinyet knows", hint=_KINDS)


def sniff(path: Path) -> UsageError | None:
    """The error for a file of another tool; None for an unknown one."""
    try:
        with open_regular(path) as file:
            return _answer(path, file)
    except OSError as error:
        return UsageError(f"the file cannot be read: {error.strerror}", str(path), _KINDS)


def _answer(path: Path, file: BinaryIO) -> UsageError | None:
    head = file.read(64)
    file.seek(0)
    for at, beginning, what, hint in _BEGINNINGS:
        if head[at : at + len(beginning)] == beginning:
            return UsageError(f"{path.name} is {what}", str(path), hint)
    try:
        if head.startswith(b"PK"):
            return _of_zip(path, file)
        if head.startswith(LEGACY):
            return _of_saved(path, of_legacy(file))
        if path.suffix == ".safetensors":
            return _of_saved(path, of_safetensors(file), safetensors=True)
    # What damaged archives and headers raise.
    except _UNREADABLE as error:
        return UsageError(f"{path.name} looks like a saved model, but {error}", str(path), _KINDS)
    return None


def _of_zip(path: Path, file: BinaryIO) -> UsageError:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        if len(names) > _MOST_ENTRIES:
            raise ValueError(f"it has {len(names)} entries")
        inner = {name.partition("/")[2] for name in names}
        if "models/model.json" in inner:
            return UsageError(
                f"{path.name} is a program of torch.export.save, which is called .pt2",
                str(path),
                f"rename it to {path.with_suffix('.pt2').name}",
            )
        if "constants.pkl" in inner:
            return _torchscript(path, of_torchscript(archive))
        if "config.json" in names and "metadata.json" in names:
            return UsageError(f"{path.name} is a Keras model", str(path), _PYTORCH + _REBUILD)
        if all(name.endswith(".npy") for name in names) and names:
            return UsageError(
                f"{path.name} is data, not a model", str(path), "give it by --calibration or --evaluation"
            )
        return _of_saved(path, of_archive(archive))


def _torchscript(path: Path, weights: Sequence[Weight]) -> UsageError:
    return _with_weights(
        path,
        f"{path.name} is a TorchScript archive (torch.jit.save), which torch.export cannot capture",
        weights,
        "name the Python that it was made of, in a model.py; its weights fit that class:\n\n",
        ["import torch", "from your_code import Net  # the class that was scripted or traced"],
        ["net = Net()", f"net.load_state_dict(torch.jit.load({str(path)!r}).state_dict())", "return net"],
    )


def _of_saved(path: Path, saved: Saved, *, safetensors: bool = False) -> UsageError:
    place = repr(str(path))
    if saved.owner:
        entry = f"[{saved.key!r}]" if saved.key else ""
        # Words of the file stand in code only where they are names and nothing else.
        named = re.fullmatch(r"([A-Za-z_][\w.]*)\.(\w+)", saved.owner, re.ASCII)
        needed = f"import {named[1]}  # unpickling {named[2]} needs it" if named else ""
        return _with_weights(
            path,
            f"{path.name} is a whole module ({shown(saved.owner, 80)}), pickled: to load one is to run what its "
            "author put into it",
            saved.weights,
            "if you trust its author, load it in a model.py, which is code and runs:\n\n",
            ["import torch", needed],
            [f"return torch.load({place}, weights_only=False){entry}.eval()"],
        )
    load = f"torch.load({place}, weights_only=True)"
    imports = ["import torch", "from your_code import Net  # the class whose weights these are"]
    if safetensors:
        load = f"load_file({place})"
        imports.append("from safetensors.torch import load_file")
    what = "weights"
    if saved.key:
        load += f"[{saved.key!r}]"
        others = ", ".join(shown(name, 40) for name in saved.others[:_SHOWN])
        what = "a checkpoint of PyTorch Lightning" if saved.lightning else "a training checkpoint"
        what += f" (weights in {saved.key!r}" + (f", beside {others})" if others else ")")
    lines = ["net = Net()"]
    prefix = _prefix(saved.weights)
    if prefix:
        lines += [
            f"weights = {load}",
            f"net.load_state_dict({{k.removeprefix({prefix!r}): v for k, v in weights.items()}})",
        ]
    else:
        lines += [f"net.load_state_dict({load})"]
    return _with_weights(
        path,
        f"{path.name} is {what}, without the layers that they belong to",
        saved.weights,
        "write a model.py that makes the layers and loads the weights, and give that as MODEL (in Python: "
        "tinyet.compile(model(), example_inputs())):\n\n",
        imports,
        [*lines, "return net"],
    )


def _prefix(weights: Sequence[Weight]) -> str:
    """The prefix of every name from DataParallel, Lightning and torch.compile."""
    for prefix in ("module.", "model.", "net.", "_orig_mod."):
        if all(weight.name.startswith(prefix) for weight in weights):
            return prefix
    return ""


def _with_weights(
    path: Path, what: str, weights: Sequence[Weight], hint: str, imports: Sequence[str], body: Sequence[str]
) -> UsageError:
    listed = [printable(str(weight)[:100]) for weight in weights[:_SHOWN]]
    if len(weights) > _SHOWN:
        listed.append(f"… {len(weights)} in all")
    told = f"{what}:\n{bullet_list(listed)}" if listed else what
    return UsageError(told, str(path), hint + _model_py(imports, body, weights))


def _model_py(imports: Sequence[str], body: Sequence[str], weights: Sequence[Weight]) -> str:
    inside = "\n".join(f"    {line}" for line in body)
    head = "\n".join(line for line in imports if line)
    return f"{head}\n\ndef model():\n{inside}\n\ndef example_inputs():\n    return {_example(weights)}"


def _example(weights: Sequence[Weight]) -> str:
    """An input as the first weight with several dimensions takes it."""
    shape = next((w.shape for w in weights if w.shape is not None and len(w.shape) > 1), None)
    match () if shape is None else shape:
        case (_, channels):
            return f"torch.zeros(1, {channels})  # one sample as the device sees it"
        case (_, channels, _):
            return f"torch.zeros(1, {channels}, 100)  # one sample as the device sees it: channels, length"
        case (_, channels, _, _):
            return f"torch.zeros(1, {channels}, 96, 96)  # one image as the device sees it: channels, height, width"
        case _:
            return "torch.zeros(1, 10)  # one sample as the device sees it"
