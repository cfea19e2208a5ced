/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Zephyr's kernel API that generated projects use. */
#ifndef STANDIN_KERNEL_H
#define STANDIN_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define ARG_UNUSED(x) (void)(x)

typedef struct {
  int64_t ticks; /* of a second */
} k_timeout_t;
#define K_NO_WAIT ((k_timeout_t){0})
#define K_FOREVER ((k_timeout_t){-1})
#define K_SECONDS(seconds) ((k_timeout_t){seconds})
#define K_LOWEST_APPLICATION_THREAD_PRIO 14

/* A guard lies below the stack proper, as with the MPU of some cores. */
struct z_thread_stack_element {
  char data;
};
typedef struct z_thread_stack_element k_thread_stack_t;
#define K_KERNEL_STACK_RESERVED ((size_t)32)
#define K_KERNEL_STACK_DEFINE(name, size) \
  struct z_thread_stack_element __attribute__((aligned(32))) name[(size) + K_KERNEL_STACK_RESERVED]
#define K_KERNEL_STACK_SIZEOF(name) (sizeof(name) - K_KERNEL_STACK_RESERVED)
#define K_THREAD_STACK_DEFINE(name, size) K_KERNEL_STACK_DEFINE(name, size)
#define K_THREAD_STACK_SIZEOF(name) K_KERNEL_STACK_SIZEOF(name)

typedef void (*k_thread_entry_t)(void *first, void *second, void *third);
struct k_thread {
  k_thread_entry_t entry;
  void *arguments[3];
  char *stack_top;
  char *stack_guard;
  void *stack_pointer;
};
typedef struct k_thread *k_tid_t;
k_tid_t k_thread_create(struct k_thread *thread, k_thread_stack_t *stack, size_t stack_size, k_thread_entry_t entry,
                        void *first, void *second, void *third, int priority, uint32_t options, k_timeout_t delay);
int k_thread_join(struct k_thread *thread, k_timeout_t timeout);

struct k_sem {
  unsigned int count;
  unsigned int limit;
};
#define K_SEM_DEFINE(name, initial, most) struct k_sem name = {initial, most}
int k_sem_take(struct k_sem *semaphore, k_timeout_t timeout);
void k_sem_give(struct k_sem *semaphore);

int32_t k_sleep(k_timeout_t timeout);
unsigned int irq_lock(void);
uint32_t k_cycle_get_32(void);
uint64_t k_cycle_get_64(void);

static inline uint64_t k_cyc_to_us_near64(uint64_t cycles) {
  return (cycles * 1000000u + CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC / 2) / CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC;
}
static inline uint64_t k_cyc_to_ns_floor64(uint64_t cycles) {
  return cycles * 1000000000u / CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC;
}

#endif
