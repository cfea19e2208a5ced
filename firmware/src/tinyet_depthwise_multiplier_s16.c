/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"

typedef int16_t element;
typedef tinyet_conv2d_s16_quant kernel_quant;
typedef tinyet_conv2d_s16_params kernel_params;
#define BEGIN(bytes) memset(sums, 0, bytes)
#define OFFSET 0
#define RESCALED (tinyet_requantize_s64(sums[c] + q->bias[c], q->multiplier[c], q->shift[c]))
#define APART 1
#define KERNEL tinyet_depthwise_multiplier_s16
#include "tinyet_depthwise_multiplier_body.h"
