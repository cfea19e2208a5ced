/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that take the stack in all ways that compilers and people have, measured one by one. */
#include <stdint.h>
#include <string.h>

#include "tinyet_platform.h"

#define PATTERN 0xA55A3CC3u
#define ALONE __attribute__((noinline, noclone))
#if defined(__arm__)
#define STACK_POINTER "mov %0, sp"
#elif defined(__riscv)
#define STACK_POINTER "mv %0, sp"
#else
#define STACK_POINTER "mov %0, a1"
#endif

static volatile uint32_t sink = 3u;

/* Writes all of a buffer, and reads it, so that it has to be there. */
ALONE static void fill(volatile uint8_t *to, uint32_t n) {
  for (uint32_t i = 0u; i < n; i++) {
    to[i] = (uint8_t)(i * sink);
  }
}

void nothing(void);
void small_array(void);
void large_array(void);
void two_ways(void);
void tail(void);
void many_arguments(void);
void chosen(void);
void floats(void);
void wide(void);
void in_assembly(void);
void copies(void);
void of_variable_size(void);
void recursive(void);
void by_pointer(void);

ALONE void nothing(void) { __asm volatile(""); }

ALONE void small_array(void) {
  volatile uint8_t bytes[40];
  fill(bytes, sizeof bytes);
}

/* More than an instruction has room for. */
ALONE void large_array(void) {
  volatile uint8_t bytes[1040];
  fill(bytes, sizeof bytes);
}

/* One of the two needs no frame. */
ALONE void two_ways(void) {
  if (sink == 3u) {
    volatile uint8_t bytes[100];
    fill(bytes, sizeof bytes);
    sink = 3u;
  }
}

ALONE void tail(void) {
  sink = sink * 3u / 3u;
  large_array();
}

ALONE static uint32_t nine(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g, uint32_t h,
                           uint32_t i) {
  small_array();
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i;
}

ALONE void many_arguments(void) { sink = nine(sink, 1u, 2u, 3u, 1u, 1u, sink, sink, 1u) * 0u + 3u; }

/* A table of jumps. */
ALONE void chosen(void) {
  switch (sink) {
  case 0u:
    sink = 5u;
    break;
  case 1u:
    nothing();
    sink = 7u;
    break;
  case 2u:
    sink *= 11u;
    break;
  case 3u:
    small_array();
    break;
  case 4u:
    sink += 17u;
    break;
  case 5u:
    two_ways();
    sink -= 3u;
    break;
  default:
    sink ^= 1u;
  }
}

ALONE void floats(void) {
  volatile float value = 1.5f;
  float a[12];
  for (uint32_t i = 0u; i < 12u; i++) {
    a[i] = value * (float)i + value / (float)(i + 1u);
  }
  small_array(); /* they have to be kept over it */
  for (uint32_t i = 0u; i < 12u; i++) {
    value = value + a[i];
  }
}

ALONE void wide(void) {
  volatile uint64_t value = 0x123456789ABCDEFu;
  value = value * (value >> 7) / (value >> 33) % 1000003u;
}

/* What no compiler counts. */
ALONE void in_assembly(void) {
#if defined(__arm__)
  __asm volatile("push {r4, r5}\n\tsub sp, #24\n\tstr r4, [sp]\n\tadd sp, #24\n\tpop {r4, r5}" ::: "memory");
#elif defined(__riscv)
  __asm volatile("addi sp, sp, -32\n\tsw zero, 0(sp)\n\taddi sp, sp, 32" ::: "memory");
#else
  __asm volatile("addi a1, a1, -32\n\ts32i a2, a1, 0\n\taddi a1, a1, 32" ::: "memory");
#endif
  sink = 3u;
}

ALONE void copies(void) {
  uint8_t from[33], to[33];
  fill(from, sizeof from);
  memcpy(to + sink % 2u, from, sizeof to - 1u);
  memset(from, (int)sink, sizeof from);
  fill(to, 1u);
}

ALONE void of_variable_size(void) {
  volatile uint8_t bytes[sink * 8u];
  fill(bytes, sink * 8u);
}

ALONE static uint32_t down(uint32_t n) { return n == 0u ? sink : down(n - 1u) * n + sink; }
ALONE static uint32_t again(uint32_t n);
ALONE static uint32_t once(uint32_t n) { return n == 0u ? sink : again(n - 1u) * n + sink; }
ALONE static uint32_t again(uint32_t n) { return n == 0u ? sink : once(n - 1u) + n; }

ALONE void recursive(void) { sink = (down(sink) + once(sink)) * 0u + 3u; }

void (*volatile pointer)(void) = nothing;

ALONE void by_pointer(void) {
  pointer();
  sink = 3u;
}

static void (*const cases[])(void) = {
    nothing, small_array, large_array, two_ways, tail,        many_arguments,   chosen,
    floats,  wide,        in_assembly, copies,   recursive, of_variable_size, by_pointer,
};

ALONE static uint32_t measured(void (*run)(void)) {
  volatile uint32_t *top, *limit = (volatile uint32_t *)(uintptr_t)tinyet_platform.stack_limit;
  __asm volatile(STACK_POINTER : "=r"(top));
  for (volatile uint32_t *word = limit; word < top; word++) {
    *word = PATTERN;
  }
  run();
  while (limit < top && *limit == PATTERN) {
    limit++;
  }
  return (uint32_t)((uintptr_t)top - (uintptr_t)limit);
}

static void print(uint32_t value) {
  char digits[11] = "         \n";
  for (uint32_t at = 9u; at > 0u; at--, value /= 10u) {
    digits[at - 1u] = (char)('0' + value % 10u);
  }
  tinyet_platform_write(digits, 10u);
}

int main(void) {
  for (uint32_t i = 0u; i < sizeof cases / sizeof *cases; i++) {
    print(measured(cases[i]));
  }
  tinyet_platform_write("done\n", 5u);
  return 0;
}
