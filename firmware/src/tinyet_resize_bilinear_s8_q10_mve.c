/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize_mve.h"

TINYET_MVE_RESIZE_PARTS(int8_t, "b", int32_t, "32", "w", "4", "u", 1024, "20", )
TINYET_MVE_RESIZE(tinyet_resize_bilinear_s8_q10_mve, int8_t, int32_t)
