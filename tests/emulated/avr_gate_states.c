/* SPDX-License-Identifier: Apache-2.0 */
/* States and cells of recurrent layers, made of drawn gates by factors of all sizes: sends how many of each kind differ from their
 * rules. Every other drawn number is small, or a limit. Then of numbers where bounds decide: with each of them one less, or one
 * more, one differs. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_gates.h"

#ifndef DRAWS
#define DRAWS 2000
#endif

enum { KINDS = 4, AT_ONCE = 4 };

static int16_t a[2 * AT_ONCE], b[AT_ONCE], c[AT_ONCE];
static int8_t states[AT_ONCE], found[AT_ONCE];
static uint16_t wrong[KINDS];

static uint32_t random_bits(void) {
  static uint32_t state = 1u;
  state = state * UINT32_C(1664525) + UINT32_C(1013904223);
  return state >> 8;
}

static int16_t number(void) {
  const uint32_t bits = random_bits();
  const int16_t any = (int16_t)(uint16_t)(bits >> 8);
  return (bits & 1u) != 0u ? any : (bits & 2u) != 0u ? (int16_t)(any >> 8) : (bits & 4u) != 0u ? INT16_MAX : -INT16_MAX;
}

static void compare(uint8_t kind, int32_t wanted, int32_t is) {
  wrong[kind] = (uint16_t)(wrong[kind] + (wanted != is));
}

static int32_t byte_of(int32_t value, int16_t zero_point) { return tinyet_clamp(value + zero_point, INT8_MIN, INT8_MAX); }

static void mixed(int32_t multiplier, int32_t form, int16_t zero_point) {
  tinyet_gate_mixed(a, c, states, found, AT_ONCE, multiplier, form, zero_point);
  for (uint8_t k = 0; k < AT_ONCE; k++) {
    const int32_t fresh = (INT32_C(32768) - c[k]) * a[k], kept = (int32_t)c[k] * (states[k] - zero_point);
    const int32_t sum = tinyet_requantize_form(fresh, multiplier, form, 0) + kept + (INT32_C(1) << 14);
    compare(0u, byte_of(sum >> 15, zero_point), found[k]);
  }
}

static void hidden(int32_t multiplier, int32_t form, int16_t zero_point) {
  tinyet_gate_hidden(c, a, found, AT_ONCE, multiplier, form, zero_point);
  for (uint8_t k = 0; k < AT_ONCE; k++) {
    const int32_t value = tinyet_requantize_form((int32_t)c[k] * a[k], multiplier, form, 0);
    compare(1u, byte_of(value, zero_point), found[k]);
  }
}

static void bytes(int32_t multiplier, int32_t form, int16_t zero_point) {
  tinyet_gate_bytes(a, found, AT_ONCE, multiplier, form, zero_point, 0u);
  for (uint8_t k = 0; k < AT_ONCE; k++) {
    compare(2u, byte_of(tinyet_requantize_form(a[k], multiplier, form, 0), zero_point), found[k]);
  }
}

static void draw(int32_t i) {
  const int32_t multiplier = (INT32_C(1) << 30) + (int32_t)(random_bits() << 6);
  const int32_t small = i % 8;
  const int16_t zero_point = (int8_t)random_bits();
  const uint8_t bits = (uint8_t)(i % 7);
  for (uint8_t k = 0; k < AT_ONCE; k++) {
    a[k] = number(), b[k] = number(), c[k] = (int16_t)(number() & INT16_MAX), states[k] = (int8_t)random_bits();
    a[AT_ONCE + k] = (int16_t)(number() & INT16_MAX);
  }
  mixed(multiplier, small, zero_point);
  hidden(multiplier, 16 + small, zero_point);
  bytes(multiplier, i % 31, zero_point);
  /* One cell: its gates are two apart. */
  int16_t gates[3] = {c[0], a[AT_ONCE], a[0]}, cell = b[0];
  tinyet_gate_cells(gates, 1, &cell, 1, bits);
  const int32_t kept = tinyet_round_shift((int32_t)a[AT_ONCE] * b[0], 15);
  const int32_t wanted = kept + tinyet_round_shift((int32_t)c[0] * a[0], 15 + bits);
  compare(3u, tinyet_clamp(wanted, INT16_MIN, INT16_MAX), gates[0] == cell ? cell : INT32_MAX);
}

typedef struct {
  int16_t value, gate;
  int32_t multiplier;
  int8_t form, state;
  int16_t zero_point;
} bound;

/* The first has a zero point that is no byte: states of a byte are saturated where this bound decides. */
static const bound of_mixed[] = {{-26717, 746, 2046853247, 5, 62, 267}, {32713, 8932, 1139633407, 5, -128, -103}};
/* Added to numbers without a sign, and with one; from where the byte below may carry. */
static const bound of_hidden[] = {{1990, 14117, 1602647635, 22, 0, 100},
                                  {-27096, 21052, 1397446782, 21, 0, 100},
                                  {-15744, 7010, 1224186962, 22, 0, 100}};
/* The same by a half that is shifted out, and by one that is not. */
static const bound of_bytes[] = {{801, 0, 1998677232, 1, 0, -100},    {2105, 0, 1305086250, 8, 0, 100},
                                 {-27584, 0, 1140977447, 6, 0, 100},  {-9688, 0, 1305086250, 8, 0, 100},
                                 {-24852, 0, 1305086250, 8, 0, 100},  {13816, 0, 1711003359, 8, 0, 0}};

static void take(const bound *of) {
  for (uint8_t k = 0; k < AT_ONCE; k++) {
    a[k] = of->value, c[k] = of->gate, states[k] = of->state;
  }
}

static void decide(void) {
  for (uint8_t i = 0; i < sizeof of_mixed / sizeof *of_mixed; i++) {
    take(of_mixed + i);
    mixed(of_mixed[i].multiplier, of_mixed[i].form, of_mixed[i].zero_point);
  }
  for (uint8_t i = 0; i < sizeof of_hidden / sizeof *of_hidden; i++) {
    take(of_hidden + i);
    hidden(of_hidden[i].multiplier, of_hidden[i].form, of_hidden[i].zero_point);
  }
  for (uint8_t i = 0; i < sizeof of_bytes / sizeof *of_bytes; i++) {
    take(of_bytes + i);
    bytes(of_bytes[i].multiplier, of_bytes[i].form, of_bytes[i].zero_point);
  }
}

static void put(uint8_t byte) {
  while ((UCSR0A & (1 << UDRE0)) == 0) {
  }
  UCSR0A |= 1 << TXC0;
  UDR0 = byte;
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = 1 << TXEN0;
  for (int32_t i = 0; i < DRAWS; i++) {
    draw(i);
  }
  decide();
  for (uint8_t i = 0; i < sizeof wrong; i++) {
    put(((const uint8_t *)wrong)[i]);
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
