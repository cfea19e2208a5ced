/* SPDX-License-Identifier: Apache-2.0 */
/* Sound in frames, from run to run: the operators of TFLM's signal library that keep something. What is kept is read
 * from one place and written to another. */
#ifndef TINYET_SIGNAL_FRAMES_H
#define TINYET_SIGNAL_FRAMES_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t frames, count;
  int32_t delay; /* samples */
} tinyet_signal_delay_params;

void tinyet_signal_delay(const int16_t *input, const int16_t *before, int16_t *output, int16_t *kept,
                         const tinyet_signal_delay_params *params);

typedef struct {
  int32_t channels, count; /* samples of a channel, a multiple of `step` */
  int32_t size, step;      /* of a frame; from one to the next */
  int32_t kept;            /* samples */
} tinyet_signal_framer_params;

/* missing: how many of the samples before have not been; whole: 1 when all frames are. */
void tinyet_signal_framer(const int16_t *input, const int16_t *before, const int32_t *missing, int16_t *output,
                          int32_t *whole, int16_t *kept, int32_t *still_missing,
                          const tinyet_signal_framer_params *params);

typedef struct {
  int32_t count;       /* values of a frame */
  int32_t kept;        /* frames */
  int32_t right, step; /* the right context; frames from one whole stack to the next */
} tinyet_signal_stacker_params;

/* missing: frames to a whole stack, negative before the first frame. */
void tinyet_signal_stacker(const int16_t *input, const int16_t *before, const int32_t *missing, int16_t *output,
                           int32_t *whole, int16_t *kept, int32_t *still_missing,
                           const tinyet_signal_stacker_params *params);

typedef struct {
  int32_t channels, frames;
  int32_t size, step; /* of a frame; from one to the next */
} tinyet_signal_overlap_add_params;

void tinyet_signal_overlap_add_s16(const int16_t *input, const int16_t *before, int16_t *output, int16_t *left,
                                   const tinyet_signal_overlap_add_params *params);
void tinyet_signal_overlap_add_f32(const float *input, const float *before, float *output, float *left,
                                   const tinyet_signal_overlap_add_params *params);

#ifdef __cplusplus
}
#endif

#endif
