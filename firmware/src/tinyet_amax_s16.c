/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

typedef int16_t element;
#define KERNEL tinyet_amax_s16
#define REPLACES value > best
#include "tinyet_reduce_extremum_body.h"
