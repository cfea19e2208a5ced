/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent layers make of gates, for AVR: products of two gates, and int8_t states of them by 24 bits of a factor. What that
 * leaves out rarely matters; where it may, the rule is asked. */
#ifndef TINYET_GATE_STATES_AVR_H
#define TINYET_GATE_STATES_AVR_H

#include "tinyet_gates_avr.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __AVR__
__extension__ typedef __int24 tinyet_gate_sum;
__extension__ typedef __uint24 tinyet_gate_factor;

/* tinyet_gate_shift of a * b by 15 + bits; half: 2^(6 + bits). */
static __attribute__((noinline, unused)) int16_t tinyet_gate_product_by(int16_t a, int16_t b, uint16_t half, uint8_t bits) {
  int16_t high;
  uint8_t first, second;
  __asm__(
      "muls %B[a], %B[b]\n" "movw %A[high], r0\n"
      "mul %A[a], %A[b]\n" "mov %[first], r0\n" "mov %[second], r1\n"
      "mulsu %B[a], %A[b]\n" "sbc %B[high], %[zero]\n" /* the sign of what is added next */
      "add %[second], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "mulsu %B[b], %A[a]\n" "sbc %B[high], %[zero]\n"
      "add %[second], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "sbrs %B[high], 7\n"
      "rjmp 1f\n"
      "subi %[first], 1\n" "sbci %[second], 0\n" "sbci %A[high], 0\n" "sbci %B[high], 0\n"
      "1:\n"
      "add %[second], %A[half]\n" "adc %A[high], %B[half]\n" "adc %B[high], %[zero]\n"
      "tst %[bits]\n"
      "brne 3f\n"
      "lsl %[second]\n" "rol %A[high]\n" "rol %B[high]\n"
      "rjmp 4f\n"
      "2:\n"
      "asr %B[high]\n" "ror %A[high]\n"
      "3:\n"
      "dec %[bits]\n"
      "brne 2b\n"
      "4:\n"
      "clr __zero_reg__\n"
      : [high] "=&d"(high), [first] "=&d"(first), [second] "=&d"(second), [bits] "+&r"(bits)
      : [a] "a"(a), [b] "a"(b), [half] "r"(half), [zero] "r"((uint8_t)0)
      : "r0");
  return high;
}

/* tinyet_gate_shift of a * b by 15. */
static inline int16_t tinyet_gate_product(int16_t a, int16_t b) { return tinyet_gate_product_by(a, b, 0x40u, 0u); }

/* a * b / 2^15, rounded down; below: eight bits more, of which the last is 0. */
static inline int16_t tinyet_gate_lower_product(int16_t a, int16_t b, uint8_t *below) {
  int16_t high;
  uint8_t second;
  __asm__(
      "muls %B[a], %B[b]\n" "movw %A[high], r0\n"
      "mul %A[a], %A[b]\n" "mov %[second], r1\n"
      "mulsu %B[a], %A[b]\n" "sbc %B[high], %[zero]\n"
      "add %[second], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "mulsu %B[b], %A[a]\n" "sbc %B[high], %[zero]\n"
      "add %[second], r0\n" "adc %A[high], r1\n" "adc %B[high], %[zero]\n"
      "lsl %[second]\n" "rol %A[high]\n" "rol %B[high]\n"
      "clr __zero_reg__\n"
      : [high] "=&r"(high), [second] "=&r"(second)
      : [a] "a"(a), [b] "a"(b), [zero] "r"((uint8_t)0)
      : "r0");
  *below = second;
  return high;
}

/* value * factor / 2^16, less than that by up to 3. */
static inline tinyet_gate_sum tinyet_gate_scaled(int16_t value, tinyet_gate_factor factor) {
  tinyet_gate_sum sum;
  __asm__(
      "mulsu %B[value], %C[factor]\n" "mov %B[sum], r0\n" "mov %C[sum], r1\n"
      "mul %A[value], %C[factor]\n" "mov %A[sum], r0\n" "add %B[sum], r1\n" "adc %C[sum], %[zero]\n"
      "mulsu %B[value], %B[factor]\n" "sbc %C[sum], %[zero]\n"
      "add %A[sum], r0\n" "adc %B[sum], r1\n" "adc %C[sum], %[zero]\n"
      "mul %A[value], %B[factor]\n"
      "add %A[sum], r1\n" "adc %B[sum], %[zero]\n" "adc %C[sum], %[zero]\n"
      "mulsu %B[value], %A[factor]\n" "sbc %B[sum], %[zero]\n" "sbc %C[sum], %[zero]\n"
      "add %A[sum], r1\n" "adc %B[sum], %[zero]\n" "adc %C[sum], %[zero]\n"
      "clr __zero_reg__\n"
      : [sum] "=&r"(sum)
      : [value] "a"(value), [factor] "a"(factor), [zero] "r"((uint8_t)0)
      : "r0");
  return sum;
}

