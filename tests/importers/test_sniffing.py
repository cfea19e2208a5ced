# SPDX-License-Identifier: Apache-2.0
"""Files of other tools, given as a model: what they are is told, and the code that is shown leads to a program."""

from __future__ import annotations

import json
import pickle
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tinyet
from tests.torch_helpers import run
from tinyet.errors import ProgramError, UsageError
from tinyet.files.sniffing import sniffed_error
from tinyet.importers.torch.source import load_source


class Net(nn.Module):
    """What the weights of these tests belong to."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 3, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.first(x).mean((2, 3)))  # type: ignore[no-any-return]


def _written(path: Path, value: Any, **options: Any) -> Path:
    torch.save(value, path, **options)
    return path


def _scripted(path: Path, net: nn.Module) -> Path:
    torch.jit.script(net).save(path)
    return path


def _safetensors(path: Path, weights: dict[str, torch.Tensor]) -> Path:
    header, data = {}, b""
    for name, value in weights.items():
        raw = value.detach().numpy().tobytes()
        header[name] = {
            "dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]
        }  # fmt: skip
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def _shown_code(error: UsageError) -> str:
    assert error.hint is not None
    return error.hint[error.hint.index("import ") :]


FILES: dict[str, Callable[[Path, Net], Path]] = {
    "weights": lambda p, net: _written(p / "w.pt", net.state_dict()),
    "legacy": lambda p, net: _written(p / "w.pth", net.state_dict(), _use_new_zipfile_serialization=False),
    "checkpoint": lambda p, net: _written(
        p / "c.pt",
        {"epoch": 3, "model_state_dict": net.state_dict(), "optimizer": {"state": {}, "param_groups": []}},
    ),
    "parallel": lambda p, net: _written(p / "d.bin", {f"module.{k}": v for k, v in net.state_dict().items()}),
    "lightning": lambda p, net: _written(
        p / "l.ckpt",
        {
            "pytorch-lightning_version": "2.0",
            "state_dict": {f"model.{k}": v for k, v in net.state_dict().items()},
        },
    ),
    "half": lambda p, net: _written(p / "h.pt", {k: v.half() for k, v in net.state_dict().items()}),
    "parameters": lambda p, net: _written(p / "p.pt", dict(net.named_parameters())),
    "whole": lambda p, net: _written(p / "m.pt", net),
    "script": lambda p, net: _scripted(p / "s.pt", net),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_the_code_that_is_shown_works(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written into a model.py as it stands, and that file is a model of the weights in question."""
    torch.manual_seed(3)
    net = Net().eval()
    path = FILES[kind](tmp_path, net)
    error = sniffed_error(path)
    assert "first.weight: float" in error.what
    assert "(3, 2, 3, 3)" in error.what
    monkeypatch.setitem(sys.modules, "your_code", sys.modules[__name__])
    (tmp_path / "model.py").write_text(_shown_code(error))
    source = load_source(str(tmp_path / "model.py"))
    x = torch.rand(source.example_inputs[0].shape)
    assert x.shape == (1, 2, 96, 96)
    got = run(source.program, x)
    wanted = net.half().float()(x) if kind == "half" else net(x)
    assert torch.allclose(got, wanted, atol=1e-5)


def test_what_is_told_of_each_kind(tmp_path: Path) -> None:
    net = Net()
    assert "optimizer" in sniffed_error(FILES["checkpoint"](tmp_path, net)).what
    assert "Lightning" in sniffed_error(FILES["lightning"](tmp_path, net)).what
    assert f"{__name__}.Net" in sniffed_error(FILES["whole"](tmp_path, net)).what
    error = sniffed_error(_safetensors(tmp_path / "w.safetensors", net.state_dict()))
    assert "first.weight: F32 (3, 2, 3, 3)" in error.what
    assert "load_file(" in _shown_code(error)
    saved = tmp_path / "renamed.pt"
    torch.export.save(torch.export.export(net, (torch.rand(1, 2, 8, 8),)), tmp_path / "m.pt2")
    (tmp_path / "m.pt2").rename(saved)
    assert "rename it to renamed.pt2" in str(sniffed_error(saved))
    for name, data, word in (
        ("a.tflite", b"\x1c\0\0\0TFL3" + bytes(20), "TensorFlow Lite"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(20), "HDF5"),
        ("a.bin", b"?" * 40, "no kind of model that tinyet knows"),
        ("a.pt", b"PK\x03\x04" + bytes(20), "looks like a saved model, but"),
    ):
        (tmp_path / name).write_bytes(data)
        assert word in str(sniffed_error(tmp_path / name)), name


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(_trap_path),))


_trap_path = ""


def test_nothing_of_a_file_runs_and_no_word_of_it_becomes_code(tmp_path: Path) -> None:
    global _trap_path  # noqa: PLW0603 - what the pickle would call has no other way to know it
    _trap_path = str(tmp_path / "pwned")
    path = _written(tmp_path / "evil.pt", {"state_dict": _Trap(), "model": {"w": torch.zeros(2, 2)}})
    assert "'model'" in sniffed_error(path).what
    assert not (tmp_path / "pwned").exists()
    # A class whose name would be code, were it printed as code.
    state = b"}X\x08\x00\x00\x00_modules}s"
    named = b"\x80\x02cos;import shutil\nsystem(1)\n)R" + state + b"b."
    with zipfile.ZipFile(tmp_path / "name.pt", "w") as archive:
        archive.writestr("x/data.pkl", named)
    error = sniffed_error(tmp_path / "name.pt")
    assert "os;import.shutil" in error.what
    assert "shutil" not in (error.hint or "")


def test_load_and_compile_say_what_a_file_is(tmp_path: Path) -> None:
    path = FILES["weights"](tmp_path, Net())
    with pytest.raises(ProgramError, match=re.escape("first.weight: float32 (3, 2, 3, 3)")):
        tinyet.load(path)
    for given in (path, str(path)):
        with pytest.raises(UsageError, match=re.escape("first.weight: float32 (3, 2, 3, 3)")):
            tinyet.compile(given, (torch.rand(1, 2, 8, 8),))  # type: ignore[arg-type]
    (tmp_path / "model.py").write_text("x = 1")
    with pytest.raises(ProgramError, match=r"tinyet compile model.py -o model.tet"):
        tinyet.load(tmp_path / "model.py")


def test_a_pickle_that_would_be_endless_is_answered(tmp_path: Path) -> None:
    nested: object = (1,)
    for _ in range(80):
        nested = (nested, nested)
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps({"k": nested}, 4))
    assert "neither weights nor a module" in sniffed_error(tmp_path / "x.pt").what
