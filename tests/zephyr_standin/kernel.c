/* SPDX-License-Identifier: Apache-2.0 */
/* The API of include/ on the bare-metal support files of mps2_an386, whose names ZephyrConfig.cmake changes. */
#include <stdarg.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

void tinyet_uart_init(void);
uint8_t tinyet_uart_get(void);
void tinyet_uart_put(uint8_t byte);
uint64_t standin_counter(void);
void standin_abort(void);
int standin_main(void);
int main(void);
void HardFault_Handler(void);
void standin_fault(const struct arch_esf *esf);

/* Below a thread's stack. */
#define GUARD 0x5A
static struct k_thread *other;
static void *main_pointer;
static bool inside;

const struct device standin_zephyr_console = {true};

bool device_is_ready(const struct device *device) { return device->ready; }

/* Says once before each byte that there is none: who reads must ask again. */
int uart_poll_in(const struct device *device, unsigned char *byte) {
  static bool asked;
  (void)device;
  asked = !asked;
  if (asked) {
    return -1;
  }
  *byte = tinyet_uart_get();
  return 0;
}

void uart_poll_out(const struct device *device, unsigned char byte) {
  (void)device;
  tinyet_uart_put(byte);
}

/* %s alone: generated applications print nothing else. Lines end as on Zephyr's UART console. */
void printk(const char *format, ...) {
#if defined(CONFIG_PRINTK) && defined(CONFIG_UART_CONSOLE)
  va_list arguments;
  if (strcmp(format, "%s") != 0) {
    standin_abort();
  }
  va_start(arguments, format);
  for (const char *at = va_arg(arguments, const char *); *at != '\0'; at++) {
    if (*at == '\n') {
      tinyet_uart_put('\r');
    }
    tinyet_uart_put((uint8_t)*at);
  }
  va_end(arguments);
#else
  (void)format;
#endif
}

k_tid_t k_thread_create(struct k_thread *thread, k_thread_stack_t *stack, size_t stack_size, k_thread_entry_t entry,
                        void *first, void *second, void *third, int priority, uint32_t options, k_timeout_t delay) {
  (void)priority;
  (void)options;
  (void)delay;
  *thread = (struct k_thread){
      entry, {first, second, third}, (char *)stack + K_KERNEL_STACK_RESERVED + stack_size, (char *)stack, NULL};
  memset(stack, GUARD, K_KERNEL_STACK_RESERVED);
  other = thread;
  return thread;
}

/* Saves what a function leaves as it was, and goes on where the other side has called this. */
__attribute__((naked)) static void swap(void **save, void *to) {
  (void)save;
  (void)to;
  __asm volatile("push {r4-r11, lr}\n\tvpush {d8-d15}\n\tstr sp, [r0]\n\t"
                 "mov sp, r1\n\tvpop {d8-d15}\n\tpop {r4-r11, pc}");
}

static void begin(void) { other->entry(other->arguments[0], other->arguments[1], other->arguments[2]); }

/* There are main's thread and one other; each runs until it waits for what is not there. */
int k_sem_take(struct k_sem *semaphore, k_timeout_t timeout) {
  (void)timeout;
  while (semaphore->count == 0u) {
    if (other == NULL) {
      standin_abort();
    }
    if (other->stack_pointer == NULL) { /* the registers of `swap`, of which the last is where to go on */
      uint32_t *const top = (uint32_t *)(void *)other->stack_top;
      memset(top - 25, 0, 25u * sizeof *top);
      top[-1] = (uint32_t)(uintptr_t)begin;
      other->stack_pointer = top - 25;
    }
    inside = !inside;
    swap(inside ? &main_pointer : &other->stack_pointer, inside ? other->stack_pointer : main_pointer);
    for (size_t i = 0u; i < K_KERNEL_STACK_RESERVED; i++) {
      if (other->stack_guard[i] != GUARD) {
        standin_abort();
      }
    }
  }
  semaphore->count--;
  return 0;
}

void k_sem_give(struct k_sem *semaphore) {
  if (semaphore->count < semaphore->limit) {
    semaphore->count++;
  }
}

/* The thread runs when this one waits for it, on its own stack. */
int k_thread_join(struct k_thread *thread, k_timeout_t timeout) {
  (void)timeout;
  register void *first __asm("r0") = thread->arguments[0];
  register void *second __asm("r1") = thread->arguments[1];
  register void *third __asm("r2") = thread->arguments[2];
  __asm volatile("mov r4, sp\n\t"
                 "mov sp, %[stack]\n\t"
                 "blx %[entry]\n\t"
                 "mov sp, r4\n\t"
                 : "+r"(first), "+r"(second), "+r"(third)
                 : [stack] "r"(thread->stack_top), [entry] "r"(thread->entry)
                 : "r3", "r4", "ip", "lr", "memory", "cc");
  return 0;
}

int32_t k_sleep(k_timeout_t timeout) {
  const uint64_t end = standin_counter() + (uint64_t)timeout.ticks * 25000000u;
  while (standin_counter() < end) {
  }
  return 0;
}

unsigned int irq_lock(void) {
  __asm volatile("cpsid i" ::: "memory");
  return 0u;
}

/* One tick of the core's clock, or of a slow timer. */
uint64_t k_cycle_get_64(void) { return standin_counter() / (25000000u / CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC); }

uint32_t k_cycle_get_32(void) { return (uint32_t)k_cycle_get_64(); }

__attribute__((weak)) void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *esf) {
  (void)reason;
  (void)esf;
  standin_abort();
}

__attribute__((used)) void standin_fault(const struct arch_esf *esf) {
  k_sys_fatal_error_handler(K_ERR_CPU_EXCEPTION, esf);
}

__attribute__((naked)) void HardFault_Handler(void) { __asm volatile("mrs r0, msp\n\tb standin_fault"); }

int standin_main(void) { return main(); }
