/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argmax.h"

typedef int8_t element;
#define KERNEL tinyet_argmax_s8
#define REPLACES value > best
#include "tinyet_argmax_body.h"
