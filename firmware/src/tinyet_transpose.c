/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_transpose.h"

#include <string.h>

#ifdef __AVR__
/* Numbers of items have 16 bits, what marks them is bytes, and a division is a product: 2^16 / rows, rounded up, gives at most one
 * too many. */
typedef uint16_t number;
typedef uint8_t mark;

static inline uint8_t bit_of(number place) {
  uint8_t bit = (place & 2u) != 0u ? 4u : 1u;
  bit = (uint8_t)((place & 1u) != 0u ? bit << 1 : bit);
  return (uint8_t)((place & 4u) != 0u ? bit << 4 : bit);
}

static number source_of(number place, number rows, number columns, number reciprocal) {
  number column = (number)((uint32_t)place * reciprocal >> 16);
  number row = (number)(place - column * rows);
  if ((int16_t)row < 0) {
    column--;
    row = (number)(row + rows);
  }
  return (number)(row * columns + column);
}

/* What follows below, of bytes. */
typedef struct {
  uint8_t *items;
  mark *done;
  number rows, columns, reciprocal, last;
} job;

TINYET_STATIC_ASSERT(sizeof(job) == 12, "as the assembly has it");

static __attribute__((noinline)) void transpose_bytes(const job *of) {
/* r20, r21: the source of place r24, r25. */
#define SOURCE(label)                                                                                     \
  "mul r25, r11\n" "movw r18, r0\n"                                                                      \
  "mul r24, r10\n" "mov r20, r1\n"                                                                       \
  "mul r24, r11\n" "add r20, r0\n" "adc r18, r1\n" "adc r19, r14\n"                                      \
  "mul r25, r10\n" "add r20, r0\n" "adc r18, r1\n" "adc r19, r14\n"                                      \
  "mul r18, r6\n" "movw r20, r0\n" "mul r18, r7\n" "add r21, r0\n" "mul r19, r6\n" "add r21, r0\n"       \
  "movw r22, r24\n"                                                                                      \
  "sub r22, r20\n"                                                                                       \
  "sbc r23, r21\n"                                                                                       \
  "brpl " #label "f\n"                                                                                   \
  "subi r18, 1\n"                                                                                        \
  "sbci r19, 0\n"                                                                                        \
  "add r22, r6\n"                                                                                        \
  "adc r23, r7\n" #label ":\n"                                                                           \
  "mul r22, r8\n" "movw r20, r0\n" "mul r22, r9\n" "add r21, r0\n" "mul r23, r8\n" "add r21, r0\n"       \
  "add r20, r18\n"                                                                                       \
  "adc r21, r19\n"
#define AT(low, high) "movw r30, r2\n" "add r30, " low "\n" "adc r31, " high "\n"
/* Z: at the mark of place r24, r25; r26: its bit. */
#define MARK                                                                           \
  "movw r30, r24\n"                                                                    \
  "lsr r31\n" "ror r30\n" "lsr r31\n" "ror r30\n" "lsr r31\n" "ror r30\n"              \
  "add r30, r4\n"                                                                      \
  "adc r31, r5\n"                                                                      \
  "ldi r26, 1\n"                                                                       \
  "sbrc r24, 1\n"                                                                      \
  "ldi r26, 4\n"                                                                       \
  "sbrc r24, 0\n"                                                                      \
  "lsl r26\n"                                                                          \
  "sbrc r24, 2\n"                                                                      \
  "swap r26\n"                                                                         \
  "ld r27, Z\n"
  __asm__ volatile(
      "ld r2, Z+\n" "ld r3, Z+\n" "ld r4, Z+\n" "ld r5, Z+\n" "ld r6, Z+\n" "ld r7, Z+\n"
      "ld r8, Z+\n" "ld r9, Z+\n" "ld r10, Z+\n" "ld r11, Z+\n" "ld r16, Z+\n" "ld r17, Z+\n"
      "clr r14\n"
      "clr r12\n"
      "clr r13\n"
      "1:\n"
      "sec\n"
      "adc r12, r14\n"
      "adc r13, r14\n"
      "cp r12, r16\n"
      "cpc r13, r17\n"
      "brlo 2f\n"
      "rjmp 5f\n"
      "2:\n"
      "movw r24, r12\n" MARK
      "and r27, r26\n"
      "brne 1b\n" SOURCE(6)
      "cp r20, r12\n"
      "cpc r21, r13\n"
      "breq 1b\n" AT("r12", "r13")
      "ld r15, Z\n"
      "3:\n" AT("r20", "r21")
      "ld r27, Z\n" AT("r24", "r25")
      "st Z, r27\n"
      "movw r24, r20\n" MARK
      "or r27, r26\n"
      "st Z, r27\n" SOURCE(7)
      "cp r20, r12\n"
      "cpc r21, r13\n"
      "breq 4f\n"
      "rjmp 3b\n"
      "4:\n" AT("r24", "r25")
      "st Z, r15\n"
      "rjmp 1b\n"
      "5:\n"
      "clr __zero_reg__\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
#undef SOURCE
#undef AT
#undef MARK
}

/* As below, of items of any size. done: bytes, a bit of which is a place that has its item. */
static void transpose(uint8_t *items, mark *done, uint8_t *held, number rows, number columns, size_t item_bytes) {
  const number count = rows * columns, reciprocal = (number)(UINT16_MAX / rows + 1u);
  memset(done, 0, (size_t)((count + 31u) / 32u) * sizeof(uint32_t));
  if (item_bytes == 1u) {
    const job of = {items, done, rows, columns, reciprocal, count - 1u};
    transpose_bytes(&of);
    return;
  }
  for (number first = 1u; first + 1u < count; first++) {
    if ((done[first >> 3] & bit_of(first)) != 0u) {
      continue;
    }
    number place = first;
    number from = source_of(place, rows, columns, reciprocal);
    if (from == first) {
      continue;
    }
    memcpy(held, items + first * item_bytes, item_bytes);
    while (from != first) {
      memcpy(items + place * item_bytes, items + from * item_bytes, item_bytes);
      place = from;
      done[place >> 3] = (mark)(done[place >> 3] | bit_of(place));
      from = source_of(place, rows, columns, reciprocal);
    }
    memcpy(items + place * item_bytes, held, item_bytes);
  }
}
#else
/* Which item comes to a place of the output, whose rows are the input's columns. */
static inline uint32_t source_of(uint32_t place, uint32_t rows, uint32_t columns) {
  const uint32_t column = place / rows;
  return (place - column * rows) * columns + column;
}

/* A permutation is cycles: each item goes to the place that the last one has left. done: places that have their item.
 * In one of the two calls that there are, items are bytes, so that to move one costs no call. */
static inline void transpose(uint8_t *items, uint32_t *done, uint8_t *held, uint32_t rows, uint32_t columns,
                             size_t item_bytes) {
  const uint32_t count = rows * columns;
  memset(done, 0, (size_t)((count + 31u) / 32u) * sizeof *done);
  for (uint32_t first = 1u; first + 1u < count; first++) { /* the outermost stay where they are */
    if ((done[first >> 5] >> (first & 31u) & 1u) != 0u) {
      continue;
    }
    uint32_t place = first;
    uint32_t from = source_of(place, rows, columns);
    if (from == first) {
      continue;
    }
    memcpy(held, items + (size_t)first * item_bytes, item_bytes);
    while (from != first) {
      memcpy(items + (size_t)place * item_bytes, items + (size_t)from * item_bytes, item_bytes);
      place = from;
      done[place >> 5] |= UINT32_C(1) << (place & 31u);
      from = source_of(place, rows, columns);
    }
    memcpy(items + (size_t)place * item_bytes, held, item_bytes);
  }
}
#endif

void tinyet_transpose(const void *input, void *output, void *scratch, const tinyet_transpose_params *params) {
  const uint32_t rows = params->rows;
  const uint32_t columns = params->columns;
  const size_t item_bytes = (size_t)params->item_bytes;
  const size_t bytes = (size_t)(rows * columns) * item_bytes;
  uint32_t *done = (uint32_t *)scratch;
  uint8_t *held = (uint8_t *)(done + (rows * columns + 31u) / 32u);
  uint8_t *items = (uint8_t *)output;
  if (input != output) {
    memcpy(output, input, (size_t)params->matrices * bytes);
  }
  for (uint32_t matrix = 0u; matrix < params->matrices; matrix++) {
#ifdef __AVR__
    transpose(items, (mark *)done, held, (number)rows, (number)columns, item_bytes);
#else
    if (item_bytes == 1u) {
      transpose(items, done, held, rows, columns, 1u);
    } else {
      transpose(items, done, held, rows, columns, item_bytes);
    }
#endif
    items += bytes;
  }
}
