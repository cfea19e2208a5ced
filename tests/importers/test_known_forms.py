# SPDX-License-Identifier: Apache-2.0
"""What is kept of shapes, strides and types is what torch finds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tinyet.fx import known_forms
from tinyet.fx.known_forms import fake_of, result_of
from tinyet.fx.log_filter import quiet

with quiet():
    import torchao.quantization.pt2e  # noqa: F401  (the operators of quantized programs)

aten, steps = torch.ops.aten, torch.ops.quantized_decomposed
X, WHOLE = torch.randn(2, 4, 6), torch.ones(2, 4, dtype=torch.int32)

CALLS: tuple[tuple[Any, tuple[Any, ...], dict[str, Any]], ...] = (
    (aten.relu.default, (X,), {}),
    (aten.relu.default, (X.transpose(1, 2),), {}),
    (aten.add.Tensor, (WHOLE, 1), {}),
    (aten.add.Tensor, (WHOLE, 1.0), {}),
    (aten.add.Tensor, (WHOLE, True), {}),
    (aten.split.Tensor, (X, 2, 1), {}),
    (aten.unbind.int, (X,), {}),
    (aten.max.dim, (X, 1), {}),
    (aten.select.int, (X, 1, 0), {}),
    (aten.select.int, (X, 1, 3), {}),
    (aten.expand.default, (X[:, :1], [2, 5, 6]), {}),
    (aten.full.default, ([2, 3], 0.5), {}),
    (aten.full.default, ([3, 2], 0.5), {}),
    (aten.full.default, ([2, 3], 0.5), {"dtype": torch.int8}),
    (aten.arange.start_step, (0.0, 1.0, 0.25), {}),
    (aten.arange.start_step, (0.0, 1.0, 0.5), {}),
    (aten.complex.default, (X, X), {}),
    (steps.quantize_per_tensor.default, (X, 0.5, 3, -128, 127, torch.int8), {}),
    (steps.quantize_per_tensor.default, (X, 0.25, 4, -8, 7, torch.int16), {}),
    (steps.quantize_per_tensor.default, (X.transpose(0, 1), 0.25, 4, -128, 127, torch.int8), {}),
    (steps.dequantize_per_tensor.default, (X.to(torch.int8), 0.5, 3, -128, 127, torch.int8), {}),
    (steps.dequantize_per_channel.default,
     (X.to(torch.int8), torch.ones(4), torch.zeros(4), 1, -128, 127, torch.int8), {}),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_forms, "_known", {})


def forms(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result), [forms(part) for part in result]
    return (
        type(result),
        tuple(result.shape),
        result.stride(),
        result.storage_offset(),
        result.dtype,
        result.device,
    )


def fakes(args: Any, mode: FakeTensorMode) -> Any:
    return tuple(fake_of(value, mode) if isinstance(value, torch.Tensor) else value for value in args)


def new_mode() -> FakeTensorMode:
    return FakeTensorMode(shape_env=ShapeEnv(), export=True)


def test_the_first_time_and_the_second_as_torch() -> None:
    found = []
    for _ in range(2):
        mode = new_mode()
        found.append([forms(result_of(op, fakes(args, mode), more, mode)) for op, args, more in CALLS])
    with torch.no_grad(), new_mode() as mode:
        want = [forms(op(*fakes(args, mode), **more)) for op, args, more in CALLS]
    assert found == [want, want]
    # But for a part that begins within its whole, all are kept.
    assert len(known_forms._known) >= len(CALLS) - 4


def test_it_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another step and zero point are no other call."""
    for scale, zero_point in ((0.5, 3), (0.25, -7)):
        mode = new_mode()
        args = (*fakes((X,), mode), scale, zero_point, -128, 127, torch.int8)
        result_of(steps.quantize_per_tensor.default, args, {}, mode)
        monkeypatch.setattr(known_forms, "_keep", None)


def test_of_another_default_type() -> None:
    mode = new_mode()
    assert result_of(aten.full.default, ([2], 0.5), {}, mode).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert result_of(aten.full.default, ([2], 0.5), {}, mode).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_users_operators_and_those_that_write_are_asked_each_time() -> None:
    with torch.library._scoped_library("tinyet_user", "DEF") as library:
        library.define("kept(Tensor x) -> Tensor")
        library.impl("kept", lambda x: x + x, "CompositeExplicitAutograd")
        for op in (torch.ops.tinyet_user.kept.default, aten.relu_.default):
            mode = new_mode()
            assert isinstance(result_of(op, fakes((X,), mode), {}, mode), FakeTensor)
    assert not known_forms._known


def test_tensors_without_values() -> None:
    mode = new_mode()
    for value in (X, X.transpose(0, 2), X[:, :1].expand(2, 4, 6), WHOLE, torch.nn.Parameter(X), X[:, 1:]):
        assert forms(fake_of(value, mode)) == forms(mode.from_tensor(value.detach(), static_shapes=True))
