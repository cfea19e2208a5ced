/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_mve.h"

void tinyet_patches_mve_reference(int8_t *to, const int8_t *from, int32_t count, const tinyet_patches_shape_mve *s) {
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
    tinyet_fill_mve(to, s->zero_point, row);
    return;
  }
  const int32_t left = s->pad_left * s->in_c < row ? s->pad_left * s->in_c : row;
  const int32_t there = all < row - left ? all : row - left;
  tinyet_fill_mve(to, s->zero_point, left);
  if (there > 0) {
    tinyet_copy_mve(to + left, input + y * all, there);
  }
  tinyet_fill_mve(to + left + there, s->zero_point, row - left - there);
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
  state->output += s->out_row;
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

/* So many blocks from `to` on; of fewer pixels than a block has, or where words cannot go there, outputs are copied. */
static void begin_blocks(tinyet_conv2d_state_mve *state, int32_t count, int8_t *to, const tinyet_conv2d_shape_mve *s) {
  state->copied = state->staged || state->count != s->pixels;
  state->to = to;
  state->blocks.count = count;
  state->blocks.to = state->copied ? state->stage : to;
  state->blocks.step = state->copied ? s->channels : s->out_pixel;
}

/* Four neighbours wherever a row ends, and what is left of an image. */
static const int8_t *next_patches(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  if (state->x == s->out_w && !next_row(state, s)) {
    return NULL;
  }
  int8_t *const to = state->output + state->x * s->out_pixel;
  const int32_t fours = (s->out_w - state->x) >> 2;
  state->count = 0;
  begin_run(state, s);
  state->whole = !state->staged && fours != 0;
  if (state->whole) {
    const int32_t blocks = fours < s->patch_blocks ? fours : s->patch_blocks;
    state->count = 4;
    state->run = 4 * blocks;
    state->x += state->run;
    begin_blocks(state, blocks, to, s);
  } else {
    const int32_t left = (s->out_h - state->y) * s->out_w - state->x;
    state->count = left < 4 ? left : 4;
    begin_blocks(state, 1, to, s);
    state->count = 0;
  }
  return state->patches;
}

/* Of a row, whose last block overlaps those before. */
static const int8_t *next_pixels(tinyet_conv2d_state_mve *state, const tinyet_conv2d_shape_mve *s) {
  if (state->x >= s->out_w && !next_row(state, s)) {
    return NULL;
  }
  const int32_t last = s->out_w - state->count, x = state->x < last ? state->x : last;
  const int8_t *const pixels = state->row + x * s->step;
  const int32_t is_near = pixels < state->near;
  int32_t blocks = 1;
  if (is_near && !state->staged && x != last) {
    const int32_t there = (int32_t)(state->near - pixels - 1) / state->blocks.block_in, more = (last - x) / s->pixels;
    blocks += more < there ? more : there;
  }
  state->x = x + s->pixels * blocks;
  begin_blocks(state, blocks, state->output + x * s->out_pixel, s);
  if (is_near) {
    return pixels;
  }
  const int32_t there = (int32_t)(state->end - pixels);
  tinyet_copy_mve(state->patches, pixels, there < s->seen ? there : s->seen);
  return state->patches;
}

const int8_t *tinyet_conv2d_begin_mve(tinyet_conv2d_state_mve *state, const int8_t *input, int8_t *output, void *scratch,
                                      const int8_t *weights, const tinyet_conv2d_shape_mve *s) {
  tinyet_blocks_mve *const b = &state->blocks;
  const int8_t *const end = input + s->batch * s->in_h * s->in_w * s->in_c;
  b->sums = (int32_t *)scratch;
  b->sums_end = b->sums + 4 * s->pixels * s->groups;
  b->ends = (const int32_t *)(const void *)(weights + s->ends);
  b->zero_point = s->rounding.zero_point;
  b->groups = s->groups;
  b->low = s->rounding.low;
  b->high = s->rounding.high;
  b->block_in = s->pixels * (s->patch != 0 ? s->patch : s->step);
  b->behind = s->pixels * s->out_pixel - s->channels;
  b->rounding = &s->rounding;
  state->shape = s;
  state->input = input;
  state->output = output - s->out_row;
  state->stage = (int8_t *)b->sums_end;
  state->patches = state->stage + s->pixels * s->channels;
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
  state->count = s->out_w < s->pixels ? s->out_w : s->pixels;
  state->staged = (((uintptr_t)output | (uintptr_t)s->out_pixel) & 3u) != 0u || s->out_c != s->channels;
  return s->patch != 0 ? next_patches(state, s) : next_pixels(state, s);
}

const int8_t *tinyet_conv2d_next_mve(tinyet_conv2d_state_mve *state) {
  const tinyet_conv2d_shape_mve *const s = state->shape;
  for (int32_t p = 0; state->copied && p < state->count; p++) {
    tinyet_copy_mve(state->to + p * s->out_pixel, state->stage + p * s->channels, s->out_c);
  }
  return s->patch != 0 ? next_patches(state, s) : next_pixels(state, s);
}
