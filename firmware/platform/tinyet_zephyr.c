/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The platform on Zephyr: the stream is the UART of the console, polled; the counter is the core's own cycle counter, or
 * Zephyr's system timer. Starts the harness in a thread whose stack it can measure.
 *
 * Kconfig gives:
 *   CONFIG_TINYET_HARNESS_COUNTER_DWT    count cycles with the DWT unit of a Cortex-M
 *   CONFIG_TINYET_HARNESS_COUNTER_CORE   Zephyr's system timer runs at the core's clock
 *   CONFIG_TINYET_HARNESS_COUNTER_TIME   it does not: cycles are turned into nanoseconds
 *   CONFIG_TINYET_HARNESS_CORE_HZ        what the core runs at, for the first of these
 *   CONFIG_TINYET_HARNESS_COUNTS         layers and parts of layers that are counted
 *   CONFIG_TINYET_HARNESS_STACK_SIZE     bytes of the harness's stack
 */
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

#if !DT_HAS_CHOSEN(zephyr_console)
#error "the harness needs a serial port: set zephyr,console in /chosen of the devicetree"
#endif

static const struct device *const console = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static K_KERNEL_STACK_DEFINE(harness_stack, CONFIG_TINYET_HARNESS_STACK_SIZE);
static struct k_thread harness_thread;

static tinyet_tally tallies[CONFIG_TINYET_HARNESS_COUNTS];

#if defined(CONFIG_TINYET_HARNESS_COUNTER_DWT)
#define COUNTER_KIND TINYET_COUNTER_CORE_CLOCK
#define COUNTER_HZ CONFIG_TINYET_HARNESS_CORE_HZ
#elif defined(CONFIG_TINYET_HARNESS_COUNTER_CORE)
#define COUNTER_KIND TINYET_COUNTER_CORE_CLOCK
#define COUNTER_HZ CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC
#elif defined(CONFIG_TINYET_HARNESS_COUNTER_TIME)
#define COUNTER_KIND TINYET_COUNTER_NANOSECONDS
#define COUNTER_HZ 1000000000u
#else
#error "choose TINYET_HARNESS_COUNTER in Kconfig"
#endif

/* Whatever an architecture keeps below the stack proper is not painted. */
#define STACK_LIMIT ((uint8_t *)harness_stack + K_KERNEL_STACK_RESERVED)

const tinyet_platform_facts tinyet_platform = {
    STACK_LIMIT,
    STACK_LIMIT + K_KERNEL_STACK_SIZEOF(harness_stack),
    (uint8_t *)tallies,
    (uint8_t *)tallies + sizeof tallies,
    COUNTER_KIND,
    COUNTER_HZ,
    0u, /* nothing is known of the interrupts of Zephyr's timer: their cycles stay in the counts */
    0u,
};

size_t tinyet_platform_read(void *bytes, size_t n) {
  uint8_t *to = (uint8_t *)bytes;
  for (size_t i = 0u; i < n; i++) {
    while (uart_poll_in(console, &to[i]) != 0) {
    }
  }
  return n;
}

void tinyet_platform_write(const void *bytes, size_t n) {
  const uint8_t *from = (const uint8_t *)bytes;
  for (size_t i = 0u; i < n; i++) {
    uart_poll_out(console, from[i]);
  }
}

#if defined(CONFIG_TINYET_HARNESS_COUNTER_DWT)
#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define DWT_CTRL REGISTER(0xE0001000u)
#define DWT_CYCCNT REGISTER(0xE0001004u)
#define DWT_LAR REGISTER(0xE0001FB0u) /* of Cortex-M7; elsewhere a write to it does nothing */
#define DEMCR REGISTER(0xE000EDFCu)
#define LAR_UNLOCK 0xC5ACCE55u
#define DEMCR_TRCENA (1u << 24)
#define DWT_CYCCNTENA 1u
#endif

static void start_counter(void) {
#if defined(CONFIG_TINYET_HARNESS_COUNTER_DWT)
  DEMCR |= DEMCR_TRCENA;
  DWT_LAR = LAR_UNLOCK;
  DWT_CTRL |= DWT_CYCCNTENA;
#endif
}

#if defined(CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER) && !defined(CONFIG_TINYET_HARNESS_COUNTER_DWT)

static uint64_t counter_began;

static void restart(void) { counter_began = k_cycle_get_64(); }

static uint64_t elapsed(void) { return k_cycle_get_64() - counter_began; }

#else

/* 32 bits, extended at each reading: right as long as fewer than 2^32 ticks pass between two. */
static uint32_t counter_last;
static uint64_t counter_sum;

static uint32_t counter_now(void) {
#if defined(CONFIG_TINYET_HARNESS_COUNTER_DWT)
  return DWT_CYCCNT;
#else
  return k_cycle_get_32();
#endif
}

static void restart(void) {
  counter_last = counter_now();
  counter_sum = 0u;
}

static uint64_t elapsed(void) {
  const uint32_t now = counter_now();
  counter_sum += (uint32_t)(now - counter_last);
  counter_last = now;
  return counter_sum;
}

#endif

void tinyet_platform_counter_restart(void) { restart(); }

uint64_t tinyet_platform_counter(void) {
#if defined(CONFIG_TINYET_HARNESS_COUNTER_TIME)
  return k_cyc_to_ns_floor64(elapsed());
#else
  return elapsed();
#endif
}

void tinyet_platform_abort(void) {
  (void)irq_lock();
  for (;;) {
  }
}

static void serve(void *first, void *second, void *third) {
  ARG_UNUSED(first);
  ARG_UNUSED(second);
  ARG_UNUSED(third);
  tinyet_harness_serve();
}

int main(void) {
  if (!device_is_ready(console)) {
    tinyet_platform_abort();
  }
  start_counter();
  restart();
  /* Below every other thread: a UART over USB is served by threads of its own, while this one waits for it. */
  (void)k_thread_create(&harness_thread, harness_stack, K_KERNEL_STACK_SIZEOF(harness_stack), serve, NULL, NULL, NULL,
                        K_LOWEST_APPLICATION_THREAD_PRIO, 0u, K_NO_WAIT);
  (void)k_thread_join(&harness_thread, K_FOREVER);
  return 0;
}
