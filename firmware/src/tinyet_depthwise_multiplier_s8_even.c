/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_even.h"

typedef int8_t element;
typedef tinyet_conv2d_s8_quant kernel_quant;
typedef tinyet_conv2d_s8_params kernel_params;
#define BEGIN(bytes) tinyet_copy_rom(sums, q->bias, bytes)
#define OFFSET (-q->in_zero_point)
#define RESCALED tinyet_requantize_even(sums[c], q->multiplier[c], q->shift[c], q->out_zero_point)
#define APART 0
#define KERNEL tinyet_depthwise_multiplier_s8_even
#include "tinyet_depthwise_multiplier_body.h"
