/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d.h"
#include "tinyet_window.h"

typedef struct {
  const float *first;            /* where the first pixel's window begins in the image, as far as it lies there */
  const TINYET_ROM float *bias;  /* of the first channel, and so are the weights and the output */
  const TINYET_ROM float *weights;
  float *output;
  int32_t rows, runs, run;       /* of the window: rows, what lies apart in a row, and values in one of them */
  int32_t next_row, next_run;    /* from one to the next in the image */
  int32_t next_weights;          /* from one row to the next, for one channel */
  int32_t next_pixel;
} window;

/* `channels` outputs of `pixels` pixels: 4 and 2, 4 and 1, 1 and 1. All sums are independent, so the order of each stays as
 * documented. */
static inline __attribute__((always_inline)) void block(const window *v, const tinyet_conv2d_f32_params *params,
                                                        int32_t channels, int32_t pixels) {
  const float low = params->values.clamp_low, high = params->values.clamp_high;
  float sums[2][4];
  for (int32_t c = 0; c < channels; c++) {
    sums[0][c] = sums[1][c] = v->bias[c];
  }
  const float *row = v->first;
  const TINYET_ROM float *weights = v->weights;
  for (int32_t i = v->rows; i > 0; i--, row += v->next_row, weights += v->next_weights * channels) {
    const float *x = row;
    const TINYET_ROM float *w = weights;
    for (int32_t j = v->runs; j > 0; j--, x += v->next_run) {
      const float *const end = x + v->run;
      do {
        const float first = *x, second = pixels == 2 ? x[v->next_pixel] : 0.0f;
        x++;
        TINYET_UNROLL(4)
        for (int32_t c = 0; c < channels; c++) {
          sums[0][c] += first * w[c];
          if (pixels == 2) {
            sums[1][c] += second * w[c];
          }
        }
        w += channels;
      } while (x != end);
    }
  }
  for (int32_t c = 0; c < channels; c++) {
    v->output[c] = tinyet_clamp_f32(sums[0][c], low, high);
    if (pixels == 2) {
      v->output[params->shape.out_c + c] = tinyet_clamp_f32(sums[1][c], low, high);
    }
  }
}

void tinyet_conv2d_f32_2x4(const float *input, float *output, const tinyet_conv2d_f32_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t row = s->in_w * s->in_c, taps = s->kernel_h * s->kernel_w * s->in_c;
  window v;
  v.next_row = s->dilation_h * row;
  v.next_weights = s->kernel_w * s->in_c;
  v.next_pixel = s->stride_w * s->in_c;
  for (int32_t n = 0; n < s->batch; n++, input += s->in_h * row) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const tinyet_span up =
          tinyet_span_inside(out_y * s->stride_h - s->pad_top, s->kernel_h, s->dilation_h, s->in_h);
      for (int32_t out_x = 0; out_x < s->out_w;) {
        const int32_t left = out_x * s->stride_w - s->pad_left;
        const tinyet_span across = tinyet_span_inside(left, s->kernel_w, s->dilation_w, s->in_w);
        const int32_t reach = left + s->stride_w + (s->kernel_w - 1) * s->dilation_w;
        const int32_t two = across.count == s->kernel_w && out_x + 1 < s->out_w && reach < s->in_w ? 1 : 0;
        v.first = input + up.start * row + across.start * s->in_c;
        v.rows = across.count == 0 ? 0 : up.count;
        v.runs = s->dilation_w == 1 ? 1 : across.count;
        v.run = s->dilation_w == 1 ? across.count * s->in_c : s->in_c;
        v.next_run = (s->dilation_w - 1) * s->in_c;
        v.output = output;
        int32_t c = 0;
        const int32_t skipped = (up.first * s->kernel_w + across.first) * s->in_c;
        for (; c + 4 <= s->out_c; c += 4, v.output += 4) {
          v.weights = params->values.weights + c * taps + 4 * skipped;
          v.bias = params->values.bias + c;
          if (two != 0) {
            block(&v, params, 4, 2);
          } else {
            block(&v, params, 4, 1);
          }
        }
        for (; c < s->out_c; c++, v.output++) {
          v.weights = params->values.weights + c * taps + skipped;
          v.bias = params->values.bias + c;
          block(&v, params, 1, 1);
          if (two != 0) {
            window second = v;
            second.first += v.next_pixel;
            second.output += s->out_c;
            block(&second, params, 1, 1);
          }
        }
        output += (1 + two) * s->out_c;
        out_x += 1 + two;
      }
    }
  }
}
