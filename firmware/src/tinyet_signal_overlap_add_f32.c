/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_common.h"

#define KERNEL tinyet_signal_overlap_add_f32
typedef float element;

static inline element plus(element x, element y) { return x + y; }

#include "tinyet_signal_overlap_add_body.h"
