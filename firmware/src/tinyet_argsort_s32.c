/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argsort.h"

typedef int32_t element;
#define KERNEL tinyet_argsort_s32
#define GREATER(a, b) ((a) > (b))
#include "tinyet_argsort_body.h"
