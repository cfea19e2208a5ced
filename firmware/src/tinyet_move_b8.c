/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_move.h"

typedef uint8_t element;
#define KERNEL tinyet_move_b8
#include "tinyet_move_body.h"
