/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_point.h"
#include "tinyet_softmax.h"

/* 31 fraction bits of the exponential become 8, the sum's scale is undone: 23 bits and more, as the largest exponential
 * is 1; 32 and more leave nothing. */
static inline int32_t last_shift(int32_t headroom) { return 12 - headroom + 31 - 8; }

#ifdef __AVR__
/* What makes a column's outputs. upper: the exponentials from their second byte on. factor: twice the reciprocal of the sum,
 * shifted so that the upper eight bits of its product with an exponential are half an output, plus 128. */
typedef struct {
  const int8_t *input, *end;
  int8_t *output;
  const TINYET_ROM uint8_t *upper;
  uint32_t factor;
  tinyet_extent step;
  int8_t largest;
  uint8_t last;
} shares;

/* Outputs by the upper three bytes of both, until one is nearer to a half than these tell: what they leave out is less than 2^-12,
 * and what is 127/256 and more above an output, and less than a half, is one. Says whether there is such a one, which is
 * before `input` then, and has no output yet. */
static __attribute__((noinline)) uint8_t shares_without_ties(shares *of) {
  const int8_t *input = of->input, *const end = of->end;
  int8_t *output = of->output;
  const TINYET_ROM uint8_t *const upper = of->upper;
  const tinyet_extent step = of->step;
  const uint8_t k1 = (uint8_t)(of->factor >> 8), k2 = (uint8_t)(of->factor >> 16), k3 = (uint8_t)(of->factor >> 24);
  const uint8_t last = of->last;
  const int8_t largest = of->largest;
  uint16_t share; /* the upper byte is the output, the lower one its fraction */
  uint8_t below, e1, e2, e3;
  __asm__ volatile(
      "1:\n"
      "ld %[e1], X\n"
      "add r26, %A[step]\n" "adc r27, %B[step]\n"
      "mov r30, %[largest]\n"
      "sub r30, %[e1]\n"
      "ldi %B[share], 0\n"
      "cp %[last], r30\n"
      "brcs 2f\n"
      "clr r31\n"
      "lsl r30\n" "rol r31\n"
      "lsl r30\n" "rol r31\n"
      "add r30, %A[upper]\n" "adc r31, %B[upper]\n"
      TINYET_LPM "%[e1], Z+\n"
      TINYET_LPM "%[e2], Z+\n"
      TINYET_LPM "%[e3], Z\n"
      "clr r31\n"
      "mul %[e3], %[k3]\n" "movw %A[share], r0\n"
      "mul %[e3], %[k2]\n" "mov %[below], r0\n" "add %A[share], r1\n" "adc %B[share], r31\n"
      "mul %[e2], %[k3]\n" "add %[below], r0\n" "adc %A[share], r1\n" "adc %B[share], r31\n"
#define ONE "add %[below], r1\n" "adc %A[share], r31\n" "adc %B[share], r31\n"
      "mul %[e2], %[k2]\n" ONE
      "mul %[e3], %[k1]\n" ONE
      "mul %[e1], %[k3]\n" ONE
#undef ONE
      "lsl %[below]\n" "rol %A[share]\n" "rol %B[share]\n"
      "cpi %A[share], 0x7f\n"
      "breq 3f\n"
      "lsl %A[share]\n" "adc %B[share], r31\n"
      "brcc 2f\n"
      "dec %B[share]\n" /* 256 is too much */
      "2:\n"
      "subi %B[share], 0x80\n"
      "movw r30, %A[output]\n"
      "st Z, %B[share]\n"
      "add %A[output], %A[step]\n" "adc %B[output], %B[step]\n"
      "cp r26, %A[end]\n" "cpc r27, %B[end]\n"
      "brne 1b\n"
      "ldi %A[share], 0\n"
      "3:\n"
      "clr __zero_reg__\n"
      : "+x"(input), [output] "+&r"(output), [share] "=&d"(share), [below] "=&r"(below), [e1] "=&r"(e1), [e2] "=&r"(e2),
        [e3] "=&r"(e3)
      : [end] "r"(end), [upper] "r"(upper), [step] "r"(step), [k1] "r"(k1), [k2] "r"(k2), [k3] "r"(k3), [last] "r"(last),
        [largest] "r"(largest)
      : "r0", "r30", "r31", "memory");
  of->input = input;
  of->output = output;
  return (uint8_t)share != 0u;
}

static void column(const int8_t *input, int8_t *output, int32_t depth, int32_t stride,
                   const TINYET_ROM int32_t *exponentials, int32_t count) {
  const int32_t span = depth * stride, largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum), shift = last_shift(headroom);
  const int32_t reciprocal = tinyet_reciprocal_of_sum(sum, headroom);
  shares of = {input, input + TINYET_EXTENT(span), output, (const TINYET_ROM uint8_t *)exponentials + 1, 0,
               TINYET_EXTENT(stride), (int8_t)largest, (uint8_t)(count - 1)};
  of.factor = shift < 32 ? (uint32_t)reciprocal * 2u >> (uint8_t)(shift - 23) : 0u;
  while (shares_without_ties(&of) != 0u) {
    const uint8_t below = (uint8_t)(of.largest - of.input[-of.step]);
    const int32_t share = tinyet_high_mul(reciprocal, exponentials[below]);
    const int32_t value = tinyet_round_shift(share, shift) - 128;
    *of.output = (int8_t)(value > INT8_MAX ? INT8_MAX : value);
    of.output += of.step;
    if (of.input == of.end) {
      return;
    }
  }
}
#else
/* One column: `depth` elements `stride` apart. */
static void column(const int8_t *input, int8_t *output, int32_t depth, int32_t stride,
                   const TINYET_ROM int32_t *exponentials, int32_t count) {
  const int32_t span = depth * stride;
  const int32_t largest = tinyet_largest_s8(input, span, stride);
  const int32_t sum = tinyet_sum_of_exponentials(input, span, stride, largest, exponentials, count);
  const int32_t headroom = tinyet_leading_zeros((uint32_t)sum), shift = last_shift(headroom);
  const int32_t reciprocal = tinyet_reciprocal_of_sum(sum, headroom);
  const int32_t near = shift < 32 ? count : 0;
  const uint32_t half = UINT32_C(1) << ((shift - 1) & 31);
  const int8_t *const end = input + span;
  for (; input != end; input += stride, output += stride) {
    const int32_t below = largest - *input;
    int32_t value = INT8_MIN;
    if (below < near) {
      const uint32_t share = (uint32_t)tinyet_high_mul_positive(reciprocal, exponentials[below]);
      value = (int32_t)((share + half) >> shift) - 128;
      value = value > INT8_MAX ? INT8_MAX : value;
    }
    *output = (int8_t)value;
  }
}
#endif

void tinyet_softmax_s8(const int8_t *input, int8_t *output, const tinyet_softmax_s8_params *params) {
  const tinyet_softmax_shape s = params->shape;
  for (int32_t n = 0; n < s.outer; n++) {
    for (int32_t i = 0; i < s.inner; i++) {
      column(input + i, output + i, s.depth, s.inner, params->exponentials, params->count);
    }
    input += s.depth * s.inner;
    output += s.depth * s.inner;
  }
}
