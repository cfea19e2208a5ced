/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

typedef int8_t element;
enum { LEAST = INT8_MIN, GREATEST = INT8_MAX };
#define AVERAGE 1
#define KERNEL tinyet_row_averages_s8
#include "tinyet_row_sums_body.h"
