/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers of two taps and two outputs a word of weights, for cores that have no instruction for several
 * products. What makes this exact is proved for each layer when code is generated (tinyet/ops/shared/two_taps.py). */
#ifndef TINYET_TWO_TAPS_H
#define TINYET_TWO_TAPS_H

#include "tinyet_packed_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream of `words`, for each four outputs a, b, c, d (of the last block some may be missing): 2^16 b + a before the
 * first product, b, 2^16 d + c, d; then what makes outputs of the sums, as tinyet_packed_words.h has it.
 * weights: [blocks of four outputs][pairs of taps][2] words of four bytes, each a weight plus 128: from the lowest one on
 * both taps of the first output, then of the second; the second word of c and d. */
typedef struct {
  int32_t rows, depth;
  tinyet_packed_words words;
  const TINYET_ROM uint32_t *weights;
} tinyet_linear_s8_two_taps_params;

/* scratch: twelve bytes for each two taps. */
void tinyet_linear_s8_two_taps(const int8_t *input, int8_t *output, void *scratch,
                               const tinyet_linear_s8_two_taps_params *params);

#ifdef __cplusplus
}
#endif

#endif
