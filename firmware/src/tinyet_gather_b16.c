/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gather.h"

typedef uint16_t __attribute__((may_alias)) element;
#define KERNEL tinyet_gather_b16
#include "tinyet_gather_body.h"
