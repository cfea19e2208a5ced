/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around each call of a server on a core with Helium: an interrupt every few instructions, whose handler writes over all that it
 * may, also below the stack pointer, and in the registers that a function keeps values of their own, which must be there afterwards.
 */
#include "tinyet_call_server.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)
#define SCB_ICSR REGISTER(0xE000ED04u)
#define SCB_VTOR REGISTER(0xE000ED08u)
#define SYSTICK_CLEAR (1u << 25)

enum { NOT_KEPT = 99, VECTORS = 16, SYSTICK = 15, PERIOD = 1000 };

static uint32_t vectors[VECTORS] __attribute__((aligned(512)));

/* Each period has another length. What Helium has of it is in the exception's frame: the vectors, and how many lanes are left. */
__attribute__((naked)) static void handler(void) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11}\n"
      "ldr r2, 2f\n"
      "ldr r1, [r2, #4]\n"
      "addw r1, r1, #97\n"
      "cmp r1, #1536\n"
      "it hs\n"
      "subhs r1, r1, #512\n"
      "str r1, [r2, #4]\n"
      "mvn r0, #0x5a\n"
      "vdup.32 q0, r0\n"
      "vmov q1, q0\n"
      "vmov q2, q0\n"
      "vmov q3, q0\n"
      "push {r0, lr}\n"
      "movs r3, #3\n"
      "dlstp.8 lr, r3\n"
      "1:\n"
      "vadd.i8 q0, q0, q1\n"
      "letp lr, 1b\n"
      "vctp.8 r3\n"
      "pop {r0, lr}\n"
      "pop {r4-r11}\n"
      "mov r1, r0\n"
      "mov r2, r0\n"
      "mov r3, r0\n"
      "mov r12, r0\n"
      "bx lr\n"
      ".balign 4\n"
      "2: .word 0xE000E010\n");
}

#define DIFFERS "it ne\nmovne r0, #1\n"
#define SET(N, VALUE) "mov r" #N ", #" #VALUE "\n"
#define IS(N, VALUE) "cmp r" #N ", #" #VALUE "\n" DIFFERS
#define SET_PAIR(D, LOW, HIGH) "vmov d" #D ", r" #LOW ", r" #HIGH "\n"
#define IS_PAIR(D, LOW, HIGH) "vmov r1, r2, d" #D "\ncmp r1, r" #LOW "\n" DIFFERS "cmp r2, r" #HIGH "\n" DIFFERS
#define EACH(WHAT) \
  WHAT(4, 0x55) WHAT(5, 0x56) WHAT(6, 0x57) WHAT(7, 0x58) WHAT(8, 0x59) WHAT(9, 0x5a) WHAT(10, 0x5b) WHAT(11, 0x5c)
#define EACH_PAIR(WHAT) \
  WHAT(8, 4, 5) WHAT(9, 6, 7) WHAT(10, 8, 9) WHAT(11, 10, 11) WHAT(12, 5, 4) WHAT(13, 7, 6) WHAT(14, 9, 8) WHAT(15, 11, 10)

/* What the function gives, or NOT_KEPT: where one of the registers has another value, or lanes are still counted. */
__attribute__((naked, noinline)) static tinyet_status kept(const tinyet_call_argument *arguments,
                                                          tinyet_status (*run)(const tinyet_call_argument *arguments)) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r3-r11, lr}\n"
      "vpush {d8-d15}\n"
      "mov r12, r1\n" EACH(SET) EACH_PAIR(SET_PAIR)
      "blx r12\n"
      "mov r12, r0\n"
      "movs r0, #0\n" EACH(IS) EACH_PAIR(IS_PAIR)
      "vmrs r1, fpscr\n"
      "ubfx r1, r1, #16, #3\n"
      "cmp r1, #4\n" DIFFERS
      "cmp r0, #0\n"
      "ite eq\n"
      "moveq r0, r12\n"
      "movne r0, %0\n"
      "vpop {d8-d15}\n"
      "pop {r3-r11, pc}\n"
      :
      : "i"(NOT_KEPT));
}

tinyet_status tinyet_call_around(const tinyet_callable *callable, const tinyet_call_argument *arguments) {
  const uint32_t before = SCB_VTOR;
  for (uint32_t i = 0u; i < VECTORS; i++) {
    vectors[i] = REGISTER(before + 4u * i);
  }
  vectors[SYSTICK] = (uint32_t)(uintptr_t)handler;
  SCB_VTOR = (uint32_t)(uintptr_t)vectors;
  SYST_RVR = PERIOD;
  SYST_CVR = 0u;
  SYST_CSR = 7u;
  __asm volatile("dsb\n\tisb\n\tcpsie i" ::: "memory");
  const tinyet_status status = kept(arguments, callable->run);
  __asm volatile("cpsid i" ::: "memory");
  SYST_CSR = 0u;
  SCB_ICSR = SYSTICK_CLEAR;
  SCB_VTOR = before;
  __asm volatile("dsb\n\tisb" ::: "memory");
  return status;
}
