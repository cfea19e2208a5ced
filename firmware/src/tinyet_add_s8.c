/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_binary.h"

typedef int8_t element;
typedef tinyet_add_s8_params kernel_params;
enum { HEADROOM = 20 };
#define A_ZERO_POINT p.a_zero_point
#define B_ZERO_POINT p.b_zero_point
#define OUT_ZERO_POINT p.out_zero_point
#define KERNEL_ADD tinyet_add_s8
#define KERNEL_SUB tinyet_sub_s8
#include "tinyet_add_body.h"
