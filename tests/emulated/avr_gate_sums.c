/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of recurrent layers' gates, rounded and added to others: sends what each set of cases.h comes to. It has SETS, ROWS,
 * DEPTH, start, inputs, weights and multipliers, forms and biases of each set. Behind it how many products of two gates, of which
 * every other is a tie, differ from the rule in C. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_gates.h"

#include "cases.h"

static int16_t sums[ROWS];

static void put(uint8_t byte) {
  while ((UCSR0A & (1 << UDRE0)) == 0) {
  }
  UCSR0A |= 1 << TXC0;
  UDR0 = byte;
}

static int16_t drawn(void) {
  static uint32_t state = 1u;
  state = state * UINT32_C(1664525) + UINT32_C(1013904223);
  return (int16_t)(uint16_t)(state >> 16);
}

static uint16_t wrong_products(void) {
  uint16_t wrong = 0u;
  for (uint16_t i = 0u; i < 20000u; i++) {
    const int16_t a = (i & 1u) != 0u ? (i & 2u) != 0u ? INT16_C(16384) : INT16_C(-16384) : drawn(), b = drawn();
    const int32_t product = (int32_t)a * b, rounded = (product + (product < 0 ? 16383 : 16384)) >> 15;
    wrong = (uint16_t)(wrong + (tinyet_gate_product(a, b) != rounded));
  }
  return wrong;
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = 1 << TXEN0;
  for (uint8_t set = 0; set < SETS; set++) {
    const tinyet_gate_part_s8 part = {weights, biases[set], DEPTH, {multipliers[set]}, {forms[set]}};
    for (uint8_t i = 0; i < ROWS; i++) {
      sums[i] = start[i];
    }
    tinyet_gate_sums(inputs, &part, 1, ROWS, sums);
    for (uint16_t i = 0; i < sizeof sums; i++) {
      put(((const uint8_t *)sums)[i]);
    }
  }
  const uint16_t wrong = wrong_products();
  put((uint8_t)wrong);
  put((uint8_t)(wrong >> 8));
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
