/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mel-frequency cepstral coefficients of a microphone's samples, in integers: every core computes the same bits.
 *
 * No malloc, no libm, no float. mfcc.py computes the same in numpy and writes mfcc_tables.h, which mfcc.c includes.
 */
#ifndef MFCC_H
#define MFCC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MFCC_RATE 16000 /* samples a second */
#define MFCC_FRAME 512  /* samples of a frame: 32 ms, and the length of its Fourier transform */
#define MFCC_HOP 320    /* samples from a frame to the next: 20 ms */
#define MFCC_BANDS 32
#define MFCC_CEPSTRA 13

/* One second of sound, and what becomes of it. */
#define MFCC_SAMPLES 16000
#define MFCC_FRAMES 49 /* that lie whole in MFCC_SAMPLES */

/* Fraction bits of a cepstral coefficient. */
#define MFCC_FRACTION 7

/* Working memory of one frame: 2 KB, and nothing is kept in it from frame to frame. */
typedef struct {
  int32_t re[MFCC_FRAME / 2];
  int32_t im[MFCC_FRAME / 2];
} mfcc_workspace;

/* One frame: MFCC_FRAME samples to MFCC_CEPSTRA coefficients, Q8.7: natural logarithms of the energies of mel bands (of
 * samples counted in units of 1, with a floor), through an orthonormal DCT-II. */
void mfcc_frame(const int16_t *samples, int16_t *cepstra, mfcc_workspace *workspace);

/* One second: MFCC_SAMPLES samples to [MFCC_FRAMES][MFCC_CEPSTRA]. */
void mfcc(const int16_t *samples, int16_t *cepstra, mfcc_workspace *workspace);

#ifdef __cplusplus
}
#endif

#endif
