/* SPDX-License-Identifier: Apache-2.0 */
/* The byte stream of a bare-metal board: its UART, polled. */
#include "tinyet_board.h"

size_t tinyet_platform_read(void *bytes, size_t n) {
  uint8_t *to = (uint8_t *)bytes;
  for (size_t i = 0; i < n; i++) {
    to[i] = tinyet_uart_get();
  }
  return n;
}

void tinyet_platform_write(const void *bytes, size_t n) {
  const uint8_t *from = (const uint8_t *)bytes;
  for (size_t i = 0; i < n; i++) {
    tinyet_uart_put(from[i]);
  }
}

void tinyet_platform_abort(void) {
#if defined(__riscv)
  __asm volatile(".option arch, +zicsr\n\tcsrci mstatus, 8" ::: "memory"); /* MIE */
#elif !defined(__XTENSA__)
  __asm volatile("cpsid i" ::: "memory");
#endif
  for (;;) {
#if defined(__XTENSA__)
    __asm volatile("waiti 15"); /* for an interrupt above the highest level */
#else
    __asm volatile("wfi");
#endif
  }
}
