/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of a block of pixels, in C as the printed functions make them (tinyet/tiles/helium.py). The file that includes this
 * has defined
 *
 *   LANES          inputs of a product: 16 of int8, 8 of int16
 *   add_products   which adds what so many columns come to, to the sums of two channels */
#ifndef TINYET_BLOCK_SUMS_MVE_BODY_H
#define TINYET_BLOCK_SUMS_MVE_BODY_H

#include "tinyet_conv2d_mve.h"

static void add_sums(const int8_t *weights, const int8_t *pixels, int32_t *sums, const int32_t *end, const int32_t *taps,
                     const tinyet_sums_shape_mve *s) {
  const int32_t places = s->rows * s->depth, both = 2 * s->pixels;
  const size_t biases = (size_t)both * sizeof *sums;
  for (int32_t i = 0; s->chunks != 0 && i < places; i++, weights += 4) {
    const int8_t *const at = pixels + i / s->depth * s->row + i % s->depth * 16;
    const int32_t *tap = taps;
    for (int32_t c = 0; c < s->chunks; tap += taps[s->columns + c], c++) {
      for (int32_t *to = sums; to != end; to += both) {
        if (i == 0 && c == 0) {
          memcpy(to, weights, biases);
          weights += biases;
        }
        add_products(to, weights, at, tap, taps[s->columns + c], s);
        weights += 2 * LANES * taps[s->columns + c];
      }
    }
  }
#if LANES == 16
  /* Biases that are made of lanes without inputs. */
  if (s->free != 0) {
    const int8_t *const constants = weights;
    for (weights += 16; sums != end; sums += s->pixels, weights += 16) {
      for (int32_t p = 0; p < s->pixels; p++) {
        sums[p] = 0;
        for (int32_t k = 0; k < 16; k++) {
          sums[p] += (k < 16 - s->free ? pixels[p * s->step + k] : constants[k]) * weights[k];
        }
      }
    }
  }
#endif
  for (; s->chunks == 0 && sums != end; sums += both) {
    memcpy(sums, weights, biases);
    weights += biases;
    for (int32_t i = 0; i < places; i++, weights += 2 * LANES * s->columns) {
      add_products(sums, weights, pixels + i / s->depth * s->row + i % s->depth * 16, taps, s->columns, s);
    }
  }
}

#endif
