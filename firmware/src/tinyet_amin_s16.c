/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce_extremum.h"

TINYET_DEFINE_REDUCE_EXTREMUM(tinyet_amin_s16, int16_t, value < best)
