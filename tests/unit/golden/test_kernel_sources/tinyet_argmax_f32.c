/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argmax.h"

typedef float element;
#define KERNEL tinyet_argmax_f32
/* value != value: a NaN, which the first time beats every number. */
#define REPLACES value > best || (value != value && best == best)
#include "tinyet_argmax_body.h"
