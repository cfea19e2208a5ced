/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_winograd.h"
#include "tinyet_one_product.h"

enum { TILE = 4, SIDE = 6, POSITIONS = 36, TILES = 4, CHANNELS = 4, STEP = 2 /* words from tap to tap */ };
enum { SUMS = TILES * CHANNELS, WITH_BIAS = 7 /* the position that is in every output once */ };
#define INVERSE 954437177u /* of 9, modulo 2^32 */

#include "tinyet_paired_windows_body.h"

typedef int16_t __attribute__((may_alias)) half;

/* Six inputs in a row or column of two tiles, 2^16 b + a, transformed. */
#define TRANSFORM(d0, d1, d2, d3, d4, d5, store)                                        \
  do {                                                                                  \
    const uint32_t p = d4 - (d2 << 2), q = d3 - (d1 << 2), u = d4 - d2, v = (d3 - d1) << 1; \
    store(0, u + ((d0 - d2) << 2));                                                     \
    store(1, p + q);                                                                    \
    store(2, p - q);                                                                    \
    store(3, u + v);                                                                    \
    store(4, u - v);                                                                    \
    store(5, d5 - d3 - (v << 1));                                                       \
  } while (0)

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* Nothing is borrowed where the lower half is lifted by 2^15 at all positions, which that of these four inputs does. */
static inline __attribute__((always_inline)) void lift(word *at, int32_t step) {
  at += (4 * SIDE + 4) * step;
  at[0] += 0x8000u;
  at[step] += 0x8000u;
  at += SIDE * step;
  at[0] += 0x8000u;
  at[step] += 0x8000u;
}
#define HALVES(both) (both)
#else
#define lift(at, step)
#define HALVES(both) ((both) + (((both) & 0x8000u) << 1))
#endif

/* One channel of two tiles, whose inputs are replaced; at the end each is a half of its word. step: words from position to
 * position. */
static __attribute__((noinline)) void transform(word *at, int32_t step) {
  const int32_t row = SIDE * step;
  lift(at, step);
  word *a = at, *b = a + row, *c = b + row, *d = c + row, *e = d + row, *f = e + row;
  for (int32_t x = SIDE; x > 0; x--) {
    const uint32_t d0 = *a, d1 = *b, d2 = *c, d3 = *d, d4 = *e, d5 = *f;
    word *const to[SIDE] = {a, b, c, d, e, f};
#define STORE(i, value) *to[i] = (value)
    TRANSFORM(d0, d1, d2, d3, d4, d5, STORE);
#undef STORE
    a += step, b += step, c += step, d += step, e += step, f += step;
  }
  a = at;
  for (int32_t y = SIDE; y > 0; y--) {
    b = a + step, c = b + step, d = c + step, e = d + step, f = e + step;
    const uint32_t d0 = *a, d1 = *b, d2 = *c, d3 = *d, d4 = *e, d5 = *f;
    word *const to[SIDE] = {a, b, c, d, e, f};
#define STORE(i, value)                           \
  do {                                            \
    const uint32_t both = (value);                \
    *to[i] = HALVES(both);                        \
  } while (0)
    TRANSFORM(d0, d1, d2, d3, d4, d5, STORE);
#undef STORE
    a = f + step;
  }
}
#undef lift
#undef HALVES

#include "tinyet_winograd_products_body.h"

/* Six sums in a row or column to four outputs, modulo 2^32. */
static inline __attribute__((always_inline)) void four_of_six(uint32_t *to, uint32_t m0, uint32_t m1, uint32_t m2,
                                                              uint32_t m3, uint32_t m4, uint32_t m5) {
  const uint32_t s = m1 + m2, d = m1 - m2, p = m3 + m4, q = (m3 - m4) << 1;
  to[0] = m0 + s + p;
  to[1] = d + q;
  to[2] = s + (p << 2);
  to[3] = d + (q << 2) + (m5 + (m5 << 1));
}

typedef struct {
  int8_t *output;
  int32_t rows, columns; /* of its pixels that are in the image */
} tile_place;

/* How one channel is rounded. */
typedef struct {
  int32_t multiplier, offset, away;
  uint32_t shift;
} rounding;

/* Of a product of 64 bits. Cores without it make it of four products, rather than by a call. */
static inline __attribute__((always_inline)) int32_t upper_half(int32_t a, int32_t b) {
#if defined(__XTENSA__) || (defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1)
  const int32_t a_low = a & 0xffff, a_high = a >> 16, b_low = b & 0xffff, b_high = b >> 16;
  const int32_t lower = a_high * b_low + (int32_t)((uint32_t)a_low * (uint32_t)b_low >> 16);
  const int32_t upper = a_low * b_high + (lower & 0xffff);
  return a_high * b_high + (lower >> 16) + (upper >> 16);
#else
  return (int32_t)((int64_t)a * b >> 32);
#endif
}