/* 2^15 of a state, a half added: twice the sum, with what is below the value, and update * before. update: not negative; before:
 * -255 ... 255. */
static inline int32_t tinyet_gate_kept(tinyet_gate_sum sum, uint8_t below, uint8_t upper, int16_t update, int16_t before) {
  int32_t result;
  __asm__(
      "mov %A[result], %A[sum]\n" "mov %B[result], %B[sum]\n" "mov %C[result], %C[sum]\n"
      "mul %[below], %[upper]\n" "add %A[result], r1\n" "adc %B[result], %[zero]\n" "adc %C[result], %[zero]\n"
      "lsl %A[result]\n" "rol %B[result]\n" "rol %C[result]\n" "sbc %D[result], %D[result]\n"
      "mul %A[update], %A[before]\n"
      "add %A[result], r0\n" "adc %B[result], r1\n" "adc %C[result], %[zero]\n" "adc %D[result], %[zero]\n"
      "mul %B[update], %A[before]\n"
      "add %B[result], r0\n" "adc %C[result], r1\n" "adc %D[result], %[zero]\n"
      "sbrs %B[before], 7\n"
      "rjmp 1f\n"
      "sub %B[result], %A[update]\n" "sbc %C[result], %B[update]\n" "sbc %D[result], %[zero]\n"
      "1:\n"
      "subi %A[result], 5\n" "sbci %B[result], 0xc0\n" "sbci %C[result], 0xff\n" "sbci %D[result], 0xff\n"
      "clr __zero_reg__\n"
      : [result] "=&d"(result)
      : [sum] "r"(sum), [below] "r"(below), [upper] "r"(upper), [update] "r"(update), [before] "r"(before),
        [zero] "r"((uint8_t)0)
      : "r0");
  return result;
}

/* A sum, saturated: where it overflows its sign is the other one. */
static inline int16_t tinyet_gate_added(int16_t a, int16_t b) {
  __asm__(
      "add %A[a], %A[b]\n" "adc %B[a], %B[b]\n"
      "brvc 1f\n"
      "lsl %B[a]\n"
      "sbc %A[a], %A[a]\n"
      "mov %B[a], %A[a]\n"
      "subi %B[a], 0x80\n"
      "1:\n"
      : [a] "+d"(a)
      : [b] "r"(b));
  return a;
}

static inline int8_t tinyet_gate_limited(int16_t value) {
  return (int8_t)(value > INT8_MAX ? INT8_MAX : value < INT8_MIN ? INT8_MIN : value);
}

/* A gated recurrent unit's candidates: to sums the products of others and the reset gates are added, saturated. */
static __attribute__((noinline, unused)) void tinyet_gate_add_products(int16_t *sums, const int16_t *gates,
                                                                       const int16_t *others, tinyet_extent count) {
  for (; count > 0; count--) {
    const int16_t product = tinyet_gate_product(*gates++, *others++);
    *sums = tinyet_gate_added(*sums, product);
    sums++;
  }
}

/* The rule of tinyet_gate_mixed: 2^15 of a state, rounded. */
static __attribute__((noinline, unused)) int16_t tinyet_gate_mixed_one(int16_t fresh, int16_t update, int16_t before,
                                                                       int32_t multiplier, int32_t form) {
  const int32_t shifted = (int32_t)((uint32_t)(uint16_t)fresh << 16) >> 1, rest = shifted - (int32_t)update * fresh;
  const int32_t sum = tinyet_gate_requantize(rest, multiplier, form) + (int32_t)update * before + (INT32_C(1) << 14);
  const int32_t value = sum >> 15;
  return (int16_t)tinyet_clamp(value, -1024, 1024); /* far beyond a byte with any zero point */
}

/* A gated recurrent unit's states: so much of the ones before as the update gates say, and of the candidate the rest, a sum of 24
 * bits, which is twice as much by the factor, up to 2^24. What is left out there would add -5 to 11: of the factor up to 1 either
 * way, of what is below the rest -4 to 4, of products 0 to 6, and roundings less than 0.6 either way. So 5 are taken off, and the
 * rule is asked where a multiple of 2^15 is not farther away than 16. */
