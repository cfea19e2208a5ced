# SPDX-License-Identifier: Apache-2.0
"""Several methods of one module as models of one project: the same answers, weights quantized alike and there once."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tests.cli.command import tinyet as command
from tinyet.errors import ModelError, UsageError
from tinyet.projects.parameters import shared_parameters
from tinyet.projects.together import TogetherProject

torch = pytest.importorskip("torch")

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 6))
        self.dec = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12))

    def encode(self, x):
        return self.enc(x)

    def decode(self, code):
        return self.dec(code)

    def forward(self, x):
        return self.decode(self.encode(x))


def model():
    torch.manual_seed(0)
    return Net().eval()


DATA = [torch.randn(1, 12, generator=torch.Generator().manual_seed(i)) for i in range(8)]


def entries():
    code = torch.zeros(1, 6)
    return {"encode": ("encode", (DATA[0],)), "decode": ("decode", code), "whole": ("forward", DATA[0])}


def calibration():
    net = model()
    return {"encode": DATA, "decode": [net.encode(x).detach() for x in DATA], "whole": DATA}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("entries") / "net.py"
    where.write_text(MODEL)
    return where


def test_a_method_is_a_model_over_the_same_parameters(file: Path) -> None:
    space = runpy.run_path(str(file))
    net, data = space["model"](), space["DATA"]
    encode: Any = tinyet.entry(net, "encode")
    assert torch.equal(encode(data[0]), net.encode(data[0]))
    assert encode.enc is net.enc
    assert torch.equal(net(data[0]), net.dec(net.enc(data[0])))
    program = tinyet.compile(encode, (data[0],), calibration=data, name="net_encode")
    assert [t.name for t in program.inputs] == ["x"]
    origins = [node.origin for node in program.graph.nodes]
    assert any(origin is not None and "enc.0" in origin.module for origin in origins)
    for wrong in ("decipher", "eval", "enc"):
        with pytest.raises(ModelError, match="one of forward, decode, encode"):
            tinyet.entry(net, wrong)
    with pytest.raises(UsageError, match="takes a module"):
        tinyet.entry(net.encode, "encode")


def test_weights_are_quantized_alike_or_it_is_said_why_not(file: Path, tmp_path: Path) -> None:
    space = runpy.run_path(str(file))
    net, data = space["model"](), space["DATA"]
    programs = [
        tinyet.compile(
            tinyet.entry(net, method), (data[0],), calibration=data, name=name, quantizer=quantizer
        )
        for name, method, quantizer in (
            ("one", "encode", None),
            ("two", "forward", None),
            ("wide", "encode", tinyet.TinyetQuantizer(tinyet.int16_config())),
            ("narrow", "encode", tinyet.TinyetQuantizer(tinyet.int4_config())),
        )
    ]
    made = tinyet.generate(
        programs, "mps2_an386", tmp_path / "p", kind="cmake", schedule="one|two|wide|narrow"
    )
    assert isinstance(made, TogetherProject)
    of = {p.name: p for p in programs}
    deployments = made.shared.deployments

    def said(*names: str) -> dict[str, str]:
        found = shared_parameters({n: of[n] for n in names}, {n: deployments[n] for n in names}, made.common)
        assert all(each.models == names for each in found)
        assert all(each.once == (not each.why) for each in found)
        return {each.name: each.why for each in found}

    assert said("one", "two") == {"enc_0_weight": "", "enc_2_weight": ""}
    assert all(why.endswith(" narrow") for why in said("one", "narrow").values())
    assert all(
        "equal integers, for kernels that pack them differently" in w for w in said("one", "wide").values()
    )
    assert made.validate_each(on="host", max_samples=2).bit_exact


def test_the_command_line_makes_a_project_of_all(file: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "p", tmp_path / "report.json"
    say = ["generate", str(file), "--board", "mps2_an386", "--kind", "cmake", "--name", "net", "-o", str(out)]
    told = command(*say, "--schedule", "net_encode | net_decode | net_whole", "--json", str(report))
    assert told.status == 0, told.err
    assert "weights of one parameter in several models: 4, of which" in told.out
    record = json.loads(report.read_text())
    parameters = {each["name"]: each for each in record["parameters"]}
    assert parameters["dec_0_weight"]["models"] == ["net_decode", "net_whole"]
    # What a decoder is calibrated with has the encoder's scale, but for float's last bits, which biases may show.
    assert all(each["once"] == (not each["why"]) for each in parameters.values())
    assert {name for name, each in parameters.items() if each["once"]} >= {"enc_0_weight", "enc_2_weight"}
    project = tinyet.open_project(out)
    assert isinstance(project, TogetherProject)
    assert sum(each["bytes"] for each in record["parameters"] if each["once"]) <= project.common.saved_bytes
    header = (out / "lib/net/src/net_encode.h").read_text()
    assert "tinyet_status net_encode_run(void);" in header
    space = runpy.run_path(str(file))
    x = space["DATA"][0]
    code = project.programs["net_encode"].run(x.numpy())
    assert np.abs(np.asarray(code) - space["model"]().encode(x).detach().numpy()).max() < 0.05


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('{"encode": ("encode", (DATA[0],))}', "no dict of two or more"),
        (
            '{"encode": DATA[0], "whole": ("forward", DATA[0])}',
            "does not say a method and its inputs for 'encode'",
        ),
        (
            '{"encode": ("decipher", DATA[0]), "decode": ("decode", code), "whole": ("forward", DATA[0])}',
            "has no method 'decipher'",
        ),
        ('{"encode": ("encode", DATA[0]), "b": ("forward", DATA[0])}', "calibration is no dict by the names"),
    ],
)
def test_what_is_declared_wrongly(declared: str, message: str, tmp_path: Path) -> None:
    text = re.sub(r"    return \{\"encode\": \(.*", f"    return {declared}", MODEL)
    assert text != MODEL
    (tmp_path / "net.py").write_text(text)
    told = command("generate", str(tmp_path / "net.py"), "--board", "mps2_an386", "-o", str(tmp_path / "p"))
    assert told.status == 1
    assert message in " ".join(told.err.split())
    assert not (tmp_path / "p").exists()


def test_one_model_is_wanted(file: Path) -> None:
    told = command("compile", str(file), "-o", str(file.parent / "net.tet"))
    assert told.status == 1
    assert "tinyet generate makes a project of all entries()" in told.err
    told = command("generate", str(file), "--board", "mps2_an386", "--calibration", "data.npz")
    assert told.status != 0
    assert "say it in the Python file" in told.err
