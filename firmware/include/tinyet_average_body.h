/* SPDX-License-Identifier: Apache-2.0 */
/* The average of a window of integers of any type. The file that includes this has defined
 *
 *   element           the type of the elements
 *   LEAST, GREATEST   its limits
 *   QUADS             1: four channels stay in registers while the window is walked; 0: one */
#ifndef TINYET_AVERAGE_BODY_H
#define TINYET_AVERAGE_BODY_H

#include "tinyet_average.h"
#include "tinyet_four_sums.h"

static TINYET_AVERAGE_APART element average(int32_t sum, const tinyet_division *division) {
  return (element)tinyet_clamp(tinyet_divide_wide(sum, division), LEAST, GREATEST);
}

#if defined(__AVR__) && QUADS
/* A row of the table of divisions, of which most windows need little. */
typedef const TINYET_ROM int32_t *window_division;
#define DIVISION_AT(table, row) ((table) + (tinyet_extent)(row) * TINYET_DIVISION_FIELDS)

typedef struct {
  tinyet_four_sums four;
  /* How sums become averages: three bytes of the multiplier; below which sum an average is negative, where that makes a
   * difference; what is added to sums; what is less in the quotient. */
  uint8_t multiplier[3];
  tinyet_sum_of_bytes negative, added;
  uint8_t bias;
} window_of_four;

TINYET_STATIC_ASSERT(offsetof(window_of_four, multiplier) == 20 &&
                         offsetof(window_of_four, bias) == 29,
                     "as the assembly has it");

/* So many averages of the sums: the uppermost byte of (sum + added) * multiplier in 32 bits, less the bias. */
static TINYET_AVERAGE_APART void divide_some(int8_t *output, const window_of_four *of, uint8_t count) {
#define LOAD(to, from) "ldd r" #to ", Z+" #from "\n"
  __asm__ volatile(
      LOAD(2, 20) LOAD(3, 21) LOAD(4, 22) LOAD(5, 23) LOAD(6, 24) LOAD(7, 25) LOAD(8, 26) LOAD(9, 27)
      LOAD(11, 28) LOAD(12, 29)
      "adiw r30, 8\n"
      "clr r10\n"
      "1:\n"
      "ld r16, Z+\n" "ld r17, Z+\n" "ld r18, Z+\n"
      "cp r16, r5\n" "cpc r17, r6\n" "cpc r18, r7\n"
      "sbc r16, r10\n" "sbc r17, r10\n" "sbc r18, r10\n"
      "add r16, r8\n" "adc r17, r9\n" "adc r18, r11\n"
      "mul r16, r2\n" "movw r20, r0\n"
      "mul r17, r3\n" "movw r22, r0\n"
      "mul r16, r3\n" "add r21, r0\n" "adc r22, r1\n" "adc r23, r10\n"
      "mul r17, r2\n" "add r21, r0\n" "adc r22, r1\n" "adc r23, r10\n"
      "mul r16, r4\n" "add r22, r0\n" "adc r23, r1\n"
      "mul r18, r2\n" "add r22, r0\n" "adc r23, r1\n"
      "mul r17, r4\n" "add r23, r0\n"
      "mul r18, r3\n" "add r23, r0\n"
      "sub r23, r12\n"
      "st X+, r23\n"
      "dec %[count]\n"
      "brne 1b\n"
      "clr __zero_reg__\n"
      : "+x"(output), "+z"(of), [count] "+r"(count)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r16", "r17", "r18", "r20", "r21",
        "r22", "r23", "memory");
#undef LOAD
}

/* One output pixel: averages over rows x columns taps, `row_step` and `column_step` elements apart, for each channel. */
static TINYET_AVERAGE_APART void average_pixel(const int8_t *corner, int8_t *output, tinyet_extent channels,
                                               tinyet_extent rows, tinyet_extent columns, tinyet_extent row_step,
                                               tinyet_extent column_step, const window_division *of) {
  const window_division row = *of;
  const tinyet_extent jump = row_step - columns * column_step;
  const int32_t lifted = (int32_t)(rows * columns) << 7; /* what 128 for each tap are */
  const uint32_t multiplier = (uint32_t)row[0];
  const int32_t start = row[2], divisor = row[6];
  /* Averages of no more taps than they are divided by are bytes, and all is in 24 bits. */
  const uint8_t plain = (multiplier >> 24) == 0u && multiplier != 0u && (uint8_t)row[1] == 24u &&
                        divisor >= (int32_t)(rows * columns) && divisor <= INT16_MAX;
  window_of_four window = {{rows, columns, column_step, jump, {0u, 0u, 0u, 0u}}, {0u, 0u, 0u}, 0u, 0u, (uint8_t)row[5]};
  window.negative = (uint8_t)row[4] != 0u && lifted > start ? (tinyet_sum_of_bytes)(lifted - start) : 0u;
  window.added = (tinyet_sum_of_bytes)(row[3] - lifted + start);
  memcpy(window.multiplier, &multiplier, sizeof window.multiplier);
  while (channels > 0) {
    const uint8_t count = channels < 4 ? (uint8_t)channels : 4u;
    tinyet_add_four(corner, &window.four); /* bytes behind the last channel can be read, and count nothing */
    if (plain != 0u) {
      divide_some(output, &window, count);
    } else {
      const tinyet_division division = tinyet_division_at(row, 0);
      for (uint8_t k = 0u; k < count; k++) {
        output[k] = average((int32_t)window.four.sums[k] + start - lifted, &division);
      }
    }
    corner += count;
    output += count;
    channels -= count;
  }
}
#else
typedef tinyet_division window_division;
#define DIVISION_AT(table, row) tinyet_division_at(table, row)

/* One output pixel: averages over rows x columns taps, `row_step` and `column_step` elements apart, for each channel. */
static inline void average_pixel(const element *corner, element *output, tinyet_extent channels, tinyet_extent rows,
                                 tinyet_extent columns, tinyet_extent row_step, tinyet_extent column_step,
                                 const window_division *division) {
  tinyet_extent c = 0;
#if QUADS
  for (; c + 4 <= channels; c += 4) {
    int32_t s0 = division->start, s1 = s0, s2 = s0, s3 = s0;
    const element *row = corner + c;
    for (tinyet_extent i = rows; i != 0; i--) {
      const element *x = row;
      for (tinyet_extent j = columns; j != 0; j--) {
        s0 += x[0], s1 += x[1], s2 += x[2], s3 += x[3];
        x += column_step;
      }
      row += row_step;
    }
    output[c] = average(s0, division);
    output[c + 1] = average(s1, division);
    output[c + 2] = average(s2, division);
    output[c + 3] = average(s3, division);
  }
#endif
  for (; c < channels; c++) {
    int32_t sum = division->start;
    const element *row = corner + c;
    for (tinyet_extent i = rows; i != 0; i--) {
      const element *x = row;
      for (tinyet_extent j = columns; j != 0; j--) {
        sum += *x;
        x += column_step;
      }
      row += row_step;
    }
    output[c] = average(sum, division);
  }
}
#endif

#endif
