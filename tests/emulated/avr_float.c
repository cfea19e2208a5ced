/* SPDX-License-Identifier: Apache-2.0 */
/* Answers pairs of floats a, b with a + b, a - b, a * b, a / b, (float)bits of b, (int32_t)a and a's comparisons with b. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

static void get(void *to, uint8_t count) {
  for (uint8_t *byte = (uint8_t *)to; count != 0; count--) {
    while ((UCSR0A & (1 << RXC0)) == 0) {
    }
    *byte++ = UDR0;
  }
}

static void put(const void *from, uint8_t count) {
  for (const uint8_t *byte = (const uint8_t *)from; count != 0; count--) {
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    UCSR0A |= 1 << TXC0;
    UDR0 = *byte++;
  }
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = (1 << RXEN0) | (1 << TXEN0);
  uint32_t count;
  get(&count, sizeof count);
  for (; count != 0; count--) {
    volatile float a, b; /* so that no operation is left to the compiler */
    volatile int32_t bits;
    get((void *)&a, sizeof a);
    get((void *)&b, sizeof b);
    __builtin_memcpy((void *)&bits, (const void *)&b, sizeof bits);
    const float results[] = {a + b, a - b, a * b, a / b, (float)bits};
    const int32_t whole = a > -2147483648.0f && a < 2147483648.0f ? (int32_t)a : 0;
    const uint32_t order = (uint32_t)(a < b) | (uint32_t)(a <= b) << 1 | (uint32_t)(a > b) << 2 |
                           (uint32_t)(a >= b) << 3 | (uint32_t)(a == b) << 4 | (uint32_t)(a != b) << 5;
    put(results, sizeof results);
    put(&whole, sizeof whole);
    put(&order, sizeof order);
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
