/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut_mve.h"

void tinyet_lut_s8_mve(const int8_t *input, int8_t *output, const tinyet_lut_s8_params *params) {
  const int8_t *const table = params->table;
#if TINYET_MVE_ASM
  if (params->count != 0) {
    __asm__ volatile(
        "dlstp.8 lr, %[count]\n"
        "1:\n"
        "vldrb.u8 q0, [%[from]], #16\n"
        "vldrb.u8 q1, [%[table], q0]\n"
        "vstrb.8 q1, [%[to]], #16\n"
        "letp lr, 1b\n"
        : [from] "+l"(input), [to] "+l"(output)
        : [count] "r"(params->count), [table] "r"(table)
        : "lr", "d0", "d1", "d2", "d3", "memory");
  }
#else
  for (int32_t i = 0; i < params->count; i++) {
    output[i] = table[(uint8_t)input[i]];
  }
#endif
}
