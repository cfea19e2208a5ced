/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_move.h"

typedef uint32_t __attribute__((may_alias)) element;
#define KERNEL tinyet_move_b32
#include "tinyet_move_body.h"
