/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce_extremum.h"

TINYET_DEFINE_REDUCE_EXTREMUM(tinyet_amax_s8, int8_t, value > best)
