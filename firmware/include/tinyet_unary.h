/* SPDX-License-Identifier: Apache-2.0 */
/* A function of each float. alpha and beta are its parameters, where it has any (tinyet/ops/unary.py names them). The output
 * may be the input. Not-a-number stays, unless a comparison decides otherwise as in PyTorch. */
#ifndef TINYET_UNARY_H
#define TINYET_UNARY_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  float alpha, beta;
  int32_t count;
} tinyet_unary_f32_params;

void tinyet_abs_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_ceil_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_celu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_cos_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_elu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_erf_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_exp_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_expm1_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_floor_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_gelu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_gelu_tanh_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_hardshrink_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_hardsigmoid_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_hardswish_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_leaky_relu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_log_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_log1p_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_mish_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_neg_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_pow_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_reciprocal_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_round_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_rsqrt_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_selu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_sigmoid_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_sign_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_silu_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_sin_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_softplus_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_softshrink_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_sqrt_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_square_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_tanh_f32(const float *input, float *output, const tinyet_unary_f32_params *params);
void tinyet_threshold_f32(const float *input, float *output, const tinyet_unary_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
