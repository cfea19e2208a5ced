# SPDX-License-Identifier: Apache-2.0
"""The LiteRT oracle: models are well formed, known results come back, misuse is refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.litert import OPS, TensorSpec, available, build, run

needs_litert = pytest.mark.skipif(not available(), reason="ai_edge_litert is not installed")


def test_spec_gives_one_zero_point_a_scale() -> None:
    spec = TensorSpec((3, 1), np.int8, (0.5, 0.25, 0.125), 0, axis=0)
    assert spec.scales.dtype == np.float32
    assert spec.zero_points.tolist() == [0, 0, 0]
    assert TensorSpec((3,), np.float32).zero_points.size == 0


def test_spec_refuses_data_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit int8"):
        TensorSpec((1,), np.int8, 1.0, data=[300]).array()
    with pytest.raises(ValueError, match="needs data"):
        TensorSpec((1,), np.int8, 1.0).array()


def test_model_is_a_tflite_file_and_the_same_every_time() -> None:
    inputs = [TensorSpec((2,), np.int8, 1.0, data=[1, 2])]
    outputs = [TensorSpec((2,), np.int8, 1.0)]
    model = build("RELU", inputs, outputs)
    assert model[4:8] == b"TFL3"
    assert model == build("RELU", inputs, outputs)


def test_unknown_names_are_refused() -> None:
    spec = TensorSpec((1,), np.int8, 1.0, data=[0])
    with pytest.raises(ValueError, match="does not know CONV_9D"):
        build("CONV_9D", [spec], [spec])
    with pytest.raises(ValueError, match="RELU has no option padding"):
        build("RELU", [spec], [spec], padding="SAME")
    assert "CONV_2D" in OPS


@needs_litert
def test_relu_requantizes() -> None:
    x = TensorSpec((1, 4), np.int8, 0.5, 0, data=[[1, -2, 3, 100]])
    (y,) = run("RELU", [x], [TensorSpec((1, 4), np.int8, 0.25, 0)])
    assert y.tolist() == [[2, 0, 6, 127]]


@needs_litert
def test_convolution_by_hand() -> None:
    # A 2x2 image: output channel 0 sums the window, channel 1 negates the sum and has half the scale.
    x = TensorSpec((1, 2, 2, 1), np.int8, 1.0, 1, data=np.array([2, 3, 4, 5]).reshape(1, 2, 2, 1))
    w = TensorSpec(
        (2, 2, 2, 1), np.int8, (1.0, 0.5), 0, data=np.array([[1] * 4, [-1] * 4]).reshape(2, 2, 2, 1)
    )
    bias = TensorSpec((2,), np.int32, (1.0, 0.5), data=[10, 20])
    (y,) = run("CONV_2D", [x, w, bias], [TensorSpec((1, 1, 1, 2), np.int8, 1.0, -3)], padding="VALID")
    assert y.reshape(-1).tolist() == [10 + 10 - 3, (20 - 10) // 2 - 3]


@needs_litert
def test_depthwise_multiplier_orders_channels() -> None:
    x = TensorSpec((1, 1, 1, 2), np.int8, 1.0, 0, data=np.array([2, 5]).reshape(1, 1, 1, 2))
    w = TensorSpec(
        (1, 1, 1, 4), np.int8, (1.0,) * 4, 0, axis=3, data=np.array([1, 2, 3, 4]).reshape(1, 1, 1, 4)
    )
    y = TensorSpec((1, 1, 1, 4), np.int8, 1.0, 0)
    (result,) = run("DEPTHWISE_CONV_2D", [x, w], [y], padding="VALID", depth_multiplier=2)
    assert result.reshape(-1).tolist() == [2, 4, 15, 20]


@needs_litert
def test_absent_optional_input_and_fused_activation() -> None:
    x = TensorSpec((1, 2), np.int8, 1.0, 0, data=[[3, 4]])
    w = TensorSpec((2, 2), np.int8, 1.0, 0, data=[[1, 1], [-1, -1]])
    (y,) = run("FULLY_CONNECTED", [x, w, None], [TensorSpec((1, 2), np.int8, 1.0, -1)], activation="RELU6")
    assert y.tolist() == [[5, -1]]


@needs_litert
def test_average_pool_rounds_halves_away_from_zero() -> None:
    data = np.array([1, 2, -1, -2]).reshape(1, 1, 2, 2).transpose(0, 1, 3, 2)
    x = TensorSpec((1, 1, 2, 2), np.int8, 1.0, 0, data=data)
    y = TensorSpec((1, 1, 1, 2), np.int8, 1.0, 0)
    (result,) = run(
        "AVERAGE_POOL_2D", [x], [y], padding="VALID", stride_w=1, stride_h=1, filter_w=2, filter_h=1
    )
    assert result.reshape(-1).tolist() == [2, -2]


@needs_litert
def test_quantize_and_scalar_options() -> None:
    x = TensorSpec((4,), np.float32, data=[0.25, -0.25, 1.0, 1000.0])
    (q,) = run("QUANTIZE", [x], [TensorSpec((4,), np.int8, 0.5, 3)])
    assert q.tolist() == [4, 2, 5, 127]
    leaky = TensorSpec((2,), np.int8, 1.0, 0, data=[-10, 10])
    (y,) = run("LEAKY_RELU", [leaky], [TensorSpec((2,), np.int8, 1.0, 0)], alpha=0.5)
    assert y.tolist() == [-5, 10]


@needs_litert
def test_constant_inputs_and_newer_operator_codes() -> None:
    x = TensorSpec((2, 3), np.int8, 1.0, 0, data=[[1, 2, 3], [4, 5, 6]])
    axes = TensorSpec((1,), np.int32, data=[1])
    (mean,) = run("MEAN", [x, axes], [TensorSpec((2, 1), np.int8, 1.0, 0)], keep_dims=True)
    assert mean.tolist() == [[2], [5]]
    # GELU's code is above 127: it lives in the newer field of the schema.
    (gelu,) = run("GELU", [x], [TensorSpec((2, 3), np.int8, 1.0, 0)], approximate=False)
    assert gelu.tolist() == [[1, 2, 3], [4, 5, 6]]


@needs_litert
def test_several_fed_inputs_keep_their_order() -> None:
    a = TensorSpec((2,), np.int8, 1.0, 0, data=[1, 2])
    b = TensorSpec((1,), np.int8, 1.0, 0, data=[3])
    (joined,) = run("CONCATENATION", [a, b, a], [TensorSpec((5,), np.int8, 1.0, 0)], axis=0)
    assert joined.tolist() == [1, 2, 3, 1, 2]
    (difference,) = run("SUB", [a, b], [TensorSpec((2,), np.int8, 1.0, 0)])
    assert difference.tolist() == [-2, -1]


@needs_litert
def test_elu_runs_although_the_reference_resolver_lacks_it() -> None:
    x = TensorSpec((3,), np.int8, 1.0, 0, data=[-100, 0, 7])
    (y,) = run("ELU", [x], [TensorSpec((3,), np.int8, 0.5, 0)])
    assert y.tolist() == [-2, 0, 14]


@needs_litert
def test_refusals_carry_litert_words_and_aborts_are_caught_before() -> None:
    one = TensorSpec((1,), np.int8, 1.0, 0, data=[1])
    with pytest.raises(ValueError, match=r"LiteRT refuses CONCATENATION.*scale"):
        run("CONCATENATION", [one], [TensorSpec((1,), np.int8, 2.0, 0)], axis=0)
    with pytest.raises(ValueError, match="aborts in ADD"):
        run("ADD", [one, one], [TensorSpec((1,), np.int8, 1e-6, 0)])
    row = TensorSpec((512,), np.int8, 0.1, 0, data=np.zeros(512))
    with pytest.raises(ValueError, match="512 elements share the maximum"):
        run("SOFTMAX", [row], [TensorSpec((512,), np.int8, 1 / 256, -128)])
    with pytest.raises(ValueError, match="expected"):
        run("RELU", [one], [TensorSpec((2,), np.int8, 1.0, 0)])
    with pytest.raises(ValueError, match="input 0 of RELU may not be absent"):
        run("RELU", [None], [one])


@needs_litert
def test_nothing_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    one = TensorSpec((1,), np.int8, 1.0, 0, data=[1])
    run("RELU", [one], [one])
    with pytest.raises(ValueError, match="refuses"):
        run("LOGISTIC", [one], [TensorSpec((1,), np.int8, 1.0, 0)])
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""
