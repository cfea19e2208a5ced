/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_reduce.h"

typedef float element;
#define KERNEL tinyet_amax_f32
#define REPLACES value > best || value != value
#include "tinyet_reduce_extremum_body.h"
