/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* Vector i is channel i, its lanes are pixels; q7 says where these go. Bytes join so that lane p has the four channels of pixel
 * p. The two-sided form adds -1 to a negative sum's product: VQRDMLAH on the sign. EVEN has channels 0 and 2, ODD 1 and 3. */
#define TINYET_MVE_ROUND_PIXELS(ROUND, EVEN, ODD, CLAMP) \
  "push {r4-r11, lr}\n" \
  "vpush {d8-d15}\n" \
  "ldm.w r3, {r3, r4, r5, r6, r8}\n" \
  "vdup.8 q5, r5\n" \
  "vdup.8 q6, r6\n" \
  "movs.w r10, #0\n" \
  "vidup.u32 q7, r10, #1\n" \
  "vmul.i32 q7, q7, r8\n" \
  "dls lr, r4\n" \
  "1:\n" \
  "ldm.w r1!, {r4, r5, r6, r8, r9, r10, r11, r12}\n" \
  "vldrw.32 q0, [r0], #16\n" \
  "vldrw.32 q1, [r0], #16\n" \
  "vldrw.32 q2, [r0], #16\n" \
  "vldrw.32 q3, [r0], #16\n" ROUND \
  "vqadd.s16 " EVEN ", " EVEN ", r3\n" \
  "vqadd.s16 " ODD ", " ODD ", r3\n" \
  "vqmovnb.s16 " EVEN ", " EVEN "\n" \
  "vqmovnt.s16 " EVEN ", " ODD "\n" CLAMP \
  "vstrw.32 " EVEN ", [r2, q7]\n" \
  "adds.w r2, r2, #4\n" \
  "le lr, 1b\n" \
  "vpop {d8-d15}\n" \
  "pop.w {r4-r11, pc}\n"
#define TINYET_MVE_ONE_SIDED \
  "vqrdmulh.s32 q0, q0, r4\n" \
  "vqrdmulh.s32 q1, q1, r6\n" \
  "vqrdmulh.s32 q2, q2, r9\n" \
  "vqrdmulh.s32 q3, q3, r11\n" \
  "vrshl.s32 q0, r5\n" \
  "vrshl.s32 q1, r8\n" \
  "vrshl.s32 q2, r10\n" \
  "vrshl.s32 q3, r12\n" \
  "vqmovnb.s32 q0, q0\n" \
  "vqmovnt.s32 q0, q2\n" \
  "vqmovnb.s32 q1, q1\n" \
  "vqmovnt.s32 q1, q3\n"
#define TINYET_MVE_TWO_SIDED \
  "vshr.s32 q4, q0, #31\n" \
  "vqrdmlah.s32 q4, q0, r4\n" \
  "vshr.s32 q0, q1, #31\n" \
  "vqrdmlah.s32 q0, q1, r6\n" \
  "vshr.s32 q1, q2, #31\n" \
  "vqrdmlah.s32 q1, q2, r9\n" \
  "vshr.s32 q2, q3, #31\n" \
  "vqrdmlah.s32 q2, q3, r11\n" \
  "vrshl.s32 q4, r5\n" \
  "vrshl.s32 q0, r8\n" \
  "vrshl.s32 q1, r10\n" \
  "vrshl.s32 q2, r12\n" \
  "vqmovnb.s32 q4, q4\n" \
  "vqmovnt.s32 q4, q1\n" \
  "vqmovnb.s32 q0, q0\n" \
  "vqmovnt.s32 q0, q2\n"
#define TINYET_MVE_CLAMP(EVEN) \
  "vmax.s8 " EVEN ", " EVEN ", q5\n" \
  "vmin.s8 " EVEN ", " EVEN ", q6\n"
#define TINYET_MVE_ROUNDING(NAME, ROUND, EVEN, ODD, CLAMP) \
  __attribute__((naked)) static void NAME(TINYET_MVE_UNUSED const int32_t *sums, TINYET_MVE_UNUSED const int32_t *ends, \
                                          TINYET_MVE_UNUSED int8_t *output, TINYET_MVE_UNUSED const tinyet_pixels_rounding_mve *r) { \
    __asm__ volatile(TINYET_MVE_ROUND_PIXELS(ROUND, EVEN, ODD, CLAMP)); \
  }
