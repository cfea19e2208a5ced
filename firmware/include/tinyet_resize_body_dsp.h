/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of bilinear resizing on cores with DSP instructions. The file that includes this has defined
 *
 *   KERNEL, COLUMNS, PIXELS              names of functions
 *   column                               four channels of one column, between its two rows
 *   column_at(above, below, up, down)    a column; up and down: the weights of its two samples
 *   span                                 what a run of pixels has in common
 *   span_of(left, right)                 that of two columns
 *   pixel_at(span, weight)               four int8; weight: of the column on the right
 *   ONE                                  the sum of two weights */
#ifndef TINYET_RESIZE_BODY_DSP_H
#define TINYET_RESIZE_BODY_DSP_H

#include "tinyet_dsp.h"
#include "tinyet_resize_dsp.h"

/* Four channels of all columns of the input. */
static __attribute__((noinline)) void COLUMNS(const int8_t *above, const int8_t *below, column *to, int32_t count,
                                              int32_t channels, int32_t down) {
  const int32_t up = ONE - down;
  for (int32_t i = count; i != 0; i--) {
    *to++ = column_at(above, below, up, down);
    above += channels, below += channels;
  }
}

/* Four channels of one output row. */
static __attribute__((noinline)) void PIXELS(const column *columns, int8_t *output, const tinyet_resize_bilinear_s8_dsp_params *p) {
  const int32_t *run = p->runs;
  const int16_t *weight = p->column_weights;
  const int32_t channels = p->channels;
  for (int32_t i = p->run_count; i != 0; i--) {
    const span between = span_of(columns[run[0]], columns[run[1]]);
    const int16_t *const end = weight + run[2];
    do {
      tinyet_store_dsp(output, pixel_at(between, *weight++));
      output += channels;
      /* Compilers would compute anew, after the loop, what they are then. */
      TINYET_DSP_UNKNOWN(output);
      TINYET_DSP_UNKNOWN(weight);
    } while (weight != end);
    run += 3;
  }
}

void KERNEL(const int8_t *input, int8_t *output, void *scratch, const tinyet_resize_bilinear_s8_dsp_params *params) {
  const int32_t channels = params->channels;
  column *const columns = (column *)scratch;
  for (int32_t n = 0; n < params->batch; n++) {
    for (int32_t y = 0; y < params->out_h; y++) {
      const int8_t *const above = input + params->rows[2 * y], *const below = input + params->rows[2 * y + 1];
      /* The last four overlap those before where their number is no multiple of 4. */
      for (int32_t c = 0; c < channels; c += 4) {
        const int32_t first = c + 4 <= channels ? c : channels - 4;
        COLUMNS(above + first, below + first, columns, params->in_w, channels, params->row_weights[y]);
        PIXELS(columns, output + first, params);
      }
      output += params->out_w * channels;
    }
    input += params->in_h * params->in_w * channels;
  }
}

#endif
