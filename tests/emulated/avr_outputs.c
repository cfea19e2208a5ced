/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of sums, of the kernels that multiply bytes: sends for each set of factors in cases.h how often assembly and the rule in
 * C differ, of TIMES drawn sums below the set's limit, one-sided and two-sided, and of the limit and more, and of sums with a sign,
 * which are clamped. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_byte_products.h"

#include "cases.h"

enum { TIMES = 3000 };

static uint32_t drawn(uint32_t limit) {
  static uint32_t state = 1u;
  state = state * UINT32_C(1664525) + UINT32_C(1013904223);
  return (uint32_t)(((uint64_t)state * limit) >> 32);
}

/* f: two numbers of two-sided sums, and those of all. */
static int8_t rule(uint32_t sum, const TINYET_ROM uint32_t *f, uint8_t two_sided) {
  const uint32_t less = two_sided != 0u && sum < f[0] ? f[1] : 0u, upper = f[3] & 0xffffffu, lower = f[3] >> 24;
  return (int8_t)((sum * upper + (sum * lower >> 8) + (sum * f[4] >> 16) + f[5] - less) >> 24);
}

static uint8_t differs(uint32_t sum, const TINYET_ROM uint32_t *f, uint8_t two_sided) {
  return tinyet_bytes_output(sum, two_sided != 0u ? f : f + 2, two_sided, -99, 99) != rule(sum, f, two_sided);
}

static uint16_t clamped_wrong(const TINYET_ROM uint32_t *f) {
  const uint32_t sums[] = {f[2], f[2] + 1u, UINT32_C(1) << 24, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - f[2], UINT32_MAX};
  uint16_t wrong = 0u;
  for (uint8_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const int8_t wanted = (sums[i] >> 31) != 0u ? -99 : 99;
    wrong = (uint16_t)(wrong + (tinyet_bytes_output(sums[i], f + 2, 0u, -99, 99) != wanted));
    wrong = (uint16_t)(wrong + (tinyet_bytes_output(sums[i], f, 1u, -99, 99) != wanted));
  }
  return wrong;
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = 1 << TXEN0;
  for (uint8_t set = 0; set < SETS; set++) {
    const TINYET_ROM uint32_t *const f = factors[set];
    uint16_t wrong = clamped_wrong(f);
    for (uint16_t i = 0; i < TIMES; i++) {
      const uint32_t sum = drawn(f[2]);
      wrong = (uint16_t)(wrong + differs(sum, f, 0u) + differs(sum, f, 1u));
    }
    for (uint8_t i = 0; i < 2u; i++) {
      while ((UCSR0A & (1 << UDRE0)) == 0) {
      }
      UCSR0A |= 1 << TXC0;
      UDR0 = (uint8_t)(wrong >> 8 * i);
    }
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
