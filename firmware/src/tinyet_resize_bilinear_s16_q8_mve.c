/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize_mve.h"

TINYET_MVE_RESIZE_PARTS(int16_t, "h", int32_t, "32", "w", "8", "u", 256, "16", )
TINYET_MVE_RESIZE(tinyet_resize_bilinear_s16_q8_mve, int16_t, int32_t)
