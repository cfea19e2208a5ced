/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argmax.h"

typedef int16_t element;
#define KERNEL tinyet_argmax_s16
#define REPLACES value > best
#include "tinyet_argmax_body.h"
