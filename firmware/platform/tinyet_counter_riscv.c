/* SPDX-License-Identifier: Apache-2.0 */
/* The counter on mcycle: 64 bits of the core's clock, which need no interrupt. */
#include "tinyet_board.h"

extern uint8_t __stack_limit[], __stack_top[], __free_start[], __free_end[];

const tinyet_platform_facts tinyet_platform = {
    __stack_limit, __stack_top, __free_start, __free_end, TINYET_COUNTER_CORE_CLOCK, TINYET_CLOCK_HZ, 0u, 0u,
};

/* The register runs on for ever: writing to it is allowed, but QEMU 7.2 then reads it without the borrow between its
 * halves. */
static uint64_t started;

/* The halves are read one after the other. The lower one tells which reading of the upper one belongs to it: small, it
 * has just wrapped or will not for long, so the later; large, the earlier. The usual loop until both agree would take
 * more instructions now and then. */
static inline uint64_t now(void) {
  uint32_t before;
  uint32_t low;
  uint32_t after;
  __asm volatile(".option arch, +zicsr\n\t"
                 "csrr %0, mcycleh\n\t"
                 "csrr %1, mcycle\n\t"
                 "csrr %2, mcycleh"
                 : "=&r"(before), "=&r"(low), "=&r"(after));
  const uint32_t was_large = 0u - (low >> 31);
  const uint32_t high = after ^ ((after ^ before) & was_large);
  return (uint64_t)high << 32 | low;
}

void tinyet_platform_counter_restart(void) { started = now(); }

uint64_t tinyet_platform_counter(void) { return now() - started; }
