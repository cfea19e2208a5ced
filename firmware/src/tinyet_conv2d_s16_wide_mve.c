/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_wide_sums_mve.h"

/* Taps side by side, from column `from` of an image's row on, or nothing where the row is not there; gives the place
 * behind them. */
static int16_t *taps(const int16_t *row, int16_t *to, int32_t from, int32_t count, const tinyet_conv2d_s16_wide_mve_params *p) {
  const int32_t channels = p->in_c, end = from + count;
  const int32_t left = from < 0 ? -from : 0, right = end > p->in_w ? end - p->in_w : 0;
  const int32_t before = row == NULL || left > count || right > count ? count : left, behind = before == count ? 0 : right;
  const int32_t there = count - before - behind;
  tinyet_fill_mve((int8_t *)to, 0, 2 * before * channels);
  to += before * channels;
  if (there > 0) {
    tinyet_copy_mve((int8_t *)to, (const int8_t *)(row + (from + before) * channels), 2 * there * channels);
    to += there * channels;
  }
  tinyet_fill_mve((int8_t *)to, 0, 2 * behind * channels);
  return to + behind * channels;
}

/* What the pixel at a row and a column sees. */
static void window(const int16_t *image, int16_t *to, int32_t y, int32_t x, const tinyet_conv2d_s16_wide_mve_params *p) {
  const int32_t together = p->dilation_w == 1 ? p->kernel_w : 1;
  for (int32_t i = 0; i < p->kernel_h; i++) {
    const int32_t at = y + i * p->dilation_h;
    const int16_t *const row = at < 0 || at >= p->in_h ? NULL : image + at * p->in_w * p->in_c;
    for (int32_t j = 0; j < p->kernel_w; j += together) {
      to = taps(row, to, x + j * p->dilation_w, together, p);
    }
  }
}

void tinyet_conv2d_s16_wide_mve(const int16_t *input, int16_t *output, void *scratch,
                                const tinyet_conv2d_s16_wide_mve_params *params) {
  const tinyet_conv2d_s16_wide_mve_params *const p = params;
  int16_t *const seen = (int16_t *)scratch;
  const int32_t direct = p->kernel_h * p->kernel_w * p->stride_h * p->stride_w == 1 && p->out_h == p->in_h &&
                         p->out_w == p->in_w && p->pad_top == 0 && p->pad_left == 0;
  for (int32_t n = p->batch; n != 0; n--, input += p->in_h * p->in_w * p->in_c) {
    for (int32_t y = 0; y < p->out_h; y++) {
      for (int32_t x = 0; x < p->out_w; x++, output += p->outputs.count) {
        const int16_t *from = input + (y * p->in_w + x) * p->in_c;
        if (direct == 0) {
          window(input, seen, y * p->stride_h - p->pad_top, x * p->stride_w - p->pad_left, p);
          from = seen;
        }
        tinyet_wide_row_mve(from, output, &p->outputs);
      }
    }
  }
}
