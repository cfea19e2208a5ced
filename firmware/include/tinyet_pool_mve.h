/* SPDX-License-Identifier: Apache-2.0 */
/* Specialised pools with sliding windows for cores with Helium: windows side by side that have as many taps in the image are printed
 * functions (tinyet/tiles/helium_pools.py), whose references in C for other cores are here. */
#ifndef TINYET_POOL_MVE_H
#define TINYET_POOL_MVE_H

#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* See tinyet/tiles/helium_pools.py. */
typedef struct {
  int32_t rows, columns, channels, row, column, step, out_step;
  uint32_t multiplier; /* from here on of averages */
  int32_t shift, offset, bias, even, start;
} tinyet_windows_mve;

/* count: of windows, at least one. */
void tinyet_max_windows_s8_mve_reference(const void *from, void *to, int32_t count, const tinyet_windows_mve *s);
void tinyet_max_windows_s16_mve_reference(const void *from, void *to, int32_t count, const tinyet_windows_mve *s);
void tinyet_avg_windows_s8_mve_reference(const void *from, void *to, int32_t count, const tinyet_windows_mve *s);
void tinyet_avg_windows_s16_mve_reference(const void *from, void *to, int32_t count, const tinyet_windows_mve *s);

#ifdef __cplusplus
}
#endif

#endif
