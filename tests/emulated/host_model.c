/* SPDX-License-Identifier: Apache-2.0 */
/* One layer that adds 1 to each byte, and, for a first byte of 255, to one byte too many. */
#include "tinyet_harness.h"

#define COUNT 16u

static uint8_t arena[COUNT];

static void add_one(uint32_t n) {
  for (uint32_t i = 0u; i < n; i++) {
    arena[i] = (uint8_t)(arena[i] + 1u);
  }
}

static tinyet_status run(void) {
  TINYET_LAYER_BEGIN(0u);
  add_one(arena[0] == 255u ? COUNT + 1u : COUNT);
  TINYET_LAYER_END(0u);
  return TINYET_OK;
}

static const tinyet_io io[] = {{0u, COUNT}};

const tinyet_model tinyet_harness_model = {
    "host_model",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    TINYET_ABI_VERSION,
    arena,
    COUNT,
    1u,
    1u,
    io,
    1u,
    io,
    run,
    0u,
    NULL,
    NULL,
    0u,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};
