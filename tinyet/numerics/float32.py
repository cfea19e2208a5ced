# SPDX-License-Identifier: Apache-2.0
"""References in numpy of the float arithmetic in C (`firmware/include/tinyet_math.h`): same operations, same
order, float32.

Every function takes and gives float32 arrays of one shape and rounds after each operation, so that host and
device agree bit for bit. Comments on the mathematics stand in the C file. Where C returns early, the reference
computes all elements, those at risk with a harmless argument, and selects.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_F = np.float32
INFINITY = _F(np.inf)
NAN = _F(np.nan)
LARGEST = _F(3.40282347e38)

TWO_OVER_PI = np.array(
    [0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB], np.uint64
)
# Highest power first, as they are used; Q30.
LOG2_TERMS = (
    85411679, -155072471, 155113439, -153296465, 170471653, -193634136, 221381424,
    -258183078, 309814461, -387270436, 516360685, -774541003, 1549082005
)  # fmt: skip
EXP2_TERMS = (23258, 153505, 1442062, 10322424, 59598365, 257941086, 744261126, 1073741824)


def _f32(x: npt.ArrayLike) -> Float32:
    return np.asarray(x, np.float32)


def bits(x: Float32) -> UInt32:
    """The IEEE encoding."""
    return np.ascontiguousarray(x, np.float32).view(np.uint32).reshape(np.shape(x))


def from_bits(encoded: npt.ArrayLike) -> Float32:
    """The float of an IEEE encoding."""
    array = np.asarray(encoded).astype(np.uint32)
    return np.ascontiguousarray(array).view(np.float32).reshape(array.shape)


def _polynomial(x: Float32, terms: Sequence[float]) -> Float32:
    """Horner's rule, highest power first."""
    value = np.full_like(x, terms[0])
    for term in terms[1:]:
        value = _f32(value * x + _F(term))
    return value


def clamp(x: Float32, low: float, high: float) -> Float32:
    """x < low ? low : x > high ? high : x. NaN and the zero's sign stay, which np.clip does not promise."""
    bottom, top = _F(low), _F(high)
    return np.where(x < bottom, bottom, np.where(x > top, top, x)).astype(np.float32)


def sum_in_order(x: Float32) -> Float32:
    """Sum along the last axis, from 0 on, one after another; that axis is kept with size 1."""
    total = np.zeros((*x.shape[:-1], 1), np.float32)
    for i in range(x.shape[-1]):
        total = _f32(total + x[..., i : i + 1])
    return total


def maximum_in_order(x: Float32) -> Float32:
    """`m = x > m ? x : m` along the last axis; that axis is kept with size 1."""
    largest = _f32(x[..., :1])
    for i in range(1, x.shape[-1]):
        largest = np.where(x[..., i : i + 1] > largest, x[..., i : i + 1], largest)
    return largest


def sqrt(x: Float32) -> Float32:
    """IEEE square root."""
    with np.errstate(all="ignore"):
        return np.sqrt(_f32(x))


def scale(x: Float32, n: Int32) -> Float32:
    """x * 2**n in two steps, of which at most the second one rounds; n in -252 … 254."""
    half = n >> 1
    with np.errstate(all="ignore"):
        return _f32(x * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23))


def _exp_steps(x: Float32) -> Float32:
    return _f32((x * _F(1.44269504) + _F(12582912.0)) - _F(12582912.0))


def _exp_rest(x: Float32, n: Float32) -> Float32:
    return _f32((x - n * _F(0.693359375)) - n * _F(-2.12194440e-4))


def _usable(x: Float32, good: npt.NDArray[np.bool_], instead: float) -> Float32:
    return np.where(good, x, _F(instead))


