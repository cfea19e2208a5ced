/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter on SysTick: 24 bits of the core's clock, extended by the interrupt at each wrap.
 *
 * Every core from M0 to M55 may have SysTick with these same registers, while DWT CYCCNT is absent on Armv6-M and
 * reads 0 under QEMU. Layers of many millions of cycles pass the 24 bits, hence the interrupt.
 */
#include "tinyet_board.h"

#define SYST_CSR TINYET_REGISTER(0xE000E010u)
#define SYST_RVR TINYET_REGISTER(0xE000E014u)
#define SYST_CVR TINYET_REGISTER(0xE000E018u)
#define SCB_ICSR TINYET_REGISTER(0xE000ED04u)
#define SYST_ENABLE_INTERRUPT_CORE_CLOCK 7u
#define SYST_PERIOD_MASK 0xFFFFFFu
#define ICSR_SYSTICK_PENDING (1u << 26)
#define ICSR_SYSTICK_CLEAR (1u << 25)

extern uint8_t __stack_limit[], __stack_top[], __free_start[], __free_end[];
extern volatile uint32_t tinyet_systick_wraps;
extern void SysTick_Handler(void);

volatile uint32_t tinyet_systick_wraps;

const tinyet_platform_facts tinyet_platform = {
    __stack_limit, __stack_top, __free_start, __free_end, TINYET_COUNTER_CORE_CLOCK, TINYET_CLOCK_HZ, 24u, 5u,
};

/* In assembly so that its cost is known and can be taken off again: the 5 instructions of the facts above. */
__attribute__((naked)) void SysTick_Handler(void) {
  __asm volatile(".syntax unified\n\t"
                 "ldr r0, 1f\n\t"
                 "ldr r1, [r0]\n\t"
                 "adds r1, r1, #1\n\t"
                 "str r1, [r0]\n\t"
                 "bx lr\n\t"
                 ".balign 4\n\t"
                 "1: .word tinyet_systick_wraps");
}

void tinyet_platform_counter_restart(void) {
  SYST_CSR = 0u;
  SYST_RVR = SYST_PERIOD_MASK;
  SYST_CVR = 0u; /* any write clears it; the first tick then loads the period */
  SCB_ICSR = ICSR_SYSTICK_CLEAR;
  tinyet_systick_wraps = 0u;
  SYST_CSR = SYST_ENABLE_INTERRUPT_CORE_CLOCK;
}

/* The interrupt comes as the counter goes from 1 to 0, so a value of 0 belongs to the wrap that it announces: after w
 * wraps, 2^24 * w - value ticks have passed modulo 2^24. An interrupt between the readings, or one that is about to
 * be taken, makes them disagree: read again. */
uint64_t tinyet_platform_counter(void) {
  uint32_t wraps;
  uint32_t value;
  uint32_t masked;
  __asm volatile("mrs %0, primask" : "=r"(masked));
  do {
    wraps = tinyet_systick_wraps;
    value = SYST_CVR;
    /* With interrupts masked the wrap would stay pending for ever; such a run is not counted anyway. */
  } while (masked == 0u && ((SCB_ICSR & ICSR_SYSTICK_PENDING) != 0u || wraps != tinyet_systick_wraps));
  return ((uint64_t)wraps << 24) + ((0u - value) & SYST_PERIOD_MASK);
}
