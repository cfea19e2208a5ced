/* SPDX-License-Identifier: Apache-2.0 */
/* A model of three layers whose instructions, and so whose cycles, can be counted by hand; for any Cortex-M, RISC-V and Xtensa. */
#include "tinyet_harness.h"

TINYET_ALIGNED(16) static uint8_t arena[16];

TINYET_ALIGNED(16) extern const uint32_t table[64];
TINYET_ALIGNED(16) const uint32_t table[64] = {1u};

#if defined(__arm__)
/* A hundred times: two loads one behind the other, a store, a product, and a branch that is not taken the last time. */
__attribute__((noinline, naked, aligned(16))) static void multiply(void) {
  __asm volatile(".syntax unified\n\t"
                 "ldr r0, 2f\n\t"
                 "movs r3, #100\n"
                 "1: ldr r1, [r0]\n\t"
                 "ldr r2, [r0, #4]\n\t"
                 "str r1, [r0, #8]\n\t"
                 "muls r1, r2, r1\n\t"
                 "subs r3, #1\n\t"
                 "bne 1b\n\t"
                 "bx lr\n\t"
                 ".balign 4\n"
                 "2: .word arena");
}

/* The 64 words of a table in the flash, twice. */
__attribute__((noinline, naked, aligned(16))) static void read_table(void) {
  __asm volatile(".syntax unified\n\t"
                 "push {r4, lr}\n\t"
                 "movs r3, #2\n"
                 "1: ldr r1, 3f\n\t"
                 "movs r2, #64\n"
                 "2: ldr r4, [r1]\n\t"
                 "adds r1, #4\n\t"
                 "subs r2, #1\n\t"
                 "bne 2b\n\t"
                 "subs r3, #1\n\t"
                 "bne 1b\n\t"
                 "pop {r4, pc}\n\t"
                 ".balign 4\n"
                 "3: .word table");
}

/* A hundred times: a branch over one instruction, taken every other time. All of it lies in 16 bytes. */
__attribute__((noinline, naked, aligned(16))) static void skip(void) {
  __asm volatile(".syntax unified\n\t"
                 "movs r0, #100\n"
                 "1: lsrs r1, r0, #1\n\t"
                 "bcc 2f\n\t"
                 "nop\n"
                 "2: subs r0, #1\n\t"
                 "bne 1b\n\t"
                 "bx lr");
}

#else
/* The same, but for what the load that is read next makes wait, and literals. */
void multiply(void);
void read_table(void);
void skip(void);
#define FUNCTION(name, code)                                                                     \
  __asm(".text\n\t.balign 16\n\t.globl " name "\n\t.type " name ", @function\n" name ":\n\t" code \
        "\n\t.size " name ", . - " name)
#endif

#if defined(__riscv)
__asm(".option norelax");
FUNCTION("multiply", "lui a0, %hi(arena)\n\t"
                     "addi a0, a0, %lo(arena)\n\t"
                     "li a3, 100\n"
                     "1: lw a1, 0(a0)\n\t"
                     "lw a2, 4(a0)\n\t"
                     "mul a1, a2, a1\n\t"
                     "sw a1, 8(a0)\n\t"
                     "addi a3, a3, -1\n\t"
                     "bnez a3, 1b\n\t"
                     "ret");
FUNCTION("read_table", "li a3, 2\n"
                       "1: lui a1, %hi(table)\n\t"
                       "addi a1, a1, %lo(table)\n\t"
                       "li a2, 64\n"
                       "2: lw a4, 0(a1)\n\t"
                       "addi a1, a1, 4\n\t"
                       "addi a2, a2, -1\n\t"
                       "bnez a2, 2b\n\t"
                       "addi a3, a3, -1\n\t"
                       "bnez a3, 1b\n\t"
                       "ret");
FUNCTION("skip", "li a0, 100\n"
                 "1: andi a1, a0, 1\n\t"
                 "beqz a1, 2f\n\t"
                 "nop\n"
                 "2: addi a0, a0, -1\n\t"
                 "bnez a0, 1b\n\t"
                 "ret");
__asm(".option relax");
#elif defined(__XTENSA__)
FUNCTION("multiply", "movi a2, arena\n\t"
                     "movi a5, 100\n"
                     "1: l32i a3, a2, 0\n\t"
                     "l32i a4, a2, 4\n\t"
                     "mull a3, a4, a3\n\t"
                     "s32i a3, a2, 8\n\t"
                     "addi a5, a5, -1\n\t"
                     "bnez a5, 1b\n\t"
                     "ret");
FUNCTION("read_table", "movi a5, 2\n"
                       "1: movi a3, table\n\t"
                       "movi a4, 64\n"
                       "2: l32i a6, a3, 0\n\t"
                       "addi a3, a3, 4\n\t"
                       "addi a4, a4, -1\n\t"
                       "bnez a4, 2b\n\t"
                       "addi a5, a5, -1\n\t"
                       "bnez a5, 1b\n\t"
                       "ret");
FUNCTION("skip", "movi a2, 100\n"
                 "1: extui a3, a2, 0, 1\n\t"
                 "beqz a3, 2f\n\t"
                 "nop\n"
                 "2: addi a2, a2, -1\n\t"
                 "bnez a2, 1b\n\t"
                 "ret");
#endif

static tinyet_status run(void) {
  TINYET_LAYER_BEGIN(0u);
  multiply();
  TINYET_LAYER_END(0u);
  TINYET_LAYER_BEGIN(1u);
  read_table();
  TINYET_LAYER_END(1u);
  TINYET_LAYER_BEGIN(2u);
  skip();
  TINYET_LAYER_END(2u);
  return TINYET_OK;
}

static const tinyet_io inputs[] = {{0u, 4u}};
static const tinyet_io outputs[] = {{4u, 4u}};

const tinyet_model tinyet_harness_model = {
    "cycles_model",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    TINYET_ABI_VERSION,
    arena,
    sizeof arena,
    3u,
    1u,
    inputs,
    1u,
    outputs,
    run,
    0u,
    NULL,
    NULL,
    0u,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};
