/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of two operands whose assembly is of bytes, against their rules in numbers of 64 bits: sends, of each set of parameters,
 * how many outputs are wrong. Sums of nearly equal factors and unscaled outputs show the last bit of what is rounded before. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_binary.h"

enum { COUNT = 256, MULTIPLIERS = 24 };

static int8_t a[COUNT], b[COUNT], output[COUNT];
static uint32_t state = 12345;

static uint32_t any(void) {
  state = state * UINT32_C(1664525) + UINT32_C(1013904223);
  return state >> 8;
}

static int32_t below(int32_t count) { return (int32_t)(any() % (uint32_t)count); }

static int32_t multiplier(void) { return (INT32_C(1) << 30) + below(INT32_C(1) << 23) * 128 + below(128); }

static int32_t high_word(int32_t x, int32_t m) { return (int32_t)(((int64_t)x * m + (INT64_C(1) << 30)) >> 31); }

static int32_t away(int32_t x, int32_t bits) {
  const int32_t half = bits != 0 ? INT32_C(1) << (bits - 1) : 0, magnitude = x < 0 ? -x : x;
  return x < 0 ? -((magnitude + half) >> bits) : (magnitude + half) >> bits;
}

static int32_t clamped(int64_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : (int32_t)x; }

static void put(uint16_t number) {
  for (uint8_t i = 0; i < 2; i++) {
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    UCSR0A |= 1 << TXC0;
    UDR0 = (uint8_t)(number >> (8 * i));
  }
}

/* Rows of all values, beside others or beside one; which operand that is. */
static tinyet_broadcast rows(int32_t kind) {
  for (int16_t i = 0; i < COUNT; i++) {
    a[i] = (int8_t)(i - 128);
    b[i] = kind == 3 ? a[i] : (int8_t)any();
  }
  const tinyet_broadcast shape = {COUNT, kind != 1, kind != 2, 0, {0}, {0}, {0}};
  return shape;
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = 1 << TXEN0;
  for (int16_t set = 0; set < MULTIPLIERS; set++) {
    const int32_t kind = set % 4, low = set % 3 == 0 ? -100 + below(90) : -128, high = set % 5 == 0 ? below(100) : 127;
    uint16_t wrong = 0;

    tinyet_affine_s8_params affine = {rows(kind), 0, 0, 0, 15 + set % 10, low, high};
    affine.a_factor = (below(20000) - 10000) * (INT32_C(1) << affine.shift >> 13);
    affine.b_factor = (below(20000) - 10000) * (INT32_C(1) << affine.shift >> 13) + below(4000);
    affine.offset = below(200) * (INT32_C(1) << affine.shift) / 2 + below(INT32_C(1) << affine.shift);
    tinyet_affine_s8(a, b, output, &affine);
    for (int16_t i = 0; i < COUNT; i++) {
      const int32_t x = a[kind == 1 ? 0 : i], y = b[kind == 2 ? 0 : i];
      const int32_t sum = affine.offset + x * affine.a_factor + y * affine.b_factor;
      wrong += output[i] != clamped(sum >> affine.shift, low, high);
    }
    put(wrong);

    wrong = 0;
    tinyet_mul_s8_params mul = {rows(kind), below(256) - 128, below(256) - 128, multiplier(), 1 + set % 17, 0, low, high};
    mul.offset = (INT32_C(1) << (mul.shift - 1)) + (below(256) - 128) * (INT32_C(1) << mul.shift);
    tinyet_mul_right_s8(a, b, output, &mul);
    for (int16_t i = 0; i < COUNT; i++) {
      const int32_t x = a[kind == 1 ? 0 : i] - mul.a_zero_point, y = b[kind == 2 ? 0 : i] - mul.b_zero_point;
      const int32_t first = high_word(x * y, mul.multiplier);
      wrong += output[i] != clamped((first + (first >> 31) + mul.offset) >> mul.shift, low, high);
    }
    put(wrong);

    wrong = 0;
    const int32_t zero = below(256) - 128;
    tinyet_add_s8_params add = {rows(kind), zero, multiplier(), 0, zero, 0, 0, below(9) - 4, multiplier(), 0, low, high};
    if (kind == 3) { /* the difference of nearly the same */
      add.b_multiplier = add.a_multiplier - below(1 << 14);
    } else {
      add.a_multiplier = set % 2 == 0 ? INT32_C(1) << 30 : add.a_multiplier;
      add.b_multiplier = multiplier();
      add.a_shift = -(set % 3), add.b_shift = -(set % 5), add.out_shift = -16 - set % 5, add.b_zero_point = below(256) - 128;
    }
    (set % 8 == 1 ? tinyet_add_s8 : tinyet_sub_s8)(a, b, output, &add);
    for (int16_t i = 0; i < COUNT; i++) {
      const int32_t x = a[kind == 1 ? 0 : i] - add.a_zero_point, y = b[kind == 2 ? 0 : i] - add.b_zero_point;
      const int32_t first = away(high_word(x * (INT32_C(1) << 20), add.a_multiplier), -add.a_shift);
      const int32_t second = away(high_word(y * (INT32_C(1) << 20), add.b_multiplier), -add.b_shift);
      const int32_t sum = set % 8 == 1 ? first + second : first - second;
      wrong += output[i] != clamped(away(high_word(sum, add.out_multiplier), -add.out_shift) + add.out_zero_point, low, high);
    }
    put(wrong);
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
