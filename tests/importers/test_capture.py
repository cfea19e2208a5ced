# SPDX-License-Identifier: Apache-2.0
"""Captured programs compute what the module does; what cannot be captured is told with the user's line."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_helpers import Lambda, line_of, ops, run
from tinyet.errors import DynamicShape, ModelError
from tinyet.fx.capture import capture, lower
from tinyet.fx.log_filter import quiet
from tinyet.fx.origins import origin_of

IMAGE = torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def randomise(model: nn.Module) -> nn.Module:
    """Batch norms with statistics that do something."""
    generator = torch.Generator().manual_seed(2)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
            if module.affine:
                module.weight.data.uniform_(-1.5, 1.5, generator=generator)
                module.bias.data.normal_(generator=generator)
    return model.eval()


class Residual(nn.Module):
    """The convolution's result is read twice, so its batch norm must not be folded into it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y + self.bn(y)  # type: ignore[no-any-return]


class SharedConv(nn.Module):
    """One convolution called twice with two batch norms behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.first = nn.BatchNorm2d(3)
        self.second = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.conv(self.first(self.conv(x))))  # type: ignore[no-any-return]


BATCH_NORMS: dict[str, tuple[nn.Module, torch.Tensor, list[str]]] = {
    "conv": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), IMAGE, ["conv2d"]),
    "conv without bias or affine": (
        nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4, affine=False)), IMAGE, ["conv2d"],
    ),
    "conv1d": (nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)), IMAGE[:, :, 0], ["conv1d"]),
    "transposed, grouped": (
        nn.Sequential(nn.ConvTranspose2d(3, 6, 3, groups=3), nn.BatchNorm2d(6)), IMAGE, ["conv_transpose2d"],
    ),
    "linear": (nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)), torch.randn(2, 5), ["linear"]),
    "linear on rows": (
        nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(3)), torch.randn(2, 3, 5), ["linear", "conv1d"],
    ),
    "alone": (nn.BatchNorm2d(3), IMAGE, ["conv2d"]),
    "alone on features": (nn.BatchNorm1d(5), torch.randn(2, 5), ["view", "conv1d", "view"]),
    "two readers": (Residual(), IMAGE, ["conv2d", "conv2d", "add"]),
    "shared weights": (SharedConv(), IMAGE, ["conv2d", "conv2d"]),
    "behind dropout": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(), nn.BatchNorm2d(4)), IMAGE, ["conv2d"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BATCH_NORMS.values(), ids=BATCH_NORMS.keys())
def test_batch_norms_disappear(case: tuple[nn.Module, torch.Tensor, list[str]]) -> None:
    model, x, expected = case
    randomise(model)
    program = capture(model, x)
    assert ops(program) == expected
    torch.testing.assert_close(run(program, x), model(x).detach(), rtol=1e-5, atol=1e-5)


def test_operators_stay_whole() -> None:
    functions: list[Callable[[torch.Tensor], torch.Tensor]] = [
        F.hardswish, F.hardsigmoid, F.silu, F.gelu, F.elu, F.leaky_relu, F.softplus, F.mish, F.relu6, F.selu,
    ]  # fmt: skip

    def forward(x: torch.Tensor) -> torch.Tensor:
        for function in functions:
            x = function(x)
        x = F.adaptive_avg_pool2d(F.interpolate(x, scale_factor=2), 2)
        x = F.layer_norm(x.flatten(1), (12,))
        return F.log_softmax(torch.cat([x.chunk(2, 1)[0], F.softmax(x, -1)], 1), -1)

    program = capture(Lambda(forward), IMAGE)
    assert ops(program) == [
        "hardswish", "hardsigmoid", "silu", "gelu", "elu", "leaky_relu", "softplus", "mish", "hardtanh",
        "selu",
        "upsample_nearest2d", "adaptive_avg_pool2d", "view", "layer_norm", "split", "softmax", "cat",
        "log_softmax",
    ]  # fmt: skip


def test_string_padding_becomes_numbers() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)), nn.Conv2d(4, 4, 3, padding="valid"),
        nn.Conv2d(4, 4, 5, padding="same"),
    ).eval()  # fmt: skip
    program = capture(model, IMAGE)
    assert ops(program) == ["constant_pad_nd", "conv2d", "conv2d", "conv2d"]
    torch.testing.assert_close(run(program, IMAGE), model(IMAGE).detach())


def test_in_place_work_is_functional_and_spares_the_input() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        x[:, 0] += 1
        x[:, :, 2:4].mul_(2)
        return x * 3

    program = capture(Lambda(forward), IMAGE)
    mine, torchs = IMAGE.clone(), IMAGE.clone()
    torch.testing.assert_close(run(program, mine), forward(torchs))
    assert torch.equal(mine, IMAGE)
    assert not any(op.endswith("_") for op in ops(program))


def test_constant_expressions_are_folded() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            positions = torch.arange(4, dtype=torch.float32).unsqueeze(0) / 4
            return self.linear(x + torch.sin(positions).expand(2, 4))  # type: ignore[no-any-return]

    model, x = Positions().eval(), torch.randn(2, 4)
    program = capture(model, x)
    assert ops(program) == ["add", "linear"]
    torch.testing.assert_close(run(program, x), model(x).detach())


def test_origins_name_module_and_line() -> None:
    program = capture(Residual().eval(), IMAGE)
    origins = {o.aten: o for o in (origin_of(n) for n in program.graph.nodes if n.op == "call_function")}
    convolution = origins["aten.conv2d.default"]
    add = origins["aten.add.Tensor"]
    assert add.file == "test_capture.py"
    assert (add.line, add.text) == (
        line_of(Residual, "return y +"),
        "return y + self.bn(y)  # type: ignore[no-any-return]",
    )
    assert convolution.module in ("conv", "bn")
    assert convolution.file == "test_capture.py"


def test_module_keeps_its_training_mode() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout()).train()
    model[1].eval()
    capture(model, IMAGE)
    assert [m.training for m in model.modules()] == [True, True, False]


# ---------------------------------------------------------------- errors


class Raises(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(7, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)  # type: ignore[no-any-return]  # wrong


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # wrong
            return x
        return -x


class Asserts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.max() < 1000  # wrong
        return x


class ReadsNumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : int(x.abs().sum().item())]  # wrong


class UsesNumpy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)  # wrong


class Selects(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0]  # wrong


class Remembers(nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.state = torch.zeros(3, 12, 12)  # no buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = self.state + x[0]  # wrong
        return self.state * 2


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Raises, ModelError), (Branches, ModelError), (Asserts, ModelError), (ReadsNumber, ModelError),
        (UsesNumpy, ModelError), (Selects, DynamicShape), (Remembers, ModelError),
    ],
)  # fmt: skip
def test_errors_name_the_users_line(kind: type[nn.Module], error: type[ModelError]) -> None:
    with pytest.raises(error) as caught:
        capture(kind(), IMAGE)
    text = str(caught.value)
    assert f"test_capture.py:{line_of(kind, '# wrong')}" in text
    assert "site-packages" not in text
    assert caught.value.hint
    assert type(caught.value) is error


def test_dynamic_dimension_is_named() -> None:
    batch = torch.export.Dim("batch", min=2, max=8)
    program = torch.export.export(
        nn.Linear(4, 2).eval(), (torch.randn(2, 4),), dynamic_shapes={"input": {0: batch}}
    )
    with pytest.raises(DynamicShape, match=r"input input \(s\d+, 4\)"):
        lower(program)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("text", "example inputs are the string 'text'"),
        ((), "example inputs are a tuple of 0"),
        ((1.0,), "example input 0 is the number 1.0, not a tensor"),
        ((1, 8), r"torch.zeros\(1, 8\)"),
    ],
)
def test_example_inputs_are_checked(inputs: tuple[torch.Tensor, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        capture(nn.ReLU(), inputs)


# ---------------------------------------------------------------- noise


def fail_quietly() -> None:
    with quiet():
        assert logging.root.manager.disable == logging.WARNING
        print("muted")  # noqa: T201
        raise ValueError("kept")


def test_quiet_mutes_and_restores(capsys: pytest.CaptureFixture[str]) -> None:
    logging.disable(logging.INFO)
    try:
        with pytest.raises(ValueError, match="kept"):
            fail_quietly()
        assert logging.root.manager.disable == logging.INFO
        assert capsys.readouterr().out == ""
    finally:
        logging.disable(logging.NOTSET)


def test_what_was_lowered_is_not_lowered_again() -> None:
    program = capture(nn.Linear(3, 2).eval(), torch.ones(1, 3))
    assert lower(program) is program
    next(node for node in program.graph.nodes if node.op == "call_function").meta["custom"] = {}
    assert lower(program) is not program, "somebody has changed it"
