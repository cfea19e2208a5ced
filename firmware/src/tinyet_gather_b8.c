/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_gather.h"

typedef uint8_t element;
#define KERNEL tinyet_gather_b8
#include "tinyet_gather_body.h"
