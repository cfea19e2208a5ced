/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of LSTM over sequences x, [batch][steps][inputs], from a state h and a cell c on. y takes the state behind each step,
 * h_n and c_n the state and the cell behind the last; y may be h_n. Gates are in the order i, f, g, o. The steps are a loop. */
#ifndef TINYET_LSTM_H
#define TINYET_LSTM_H

#include "tinyet_recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s8 x, h;
  int32_t cell_bits;        /* integer bits of the cell's int16 */
  int32_t multiplier, form; /* from what the output gate lets through, as tinyet_requantize_form has them */
  int32_t zero_point;       /* of that */
} tinyet_lstm_s8_params;

typedef struct {
  tinyet_lstm_s8_params layer;
  tinyet_gate_part_s8 projection; /* one gate, of as many rows as the state has values */
  int32_t zero_point;             /* of the state */
} tinyet_lstm_projected_s8_params;

/* The cell is kept within bounds. */
typedef struct {
  tinyet_lstm_s8_params layer;
  int32_t cell_low, cell_high;
} tinyet_lstm_cell_clip_s8_params;

/* As TFLM computes it (tinyet_gates_lut.h). */
typedef struct {
  tinyet_lstm_s8_params layer;
  int32_t cell_low, cell_high;
  const TINYET_ROM uint16_t *table; /* [256], sigmoid(i / 24) in Q0.16 */
} tinyet_lstm_s8_lut_params;

typedef struct {
  tinyet_lstm_s8_params layer;
  int32_t cell_low, cell_high;
  const TINYET_ROM int32_t *pieces; /* [512], as tinyet_gates_pwl.h has them */
} tinyet_lstm_s8_pwl_params;

typedef struct {
  tinyet_recurrent_shape shape;
  tinyet_gate_part_s16 x, h;
  int32_t cell_bits;
  int32_t multiplier, form;
  int32_t cell_low, cell_high;
  const TINYET_ROM uint16_t *table;
} tinyet_lstm_s16_params;

typedef struct {
  tinyet_recurrent_shape shape;
  const TINYET_ROM float *weights; /* [units][inputs + outputs][4] */
  const TINYET_ROM float *bias;    /* [units][4] */
} tinyet_lstm_f32_params;

typedef struct {
  tinyet_lstm_f32_params layer;
  const TINYET_ROM float *projection; /* [outputs][units] */
} tinyet_lstm_projected_f32_params;

typedef struct {
  tinyet_lstm_f32_params layer;
  float cell_clip;
} tinyet_lstm_cell_clip_f32_params;

/* scratch: four gates of int16, units rounded up to fours; with a projection, units bytes behind them. */
void tinyet_lstm_s8(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n, void *scratch,
                    const tinyet_lstm_s8_params *params);
void tinyet_lstm_projected_s8(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                              void *scratch, const tinyet_lstm_projected_s8_params *params);
void tinyet_lstm_cell_clip_s8(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                              void *scratch, const tinyet_lstm_cell_clip_s8_params *params);
void tinyet_lstm_s8_lut(const int8_t *x, const int8_t *h, const int16_t *c, int8_t *y, int8_t *h_n, int16_t *c_n,
                        void *scratch, const tinyet_lstm_s8_lut_params *params);
void tinyet_lstm_s16(const int16_t *x, const int16_t *h, const int16_t *c, int16_t *y, int16_t *h_n, int16_t *c_n,
                     void *scratch, const tinyet_lstm_s16_params *params);

/* scratch: units. Sums in the order bias, x, h. */
void tinyet_lstm_f32(const float *x, const float *h, const float *c, float *y, float *h_n, float *c_n, void *scratch,
                     const tinyet_lstm_f32_params *params);
void tinyet_lstm_projected_f32(const float *x, const float *h, const float *c, float *y, float *h_n, float *c_n, void *scratch,
                               const tinyet_lstm_projected_f32_params *params);
void tinyet_lstm_cell_clip_f32(const float *x, const float *h, const float *c, float *y, float *h_n, float *c_n, void *scratch,
                               const tinyet_lstm_cell_clip_f32_params *params);

#ifdef __cplusplus
}
#endif

#endif
