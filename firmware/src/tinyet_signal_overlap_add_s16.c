/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_common.h"

#define KERNEL tinyet_signal_overlap_add_s16
typedef int16_t element;

static inline element plus(element x, element y) {
  return (element)tinyet_clamp((int32_t)x + y, INT16_MIN, INT16_MAX);
}

#include "tinyet_signal_overlap_add_body.h"
