/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reset and traps of a 32-bit RISC-V core that boots in machine mode at the first address of its flash.
 *
 * No interrupt is ever enabled. Traps go to Trap_Handler, which a firmware may replace by a function of its own.
 */
#include <stdint.h>
#include <string.h>

#include "tinyet_board.h"

extern uint8_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[];
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
extern int main(void);

void Reset_Handler(void);
void Trap_Handler(void) __attribute__((weak, alias("Default_Handler")));
void Default_Handler(void);
__attribute__((used, noreturn)) void tinyet_start(void);

/* The flash becomes readable and executable and nothing more, for machine mode, too, and until the next reset: pmpaddr0
 * and pmpaddr1 are its bounds, entry 1 is of the kind "top of range", read, execute, locked (0x8D). So a stack that grows
 * below the RAM, which may border on the flash, is a fault and not an overwrite. A core without protection traps at the
 * first of these instructions and goes on behind them. */
__attribute__((naked, section(".vectors"), used)) void Reset_Handler(void) {
  __asm volatile(".option arch, +zicsr\n\t"
                 ".option push\n\t"
                 ".option norelax\n\t"
                 "la gp, __global_pointer$\n\t"
                 ".option pop\n\t"
                 "csrci mstatus, 8\n\t"
                 "csrw mie, zero\n\t"
                 "la sp, __stack_top\n\t"
                 "la tp, __tls_base\n\t"
                 "la t0, 1f\n\t"
                 "csrw mtvec, t0\n\t"
                 "la t0, __flash_start\n\t"
                 "srli t0, t0, 2\n\t"
                 "csrw pmpaddr0, t0\n\t"
                 "la t0, __flash_end\n\t"
                 "srli t0, t0, 2\n\t"
                 "csrw pmpaddr1, t0\n\t"
                 "li t0, 0x8D00\n\t"
                 "csrw pmpcfg0, t0\n\t"
                 ".balign 4\n\t"
                 "1: la t0, Trap_Handler\n\t"
                 "csrw mtvec, t0\n\t"
                 "j tinyet_start");
}

/* Runs before .data and .bss are there. */
void tinyet_start(void) {
  memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
  memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
  tinyet_uart_init();
  tinyet_platform_counter_restart();
  for (void (**init)(void) = __init_array_start; init < __init_array_end; init++) {
    (*init)();
  }
  (void)main();
  tinyet_platform_abort();
}

/* The two lowest bits of mtvec are not part of the address. */
__attribute__((aligned(4))) void Default_Handler(void) { tinyet_platform_abort(); }
