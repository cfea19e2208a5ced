/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_mve.h"

static void take_channel(const tinyet_depthwise_job_mve *j, int32_t plane) {
  for (int32_t i = 0; i < j->count; i++) {
    j->inside[plane * j->plane + j->pixels[i]] = j->from[i * j->in_c + plane];
  }
}

static void compute_channel(const tinyet_depthwise_job_mve *j, const uint8_t *tile) {
  const tinyet_depthwise_shape_mve *const s = j->shape;
  const int32_t outputs = s->patch_h * s->patch_w, groups = s->groups;
  const int8_t *const offsets = j->vectors + 16 * outputs * groups;
  const int8_t *const weights = j->stream + 12;
  int32_t rounding[3];
  memcpy(rounding, j->stream, sizeof rounding);
  for (int32_t t = 0; t < s->tiles; t++, tile += 32 / outputs + 16) {
    for (int32_t i = 0; i < 8; i++) {
      uint32_t patch;
      uint16_t place;
      memcpy(&patch, tile + 4 * (i / outputs), sizeof patch);
      memcpy(&place, tile + 32 / outputs + 2 * (2 * (i & 3) + (i >> 2)), sizeof place);
      int32_t sum = rounding[2];
      for (int32_t k = 0; k < 16 * groups; k++) {
        sum += j->planes[patch + (uint8_t)offsets[k]] * weights[(uint8_t)j->vectors[16 * (i % outputs) + k]];
      }
      j->output[place] = tinyet_round_mve(sum, rounding[0], rounding[1], &s->rounding);
    }
  }
}

void tinyet_depthwise_mve_twin(tinyet_depthwise_job_mve *j) {
  const tinyet_depthwise_shape_mve *const s = j->shape;
  for (; j->steps != 0; j->steps--, j->from += s->planes) {
    for (int32_t p = 0; p < s->planes; p++) {
      take_channel(j, p);
    }
    for (int32_t p = 0; p < s->planes; p++) {
      compute_channel(j, j->tiles + p * j->table);
      j->stream += s->stream;
      j->output++;
    }
  }
}
