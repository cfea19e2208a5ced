/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

typedef int16_t element;
typedef tinyet_add_s16_params kernel_params;
enum { HEADROOM = 15 };
#define A_ZERO_POINT 0
#define B_ZERO_POINT 0
#define OUT_ZERO_POINT 0
#define KERNEL_ADD tinyet_add_s16
#define KERNEL_SUB tinyet_sub_s16
#include "tinyet_add_body.h"
