/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of recurrent layers, whose products of two bytes are assembly: sends sigmoids and hyperbolic tangents of every STEP-th
 * number of 16 bits, of as many integer bits as the number of 64 of them, modulo 7, says; then of all near zero. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "tinyet_gates.h"

enum { AT_ONCE = 64, STEP = 7, COUNT = 146 };

static int16_t values[AT_ONCE];

static void put(void) {
  for (int16_t i = 0; i < 2 * AT_ONCE; i++) {
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    UCSR0A |= 1 << TXC0;
    UDR0 = ((const uint8_t *)values)[i];
  }
}

static void fill(int16_t first, int16_t step) {
  for (int16_t i = 0; i < AT_ONCE; i++) {
    values[i] = (int16_t)(first + i * step);
  }
}

static void send(int16_t first, int16_t step, int16_t number) {
  fill(first, step);
  tinyet_gate_sigmoid(values, AT_ONCE);
  put();
  fill(first, step);
  tinyet_gate_tanh(values, AT_ONCE, number % 7);
  put();
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = 1 << TXEN0;
  for (int16_t number = 0; number < COUNT; number++) {
    send((int16_t)(INT16_MIN + (int32_t)number * AT_ONCE * STEP), STEP, number);
  }
  for (int16_t number = COUNT; number < COUNT + 7; number++) {
    send(-AT_ONCE / 2, 1, number);
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
