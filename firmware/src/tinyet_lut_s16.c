/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_lut.h"

void tinyet_lut_s16(const int16_t *input, int16_t *output, const tinyet_lut_s16_params *params) {
  const TINYET_ROM int16_t *const table = params->table;
  const int16_t *const end = output + params->count;
  while (output != end) {
    *output++ = (int16_t)tinyet_lut_interpolate_s16(table, *input++);
  }
}

/* The input in units of 1 / 12288. */
static inline int32_t argument(int32_t x, const tinyet_sigmoid_s16_params *p) {
  return (x * p->factor + (int32_t)((UINT32_C(1) << (uint32_t)p->shift) >> 1)) >> p->shift;
}

/* The sigmoid of |x| with `bits` fraction bits more than the table has; beyond the table `limit`. */
static inline int32_t line(int32_t size, int32_t bits, int32_t limit, const TINYET_ROM uint16_t *table) {
  const int32_t index = size >> bits;
  if (index >= 255) {
    return limit;
  }
  const int32_t here = table[index], following = table[index + 1];
  return (here << bits) + (size & ((INT32_C(1) << bits) - 1)) * (following - here);
}

void tinyet_sigmoid_s16(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params) {
  const tinyet_sigmoid_s16_params p = *params;
  const int16_t *const end = output + p.count;
  while (output != end) {
    const int32_t x = argument(*input++, &p);
    const int32_t value = line(x < 0 ? -x : x, 9, INT32_C(0x7fff) << 10, p.table);
    *output++ = (int16_t)((x >= 0 ? value + 512 : (INT32_C(1) << 25) - value + 511) >> 10);
  }
}

/* 2 sigmoid(2 x) - 1 */
void tinyet_tanh_s16(const int16_t *input, int16_t *output, const tinyet_sigmoid_s16_params *params) {
  const tinyet_sigmoid_s16_params p = *params;
  const int16_t *const end = output + p.count;
  while (output != end) {
    const int32_t x = argument(*input++, &p);
    const int32_t value = line(x < 0 ? -x : x, 8, INT32_C(0xffff) << 8, p.table);
    *output++ = (int16_t)((x >= 0 ? value - (INT32_C(1) << 23) + 128 : (INT32_C(1) << 23) - value + 127) >> 8);
  }
}
