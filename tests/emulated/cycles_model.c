/* SPDX-License-Identifier: Apache-2.0 */
/* A model of three layers whose instructions, and so whose cycles, can be counted by hand; for any Cortex-M. */
#include "tinyet_harness.h"

TINYET_ALIGNED(16) static uint8_t arena[16];

TINYET_ALIGNED(16) extern const uint32_t table[64];
TINYET_ALIGNED(16) const uint32_t table[64] = {1u};

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
    NULL,    0u,
    NULL,
};
