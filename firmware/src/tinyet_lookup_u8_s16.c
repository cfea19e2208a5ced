/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_bytes.h"

typedef uint8_t source;
typedef int16_t element;
#define KERNEL tinyet_lookup_u8_s16
#define PARAMS tinyet_lookup_u8_s16_params
#include "tinyet_lookup_body.h"
