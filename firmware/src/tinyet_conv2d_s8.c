/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_pairs.h"

#define REQUANTIZE tinyet_requantize_form
#define KERNEL tinyet_conv2d_s8
#define KERNEL_1X1 tinyet_conv2d_1x1_s8
#include "tinyet_conv2d_s8_pairs.h"
