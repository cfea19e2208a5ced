/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_unary.h"

#include "tinyet_math.h"

/* x rounded to an integer by `rounded`, which is right below 2^23; beyond, every float is an integer. */
static inline float integral(float x, float rounded) {
  return tinyet_absf(x) < 8388608.0f ? tinyet_copysignf(rounded, x) : x;
}

/* Towards zero; anything where integral() does not look at it. */
static inline float truncated(float x) { return tinyet_absf(x) < 8388608.0f ? (float)(int32_t)x : 0.0f; }

static inline float floor_of(float x) {
  const float t = truncated(x);
  return integral(x, t > x ? t - 1.0f : t);
}

static inline float ceil_of(float x) {
  const float t = truncated(x);
  return integral(x, t < x ? t + 1.0f : t);
}

/* Ties to even, by the addition's own rounding. */
static inline float round_of(float x) { return integral(x, (tinyet_absf(x) + 8388608.0f) - 8388608.0f); }

#define DEFINE(NAME, RESULT)                                                                           \
  void tinyet_##NAME##_f32(const float *input, float *output, const tinyet_unary_f32_params *params) { \
    const float alpha = params->alpha, beta = params->beta;                                            \
    const float *const end = output + params->count;                                                   \
    (void)alpha, (void)beta;                                                                           \
    while (output != end) {                                                                            \
      const float x = *input++;                                                                        \
      *output++ = RESULT;                                                                              \
    }                                                                                                  \
  }

DEFINE(abs, tinyet_absf(x))
DEFINE(ceil, ceil_of(x))
DEFINE(celu, x > 0.0f ? x : alpha * tinyet_expm1f(x / alpha))
DEFINE(cos, tinyet_cosf(x))
DEFINE(elu, x > 0.0f ? x : alpha * tinyet_expm1f(x))
DEFINE(erf, tinyet_erff(x))
DEFINE(exp, tinyet_expf(x))
DEFINE(expm1, tinyet_expm1f(x))
DEFINE(floor, floor_of(x))
DEFINE(gelu, (0.5f * x) * (1.0f + tinyet_erff(x * 0.707106769f)))
DEFINE(gelu_tanh, (0.5f * x) * (1.0f + tinyet_tanhf(0.797884583f * (x + 0.0447149985f * ((x * x) * x)))))
DEFINE(hardshrink, tinyet_absf(x) <= alpha ? 0.0f : x)
DEFINE(hardsigmoid, tinyet_clamp_f32(x + 3.0f, 0.0f, 6.0f) * 0.166666672f)
DEFINE(hardswish, (x * tinyet_clamp_f32(x + 3.0f, 0.0f, 6.0f)) * 0.166666672f)
DEFINE(leaky_relu, x >= 0.0f ? x : alpha * x)
DEFINE(log, tinyet_logf(x))
DEFINE(log1p, tinyet_log1pf(x))
DEFINE(mish, x *tinyet_tanhf(tinyet_log1pf(tinyet_expf(x))))
DEFINE(neg, -x)
DEFINE(pow, tinyet_powf(x, alpha))
DEFINE(reciprocal, 1.0f / x)
DEFINE(round, round_of(x))
DEFINE(rsqrt, 1.0f / tinyet_sqrtf(x))
DEFINE(selu, x > 0.0f ? 1.05070102f * x : 1.75809932f * tinyet_expm1f(x))
DEFINE(sigmoid, tinyet_sigmoidf(x))
DEFINE(sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f))
DEFINE(silu, x *tinyet_sigmoidf(x))
DEFINE(sin, tinyet_sinf(x))
DEFINE(softplus, x *alpha > beta ? x : tinyet_log1pf(tinyet_expf(x * alpha)) / alpha)
DEFINE(softshrink, x > alpha ? x - alpha : (x < -alpha ? x + alpha : x * 0.0f))
DEFINE(sqrt, tinyet_sqrtf(x))
DEFINE(square, x *x)
DEFINE(tanh, tinyet_tanhf(x))
DEFINE(threshold, x <= alpha ? beta : x)