def exp(x: Float32) -> Float32:
    """e**x. Error: under 1.2 ulp."""
    x = _f32(x)
    v = _usable(x, (x >= -104) & (x <= 89), 0)
    n = _exp_steps(v)
    r = _exp_rest(v, n)
    p = _polynomial(r, (0.0013951693, 0.00836959854, 0.0416661873, 0.166665122, 0.5))
    value = scale(_f32((p * (r * r) + r) + _F(1)), n.astype(np.int32))
    return _f32(np.where(x < -104, _F(0), np.where(x > 89, INFINITY, np.where(x != x, x, value))))


def expm1(x: Float32) -> Float32:
    """e**x - 1."""
    x = _f32(x)
    v = _usable(x, (x >= -18) & (x <= 20), 0)
    n = _exp_steps(v)
    r = _exp_rest(v, n)
    p = _polynomial(r, (0.000199156217, 0.00139420468, 0.00833327044, 0.0416663438, 0.166666672, 0.5))
    p = _f32(p * (r * r) + r)
    power = from_bits((n.astype(np.int32) + 127) << 23)
    value = _f32(power * p + (power - _F(1)))
    large = _f32(exp(x) - _F(1))
    return _f32(np.where(x < -18, _F(-1), np.where(x > 20, large, np.where(x != x, x, value))))


def _log_parts(x: Float32) -> tuple[Float32, Int32]:
    """(m, e): x = m * 2**e with m in [sqrt(1/2), sqrt(2)), for finite x > 0."""
    small = x < _F(1.17549435e-38)
    x = np.where(small, _f32(x * _F(8388608.0)), x)
    encoded = bits(x).astype(np.int64)
    steps = (encoded - 0x3F3504F3) >> 23
    return from_bits(encoded - (steps << 23)), np.where(small, steps - 23, steps).astype(np.int32)


def _log_core(f: Float32, e: Float32, rest: Float32) -> Float32:
    p = _polynomial(
        f,
        (
            -0.0785989389,
            0.128858149,
            -0.131304517,
            0.141807064,
            -0.166243494,
            0.200023025,
            -0.250008166,
            0.333333164,
        ),
    )
    square = _f32(f * f)
    low = _f32((p * (square * f) + (e * _F(-2.12194440e-4) + rest)) - _F(0.5) * square)
    return _f32((f + low) + e * _F(0.693359375))


def log(x: Float32) -> Float32:
    """Natural logarithm; -inf at 0, NaN below."""
    x = _f32(x)
    m, e = _log_parts(_usable(x, (x > 0) & (x <= LARGEST), 1))
    value = _log_core(_f32(m - _F(1)), e.astype(np.float32), np.zeros_like(m))
    low = np.where(x == 0, -INFINITY, NAN)
    return _f32(np.where(x > LARGEST, x, np.where(x > 0, value, low)))


def log1p(x: Float32) -> Float32:
    """log(1 + x); -inf at -1, NaN below."""
    x = _f32(x)
    v = _usable(x, (x > -1) & (x <= LARGEST), 0)
    near = (v > _F(-0.292893219)) & (v < _F(0.414213562))
    u = _f32(_F(1) + v)
    lost = np.where(v > 1, _F(1) - (u - v), v - (u - _F(1)))
    m, e = _log_parts(u)
    zero = np.zeros_like(v)
    f = np.where(near, v, m - _F(1))
    value = _log_core(f, np.where(near, zero, e.astype(np.float32)), np.where(near, zero, _f32(lost / u)))
    low = np.where(x == -1, -INFINITY, NAN)
    return _f32(np.where(x > LARGEST, x, np.where(x > -1, value, low)))


def _leading_zeros64(x: UInt64) -> Int64:
    """Of values above zero."""
    zeros = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        empty = (x >> np.uint64(64 - step)) == 0
        zeros += np.where(empty, step, 0)
        x = np.where(empty, x << np.uint64(step), x)
    return zeros


