/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reset and exceptions of an Xtensa core without register windows (the call0 ABI), whose vectors lie at the start of its
 * flash. Its memories must be ready when it gets here.
 *
 * No interrupt is ever enabled. Exceptions go to Exception_Handler, which a firmware may replace by a function of its own.
 */
#include <stdint.h>
#include <string.h>

#include "tinyet_board.h"

extern uint8_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[];
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
extern int main(void);

void Exception_Handler(void) __attribute__((weak, alias("Default_Handler")));
void Default_Handler(void);
__attribute__((used, noreturn)) void tinyet_start(void);

/* The vectors, by their distance from VECBASE, which lies at a multiple of 4096: level-1 exceptions of the kernel's and the
 * user's mode and double exceptions. Each keeps a0 in EXCSAVE1 and goes on to the handler. */
__asm(".pushsection .vectors, \"ax\"\n\t"
      ".begin no-transform\n\t"
      ".balign 4096\n"
      "tinyet_vectors:\n\t"
      ".org tinyet_vectors + 0x10\n\t"
      "j tinyet_exception\n\t"
      ".org tinyet_vectors + 0x20\n\t"
      "j tinyet_exception\n\t"
      ".org tinyet_vectors + 0x30\n\t"
      "j tinyet_exception\n\t"
      ".org tinyet_vectors + 0x50\n\t"
      "j tinyet_exception\n\t"
      ".org tinyet_vectors + 0x70\n\t"
      "j tinyet_exception\n\t"
      ".balign 4\n"
      "tinyet_exception_place: .word Exception_Handler\n"
      "tinyet_vectors_place: .word tinyet_vectors\n"
      "tinyet_stack_place: .word __stack_top\n"
      "tinyet_start_place: .word tinyet_start\n"
      "tinyet_exception:\n\t"
      "wsr a0, excsave1\n\t"
      "l32r a0, tinyet_exception_place\n\t"
      "jx a0\n\t"
      ".global Reset_Handler\n\t"
      ".balign 4\n"
      "Reset_Handler:\n\t"
      "movi a0, 0x2F\n\t" /* PS: user vectors, no interrupts, and exceptions are no double ones */
      "wsr a0, ps\n\t"
      "rsync\n\t"
      "l32r a0, tinyet_vectors_place\n\t"
      "wsr a0, vecbase\n\t"
      "rsync\n\t"
      "l32r a1, tinyet_stack_place\n\t"
      "l32r a0, tinyet_start_place\n\t"
      "jx a0\n\t"
      ".end no-transform\n\t"
      ".popsection");

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

void Default_Handler(void) { tinyet_platform_abort(); }
