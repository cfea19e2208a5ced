/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_adaptive_avg_pool2d.h"

typedef int16_t element;
enum { LEAST = INT16_MIN, GREATEST = INT16_MAX };
#define QUADS 0
#define KERNEL tinyet_adaptive_avg_pool2d_s16
#include "tinyet_adaptive_avg_pool2d_body.h"
