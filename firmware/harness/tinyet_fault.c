/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the host about a fault of the core: where it happened, in which layer, and why.
 *
 * The FAULT frame holds the FAULT_WORDS words of the enum below. Words that the core has no register for are 0.
 */
#include <stdint.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

enum {
  FAULT_LAYER,       /* the layer that ran, or TINYET_NO_LAYER */
  FAULT_STACK_STATE, /* STACK_...; other cores than Arm's have a number of theirs in bits 8 ... 15 */
  FAULT_SP,          /* where the core has put, or tried to put, the registers */
  FAULT_EXC_RETURN,
  FAULT_CFSR,
  FAULT_HFSR,
  FAULT_MMFAR,
  FAULT_BFAR,
  FAULT_R0, /* from here on what the core has stacked: r0, r1, r2, r3, r12, lr, pc, xpsr; 0 unless STACK_GOOD */
  FAULT_WORDS = FAULT_R0 + 8,
};

enum { STACK_GOOD = 0, STACK_OVERFLOW = 1 };

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define CFSR_STACKING_ERRORS ((1u << 12) | (1u << 4)) /* BFSR.STKERR, MMFSR.MSTKERR */
#define CFSR_STACK_LIMIT (1u << 20)                   /* UFSR.STKOF, Armv8-M */
#define CFSR_BFAR_VALID (1u << 15)
#define CFSR_MMFAR_VALID (1u << 7)
#define BELOW_STACK 4096u /* an address so near below the stack was meant to be in it */

void HardFault_Handler(void);
__attribute__((used, noreturn)) void tinyet_fault_report(const uint32_t *frame, uint32_t exc_return);

extern uint8_t tinyet_fault_stack[512];
/* The handler has a stack of its own, for the fault may well be that the other one is full. */
__attribute__((used, aligned(8))) uint8_t tinyet_fault_stack[512];

__attribute__((naked)) void HardFault_Handler(void) {
  __asm volatile(".syntax unified\n\t"
                 "mov r1, lr\n\t"
                 "mrs r0, msp\n\t"
                 "movs r2, #4\n\t" /* EXC_RETURN.SPSEL: the registers are on the process stack */
                 "tst r1, r2\n\t"
                 "beq 1f\n\t"
                 "mrs r0, psp\n\t"
                 "1: ldr r2, 2f\n\t"
                 "mov sp, r2\n\t"
                 "ldr r2, 3f\n\t"
                 "bx r2\n\t"
                 ".balign 4\n\t"
                 "2: .word tinyet_fault_stack + 512\n\t"
                 "3: .word tinyet_fault_report");
}

void tinyet_fault_report(const uint32_t *frame, uint32_t exc_return) {
  uint32_t words[FAULT_WORDS] = {0};
  const uintptr_t sp = (uintptr_t)frame;
  uint32_t stack = STACK_GOOD;
#if !defined(__ARM_ARCH_6M__)
  words[FAULT_CFSR] = REGISTER(0xE000ED28u);
  words[FAULT_HFSR] = REGISTER(0xE000ED2Cu);
  words[FAULT_MMFAR] = REGISTER(0xE000ED34u);
  words[FAULT_BFAR] = REGISTER(0xE000ED38u);
  if ((words[FAULT_CFSR] & (CFSR_STACKING_ERRORS | CFSR_STACK_LIMIT)) != 0u) {
    stack = STACK_OVERFLOW;
  }
  const uint32_t limit = (uint32_t)(uintptr_t)tinyet_platform.stack_limit - 1u;
  if (((words[FAULT_CFSR] & CFSR_BFAR_VALID) != 0u && limit - words[FAULT_BFAR] < BELOW_STACK) ||
      ((words[FAULT_CFSR] & CFSR_MMFAR_VALID) != 0u && limit - words[FAULT_MMFAR] < BELOW_STACK)) {
    stack = STACK_OVERFLOW;
  }
#endif
  if (sp < (uintptr_t)tinyet_platform.stack_limit || sp > (uintptr_t)tinyet_platform.stack_top - 32u) {
    stack = STACK_OVERFLOW;
  }
  words[FAULT_LAYER] = tinyet_harness_layer();
  words[FAULT_STACK_STATE] = stack;
  words[FAULT_SP] = (uint32_t)sp;
  words[FAULT_EXC_RETURN] = exc_return;
  for (uint32_t i = 0u; i < 8u && stack == STACK_GOOD; i++) {
    words[FAULT_R0 + i] = frame[i];
  }
  tinyet_harness_send_fault(words, FAULT_WORDS);
  tinyet_platform_abort();
}
