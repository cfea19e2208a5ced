/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The platform of an AVR in simavr: the stream is the first UART, the counter is the simulation's own, which
 * simavr/tinyet_simavr.c shows in two registers. avr-libc's startup code calls main().
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_platform.h"

enum { HOLD = 0, RESTART = 1 }; /* as in simavr/tinyet_simavr.c */

/* Absolute addresses, which the linker is told. */
extern uint8_t __heap_start;
extern uint8_t __stack;
extern uint8_t tinyet_stack_limit;

const tinyet_platform_facts tinyet_platform = {
    .stack_limit = &tinyet_stack_limit,
    .stack_top = &__stack,
    .free_begin = &__heap_start,
    .free_end = &tinyet_stack_limit,
    .counter_kind = TINYET_COUNTER_CORE_CLOCK,
    .counter_hz = TINYET_CLOCK_HZ,
    .counter_irq_bits = 0u,
    .counter_irq_instructions = 0u,
};

/* Before main(), in line with the startup code. */
__attribute__((naked, used, section(".init7"))) void tinyet_start_uart(void);
void tinyet_start_uart(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = (1 << RXEN0) | (1 << TXEN0);
}

size_t tinyet_platform_read(void *bytes, size_t n) {
  uint8_t *const to = (uint8_t *)bytes;
  for (size_t i = 0u; i < n; i++) {
    while ((UCSR0A & (1 << RXC0)) == 0) {
    }
    to[i] = UDR0;
  }
  return n;
}

void tinyet_platform_write(const void *bytes, size_t n) {
  const uint8_t *const from = (const uint8_t *)bytes;
  for (size_t i = 0u; i < n; i++) {
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    UDR0 = from[i];
  }
}

uint64_t tinyet_platform_counter(void) {
  union {
    uint8_t bytes[8];
    uint64_t count;
  } held;
  GPIOR0 = HOLD;
  for (uint8_t i = 0u; i < sizeof held.bytes; i++) {
    held.bytes[i] = GPIOR1;
  }
  return held.count;
}

void tinyet_platform_counter_restart(void) { GPIOR0 = RESTART; }

void tinyet_platform_abort(void) {
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
