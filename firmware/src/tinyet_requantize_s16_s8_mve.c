/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_rescale_mve.h"

TINYET_MVE_REQUANTIZE(tinyet_requantize_s16_s8_mve, int16_t, int8_t, TINYET_MVE_S16_OPERAND, TINYET_MVE_S8_RESULT)
