/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_resize.h"

typedef int16_t element;
typedef int64_t wide;

/* A negative sum is lowered by the least there is. */
static inline int16_t rounded(int64_t sum) { return (int16_t)((sum + (sum >> 63) + (INT32_C(1) << 19)) >> 20); }

#define KERNEL tinyet_resize_bilinear_s16
#include "tinyet_resize_bilinear_body.h"