def _quadrant(x: Float32) -> tuple[Float32, Int64]:
    """(r, q): |x| = q pi/2 + r, q in 0 … 3, for finite x."""
    encoded = bits(x) & np.uint32(0x7FFFFFFF)
    near = encoded <= 0x3F490FDA
    wide = np.where(near, np.uint32(0x3F800000), encoded).astype(np.uint64)
    mantissa = (wide & np.uint64(0x7FFFFF)) | np.uint64(0x800000)
    first = (wide >> np.uint64(23)).astype(np.int64) - 120
    k, left = first >> 5, (32 - (first & 31)).astype(np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    high, middle, low = (
        (((TWO_OVER_PI[k + i] << np.uint64(32)) | TWO_OVER_PI[k + i + 1]) >> left) & mask for i in range(3)
    )
    with np.errstate(over="ignore"):
        turns = ((mantissa * high) << np.uint64(32)) + mantissa * middle + ((mantissa * low) >> np.uint64(32))
        nearest = (turns + np.uint64(1 << 61)) >> np.uint64(62)
        rest = turns - (nearest << np.uint64(62))
        negative = (rest >> np.uint64(63)) != 0
        rest = np.where(negative, ~rest + np.uint64(1), rest)
    empty = rest == 0
    zeros = _leading_zeros64(np.where(empty, np.uint64(1), rest))
    product = ((rest << zeros.astype(np.uint64)) >> np.uint64(32)) * np.uint64(3373259426)
    r = _f32((product >> np.uint64(32)).astype(np.uint32).astype(np.float32) * from_bits((98 - zeros) << 23))
    r = np.where(empty, _F(0), np.where(negative, -r, r))
    return np.where(near, from_bits(encoded), r), np.where(near, 0, (nearest & np.uint64(3)).astype(np.int64))


def _sin_quadrant(r: Float32, q: Int64) -> Float32:
    z = _f32(r * r)
    cosine = _polynomial(z, (2.44380917e-05, -0.00138873642, 0.0416666456))
    cosine = _f32(cosine * (z * z) + (_F(1) - _F(0.5) * z))
    sine = _f32(_polynomial(z, (-0.000195169778, 0.00833217613, -0.166666552)) * (z * r) + r)
    value = np.where(q & 1, cosine, sine)
    return np.where(q & 2, -value, value)


def sin(x: Float32) -> Float32:
    """Sine of radians of any size; NaN for infinities."""
    x = _f32(x)
    finite = np.abs(x) <= LARGEST
    v = _usable(x, finite, 0)
    value = _sin_quadrant(*_quadrant(v))
    return _f32(np.where(finite, np.where(v < 0, -value, value), NAN))


def cos(x: Float32) -> Float32:
    """Cosine of radians of any size; NaN for infinities."""
    x = _f32(x)
    finite = np.abs(x) <= LARGEST
    r, q = _quadrant(_usable(x, finite, 0))
    return _f32(np.where(finite, _sin_quadrant(r, q + 1), NAN))


def tanh(x: Float32) -> Float32:
    """Hyperbolic tangent."""
    x = _f32(x)
    a = np.abs(x)
    v = _usable(x, a < _F(0.625), 0)
    z = _f32(v * v)
    p = _polynomial(z, (-0.00570948049, 0.0206441209, -0.053741619, 0.133314699, -0.333332837))
    near = _f32(p * (z * v) + v)
    with np.errstate(all="ignore"):
        far = np.copysign(_F(1) - _F(2) / (exp(_f32(a + a)) + _F(1)), x)
    return _f32(np.where(a < _F(0.625), near, np.where(x != x, x, far)))


def sigmoid(x: Float32) -> Float32:
    """1 / (1 + exp(-x))."""
    x = _f32(x)
    e = exp(-np.abs(x))
    return _f32(np.where(x < 0, e, _F(1)) / (_F(1) + e))


def erf(x: Float32) -> Float32:
    """The error function."""
    x = _f32(x)
    a = np.abs(x)
    near = a < _F(0.93)
    v = _usable(x, near, 0)
    z = _f32(v * v)
    p = _polynomial(z, (-0.00059768965, 0.00499098049, -0.0267655663, 0.112818025, -0.376124948, 0.128379151))
    inner = _f32(p * v + v)
    b = _usable(a, ~near & (a <= _F(3.95)), 1)
    p = _polynomial(
        b,
        (
            2.12178747e-05,
            -0.000435884198,
            0.00417795964,
            -0.0251376145,
            0.108308263,
            0.633321285,
            1.12952769,
            -0.000177333975,
        ),
    )
    outer = np.where(a > _F(3.95), _F(1), _F(1) - exp(-p))
    return _f32(np.where(near, inner, np.where(x != x, x, np.copysign(outer, x))))


def _pow_positive(x: Float32, y: Float32) -> Float32:
    """|x|**y for finite x != 0 and finite y != 0."""
    m, e = _log_parts(np.abs(x))
    f = _f32((m - _F(1)) * _F(16777216.0)).astype(np.int64)
    p = np.full(f.shape, LOG2_TERMS[0], np.int64)
    for term in LOG2_TERMS[1:]:
        p = term + ((p * f + (1 << 23)) >> 24)
    logarithm = f * p + e.astype(np.int64) * (1 << 54)
    one = logarithm == 0
    size = np.where(one, 1, np.abs(logarithm)).astype(np.uint64)
    zeros = _leading_zeros64(size)
    y_m, y_e = _log_parts(np.abs(y))
    y_fixed = _f32(y_m * _F(16777216.0)).astype(np.uint64)
    product = ((size << zeros.astype(np.uint64)) >> np.uint64(32)) * y_fixed
    right = 14 + zeros - y_e
    negative = (logarithm < 0) != (y < 0)
    too_large = np.uint64(152 << 32)
    exponent = product >> np.clip(right, 1, 63).astype(np.uint64)
    exponent = np.where(right >= 64, np.uint64(0), np.where(right <= 0, too_large, exponent))
    beyond = exponent >= too_large
    bounded = np.where(beyond, np.uint64(0), exponent).astype(np.int64)
    target = np.where(negative, -bounded, bounded)
    fraction = (target & 0xFFFFFFFF).astype(np.uint64)
    power = np.full(f.shape, EXP2_TERMS[0], np.uint64)
    for term in EXP2_TERMS[1:]:
        power = np.uint64(term) + ((power * fraction) >> np.uint64(32))
    value = scale(power.astype(np.uint32).astype(np.float32), ((target >> 32) - 30).astype(np.int32))
    return _f32(np.where(one, _F(1), np.where(beyond, np.where(negative, _F(0), INFINITY), value)))


def power(x: Float32, y: Float32) -> Float32:
    """x**y with the special cases of C's pow; x and y of one shape."""
    x, y = _f32(x), _f32(y)
    a, size = np.abs(x), np.abs(y)
    wide = size >= _F(16777216.0)
    whole = _usable(y, size < _F(16777216.0), 0).astype(np.int32)
    integer = wide | (whole.astype(np.float32) == y)
    odd = integer & ((whole & 1) != 0)
    edge = (a == 0) | (a == INFINITY)
    plain = ~edge & (a == a) & (size > 0) & (size < INFINITY)
    value = _pow_positive(_usable(x, plain, 1), _usable(y, plain, 1))
    result = np.where(edge, np.where((a == 0) == (y > 0), _F(0), INFINITY), value)
    result = np.where(~edge & (x < 0) & ~integer, NAN, np.where(odd, np.copysign(result, x), result))
    unbounded = np.where(a == 1, _F(1), np.where((a > 1) == (y > 0), INFINITY, _F(0)))
    result = np.where(size == INFINITY, unbounded, result)
    result = np.where((x != x) | (y != y), NAN, result)
    return _f32(np.where((y == 0) | (x == 1), _F(1), result))