/* clang-format on */
TINYET_MVE_ROUNDING(round_one_sided, TINYET_MVE_ONE_SIDED, "q0", "q1", "")
TINYET_MVE_ROUNDING(round_one_sided_clamped, TINYET_MVE_ONE_SIDED, "q0", "q1", TINYET_MVE_CLAMP("q0"))
TINYET_MVE_ROUNDING(round_two_sided, TINYET_MVE_TWO_SIDED, "q4", "q0", "")
TINYET_MVE_ROUNDING(round_two_sided_clamped, TINYET_MVE_TWO_SIDED, "q4", "q0", TINYET_MVE_CLAMP("q4"))
#endif

static void round_pixels(const tinyet_conv2d_state_mve *state, int8_t *to) {
#if TINYET_MVE_ASM
  if (state->form == 0) {
    round_one_sided(state->sums, state->ends, to, &state->rounding);
  } else if (state->form == 1) {
    round_two_sided(state->sums, state->ends, to, &state->rounding);
  } else if (state->form == 2) {
    round_one_sided_clamped(state->sums, state->ends, to, &state->rounding);
  } else {
    round_two_sided_clamped(state->sums, state->ends, to, &state->rounding);
  }
#else
  const tinyet_rounding_mve *const r = &state->shape->rounding;
  const int32_t *sums = state->sums, *ends = state->ends;
  for (int32_t c = 0; c < 4 * state->rounding.groups; c++, ends += 2) {
    for (int32_t p = 0; p < 4; p++) {
      to[p * state->rounding.step + c] = tinyet_round_mve(*sums++, ends[0], ends[1], r);
    }
  }
#endif
}

/* Of two channels, of so many columns. */
static void add_products(int32_t *sums, const int8_t *weights, const int8_t *at, const int32_t *taps, int32_t count,
                         const tinyet_sums_shape_mve *s) {
  for (int32_t kx = 0; kx < count; kx++, weights += 32) {
    const int8_t *const tap = at + taps[kx] * s->column;
    for (int32_t i = 0; i < 4; i++) {
      for (int32_t k = 0; k < 16; k++) {
        sums[i] += tap[i * s->step + k] * weights[k];
        sums[4 + i] += tap[i * s->step + k] * weights[16 + k];
      }
    }
  }
}

void tinyet_sums_mve_twin(const int8_t *weights, const int8_t *pixels, int32_t *sums, const int32_t *end, const int32_t *taps,
                          const tinyet_sums_shape_mve *s) {
  const int32_t places = s->rows * s->depth;
  for (int32_t i = 0; s->chunks != 0 && i < places; i++, weights += 4) {
    const int8_t *const at = pixels + i / s->depth * s->row + i % s->depth * 16;
    const int32_t *tap = taps;
    for (int32_t c = 0; c < s->chunks; tap += taps[s->columns + c], c++) {
      for (int32_t *to = sums; to != end; to += 8) {
        if (i == 0 && c == 0) {
          memcpy(to, weights, 32);
          weights += 32;
        }
        add_products(to, weights, at, tap, taps[s->columns + c], s);
        weights += 32 * taps[s->columns + c];
      }
    }
  }
  for (; s->chunks == 0 && sums != end; sums += 8) {
    memcpy(sums, weights, 32);
    weights += 32;
    for (int32_t i = 0; i < places; i++, weights += 32 * s->columns) {
      add_products(sums, weights, pixels + i / s->depth * s->row + i % s->depth * 16, taps, s->columns, s);
    }
  }
}

