/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a board gives to tinyet: a byte stream, a counter, a way to stop.
 *
 * The startup code has made the stream and the counter ready before main() is called. The functions are called
 * from one context only (main, or the fault handler that never returns to it).
 */
#ifndef TINYET_PLATFORM_H
#define TINYET_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads exactly n bytes from the stream into bytes, waiting without limit for each. Returns n; a smaller number
 * says that the stream has ended, which happens on a host computer only. */
size_t tinyet_platform_read(void *bytes, size_t n);

/* Writes n bytes to the stream, waiting as long as the stream needs. */
void tinyet_platform_write(const void *bytes, size_t n);

/* Ticks since the last restart, in the unit that tinyet_platform.counter_kind names. Never goes back.
 * A restart makes what follows independent of how long the board has been running, so equal work shows equal
 * counts under an emulator that counts instructions. The first reading after a restart is small, not exactly 0. */
uint64_t tinyet_platform_counter(void);
void tinyet_platform_counter_restart(void);

/* Stops for good: a board waits for its reset, a process ends with a failure. */
__attribute__((noreturn)) void tinyet_platform_abort(void);

enum {
  /* One tick is one cycle of the core's clock. An emulator that does not model cycles lets the same counter
     * advance by a fixed number of ticks an instruction; which of both it is, only the other end can know. */
  TINYET_COUNTER_CORE_CLOCK = 1,
  /* One tick is a nanosecond of wall-clock time. */
  TINYET_COUNTER_NANOSECONDS = 2,
};

/* The harness's record, in free RAM, of each layer and each part of one: the time of all its runs, and their number. */
typedef struct {
  uint64_t count;
  uint32_t runs;
} tinyet_tally;

/* Facts of a board that are fixed when the firmware is linked. */
typedef struct {
  /* The stack grows down from stack_top and must not pass stack_limit. Both NULL: not known. */
  uint8_t *stack_limit;
  uint8_t *stack_top;
  /* RAM that no variable lies in: [free_begin, free_end). The heap, if any, grows up from free_begin. */
  uint8_t *free_begin;
  uint8_t *free_end;
  uint32_t counter_kind;
  uint32_t counter_hz; /* ticks per second as configured on real hardware */
  /* An interrupt extends a short hardware counter each time when 2^counter_irq_bits ticks have passed, and runs
     * counter_irq_instructions instructions. 0 bits: there is no such interrupt. */
  uint32_t counter_irq_bits;
  uint32_t counter_irq_instructions;
} tinyet_platform_facts;

extern const tinyet_platform_facts tinyet_platform;

#ifdef __cplusplus
}
#endif

#endif
