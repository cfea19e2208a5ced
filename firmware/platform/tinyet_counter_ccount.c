/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter on Xtensa's CCOUNT: 32 bits of the core's clock, which need no interrupt. They are extended each time the
 * counter is read, which suffices as long as two readings are less than 2^32 cycles apart.
 */
#include "tinyet_board.h"

extern uint8_t __stack_limit[], __stack_top[], __free_start[], __free_end[];

static uint32_t started;
static uint32_t low;
static uint32_t high;

const tinyet_platform_facts tinyet_platform = {
    __stack_limit, __stack_top, __free_start, __free_end, TINYET_COUNTER_CORE_CLOCK, TINYET_CLOCK_HZ, 0u, 0u,
};

static inline uint32_t now(void) {
  uint32_t ticks;
  __asm volatile("rsr %0, ccount" : "=r"(ticks));
  return ticks;
}

void tinyet_platform_counter_restart(void) {
  low = 0u;
  high = 0u;
  started = now();
}

uint64_t tinyet_platform_counter(void) {
  const uint32_t ticks = now() - started;
  high += (ticks < low) ? 1u : 0u;
  low = ticks;
  return ((uint64_t)high << 32) + ticks;
}
