/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_where.h"

typedef uint8_t element;
#define KERNEL tinyet_where_b8
#include "tinyet_where_body.h"
