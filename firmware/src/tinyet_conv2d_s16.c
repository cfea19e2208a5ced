/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"

typedef tinyet_conv2d_s16_quant kernel_quant;
typedef tinyet_conv2d_s16_params kernel_params;
typedef int64_t kernel_sum;

static inline int32_t rescaled(kernel_sum sum, int32_t channel, const kernel_quant *q) {
  return tinyet_requantize_s64(sum, q->multiplier[channel], q->shift[channel]);
}

#define KERNEL tinyet_conv2d_s16
#include "tinyet_conv2d_s16_pairs.h"
