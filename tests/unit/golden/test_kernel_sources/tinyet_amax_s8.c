/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

typedef int8_t element;
#define KERNEL tinyet_amax_s8
#define REPLACES value > best
#include "tinyet_reduce_extremum_body.h"
