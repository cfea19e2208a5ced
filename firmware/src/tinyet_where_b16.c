/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_where.h"

typedef uint16_t __attribute__((may_alias)) element;
#define KERNEL tinyet_where_b16
#include "tinyet_where_body.h"
