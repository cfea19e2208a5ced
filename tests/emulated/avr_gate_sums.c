/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of recurrent layers' gates, rounded and added to others: sends what each set of cases.h comes to. It has SETS, ROWS,
 * DEPTH, start, inputs, weights and multipliers, forms and biases of each set. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_gates.h"

#include "cases.h"

static int16_t sums[ROWS];

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
      while ((UCSR0A & (1 << UDRE0)) == 0) {
      }
      UCSR0A |= 1 << TXC0;
      UDR0 = ((const uint8_t *)sums)[i];
    }
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
