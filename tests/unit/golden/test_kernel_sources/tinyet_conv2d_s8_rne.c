/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_rne.h"

#define REQUANTIZE tinyet_requantize_rne
#define KERNEL tinyet_conv2d_s8_rne
#define KERNEL_1X1 tinyet_conv2d_1x1_s8_rne
#include "tinyet_conv2d_s8_2x2_body.h"
