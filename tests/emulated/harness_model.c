/* SPDX-License-Identifier: Apache-2.0 */
/* A model of three layers for the tests of the harness. Its first input says what the second layer does:
 * bytes 0 ... 3 how often it spins, byte 4 which fault it runs into. */
#include <string.h>

#include "tinyet_harness.h"

#ifndef BIG
#define BIG 600u
#endif
#define SMALL 16u
#define STACK_BUFFER 512u

enum {
  FINE = 0,
  UNDEFINED = 1,
  NULL_CALL = 2,
  UNALIGNED = 3,
  NO_MEMORY = 4,
  ENDLESS_RECURSION = 5,
  NEGATIVE_STATUS = 6,
  STATUS_IN_EVENT = 7,
  FAULT_IN_EVENT = 8,
  PROFILED = 9,
  NOT_READY = 10
};

#define EVENT 3u /* the first number behind the layers */

TINYET_ALIGNED(16) static uint8_t arena[BIG + SMALL + 16u];

#if defined(__riscv)
#define UNDEFINED_INSTRUCTION "unimp"
/* An atomic access must be aligned everywhere; others may be slow and no more. */
#define UNALIGNED_ACCESS "la a0, arena + 1\n\tamoadd.w zero, zero, (a0)"
#define UNALIGNED_CHANGES "a0", "memory"
#elif defined(__XTENSA__)
#define UNDEFINED_INSTRUCTION "ill"
#define UNALIGNED_ACCESS "movi a2, arena + 1\n\tl32i a2, a2, 0"
#define UNALIGNED_CHANGES "a2"
#else
#define UNDEFINED_INSTRUCTION "udf #0"
#define UNALIGNED_ACCESS "ldr r0, =0x20000101\n\tldmia r0!, {r1, r2}"
#define UNALIGNED_CHANGES "r0", "r1", "r2"
#endif

/* 3 * n instructions, and the return. */
#if defined(__XTENSA__)
void spin(uint32_t n);
__asm(".pushsection .text\n\t"
      ".type spin, @function\n\t"
      ".balign 4\n"
      "spin: addi a2, a2, -1\n\t"
      "nop\n\t"
      "bnez a2, spin\n\t"
      "ret\n\t"
      ".size spin, . - spin\n\t"
      ".popsection");
#else
__attribute__((noinline, naked)) static void spin(uint32_t n __attribute__((unused))) {
#if defined(__riscv)
  __asm volatile("1: addi a0, a0, -1\n\t"
                 "nop\n\t"
                 "bnez a0, 1b\n\t"
                 "ret");
#else
  __asm volatile(".syntax unified\n"
                 "1: subs r0, r0, #1\n\t"
                 "cmp r0, #0\n\t"
                 "bne 1b\n\t"
                 "bx lr");
#endif
}
#endif

__attribute__((noinline)) static void invert(void) {
  volatile uint8_t buffer[STACK_BUFFER];
  for (uint32_t i = 0u; i < BIG; i++) {
    buffer[i % STACK_BUFFER] = arena[i];
    arena[i] = (uint8_t)~buffer[i % STACK_BUFFER];
  }
}

__attribute__((noinline)) static void sum(void) {
  uint32_t total = 0u;
  for (uint32_t i = 0u; i < SMALL; i++) {
    total += arena[BIG + i];
  }
  memcpy(arena + BIG + SMALL, &total, sizeof total);
}

__attribute__((noinline)) static uint32_t recurse(uint32_t n) {
  volatile uint32_t kept[32];
  kept[n % 32u] = n;
  return n == UINT32_MAX ? 0u : recurse(n + 1u) + kept[n % 32u];
}

__attribute__((noinline)) static void run_into(uint32_t fault) {
  volatile uintptr_t address = 0u;
  switch (fault) {
  case UNDEFINED:
    __asm volatile(UNDEFINED_INSTRUCTION); /* line: UNDEFINED */
    break;
  case NULL_CALL:
    ((void (*)(void))address)(); /* line: NULL_CALL */
    __asm volatile("nop");       /* a call, then, and no jump */
    break;
  case UNALIGNED:
    __asm volatile(UNALIGNED_ACCESS ::: UNALIGNED_CHANGES); /* line: UNALIGNED */
    break;
  case NO_MEMORY:
    address = 0x2F000000u;
    *(volatile uint32_t *)address; /* line: NO_MEMORY */
    break;
  case ENDLESS_RECURSION:
    (void)recurse(0u);
    break;
  default:
    break;
  }
}

static uint32_t times_ready = 0u;

static tinyet_status init(void) {
  times_ready++;
  return TINYET_OK;
}

static tinyet_status spin_in_event(uint32_t spins, uint32_t fault) {
  TINYET_EVENT_BEGIN(EVENT);
  if (fault == STATUS_IN_EVENT) {
    return -8;
  }
  if (fault == FAULT_IN_EVENT) {
    run_into(UNDEFINED);
  }
  spin(spins);
  TINYET_EVENT_END(EVENT);
  return TINYET_OK;
}

static tinyet_status run(void) {
  uint32_t spins;
  memcpy(&spins, arena, sizeof spins);
  const uint32_t fault = arena[4];
  if (fault == NOT_READY && times_ready != 0u) {
    return TINYET_OK - (tinyet_status)times_ready;
  }
  TINYET_LAYER_BEGIN(0u);
  invert();
  TINYET_LAYER_END(0u);
  TINYET_LAYER_BEGIN(1u);
  if (fault == STATUS_IN_EVENT || fault == FAULT_IN_EVENT || fault == PROFILED) {
    TINYET_TRY(spin_in_event(spins, fault));
  } else {
    if (fault != FINE) {
      run_into(fault);
    }
    spin(spins);
  }
  TINYET_LAYER_END(1u);
  TINYET_LAYER_BEGIN(2u);
  sum();
  TINYET_LAYER_END(2u);
  return fault == NEGATIVE_STATUS ? -7 : TINYET_OK;
}

static const tinyet_io inputs[] = {{0u, BIG}, {BIG, SMALL}};
static const tinyet_io outputs[] = {{0u, BIG}, {BIG + SMALL, 4u}};

const tinyet_model tinyet_harness_model = {
    "harness_model",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    TINYET_ABI_VERSION,
    arena,
    sizeof arena,
    3u,
    2u,
    inputs,
    2u,
    outputs,
    run,
    1u,
    init,
    NULL,
    0u,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};