/* The output of a column's sum; what tinyet_one_product gives, without making a byte of it before it is stored. */
static inline __attribute__((always_inline)) void store_output(int8_t *to, uint32_t sum, rounding r) {
  const int32_t high = upper_half((int32_t)(sum * INVERSE), r.multiplier);
  int32_t value = (high - (r.away & high >> 31) + r.offset) >> r.shift;
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  __asm__("ssat %0, #8, %0" : "+r"(value) : : "cc");
#else
  if (value > 127) {
    value = 127;
  }
  if (value < -128) {
    value = -128;
  }
#endif
  *to = (int8_t)value;
}

/* One channel of a tile. row: bytes from row to row of the output. */
static inline __attribute__((always_inline)) void outputs(tile_place place, const uint32_t *sums, int32_t pixel,
                                                          int32_t row, rounding r) {
  uint32_t work[SIDE * TILE];
  for (uint32_t *at = work; at != work + SIDE * TILE; at += TILE, sums += SIDE * SUMS) {
    four_of_six(at, sums[0], sums[SUMS], sums[2 * SUMS], sums[3 * SUMS], sums[4 * SUMS], sums[5 * SUMS]);
  }
  int8_t *to = place.output;
  for (const uint32_t *m = work, *const end = work + place.columns; m != end; m++, to += pixel) {
    uint32_t y[TILE];
    four_of_six(y, m[0], m[TILE], m[2 * TILE], m[3 * TILE], m[4 * TILE], m[5 * TILE]);
    if (place.rows == TILE) {
      store_output(to, y[0], r);
      store_output(to + row, y[1], r);
      store_output(to + 2 * row, y[2], r);
      store_output(to + 3 * row, y[3], r);
    } else {
      for (int32_t i = 0; i < place.rows; i++) {
        store_output(to + i * row, y[i], r);
      }
    }
  }
}

/* So many channels of all tiles, of a block of CHANNELS; f: what makes outputs of their sums. */
static __attribute__((noinline)) void finish(tile_place *places, int32_t count, int32_t channels, uint32_t *sums,
                                             const tinyet_conv2d_shape *s, const TINYET_ROM uint32_t *f, int32_t away) {
  const int32_t pixel = s->out_c, row = s->out_w * pixel;
  for (int32_t k = 0; k < channels; k++, f += 4, sums += TILES) {
    const rounding r = {(int32_t)f[1], (int32_t)f[2], away, f[3]};
    for (int32_t t = 0; t < count; t++) {
      sums[SUMS * WITH_BIAS + t] += f[0];
      outputs(places[t], sums + t, pixel, row, r);
      places[t].output++;
    }
  }
}

void tinyet_conv2d_s8_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_winograd_f4x4_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t down = (s->out_h + TILE - 1) / TILE, across = (s->out_w + TILE - 1) / TILE, tiles = down * across;
  const int32_t away = params->two_sided != 0 ? 32 : 0, size = s->out_h * s->out_w * s->out_c;
  tinyet_conv2d_shape windows = *s;
  windows.out_h = down, windows.out_w = across;
  windows.kernel_h = windows.kernel_w = SIDE;
  windows.stride_h = windows.stride_w = TILE;
  word *const inputs = (word *)scratch;
  uint32_t *const sums = (uint32_t *)scratch + STEP * POSITIONS * s->in_c;
  memset(scratch, 0, tiles % TILES != 0 ? (size_t)(4 * STEP * POSITIONS * s->in_c) : 0);
  for (int32_t n = 0; n < s->batch; n++) {
    window_walk walk = first_window(input, &windows);
    int32_t y = 0, x = 0;
    for (int32_t tile = 0; tile < tiles; tile += TILES) {
      const int32_t count = tiles - tile < TILES ? tiles - tile : (int32_t)TILES;
      tile_place places[TILES];
      for (int32_t t = 0; t < count; t++) {
        const int32_t below = s->out_h - y, right = s->out_w - x;
        places[t].output = output + (y * s->out_w + x) * s->out_c;
        places[t].rows = below < TILE ? below : (int32_t)TILE;
        places[t].columns = right < TILE ? right : (int32_t)TILE;
        x += TILE;
        if (x >= s->out_w) {
          x = 0, y += TILE;
        }
      }
      gather_windows(inputs, count, &walk, &windows, params->padding);
      for (int32_t c = 0; c < STEP * s->in_c; c += STEP) {
        for (int32_t pair = 0; 2 * pair < count; pair++) {
          transform(inputs + c + pair, STEP * s->in_c);
        }
      }
      const TINYET_ROM int16_t *weights = params->weights;
      const TINYET_ROM uint32_t *f = params->stream;
      for (int32_t channel = 0; channel < s->out_c; channel += CHANNELS) {
        products(inputs, weights, sums, s->in_c);
        weights += POSITIONS * CHANNELS * s->in_c;
        const int32_t left = s->out_c - channel, channels = left < CHANNELS ? left : (int32_t)CHANNELS;
        finish(places, count, channels, sums, s, f, away);
        f += 4 * channels;
      }
    }
    tinyet_clamp_outputs(output, size, params->clamp_low, params->clamp_high);
    input += s->in_h * s->in_w * s->in_c;
    output += size;
  }
}
