/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

typedef int8_t element;
typedef tinyet_prelu_s8_params kernel_params;
enum { LEAST = INT8_MIN, GREATEST = INT8_MAX };
#define X_ZERO_POINT p.x_zero_point
#define SLOPE_ZERO_POINT p.slope_zero_point
#define OUT_ZERO_POINT p.out_zero_point
#define KERNEL tinyet_prelu_s8
#include "tinyet_prelu_body.h"
