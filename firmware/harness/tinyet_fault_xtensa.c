/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the host about an exception of an Xtensa core with the call0 ABI: where it happened, in which layer, and why.
 *
 * The FAULT frame holds the FAULT_WORDS words of the enum below.
 */
#include <stdbool.h>
#include <stdint.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

enum {
  FAULT_LAYER, /* the layer that ran, or TINYET_NO_LAYER */
  FAULT_STATE, /* STACK_..., and FAMILY_XTENSA: whose registers these are */
  FAULT_EXCCAUSE,
  FAULT_EPC1,
  FAULT_EXCVADDR,
  FAULT_PS,
  FAULT_A0, /* from here on a0 ... a15 as they were; a1 is the stack pointer */
  FAULT_WORDS = FAULT_A0 + 16,
};

enum { STACK_GOOD = 0, STACK_OVERFLOW = 1, FAMILY_XTENSA = 2 << 8 };

#define READ_SPECIAL(name, word) __asm volatile("rsr %0, " #name : "=r"(word))

void Exception_Handler(void);
__attribute__((used, noreturn)) void tinyet_fault_report(const uint32_t *registers);

/* The handler has a stack of its own, for the fault may well be that the other one is full. */
__attribute__((used, aligned(16))) uint8_t tinyet_fault_stack[512];

/* Stores the registers at the upper end of that stack. The vector has left a0 in EXCSAVE1. From here on another exception
 * comes by the same vector, and not as a double one. */
__asm(".pushsection .text, \"ax\"\n\t"
      ".literal_position\n\t"
      ".global Exception_Handler\n\t"
      ".type Exception_Handler, @function\n\t"
      ".balign 4\n"
      "Exception_Handler:\n\t"
      "movi a0, tinyet_fault_stack + 512 - 64\n\t"
      "s32i a1, a0, 4\n\t"
      "s32i a2, a0, 8\n\t"
      "s32i a3, a0, 12\n\t"
      "s32i a4, a0, 16\n\t"
      "s32i a5, a0, 20\n\t"
      "s32i a6, a0, 24\n\t"
      "s32i a7, a0, 28\n\t"
      "s32i a8, a0, 32\n\t"
      "s32i a9, a0, 36\n\t"
      "s32i a10, a0, 40\n\t"
      "s32i a11, a0, 44\n\t"
      "s32i a12, a0, 48\n\t"
      "s32i a13, a0, 52\n\t"
      "s32i a14, a0, 56\n\t"
      "s32i a15, a0, 60\n\t"
      "mov a1, a0\n\t"
      "rsr a2, excsave1\n\t"
      "s32i a2, a1, 0\n\t"
      "mov a2, a1\n\t"
      "movi a3, tinyet_fault_report\n\t"
      "jx a3\n\t"
      ".size Exception_Handler, . - Exception_Handler\n\t"
      ".popsection");

void tinyet_fault_report(const uint32_t *registers) {
  uint32_t words[FAULT_WORDS];
  words[FAULT_LAYER] = tinyet_harness_layer();
  READ_SPECIAL(exccause, words[FAULT_EXCCAUSE]);
  READ_SPECIAL(epc1, words[FAULT_EPC1]);
  READ_SPECIAL(excvaddr, words[FAULT_EXCVADDR]);
  READ_SPECIAL(ps, words[FAULT_PS]);
  for (uint32_t i = 0u; FAULT_A0 + i < FAULT_WORDS; i++) {
    words[FAULT_A0 + i] = registers[i];
  }
  const uint32_t sp = registers[1];
  const bool overflow = sp < (uintptr_t)tinyet_platform.stack_limit || sp > (uintptr_t)tinyet_platform.stack_top;
  words[FAULT_STATE] = FAMILY_XTENSA | (overflow ? STACK_OVERFLOW : STACK_GOOD);
  tinyet_harness_send_fault(words, FAULT_WORDS);
  tinyet_platform_abort();
}
