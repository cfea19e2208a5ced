/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_prelu_mve.h"

TINYET_MVE_PRELU_FUNCTION(tinyet_prelu_s16_mve, int16_t, TINYET_MVE_S16)
