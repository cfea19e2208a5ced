/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_NUMBERS(TO, BEGIN, COUNT, STEP) \
  do { \
    uint16_t *at = TO; \
    __asm__ volatile( \
        "mov.w r4, %[begin]\n" \
        "dlstp.16 lr, %[count]\n" \
        "1:\n" \
        "vidup.u16 q0, r4, #" STEP "\n" \
        "vstrh.16 q0, [%[at]], #16\n" \
        "letp lr, 1b\n" \
        : [at] "+l"(at) \
        : [begin] "r"(BEGIN), [count] "r"(COUNT) \
        : "r4", "lr", "d0", "d1", "memory"); \
  } while (0)
/* clang-format on */
#endif

/* Where each pixel of some rows lies in the plane, in bytes. */
static void number_pixels(uint16_t *to, int32_t rows, const tinyet_depthwise_shape_mve *s) {
  int32_t begin = 0;
  for (; rows != 0; rows--, begin += s->row, to += s->in_w) {
#if TINYET_MVE_ASM
    if (s->bytes == 1) {
      TINYET_MVE_NUMBERS(to, begin, s->in_w, "1");
    } else {
      TINYET_MVE_NUMBERS(to, begin, s->in_w, "2");
    }
#else
    for (int32_t x = 0; x < s->in_w; x++) {
      to[x] = (uint16_t)(begin + s->bytes * x);
    }
#endif
  }
}

/* Eight offsets of outputs, `place` beyond those that are given. */
static void lay_places(uint16_t *to, const uint16_t *from, int32_t place) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vldrh.u16 q0, [%[from]]\n"
      "vadd.i16 q0, q0, %[place]\n"
      "vstrh.16 q0, [%[to]]\n"
      :
      : [to] "r"(to), [from] "r"(from), [place] "r"(place)
      : "d0", "d1", "memory");
#else
  for (int32_t i = 0; i < 8; i++) {
    to[i] = (uint16_t)(from[i] + place);
  }
#endif
}

/* Four addresses, `first` beyond what is given. */
static void lay_addresses(uint32_t *to, const uint32_t *from, uint32_t first) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "vldrw.u32 q0, [%[from]]\n"
      "vadd.i32 q0, q0, %[first]\n"
      "vstrw.32 q0, [%[to]]\n"
      :
      : [to] "r"(to), [from] "r"(from), [first] "r"(first)
      : "d0", "d1", "memory");
#else
  for (int32_t i = 0; i < 4; i++) {
    const uint32_t address = from[i] + first;
    memcpy(to + i, &address, sizeof address); /* offsets of outputs may come there */
  }
#endif
}

/* Of a patch: its first output, that one's offset and its own address, and those of its row. */
typedef struct {
  int32_t x, y, place, row_place;
  uint32_t patch, row;
} patch_position;

/* To the next patch, which overlaps this one at the end of a row; the last one stays. */
static void to_next_patch(patch_position *at, const tinyet_depthwise_shape_mve *s) {
  const int32_t right = s->out_w - s->patch_w - at->x, below = s->band - s->patch_h - at->y;
  if (right > 0) {
    const int32_t step = right < s->patch_w ? right : s->patch_w;
    at->x += step;
    at->patch += (uint32_t)(step * s->stride_w);
    at->place += step * s->out_pixel;
  } else if (below > 0) {
    const int32_t step = below < s->patch_h ? below : s->patch_h;
    at->y += step;
    at->x = 0;
    at->patch = at->row += (uint32_t)(step * s->stride_h * s->row);
    at->place = at->row_place += step * s->out_w * s->out_pixel;
  }
}

/* The tiles of a band: addresses of patches, as many as make whole tiles, the last one several times, and where their
 * outputs go. Behind them those of the second plane. */
