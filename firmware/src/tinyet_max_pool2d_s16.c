/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_max_pool2d.h"

typedef int16_t element;
enum { LEAST = INT16_MIN };
#define QUADS 0
#define KERNEL tinyet_max_pool2d_s16
#include "tinyet_max_pool2d_body.h"
