/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_even.h"

#define REQUANTIZE tinyet_requantize_even
#define KERNEL tinyet_conv2d_s8_even
#define KERNEL_1X1 tinyet_conv2d_1x1_s8_even
#include "tinyet_conv2d_s8_pairs.h"
