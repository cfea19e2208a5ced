/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the host about a trap of a RISC-V core: where it happened, in which layer, and why.
 *
 * The FAULT frame holds the FAULT_WORDS words of the enum below.
 */
#include <stdbool.h>
#include <stdint.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

enum {
  FAULT_LAYER, /* the layer that ran, or TINYET_NO_LAYER */
  FAULT_STATE, /* STACK_..., and FAMILY_RISCV: whose registers these are */
  FAULT_MCAUSE,
  FAULT_MEPC,
  FAULT_MTVAL,
  FAULT_MSTATUS,
  FAULT_RA, /* from here on as they were at the trap: ra, sp, gp, tp, s0, a0 ... a7 */
  FAULT_SP,
  FAULT_WORDS = FAULT_RA + 13,
};

enum { STACK_GOOD = 0, STACK_OVERFLOW = 1, FAMILY_RISCV = 1 << 8 };

#define READ_CSR(name, word) __asm volatile(".option arch, +zicsr\n\tcsrr %0, " #name : "=r"(word))

void Trap_Handler(void);
__attribute__((used, noreturn)) void tinyet_fault_report(const uint32_t *registers);

/* The handler has a stack of its own, for the fault may well be that the other one is full. */
__attribute__((used, aligned(16))) uint8_t tinyet_fault_stack[512];

/* Stores the registers at the upper end of that stack. mscratch is nobody else's. */
__attribute__((naked, aligned(4))) void Trap_Handler(void) {
  __asm volatile(".option arch, +zicsr\n\t"
                 "csrw mscratch, sp\n\t"
                 "la sp, tinyet_fault_stack + 512 - 64\n\t"
                 "sw ra, 0(sp)\n\t"
                 "csrr ra, mscratch\n\t"
                 "sw ra, 4(sp)\n\t"
                 "sw gp, 8(sp)\n\t"
                 "sw tp, 12(sp)\n\t"
                 "sw s0, 16(sp)\n\t"
                 "sw a0, 20(sp)\n\t"
                 "sw a1, 24(sp)\n\t"
                 "sw a2, 28(sp)\n\t"
                 "sw a3, 32(sp)\n\t"
                 "sw a4, 36(sp)\n\t"
                 "sw a5, 40(sp)\n\t"
                 "sw a6, 44(sp)\n\t"
                 "sw a7, 48(sp)\n\t"
                 ".option push\n\t"
                 ".option norelax\n\t"
                 "la gp, __global_pointer$\n\t" /* a wild store may have been the cause, but not of this */
                 ".option pop\n\t"
                 "mv a0, sp\n\t"
                 "j tinyet_fault_report");
}

void tinyet_fault_report(const uint32_t *registers) {
  uint32_t words[FAULT_WORDS];
  words[FAULT_LAYER] = tinyet_harness_layer();
  READ_CSR(mcause, words[FAULT_MCAUSE]);
  READ_CSR(mepc, words[FAULT_MEPC]);
  READ_CSR(mtval, words[FAULT_MTVAL]);
  READ_CSR(mstatus, words[FAULT_MSTATUS]);
  for (uint32_t i = 0u; FAULT_RA + i < FAULT_WORDS; i++) {
    words[FAULT_RA + i] = registers[i];
  }
  const uint32_t sp = words[FAULT_SP];
  const bool overflow = sp < (uintptr_t)tinyet_platform.stack_limit || sp > (uintptr_t)tinyet_platform.stack_top;
  words[FAULT_STATE] = FAMILY_RISCV | (overflow ? STACK_OVERFLOW : STACK_GOOD);
  tinyet_harness_send_fault(words, FAULT_WORDS);
  tinyet_platform_abort();
}
