/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize_mve.h"

TINYET_MVE_RESIZE_PARTS(int8_t, "b", int16_t, "16", "h", "8", "u", 16, "8", (int16_t))
TINYET_MVE_RESIZE(tinyet_resize_bilinear_s8_q4_mve, int8_t, int16_t)
