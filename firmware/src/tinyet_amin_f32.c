/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce_extremum.h"

TINYET_DEFINE_REDUCE_EXTREMUM(tinyet_amin_f32, float, value < best || value != value)
