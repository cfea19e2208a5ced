/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_move.h"

typedef uint16_t __attribute__((may_alias)) element;
#define KERNEL tinyet_move_b16
#include "tinyet_move_body.h"