static __attribute__((noinline, unused)) void tinyet_gate_mixed(const int16_t *candidates, const int16_t *updates,
                                                                const int8_t *state, int8_t *out, tinyet_extent count,
                                                                int32_t multiplier, int32_t form, int16_t zero_point) {
  const uint8_t fits = form >= 5 ? 1u : 0u;
  const tinyet_gate_factor factor = (tinyet_gate_factor)((uint32_t)multiplier >> 1 >> (uint8_t)(form + 1));
  for (; count > 0; count--) {
    const int16_t fresh = *candidates++, update = *updates++, before = (int16_t)(*state++ - zero_point);
    uint8_t below;
    const int16_t lost = tinyet_gate_lower_product(update, fresh, &below);
    const int16_t rest = (int16_t)(fresh - lost - (below != 0u ? 1 : 0));
    const int32_t sum = tinyet_gate_kept(tinyet_gate_scaled(rest, factor), (uint8_t)-below, (uint8_t)(factor >> 16), update,
                                         before);
    int16_t value = (int16_t)(2 * (int16_t)(sum >> 16) + (((uint16_t)sum & 0x8000u) != 0u ? 1 : 0));
    if (fits == 0u || (uint16_t)((uint16_t)sum & 0x7fffu) >= 0x7ff0u) {
      value = tinyet_gate_mixed_one(fresh, update, before, multiplier, form);
    }
    *out++ = tinyet_gate_limited((int16_t)(value + zero_point));
  }
}

/* An LSTM's cells, and a copy of them in the place of the first gate. */
static __attribute__((noinline, unused)) void tinyet_gate_cells(int16_t *gates, tinyet_extent rows, int16_t *cells,
                                                                tinyet_extent count, uint8_t bits) {
  const int16_t *forget = gates + rows, *fresh = forget + rows;
  const uint16_t half = (uint16_t)(0x40u << bits);
  for (; count > 0; count--) {
    const int16_t kept = tinyet_gate_product(*forget++, *cells);
    const int16_t added = tinyet_gate_product_by(*gates, *fresh++, half, bits);
    *gates++ = *cells++ = tinyet_gate_added(kept, added);
  }
}

/* How int8_t values come of int16_t ones: as tinyet_gate_rows rounds sums of 16 bits. From `limit` on the byte below the integer
 * may carry, with what is left out. */
typedef struct {
  tinyet_gate_factor factor;
  uint8_t above, below, limit;
} tinyet_gate_scale;

/* value: of the product, rounded; not 0 if it is what the rule gives. */
static inline uint8_t tinyet_gate_rounded(int16_t *value, const tinyet_gate_scale *scale) {
  tinyet_gate_sum sum = tinyet_gate_scaled(*value, scale->factor);
  sum = (tinyet_gate_sum)(sum + (*value < 0 ? scale->below : scale->above));
  *value = (int16_t)(sum >> 8);
  return (uint8_t)sum < scale->limit ? 1u : 0u;
}

/* What the output gates let through of the cells' tanh. The product has 16 bits: with 2^20 and larger factors what it lacks would
 * matter too often. It lacks less than 1, and the byte below the integer so up to the factor over 2^16. */
static __attribute__((noinline, unused)) void tinyet_gate_hidden(const int16_t *gates, const int16_t *cells, int8_t *out,
                                                                 tinyet_extent count, int32_t multiplier, int32_t form,
                                                                 int16_t zero_point) {
  const uint8_t few = form >= 18 ? 1u : 0u;
  const uint32_t factor = few != 0u ? (uint32_t)multiplier >> (uint8_t)(form - 7) : 0u;
  const tinyet_gate_scale scale = {(tinyet_gate_factor)factor, 128u, 127u, (uint8_t)(252u - (uint8_t)(factor >> 16))};
  for (; count > 0; count--) {
    const int16_t gate = *gates++, cell = *cells++;
    uint8_t below;
    int16_t value = tinyet_gate_lower_product(gate, cell, &below);
    if (tinyet_gate_rounded(&value, &scale) == 0u || few == 0u) {
      const int32_t sum = tinyet_requantize_form((int32_t)gate * cell, multiplier, form, 0);
      value = (int16_t)tinyet_clamp(sum, -1024, 1024);
    }
    *out++ = tinyet_gate_limited((int16_t)(value + zero_point));
  }
}

/* Of each value. */
static __attribute__((noinline, unused)) void tinyet_gate_bytes(const int16_t *values, int8_t *out, tinyet_extent count,
                                                                int32_t multiplier, int32_t form, int16_t zero_point,
                                                                uint8_t relu) {
  const uint8_t right = form >= 0 ? 1u : 0u;
  const uint8_t shift = (uint8_t)(form + 1), half = right != 0u && shift < 8u ? (uint8_t)(128u >> shift) : 0u;
  const uint32_t factor = right != 0u ? (uint32_t)multiplier >> 7 >> shift : 0u;
  const tinyet_gate_scale scale = {(tinyet_gate_factor)factor, (uint8_t)(128u + half), (uint8_t)(127u - half), 253u};
  for (; count > 0; count--) {
    const int16_t from = *values++, kept = relu != 0u && from < 0 ? 0 : from;
    int16_t value = kept;
    if (tinyet_gate_rounded(&value, &scale) == 0u || right == 0u) {
      const int32_t sum = tinyet_requantize_form(kept, multiplier, form, 0);
      value = (int16_t)tinyet_clamp(sum, -1024, 1024);
    }
    *out++ = tinyet_gate_limited((int16_t)(value + zero_point));
  }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
