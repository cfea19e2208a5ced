/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear int8 resizing for cores with DSP instructions, four channels at a time, with weights in Q4 or Q10: see tinyet_dsp.h.
 *
 * First what lies between two rows is computed for all columns of the input, into scratch. Neighbouring output pixels that
 * lie between the same two columns are a run. */
#ifndef TINYET_RESIZE_DSP_H
#define TINYET_RESIZE_DSP_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t batch;
  int32_t in_h, in_w, channels; /* at least 4 channels */
  int32_t out_h, out_w;
  int32_t run_count;
  const int32_t *rows;           /* [out_h][2], elements from the image's start: the row above and the row below */
  const int16_t *row_weights;    /* [out_h], of the row below */
  const int32_t *runs;           /* [run_count][3]: columns on the left and on the right, pixels */
  const int16_t *column_weights; /* [out_w], of the column on the right */
} tinyet_resize_bilinear_s8_dsp_params;

/* Weights in 1/16. scratch: 8 bytes a column of the input. */
void tinyet_resize_bilinear_s8_q4_dsp(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_resize_bilinear_s8_dsp_params *params);
/* Weights in 1/1024. scratch: 16 bytes a column of the input. */
void tinyet_resize_bilinear_s8_q10_dsp(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_resize_bilinear_s8_dsp_params *params);

#ifdef __cplusplus
}
#endif

#endif
