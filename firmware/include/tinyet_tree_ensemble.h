/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over decision trees. A node asks whether a feature is at most its threshold; all answers are of integers, and exact. The
 * values of the leaves are added in the order of the trees, in float32; or they are int16, and their sums exact int32. */
#ifndef TINYET_TREE_ENSEMBLE_H
#define TINYET_TREE_ENSEMBLE_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TINYET_TREE_LEAF 0x8000u

/* Every NaN of float32: so many are above infinity in the order of tinyet_tree_key. */
#define TINYET_TREE_NANS UINT32_C(0x00fffffe)

/* A float32 as an integer of the same order: -inf is 0, NaNs are above inf. */
static inline uint32_t tinyet_tree_key(const float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  const uint32_t negative = (uint32_t)0 - (bits >> 31);
  return (bits ^ (negative | UINT32_C(0x80000000))) - UINT32_C(0x007fffff);
}

/* thresholds: of each node; of floats as keys, those of nodes where NaN goes to the first child with TINYET_TREE_NANS added.
 * links: of each node its feature, in bit 15 whether NaN goes to the first child, then the child where the feature is at most the
 * threshold, and the other; a child of at least TINYET_TREE_LEAF is a leaf. trees: root and first output of each tree.
 * values: [leaves][width]. */
#define TINYET_TREE_ENSEMBLE_PARAMS(threshold, leaf, sum)  \
  typedef struct {                                         \
    const TINYET_ROM threshold##_t *thresholds;            \
    const TINYET_ROM uint16_t *links;                      \
    const TINYET_ROM uint16_t *trees;                      \
    const TINYET_ROM leaf *values;                         \
    const TINYET_ROM sum *base;                            \
    int32_t rows, features, num_trees, outputs, width;     \
  }

TINYET_TREE_ENSEMBLE_PARAMS(uint32, float, float) tinyet_tree_ensemble_f32_params;
TINYET_TREE_ENSEMBLE_PARAMS(int16, float, float) tinyet_tree_ensemble_s16_f32_params;
TINYET_TREE_ENSEMBLE_PARAMS(int8, float, float) tinyet_tree_ensemble_s8_f32_params;
TINYET_TREE_ENSEMBLE_PARAMS(uint32, int16_t, int32_t) tinyet_tree_ensemble_f32_s32_params;
TINYET_TREE_ENSEMBLE_PARAMS(int16, int16_t, int32_t) tinyet_tree_ensemble_s16_s32_params;
TINYET_TREE_ENSEMBLE_PARAMS(int8, int16_t, int32_t) tinyet_tree_ensemble_s8_s32_params;

void tinyet_tree_ensemble_f32(const float *input, float *output, const tinyet_tree_ensemble_f32_params *params);
void tinyet_tree_ensemble_f32_missing(const float *input, float *output, const tinyet_tree_ensemble_f32_params *params);
void tinyet_tree_ensemble_s16_f32(const int16_t *input, float *output, const tinyet_tree_ensemble_s16_f32_params *params);
void tinyet_tree_ensemble_s8_f32(const int8_t *input, float *output, const tinyet_tree_ensemble_s8_f32_params *params);

/* Sums of int16 leaves; Python has checked that they stay within int32. */
void tinyet_tree_ensemble_f32_s32(const float *input, int32_t *output, const tinyet_tree_ensemble_f32_s32_params *params);
void tinyet_tree_ensemble_f32_s32_missing(const float *input, int32_t *output,
                                          const tinyet_tree_ensemble_f32_s32_params *params);
void tinyet_tree_ensemble_s16_s32(const int16_t *input, int32_t *output, const tinyet_tree_ensemble_s16_s32_params *params);
void tinyet_tree_ensemble_s8_s32(const int8_t *input, int32_t *output, const tinyet_tree_ensemble_s8_s32_params *params);

/* Of trees that are code (branches): the features of a row as keys, and what a leaf adds. */
static inline void tinyet_tree_keys(const float *input, uint32_t *keys, uint32_t features) {
  for (uint32_t i = 0; i < features; i++) {
    keys[i] = tinyet_tree_key(input + i);
  }
}

void tinyet_tree_add_f32(float *sums, const TINYET_ROM float *leaf, uint32_t width);
void tinyet_tree_add_s32(int32_t *sums, const TINYET_ROM int16_t *leaf, uint32_t width);

#ifdef __cplusplus
}
#endif

#endif
