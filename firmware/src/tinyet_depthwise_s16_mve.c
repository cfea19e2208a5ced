/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_mve.h"

static void take_channel(const tinyet_depthwise_job_mve *j) {
  for (int32_t i = 0; i < j->count; i++) {
    memcpy(j->inside + j->pixels[i], j->from + i * j->in_c, 2);
  }
}

static uint16_t half_of(const int8_t *from, int32_t index) {
  uint16_t value;
  memcpy(&value, from + 2 * index, sizeof value);
  return value;
}

/* The sum of output i of a tile, whose patch begins here. */
static int32_t sum_of(const tinyet_depthwise_job_mve *j, const int8_t *patch, int32_t i, int32_t bias) {
  const tinyet_depthwise_shape_mve *const s = j->shape;
  const int32_t outputs = s->patch_h * s->patch_w, groups = s->groups;
  const int8_t *const offsets = outputs == 1 ? j->vectors : j->vectors + 16 * outputs * groups;
  const int8_t *const weights = j->stream + 8;
  int32_t sum = bias;
  for (int32_t g = 0; g < groups; g++) {
    for (int32_t k = 0; k < 8; k++) {
      const int32_t which = outputs == 1 ? 8 * g + k : half_of(j->vectors, 8 * (g * outputs + i % outputs) + k);
      sum += (int16_t)half_of(patch + half_of(offsets, 8 * g + k), 0) * weights[which];
    }
  }
  return sum;
}

void tinyet_depthwise_s16_mve_reference(tinyet_depthwise_job_mve *j, int32_t exponent) {
  const tinyet_depthwise_shape_mve *const s = j->shape;
  const int32_t outputs = s->patch_h * s->patch_w;
  for (; j->steps != 0; j->steps--, j->from += 2, j->stream += s->stream, j->output += 2) {
    int32_t ends[2];
    memcpy(ends, j->stream, sizeof ends);
    take_channel(j);
    const uint8_t *tile = j->tiles;
    for (int32_t t = 0; t < s->tiles; t++, tile += 32 / outputs + 16) {
      for (int32_t i = 0; i < 8; i++) {
        uint32_t patch;
        uint16_t place;
        memcpy(&patch, tile + 4 * (i / outputs), sizeof patch);
        memcpy(&place, tile + 32 / outputs + 2 * (2 * (i & 3) + (i >> 2)), sizeof place);
        const int32_t sum = sum_of(j, j->planes + patch, i, ends[1]);
        const int16_t value = tinyet_round_s16_mve(sum, ends[0], exponent, j->low, j->high);
        memcpy(j->output + place, &value, sizeof value);
      }
    }
  }
}
