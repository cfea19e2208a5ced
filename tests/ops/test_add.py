# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tinyet.delegates import Delegate
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.numerics import NO_CLAMP
from tinyet.ops.add import OP, Add
from tinyet.ops.shared.addition import Scaling, affine_form

torch = pytest.importorskip("torch")


def add_nodes(dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Add, elementwise.clamps), dtypes, constants=constants)


test_host = bodies.host(add_nodes())

test_litert = bodies.equals_litert("ADD", add_nodes(elementwise.INTEGERS, constants=False))

test_torch = bodies.equals_torch(
    torch.add, elementwise.pair(st.just(Add()), (DType.FLOAT32,), constants=False)
)

# The kernel for scales without an exact affine form, on all scales.
test_specification_kernel = bodies.one_kernel(OP, "tinyet_add_s8", add_nodes((DType.INT8,)))


def test_affine_form_is_common() -> None:
    """A kernel that is never chosen would make the others slow in secret: ordinary scales must have the
    form."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(50):
        scales = tuple(float(np.float32(s)) for s in rng.uniform(0.01, 0.2, 3))
        zero_points = tuple(int(z) for z in rng.integers(-128, 128, 3))
        scaling = Scaling(
            (scales[0], scales[1], scales[2]),
            (zero_points[0], zero_points[1], zero_points[2]),
            1,
            (-128, 127),
        )
        found += affine_form(scaling) is not None
    assert found >= 45


def test_too_small_output_scale() -> None:
    x = tensor("x", (2,), scale=1.0)
    node = Node(Add(), (x, x), (tensor("y", (2,), scale=1e-7),))
    assert "too small" in str(OP.check(node))


def test_table_of_scalar_constant() -> None:
    x, c = (
        tensor("x", (300,), scale=0.1),
        constant("c", np.full((1, 1), 5, np.int8), QuantParams.per_tensor(0.2, 1)),
    )
    node = Node(Add(), (x, c), (tensor("y", (1, 300), scale=0.15),))
    deployment = assert_exact([Case(node, (np.arange(300).astype(np.int8),))])
    assert deployment.steps[0].choice.kernel.symbol == "tinyet_lut_s8"


def test_an_affine_form_may_need_finer_factors_than_any_zero_points_leave_room_for() -> None:
    """Of a residual sum of MobileNetV2, whose operands' scales are nearly one: no factors of 21 bits are exact. In 32
    bits with those that are."""
    scaling = Scaling(
        (0.2029162496328354, 0.20013602077960968, 0.29729780554771423), (-12, -8, -11), 1, (-128, 127)
    )
    form = affine_form(scaling)
    assert form is not None
    assert form.shift == 22
    every = np.arange(-128, 128)
    a, b = every[:, None] * form.a, every[None, :] * form.b
    assert np.abs(form.c + a).max() < 2**31
    assert np.abs(form.c + a + b).max() < 2**31
    values = np.clip((form.c + a + b) >> form.shift, *scaling.clamp)
    np.testing.assert_array_equal(values, scaling.apply(every[:, None], every[None, :]))


@pytest.mark.parametrize("clamp", [NO_CLAMP, (-2.0, 3.0)])
def test_rows_of_an_affine_form_of_any_length(clamp: tuple[float, float]) -> None:
    """Turns of four values and what is left behind them, with outputs beyond both bounds."""
    rng, cases = np.random.default_rng(1), []
    for count in range(1, 14):
        a, b = tensor("a", (count,), scale=0.1), tensor("b", (count,), scale=0.03)
        node = Node(Add(clamp=clamp), (a, b), (tensor("y", (count,), scale=0.07),))
        values = rng.integers(-128, 128, (2, count)).astype(np.int8)
        cases.append(Case(node, (values[0], values[1])))
    affine = tuple(kernel for kernel in OP.kernels if kernel.symbol == "tinyet_affine_s8")
    deployment = assert_exact(cases, delegates=(Delegate("alone", {Add: affine}),))
    assert {step.choice.kernel.symbol for step in deployment.steps} == {"tinyet_affine_s8"}