void tinyet_patches_mve_twin(int8_t *to, const int8_t *from, int32_t count, const tinyet_patches_shape_mve *s) {
  for (; count != 0; count--, from += s->step, to += s->patch) {
    for (int32_t y = 0; y < s->rows; y++) {
      memcpy(to + y * s->bytes, from + y * s->row, (size_t)s->bytes);
    }
  }
}

/* ---- what is around the printed functions ---- */

static void fill_row(int8_t *to, const int8_t *input, int32_t y, const tinyet_conv2d_shape_mve *s) {
  const int32_t all = s->in_w * s->in_c, row = s->row;
  if (y < 0 || y >= s->in_h) {
    memset(to, s->zero_point, (size_t)row);
    return;
  }
  const int32_t left = s->pad_left * s->in_c < row ? s->pad_left * s->in_c : row;
  const int32_t there = all < row - left ? all : row - left;
  memset(to, s->zero_point, (size_t)left);
  if (there > 0) {
    tinyet_copy_mve(to + left, input + y * all, there);
  }
  memset(to + left + there, s->zero_point, (size_t)(row - left - there));
}

/* The rows of the window that output row y sees. */
static const int8_t *move_window(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  const int32_t top = state->y * s->stride_h, row = s->row;
  int8_t *const rows = state->window;
  if (top + s->span_h - state->window_first > s->window_rows) {
    const int32_t kept = state->window_behind - top;
    if (kept > 0) {
      tinyet_copy_mve(rows, rows + (top - state->window_first) * row, kept * row);
    } else {
      state->window_behind = top;
    }
    state->window_first = top;
  }
  for (; state->window_behind < top + s->span_h; state->window_behind++) {
    fill_row(rows + (state->window_behind - state->window_first) * row, state->input, state->window_behind - s->pad_top, s);
  }
  return rows + (top - state->window_first) * row;
}

/* The next row of output pixels; 0 behind the last one. */
static int next_row(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  state->x = 0;
  state->output += s->out_w * s->out_pixel;
  if (++state->y == s->out_h) {
    state->y = 0;
    state->input += s->in_h * s->in_w * s->in_c;
    state->window_first = state->window_behind = 0;
    if (--state->images == 0) {
      return 0;
    }
  }
  if (s->window_rows != 0) {
    state->row = move_window(state, s);
  } else {
    state->row = state->input + state->y * s->stride_h * s->in_w * s->in_c;
  }
  return 1;
}

/* What so many pixels see, without gaps; up to 15 bytes more. */
void tinyet_conv2d_patches_mve(int8_t *to, const int8_t *from, int32_t count, const tinyet_conv2d_shape_mve *s) {
  for (; count != 0; count--, from += s->step, to += s->patch) {
    const int8_t *row = from;
    int8_t *at = to;
    for (int32_t ky = s->kernel_h; ky != 0; ky--, row += s->dilation_h * s->row) {
      const int8_t *tap = row;
      for (int32_t kx = s->taps; kx != 0; kx--, tap += s->tap_step, at += s->tap_bytes) {
        tinyet_copy_sixteens_mve(at, tap, s->tap_bytes);
      }
    }
  }
}

/* Pixels of a row, as many as are missing from four. */
static void begin_run(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  const int32_t left = s->out_w - state->x, missing = 4 - state->count;
  state->run = left < missing ? left : missing;
  state->pixels = state->row + state->x * s->step;
  state->patch = state->patches + state->count * s->patch;
}

int tinyet_conv2d_run_mve(tinyet_conv2d_state_mve *state) {
  const tinyet_conv2d_shape_mve *const s = state->shape;
  state->x += state->run;
  state->count += state->run;
  if (state->count == 4 || state->y == s->out_h - 1) {
    return 0;
  }
  next_row(state, s);
  begin_run(state, s);
  return 1;
}

/* Four neighbours wherever a row ends, and what is left of an image. */
static const int8_t *next_patches(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  if (state->x == s->out_w && !next_row(state, s)) {
    return NULL;
  }
  state->to = state->output + state->x * s->out_pixel;
  state->count = 0;
  begin_run(state, s);
  state->whole = 0;
  if (!state->staged && state->run == 4) {
    state->plain = ((s->out_w - state->x) >> 2) - 1;
  }
  return state->pixels;
}

