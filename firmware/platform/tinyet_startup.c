/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reset and exception vectors for Armv6-M, Armv7-M and Armv8-M cores.
 *
 * The vector table ends with SysTick: a firmware that uses other interrupts brings its own table in a section
 * named .vectors and leaves this file out.
 */
#include <stdint.h>
#include <string.h>

#include "tinyet_board.h"

extern uint8_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[];
extern uint8_t __stack_limit[], __stack_top[];
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
extern int main(void);

void Reset_Handler(void);
void Default_Handler(void);
void NMI_Handler(void) __attribute__((weak, alias("Default_Handler")));
void HardFault_Handler(void) __attribute__((weak, alias("Default_Handler")));
void SVC_Handler(void) __attribute__((weak, alias("Default_Handler")));
void PendSV_Handler(void) __attribute__((weak, alias("Default_Handler")));
void SysTick_Handler(void) __attribute__((weak, alias("Default_Handler")));

typedef void (*vector)(void);

/* MemManage, BusFault, UsageFault and SecureFault are never enabled, so each of them escalates to HardFault, which
 * no mask can hold back. The fault status registers still tell them apart. */
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)(uintptr_t)__stack_top,
    Reset_Handler,
    NMI_Handler,
    HardFault_Handler,
    HardFault_Handler, /* MemManage */
    HardFault_Handler, /* BusFault */
    HardFault_Handler, /* UsageFault */
    HardFault_Handler, /* SecureFault */
    0,
    0,
    0,
    SVC_Handler,
    Default_Handler, /* DebugMonitor */
    0,
    PendSV_Handler,
    SysTick_Handler,
};

#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
extern uint8_t __stack_guard_bytes[]; /* a number, and no address: a power of two, or 0 */

#define MPU_TYPE TINYET_REGISTER(0xE000ED90u)
#define MPU_CTRL TINYET_REGISTER(0xE000ED94u)
#define MPU_RNR TINYET_REGISTER(0xE000ED98u)
#define MPU_RBAR TINYET_REGISTER(0xE000ED9Cu)
#define MPU_RASR TINYET_REGISTER(0xE000EDA0u)

/* These cores have no limit for the stack: where they have an MPU, its last region, unless somebody uses it, makes an access
 * right below the stack a fault. There may be memory there, or what swallows writes in silence. */
static void guard_stack(void) {
  const uint32_t bytes = (uint32_t)(uintptr_t)__stack_guard_bytes;
  const uint32_t regions = MPU_TYPE >> 8 & 0xFFu;
  if (bytes == 0u || regions == 0u) {
    return;
  }
  MPU_RNR = regions - 1u;
  if ((MPU_RASR & 1u) == 0u) {
    MPU_RBAR = (uint32_t)(uintptr_t)__stack_limit - bytes;
    MPU_RASR = 1u << 28 | (30u - (uint32_t)__builtin_clz(bytes)) << 1 | 1u; /* no execution, no access */
    MPU_CTRL = 5u;                                                        /* on; elsewhere the usual map */
    __asm volatile("dsb\n\tisb" ::: "memory");
  }
}
#endif

/* Runs before the FPU is on and before .data and .bss are there. */
__attribute__((used, noreturn)) void Reset_Handler(void) {
#if !defined(__ARM_ARCH_6M__)
  /* VTOR: behind a bootloader the core may still take its exceptions through the bootloader's table. */
  *(volatile uint32_t *)0xE000ED08u = (uint32_t)(uintptr_t)vectors;
#endif
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
  /* From here on a push below the stack is a fault and not an overwrite. */
  __asm volatile("msr msplim, %0" : : "r"(__stack_limit));
#endif
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: full access to CP10 and CP11 */
  __asm volatile("dsb\n\tisb" ::: "memory");
#endif
#if defined(__ARM_ARCH_8_1M_MAIN__)
  *(volatile uint32_t *)0xE000ED14u |= 1u << 19; /* CCR.LOB: low-overhead loops may use the loop cache */
  __asm volatile("dsb\n\tisb" ::: "memory");
#endif
  memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
  memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
  guard_stack();
#endif
  tinyet_uart_init();
  tinyet_platform_counter_restart();
  for (vector *init = __init_array_start; init < __init_array_end; init++) {
    (*init)();
  }
  (void)main();
  tinyet_platform_abort();
}

void Default_Handler(void) { tinyet_platform_abort(); }
