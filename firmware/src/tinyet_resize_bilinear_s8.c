/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize.h"

typedef int8_t element;
typedef int32_t wide;

static inline int8_t rounded(int32_t sum) { return (int8_t)tinyet_round_shift(sum, 20); }

#define KERNEL tinyet_resize_bilinear_s8
#include "tinyet_resize_bilinear_body.h"
