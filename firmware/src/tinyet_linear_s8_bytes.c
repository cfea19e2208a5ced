/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

/* All outputs of a row. base: minus 128 times the sum of its inputs. The depth is `runs` of 256, `fours` of four, and `rest`. */
typedef struct {
  const uint8_t *inputs;
  int8_t *output;
  const TINYET_ROM uint32_t *stream;
  const TINYET_ROM uint8_t *weights;
  tinyet_extent channels;
  uint8_t runs, fours, rest, two_sided;
  int8_t low, high;
  uint32_t base;
} job;

#ifdef __AVR__
TINYET_STATIC_ASSERT(offsetof(job, base) == 16, "as the assembly has it");

/* Registers 2 to 4 are a sum of 24 bits, 14 is zero; 18 to 21 are the sum, 22 to 25 what it becomes. */
static TINYET_BYTES_APART void linear_bytes_outputs(job *of) {
#define TAP "ld r16, X+\n" TINYET_LPM "r15, Z+\n" "mul r16, r15\n" "add r2, r0\n" "adc r3, r1\n" "adc r4, r14\n"
#define FOLD "add r18, r2\n" "adc r19, r3\n" "adc r20, r4\n" "adc r21, r14\n"
  __asm__ volatile(
      "push r28\n"
      "push r29\n"
      "movw r28, r30\n"
      "ldd r16, Y+13\n"
      "bst r16, 0\n" /* two-sided */
      "clr r14\n"
      "ldd r30, Y+6\n"
      "ldd r31, Y+7\n"
      "1:\n"
      "ldd r26, Y+0\n"
      "ldd r27, Y+1\n"
      "ldd r18, Y+16\n"
      "ldd r19, Y+17\n"
      "ldd r20, Y+18\n"
      "ldd r21, Y+19\n"
      "ldd r24, Y+10\n"
      "tst r24\n"
      "breq 3f\n"
      "2:\n"
      "ldi r17, 64\n"
      "rcall 8f\n"
      "dec r24\n"
      "brne 2b\n"
      "3:\n"
      "ldd r17, Y+11\n"
      "tst r17\n"
      "breq 4f\n"
      "rcall 8f\n"
      "4:\n"
      "ldd r17, Y+12\n"
      "tst r17\n"
      "breq 6f\n"
      "clr r2\n"
      "clr r3\n"
      "clr r4\n"
      "5:\n" TAP
      "dec r17\n"
      "brne 5b\n" FOLD
      "6:\n"
      "movw r26, r30\n" /* the weights of the next */
      "ldd r30, Y+4\n"
      "ldd r31, Y+5\n"
      TINYET_LPM "r16, Z+\n" "add r18, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r19, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r20, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r21, r16\n"
      TINYET_BYTES_OUTPUT("r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r16", "ldd r25, Y+14", "ldd r25, Y+15")
      "ldd r30, Y+4\n"
      "ldd r31, Y+5\n"
      "adiw r30, 20\n"
      "brtc 7f\n"
      "adiw r30, 8\n"
      "7:\n"
      "std Y+4, r30\n"
      "std Y+5, r31\n"
      "ldd r30, Y+2\n"
      "ldd r31, Y+3\n"
      "st Z+, r25\n"
      "std Y+2, r30\n"
      "std Y+3, r31\n"
      "movw r30, r26\n"
      "ldd r24, Y+8\n"
      "ldd r25, Y+9\n"
      "sbiw r24, 1\n"
      "std Y+8, r24\n"
      "std Y+9, r25\n"
      "breq 10f\n"
      "rjmp 1b\n"
      /* r17 times four products */
      "8:\n"
      "clr r2\n"
      "clr r3\n"
      "clr r4\n"
      "9:\n" TAP TAP TAP TAP
      "dec r17\n"
      "brne 9b\n" FOLD
      "ret\n"
      "10:\n"
      "clr __zero_reg__\n"
      "pop r29\n"
      "pop r28\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26",
        "r27", "memory");
#undef TAP
#undef FOLD
}
#else
static void linear_bytes_outputs(job *of) {
  const tinyet_extent depth = TINYET_BYTES_RUN * of->runs + 4 * of->fours + of->rest;
  const TINYET_ROM uint8_t *w = of->weights;
  for (; of->channels > 0; of->channels--) {
    uint32_t sum = of->base + of->stream[0];
    for (tinyet_extent i = 0; i < depth; i++) {
      sum += of->inputs[i] * (uint32_t)*w++;
    }
    *of->output++ = tinyet_bytes_output(sum, of->stream + 1, of->two_sided, of->low, of->high);
    of->stream += of->two_sided != 0 ? 7 : 5;
  }
}
#endif

/* Copies inputs, plus 128; gives their sum. */
static inline tinyet_bytes_sum copy(uint8_t *to, const int8_t *from, tinyet_extent count) {
  tinyet_bytes_sum sum = 0u;
#ifdef __AVR__
  uint8_t value;
  const uint8_t zero = 0u;
  __asm__ volatile(
      "1:\n"
      "ld %[value], X+\n"
      "subi %[value], 0x80\n"
      "st Z+, %[value]\n"
      "add %A[sum], %[value]\n"
      "adc %B[sum], %[zero]\n"
      "adc %C[sum], %[zero]\n"
      "sbiw %[count], 1\n"
      "brne 1b\n"
      : "+x"(from), "+z"(to), [count] "+&w"(count), [value] "=&d"(value), [sum] "+&r"(sum)
      : [zero] "r"(zero)
      : "memory");
#else
  for (; count > 0; count--) {
    const uint8_t value = (uint8_t)((uint8_t)*from++ ^ 0x80u);
    *to++ = value;
    sum += value;
  }
#endif
  return sum;
}

void tinyet_linear_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                            const tinyet_linear_s8_bytes_params *params) {
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent depth = TINYET_EXTENT(params->depth);
  job of;
  of.inputs = (const uint8_t *)scratch;
  of.output = output;
  of.weights = params->weights;
  of.runs = (uint8_t)(depth / TINYET_BYTES_RUN);
  of.fours = (uint8_t)(depth % TINYET_BYTES_RUN / 4);
  of.rest = (uint8_t)(depth % 4);
  of.two_sided = words->two_sided != 0;
  of.low = (int8_t)words->clamp_low;
  of.high = (int8_t)words->clamp_high;
  for (tinyet_extent row = TINYET_EXTENT(params->rows); row > 0; row--) {
    const uint32_t sum = copy((uint8_t *)scratch, input, depth);
    of.base = 0u - (sum << 7);
    input += depth;
    of.stream = words->stream;
    of.channels = TINYET_EXTENT(words->out_c);
    linear_bytes_outputs(&of);
  }
}
