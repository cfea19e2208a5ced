/* SPDX-License-Identifier: Apache-2.0 */
#include "mfcc.h"

#include "mfcc_tables.h"

#define HALF (MFCC_FRAME / 2)

/* cos and sin of 2 pi k / MFCC_FRAME for k in [0, HALF], Q30. */
static inline int32_t cosine(int32_t k) { return mfcc_cosine[k]; }
static inline int32_t sine(int32_t k) { return mfcc_cosine[k < HALF / 2 ? HALF / 2 - k : k - HALF / 2]; }

/* x / 2, rounded half up. */
static inline int32_t halved(int32_t x) { return (x >> 1) + (x & 1); }

/* A sample under the Hann window, (1 - cos) / 2, which the table of cosines holds as well; Q15. */
static inline int32_t windowed(const int16_t *samples, int32_t n) {
  const int64_t window = (INT64_C(1) << 30) - cosine(n <= HALF ? n : MFCC_FRAME - n);
  return (int32_t)((samples[n] * window + (1 << 15)) >> 16);
}

/* Sets the samples up as HALF complex numbers (even samples real, odd ones imaginary) in the order in which the
 * transform wants them. Each part is at most 2^30 in size, so each number at most sqrt(2) 2^30. */
static void load(const int16_t *samples, mfcc_workspace *z) {
  for (int32_t i = 0; i < HALF; i++) {
    const int32_t to = mfcc_reversed[i];
    z->re[to] = windowed(samples, 2 * i);
    z->im[to] = windowed(samples, 2 * i + 1);
  }
}

/* The discrete Fourier transform of HALF complex numbers, divided by HALF: each of its stages halves, so no number ever
 * grows. Radix 2, decimation in time, in place. */
static void transform(mfcc_workspace *z) {
  for (int32_t half = 1; half < HALF; half *= 2) {
    const int32_t step = HALF / half;
    for (int32_t k = 0; k < half; k++) {
      const int64_t c = cosine(k * step), s = sine(k * step);
      for (int32_t a = k; a < HALF; a += 2 * half) {
        const int32_t b = a + half;
        const int32_t re = (int32_t)((z->re[b] * c + z->im[b] * s + (INT64_C(1) << 30)) >> 31);
        const int32_t im = (int32_t)((z->im[b] * c - z->re[b] * s + (INT64_C(1) << 30)) >> 31);
        const int32_t a_re = halved(z->re[a]), a_im = halved(z->im[a]);
        z->re[a] = a_re + re;
        z->im[a] = a_im + im;
        z->re[b] = a_re - re;
        z->im[b] = a_im - im;
      }
    }
  }
}

/* The squared size of bin k of the real samples' transform, in units of the samples: the bin is found from the two
 * mirrored numbers of the half as long complex transform. */
static uint64_t power(const mfcc_workspace *z, int32_t k) {
  const int32_t i = k & (HALF - 1), j = (HALF - k) & (HALF - 1);
  const int64_t sum_re = (int64_t)z->re[i] + z->re[j], sum_im = (int64_t)z->im[i] - z->im[j];
  const int64_t difference_re = (int64_t)z->re[i] - z->re[j], difference_im = (int64_t)z->im[i] + z->im[j];
  const int64_t c = cosine(k), s = sine(k), round = INT64_C(1) << 31, one = INT64_C(1) << 30;
  const int64_t re = (sum_re * one + c * difference_im - s * difference_re + round) >> 32;
  const int64_t im = (sum_im * one - c * difference_re - s * difference_im + round) >> 32;
  /* The samples were scaled by 2^15 (the window) and divided by 2^9. */
  return (uint64_t)(re * re + im * im) >> 12;
}

/* Base-2 logarithm of a number above zero, Q16: a table of 128 steps, and straight lines between them. */
static int32_t log2_q16(uint64_t x) {
  const int32_t exponent = 63 - __builtin_clzll(x);
  const uint64_t mantissa = x << (63 - exponent);
  const int32_t step = (int32_t)(mantissa >> 56) & 127, rest = (int32_t)(mantissa >> 40) & 0xffff;
  const int32_t low = mfcc_log2[step], high = mfcc_log2[step + 1];
  return exponent * 65536 + low + (((high - low) * rest + 32768) >> 16);
}

/* Energies of the bands, Q15. Band b rises over interval b and falls over interval b + 1; in an interval the rising and
 * the falling share of a bin sum to 1. What lies below the first band's peak and above the last one's goes to two bands
 * that nobody looks at. */
static void filter(const mfcc_workspace *z, uint64_t energies[MFCC_BANDS + 2]) {
  for (int32_t b = 0; b < MFCC_BANDS + 2; b++) {
    energies[b] = 0;
  }
  for (int32_t k = MFCC_FIRST_BIN; k <= MFCC_LAST_BIN; k++) {
    const uint64_t p = power(z, k);
    const uint64_t rise = mfcc_rise[k - MFCC_FIRST_BIN];
    const uint8_t interval = mfcc_interval[k - MFCC_FIRST_BIN];
    energies[interval] += p * (32768u - rise);
    energies[interval + 1] += p * rise;
  }
}

void mfcc_frame(const int16_t *samples, int16_t *cepstra, mfcc_workspace *workspace) {
  uint64_t energies[MFCC_BANDS + 2];
  int32_t logs[MFCC_BANDS];
  load(samples, workspace);
  transform(workspace);
  filter(workspace, energies);
  for (int32_t b = 0; b < MFCC_BANDS; b++) {
    logs[b] = log2_q16(energies[b + 1] + MFCC_FLOOR) - 15 * 65536;
  }
  for (int32_t n = 0; n < MFCC_CEPSTRA; n++) {
    int64_t sum = INT64_C(1) << 25;
    for (int32_t b = 0; b < MFCC_BANDS; b++) {
      sum += (int64_t)mfcc_dct[n][b] * logs[b];
    }
    /* 16 bits of the logarithm and 17 of the cosine, to MFCC_FRACTION. No energy is large enough to overflow. */
    cepstra[n] = (int16_t)(sum >> 26);
  }
}

void mfcc(const int16_t *samples, int16_t *cepstra, mfcc_workspace *workspace) {
  for (int32_t i = 0; i < MFCC_FRAMES; i++) {
    mfcc_frame(samples + i * MFCC_HOP, cepstra + i * MFCC_CEPSTRA, workspace);
  }
}
