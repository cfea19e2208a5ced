/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

typedef int16_t element;
typedef tinyet_prelu_s16_params kernel_params;
enum { LEAST = INT16_MIN, GREATEST = INT16_MAX };
#define X_ZERO_POINT 0
#define SLOPE_ZERO_POINT 0
#define OUT_ZERO_POINT 0
#define KERNEL tinyet_prelu_s16
#include "tinyet_prelu_body.h"