/* Of a row, whose last four pixels overlap those before. */
static const int8_t *next_pixels(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  if (state->x >= s->out_w && !next_row(state, s)) {
    return NULL;
  }
  const int32_t last = s->out_w - state->count, x = state->x < last ? state->x : last;
  const int8_t *const pixels = state->row + x * s->step;
  state->x += 4;
  state->to = state->output + x * s->out_pixel;
  if (pixels < state->near) {
    if (!state->staged) {
      const int32_t there = (int32_t)(state->near - pixels - 1) / state->four_in, more = (last - x) >> 2;
      state->plain = more < there ? more : there;
      state->pixels = pixels;
    }
    return pixels;
  }
  const int32_t there = (int32_t)(state->end - pixels);
  tinyet_copy_mve(state->patches, pixels, there < s->seen ? there : s->seen);
  return state->patches;
}

const int8_t *tinyet_conv2d_begin_mve(tinyet_conv2d_state_mve *state, const int8_t *input, int8_t *output, void *scratch,
                                      const int8_t *weights, const tinyet_conv2d_shape_mve *s) {
  const tinyet_rounding_mve *const r = &s->rounding;
  const int8_t *const end = input + s->batch * s->in_h * s->in_w * s->in_c;
  state->sums = (int32_t *)scratch;
  state->sums_end = state->sums + 4 * s->channels;
  state->shape = s;
  state->ends = (const int32_t *)(const void *)(weights + s->ends);
  state->input = input;
  state->output = output - s->out_w * s->out_pixel;
  state->stage = (int8_t *)state->sums_end;
  state->patches = state->stage + 4 * s->channels;
  state->window = state->patches + s->patches_bytes;
  state->end = s->window_rows != 0 ? state->window + s->window_rows * s->row : end;
  state->near = state->end;
  if (s->window_rows == 0) { /* all is copied where words do not lie at multiples of four */
    state->near = ((uintptr_t)input & 3u) != 0u || end - input < s->seen ? input : end - s->seen + 1;
  }
  state->window_first = state->window_behind = 0;
  state->images = s->batch;
  state->y = -1;
  state->x = s->out_w;
  state->count = s->out_w < 4 ? s->out_w : 4;
  state->plain = state->whole = 0;
  state->four_in = 4 * s->step;
  state->four_out = 4 * s->out_pixel;
  state->form = (r->one_sided ? 0 : 1) + (r->clamped ? 2 : 0);
  state->staged = (((uintptr_t)output | (uintptr_t)s->out_pixel | (uintptr_t)s->out_c) & 3u) != 0u;
  const tinyet_pixels_rounding_mve rounding = {r->zero_point, s->channels >> 2, r->low, r->high, s->out_pixel};
  state->rounding = rounding;
  return s->patch != 0 ? next_patches(state, s) : next_pixels(state, s);
}

/* Outputs that go where a vector of words cannot, or fewer than four. */
static void round_staged(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  state->rounding.step = s->channels;
  round_pixels(state, state->stage);
  state->rounding.step = s->out_pixel;
  for (int32_t p = 0; p < state->count; p++) {
    tinyet_copy_mve(state->to + p * s->out_pixel, state->stage + p * s->channels, s->out_c);
  }
}

const int8_t *tinyet_conv2d_next_mve(tinyet_conv2d_state_mve *state) {
  if (state->plain != 0) {
    round_pixels(state, state->to);
    state->plain--;
    state->x += 4;
    state->to += state->four_out;
    state->whole = 1;
    return state->pixels += state->four_in;
  }
  const tinyet_conv2d_shape_mve *const s = state->shape;
  if (!state->staged && state->count == 4) {
    round_pixels(state, state->to);
  } else {
    round_staged(state, s);
  }
  return s->patch != 0 ? next_patches(state, s) : next_pixels(state, s);
}
