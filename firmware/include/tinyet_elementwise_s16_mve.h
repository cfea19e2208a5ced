/* SPDX-License-Identifier: Apache-2.0 */
/* int16 arithmetic element by element for cores with Helium, eight values at a time: see tinyet_mve.h. Even values and odd ones
 * are vectors of words in between. The output may be an operand. */
#ifndef TINYET_ELEMENTWISE_S16_MVE_H
#define TINYET_ELEMENTWISE_S16_MVE_H

#include "tinyet_clip.h"
#include "tinyet_mve.h"
#include "tinyet_quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tinyet_add_s16, tinyet_sub_s16: x is the operand of the larger scale, whose factor is 1/2, y the other one. One operand may
 * begin anew with each row, whose values are then those of columns. */
typedef struct {
  int32_t multiplier, shift; /* of y; shift: -1 ... -31, or 0 for a factor of 1/2 */
  int32_t out_multiplier, out_shift; /* out_shift: -1 ... -31 */
  int32_t low, high;
  int32_t rows, row;
  int32_t x_row, y_row; /* values from row to row: row, or 0 */
  int32_t x_factor, y_sign; /* 2^14 or -2^14; 1 or -1 */
} tinyet_add_s16_mve_params;

void tinyet_add_s16_mve(const int16_t *x, const int16_t *y, int16_t *output, const tinyet_add_s16_mve_params *params);

/* The same with one value of `each` for each row of `all`. The one whose factor is 1/2 is multiplied by x_factor, the other one,
 * rescaled, by y_sign. */
typedef struct {
  int32_t multiplier, shift; /* of the operand of the smaller scale; shift: -1 ... -31, or 0 for a factor of 1/2 */
  int32_t out_multiplier, out_shift; /* out_shift: -1 ... -31 */
  int32_t low, high;
  int32_t rows, row;
  int32_t x_factor, y_sign; /* 2^14 or -2^14; 1 or -1 */
  int32_t of_each; /* whether the smaller scale is that of `each` */
} tinyet_add_s16_per_row_mve_params;

void tinyet_add_s16_per_row_mve(const int16_t *all, const int16_t *each, int16_t *output,
                                const tinyet_add_s16_per_row_mve_params *params);

/* tinyet_mul_s16. shift: -1 ... -31. b: values of all; of columns; or one of each row. */
typedef struct {
  int32_t multiplier, shift;
  int32_t low, high;
  int32_t rows, row;
  int32_t b_row; /* values from row to row: row, 0 where they are those of columns, or 1 */
  int32_t per_row; /* whether b has one value for each row */
} tinyet_mul_s16_mve_params;

void tinyet_mul_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, const tinyet_mul_s16_mve_params *params);

/* tinyet_requantize_s16, tinyet_requantize_s16_s8, tinyet_requantize_s8_s16: int16 without zero points. shift: -31 ... 15 of int16,
 * ... 22 of int8. */
void tinyet_requantize_s16_mve(const int16_t *input, int16_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s16_s8_mve(const int16_t *input, int8_t *output, const tinyet_requantize_params *params);
void tinyet_requantize_s8_s16_mve(const int8_t *input, int16_t *output, const tinyet_requantize_params *params);

void tinyet_clip_s16_mve(const int16_t *input, int16_t *output, const tinyet_clip_params *params);

/* Parts of loops over eight values, which are strings of assembly: operands `to`, and the bounds `low` and `high`, which are in q6
 * and q7. The last values, fewer than eight, are loaded and stored under a predicate. */
/* clang-format off */
#define TINYET_MVE_S16_LOAD(Q, AT) "vldrh.u16 " Q ", [%[" AT "]], #16\n"
#define TINYET_MVE_S16_LOAD_SOME(Q, AT) "vpst\nvldrht.u16 " Q ", [%[" AT "]], #16\n"
#define TINYET_MVE_S16_STORE(Q) "vstrh.16 " Q ", [%[to]], #16\n"
#define TINYET_MVE_S16_STORE_SOME(Q) "vpst\nvstrht.16 " Q ", [%[to]], #16\n"
#define TINYET_MVE_S8_LOAD(Q, AT) "vldrb.s16 " Q ", [%[" AT "]], #8\n"
#define TINYET_MVE_S8_LOAD_SOME(Q, AT) "vpst\nvldrbt.s16 " Q ", [%[" AT "]], #8\n"
#define TINYET_MVE_S8_STORE(Q) "vstrb.16 " Q ", [%[to]], #8\n"
#define TINYET_MVE_S8_STORE_SOME(Q) "vpst\nvstrbt.16 " Q ", [%[to]], #8\n"
#define TINYET_MVE_S16_BOUNDS "vdup.16 q6, %[low]\nvdup.16 q7, %[high]\n"
#define TINYET_MVE_S16_BOUNDED(Q) "vmax.s16 " Q ", " Q ", q6\nvmin.s16 " Q ", " Q ", q7\n"
/* TO: the words of FROM, rescaled to the right. */
#define TINYET_MVE_S16_SCALED(TO, FROM, MULTIPLIER, SHIFT) \
  "vshr.s32 " TO ", " FROM ", #31\n" \
  "vqrdmlah.s32 " TO ", " FROM ", " MULTIPLIER "\n" \
  "vrshl.s32 " TO ", " SHIFT "\n"
#define TINYET_MVE_S16_SATURATED(EVEN, ODD) \
  "vqmovnb.s32 " EVEN ", " EVEN "\n" \
  "vqmovnt.s32 " EVEN ", " ODD "\n"
#define TINYET_MVE_S16_JOINED(EVEN, ODD) TINYET_MVE_S16_SATURATED(EVEN, ODD) TINYET_MVE_S16_BOUNDED(EVEN)
/* A row, of `eights` and a `rest`: TINYET_MVE_WALK, which the kernel defines, with a body for eight values and one for fewer. */
#define TINYET_MVE_S16_ROW(BEFORE, BODY, BODY_OF_SOME) \
  if (eights != 0) { \
    TINYET_MVE_WALK(BEFORE "dls lr, %[count]\n1:\n", BODY, "le lr, 1b\n", eights); \
  } \
  if (rest != 0) { \
    TINYET_MVE_WALK(BEFORE "vctp.16 %[count]\n", BODY_OF_SOME, "", rest); \
  }
/* The other way round: a shift before the product. */
#define TINYET_MVE_S16_SCALED_LEFT(TO, FROM, MULTIPLIER, SHIFT) \
  "vshl.s32 " FROM ", " SHIFT "\n" \
  "vqrdmulh.s32 " TO ", " FROM ", " MULTIPLIER "\n"
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif
