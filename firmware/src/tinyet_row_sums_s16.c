/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

typedef int16_t element;
enum { LEAST = INT16_MIN, GREATEST = INT16_MAX };
#define AVERAGE 0
#define KERNEL tinyet_row_sums_s16
#include "tinyet_row_sums_body.h"
