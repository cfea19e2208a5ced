/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_argsort.h"

typedef float element;
#define KERNEL tinyet_argsort_f32
#define GREATER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#include "tinyet_argsort_body.h"
