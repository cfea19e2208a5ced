/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter on nRF51's TIMER0. These chips have no SysTick. TIMER0 runs unscaled from the 16 MHz that the core runs
 * from, so a tick is a cycle of the core; its 32 bits are extended each time the counter is read, which suffices as
 * long as two readings are less than 268 seconds apart.
 */
#include "tinyet_board.h"

#define TIMER0 0x40008000u
#define TIMER0_START TINYET_REGISTER(TIMER0 + 0x000u)
#define TIMER0_STOP TINYET_REGISTER(TIMER0 + 0x004u)
#define TIMER0_CLEAR TINYET_REGISTER(TIMER0 + 0x00Cu)
#define TIMER0_CAPTURE_0 TINYET_REGISTER(TIMER0 + 0x040u)
#define TIMER0_MODE TINYET_REGISTER(TIMER0 + 0x504u)
#define TIMER0_BITMODE TINYET_REGISTER(TIMER0 + 0x508u)
#define TIMER0_PRESCALER TINYET_REGISTER(TIMER0 + 0x510u)
#define TIMER0_CC_0 TINYET_REGISTER(TIMER0 + 0x540u)

extern uint8_t __stack_limit[], __stack_top[], __free_start[], __free_end[];

static uint32_t low;
static uint32_t high;

const tinyet_platform_facts tinyet_platform = {
    __stack_limit, __stack_top, __free_start, __free_end, TINYET_COUNTER_CORE_CLOCK, TINYET_CLOCK_HZ, 0u, 0u,
};

void tinyet_platform_counter_restart(void) {
  TIMER0_STOP = 1u;
  TIMER0_MODE = 0u;    /* timer, not counter */
  TIMER0_BITMODE = 3u; /* 32 bits */
  TIMER0_PRESCALER = 0u;
  TIMER0_CLEAR = 1u;
  low = 0u;
  high = 0u;
  TIMER0_START = 1u;
}

uint64_t tinyet_platform_counter(void) {
  TIMER0_CAPTURE_0 = 1u;
  const uint32_t now = TIMER0_CC_0;
  high += (now < low) ? 1u : 0u;
  low = now;
  return ((uint64_t)high << 32) + now;
}
