/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_adaptive_avg_pool2d.h"

typedef int8_t element;
enum { LEAST = INT8_MIN, GREATEST = INT8_MAX };
#define QUADS 1
#define KERNEL tinyet_adaptive_avg_pool2d_s8
#include "tinyet_adaptive_avg_pool2d_body.h"