static void lay_patches(uint8_t *tile, const int8_t *planes, const tinyet_depthwise_shape_mve *s) {
  static const uint8_t order[8] = {0, 2, 4, 6, 1, 3, 5, 7}; /* lanes of the sums */
  const uint32_t bytes = (uint32_t)(s->band_in * s->row), step = (uint32_t)(s->patch_w * s->stride_w);
  const int32_t outputs = s->patch_h * s->patch_w, patches = 8 / outputs, table = s->tiles * (patches + 4);
  const int32_t down = s->out_w * s->out_pixel, wide = (patches - 1) * s->patch_w;
  uint32_t *to = (uint32_t *)(void *)tile;
  const uint32_t first = TINYET_MVE_ASM ? (uint32_t)(uintptr_t)planes : 0u;
  patch_position at = {0, 0, 0, 0, first, first};
  int32_t steps[4];   /* from the first output of a patch to each */
  uint16_t spread[8]; /* from the first output of a tile to each lane's, where its patches are neighbours */
  uint32_t beside[8]; /* from the first of these to each */
  for (int32_t j = 0; j < outputs; j++) {
    steps[j] = s->patch_w == 1 ? j * down : (j >> 1) * down + (j & 1) * s->out_pixel;
    for (int32_t p = 0; p < patches; p++) {
      spread[order[p * outputs + j]] = (uint16_t)(p * s->patch_w * s->out_pixel + steps[j]);
    }
  }
  for (uint32_t p = 0; p < 8u; p++) {
    beside[p] = p * step;
  }
  for (int32_t t = s->tiles; t != 0; t--, to += 4) {
    uint16_t *const places = (uint16_t *)(void *)(to + patches);
    if (at.x + wide <= s->out_w - s->patch_w) {
      for (int32_t plane = 0; plane < s->planes; plane++) {
        uint32_t *const lane = to + plane * table;
        const uint32_t there = at.patch + (plane != 0 ? bytes : 0u);
        lay_addresses(lane, beside, there); /* of two patches, offsets of outputs come where two are too many */
        if (patches == 8) {
          lay_addresses(lane + 4, beside + 4, there);
        }
        lay_places(places + 2 * plane * table, spread, at.place);
      }
      to += patches;
      at.patch += (uint32_t)(patches - 1) * step;
      at.x += wide;
      at.place += wide * s->out_pixel;
      to_next_patch(&at, s);
    } else {
      const uint8_t *lane = order;
      for (; (void *)to != (void *)places; to_next_patch(&at, s)) {
        to[s->planes == 2 ? table : 0] = at.patch + bytes;
        *to++ = at.patch;
        for (int32_t j = 0; j < outputs; j++) {
          places[*lane++] = (uint16_t)(at.place + steps[j]);
        }
      }
      for (int32_t i = 0; s->planes == 2 && i < 4; i++) {
        to[table + i] = to[i];
      }
    }
  }
}

tinyet_depthwise_job_mve *tinyet_depthwise_next_mve(tinyet_depthwise_state_mve *state) {
  tinyet_depthwise_job_mve *const j = &state->job;
  const tinyet_depthwise_shape_mve *const s = j->shape;
  if (state->first >= s->out_h) {
    state->first = 0;
    state->input += s->in_h * s->in_w * s->in_c;
    state->output += s->out_h * s->out_w * s->out_pixel;
    if (--state->images == 0) {
      return NULL;
    }
  }
  /* The last band overlaps others. */
  const int32_t first = state->first + s->band < s->out_h ? state->first : s->out_h - s->band;
  const int32_t top = first * s->stride_h - s->pad_top;
  const int32_t begin = top > 0 ? top : 0;
  const int32_t end = top + s->band_in < s->in_h ? top + s->band_in : s->in_h;
  state->first += s->band;
  tinyet_fill_mve(state->plane, s->zero_point, s->planes * j->plane);
  j->count = end > begin ? (end - begin) * s->in_w : 0;
  j->from = state->input + begin * s->in_w * s->in_c;
  j->inside = state->plane + (begin - top) * s->row + s->pad_left;
  j->output = state->output + first * s->out_w * s->out_pixel;
  j->stream = state->weights;
  j->steps = s->steps;
  return j;
}

tinyet_depthwise_job_mve *tinyet_depthwise_begin_mve(tinyet_depthwise_state_mve *state, const int8_t *input, int8_t *output,
                                                     void *scratch, const int8_t *weights, const int8_t *vectors,
                                                     const tinyet_depthwise_shape_mve *s) {
  tinyet_depthwise_job_mve *const j = &state->job;
  uint8_t *const tiles = (uint8_t *)scratch;
  j->table = s->tiles * (32 / (s->patch_h * s->patch_w) + 16);
  uint16_t *const pixels = (uint16_t *)(void *)(tiles + s->planes * j->table);
  state->plane = (int8_t *)(pixels + s->band_in * s->in_w);
  state->input = input;
  state->output = output;
  state->weights = weights;
  state->images = s->batch;
  state->first = 0;
  j->planes = state->plane;
  j->shape = s;
  j->pixels = pixels;
  j->in_c = s->in_c;
  j->plane = s->band_in * s->row;
  j->vectors = vectors;
  j->tiles = tiles;
  j->end = tiles + s->planes * j->table;
  j->zero_point = s->rounding.zero_point;
  j->low = s->rounding.low;
  j->high = s->rounding.high;
  lay_patches(tiles, state->plane, s);
  number_pixels(pixels, s->band_in, s);
  return tinyet_depthwise_next_mve(state);
}
