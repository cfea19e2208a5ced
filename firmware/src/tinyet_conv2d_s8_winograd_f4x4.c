/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_winograd.h"
#include "tinyet_one_product.h"

enum { TILE = 4, SIDE = 6, TAPS = 9, POSITIONS = 36, TILES = 4, CHANNELS = 4, STEP = 2 /* words from tap to tap */, CHECK = 0 };
enum { SUMS = TILES * CHANNELS, WITH_BIAS = 7 /* the position that is in every output once */ };
enum { OF_STREAM = 8 /* words of a channel */, LIFT = 0x8000 };
#define INVERSE 954437177u /* of 9, modulo 2^32 */

/* Weights are in flash, or transformed in RAM; on AVR one type of pointer reads both. */
#if defined(__FLASH)
#define TRANSFORMED __memx
#else
#define TRANSFORMED
#endif

#include "tinyet_paired_windows_body.h"

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
#define STORE(i, value) *to[i] = (value)

/* One channel of two tiles, whose inputs are replaced; step: words from position to position. At the end each is a half of its
 * word. Nothing is borrowed where the lower half is lifted by 2^15 at all positions, which that of these four inputs does. */
static __attribute__((noinline)) void transform(word *at, int32_t step) {
  const int32_t row = SIDE * step;
  word *a = at, *b = a + row, *c = b + row, *d = c + row, *e = d + row, *f = e + row;
  e[4 * step] += LIFT, e[5 * step] += LIFT;
  f[4 * step] += LIFT, f[5 * step] += LIFT;
  for (int32_t x = SIDE; x > 0; x--) {
    const uint32_t d0 = *a, d1 = *b, d2 = *c, d3 = *d, d4 = *e, d5 = *f;
    word *const to[SIDE] = {a, b, c, d, e, f};
    TRANSFORM(d0, d1, d2, d3, d4, d5, STORE);
    a += step, b += step, c += step, d += step, e += step, f += step;
  }
  a = at;
  for (int32_t y = SIDE; y > 0; y--) {
    b = a + step, c = b + step, d = c + step, e = d + step, f = e + step;
    const uint32_t d0 = *a, d1 = *b, d2 = *c, d3 = *d, d4 = *e, d5 = *f;
    word *const to[SIDE] = {a, b, c, d, e, f};
    TRANSFORM(d0, d1, d2, d3, d4, d5, STORE);
    a = f + step;
  }
}
#undef STORE
#undef TRANSFORM

/* The sign of a word's lower half. Of a mask and a shift GCC makes an instruction each, though an addition shifts as well. */
static inline __attribute__((always_inline)) uint32_t sign_of_half(uint32_t both) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
  uint32_t sign;
  __asm__("and %0, %1, #0x8000" : "=r"(sign) : "r"(both));
  return sign;
#else
  return both & LIFT;
#endif
}

/* Three weights in a row or column of two channels, 2^16 b + a, to six words. */
#define SIX_OF_THREE(g0, g1, g2, store)                                 \
  do {                                                                  \
    const uint32_t g1_4 = g1 << 2, ends = g0 + g2, sum = g0 + (g2 << 2); \
    store(0, (g0 + (g0 << 1)) << 1);                                    \
    store(1, 0u - (g1_4 + (ends << 2)));                                \
    store(2, g1_4 - (ends << 2));                                       \
    store(3, sum + (g1 << 1));                                          \
    store(4, sum - (g1 << 1));                                          \
    store(5, g2 << 3);                                                  \
  } while (0)

/* Weights of two channels of one input channel, CHANNELS bytes from tap to tap. What the lower half borrowed of the upper one
 * is put back. step: words from position to position. */
static __attribute__((noinline)) void transform_weights(word *to, const TINYET_ROM int8_t *taps, int32_t step) {
  word rows[3 * SIDE];
  for (int32_t x = 0; x < 3; x++, taps += CHANNELS) {
#define TAP(y) ((uint32_t)taps[3 * CHANNELS * (y)] + ((uint32_t)taps[3 * CHANNELS * (y) + 1] << 16))
#define STORE(i, value) rows[3 * (i) + x] = (value)
    const uint32_t g0 = TAP(0), g1 = TAP(1), g2 = TAP(2);
    SIX_OF_THREE(g0, g1, g2, STORE);
#undef STORE
#undef TAP
  }
  for (const word *at = rows; at != rows + 3 * SIDE; at += 3, to += SIDE * step) {
    const uint32_t g0 = at[0], g1 = at[1], g2 = at[2];
#define STORE(i, value)                                 \
  do {                                                  \
    const uint32_t both = (value);                      \
    to[(i) * step] = both + (sign_of_half(both) << 1);  \
  } while (0)
    SIX_OF_THREE(g0, g1, g2, STORE);
#undef STORE
  }
}
#undef SIX_OF_THREE

#include "tinyet_winograd_outputs_body.h"
#include "tinyet_winograd_products_body.h"

typedef struct {
  int8_t *output;
  int32_t rows, columns; /* of its pixels that are in the image */
} tile_place;

/* One channel of a tile that is not all in the image. */
static __attribute__((noinline)) void tile_outputs_in_image(int8_t *to, const uint32_t *sums, const channel_outputs *c,
                                                            const uint32_t *lift, const tile_place *place) {
  channel_outputs other = *c;
  other.row = TILE, other.pixel = 1;
  int8_t apart[TILE * TILE];
  tile_outputs(apart, sums, &other, lift);
  for (int32_t y = 0; y < place->rows; y++) {
    for (int32_t x = 0; x < place->columns; x++) {
      to[y * c->row + x * c->pixel] = apart[TILE * y + x];
    }
  }
}

/* So many channels from `first` on of all tiles, of a block of CHANNELS; f: what makes outputs of their sums. */
static __attribute__((noinline)) void finish(const tile_place *places, int32_t count, int32_t channels, uint32_t *sums,
                                             const tinyet_conv2d_shape *s, const TINYET_ROM uint32_t *f, int32_t away,
                                             int32_t first) {
  channel_outputs c = {0, s->out_w * s->out_c, away, 0, 0, s->out_c};
  uint32_t lifts[8] = {0}; /* of tiles in lower halves, and of those in upper ones */
  for (int32_t k = first; k < first + channels; k++, f += OF_STREAM, sums += TILES) {
    c.multiplier = (int32_t)f[1], c.offset = (int32_t)f[2], c.shift = (int32_t)f[3];
    lifts[0] = f[4], lifts[1] = f[5], lifts[2] = f[6], lifts[3] = f[7];
    const uint32_t bias = f[0];
    for (int32_t t = 0; t < count; t++) {
      const tile_place *const place = places + t;
      const uint32_t *const lift = lifts + 4 * (t & 1);
      sums[SUMS * WITH_BIAS + t] += bias;
      if (place->rows == TILE && place->columns == TILE) {
        tile_outputs(place->output + k, sums + t, &c, lift);
      } else {
        tile_outputs_in_image(place->output + k, sums + t, &c, lift, place);
      }
    }
  }
}

/* Whether transformed inputs of all tiles stay in scratch, and are there. */
typedef enum { NONE, ALL, THERE } tiles_kept;

/* Some channels, so many, of which `output` has the first; transformed, stream: theirs. */
static void some_channels(const int8_t *input, int8_t *output, word *inputs, uint32_t *sums,
                          const TRANSFORMED int16_t *transformed, const TINYET_ROM uint32_t *stream, int32_t all,
                          const tinyet_conv2d_shape *s, const tinyet_one_product_outputs *o, tiles_kept kept) {
  const int32_t down = (s->out_h + TILE - 1) / TILE, across = (s->out_w + TILE - 1) / TILE, tiles = down * across;
  const int32_t away = o->two_sided != 0 ? 32 : 0;
  tinyet_conv2d_shape windows = *s;
  windows.out_h = down, windows.out_w = across;
  windows.kernel_h = windows.kernel_w = SIDE;
  windows.stride_h = windows.stride_w = TILE;
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
      if (kept != THERE) {
        gather_windows(inputs, count, &walk, &windows, o->padding);
        for (int32_t c = 0; c < STEP * s->in_c; c += STEP) {
          for (int32_t pair = 0; 2 * pair < count; pair++) {
            transform(inputs + c + pair, STEP * s->in_c);
          }
        }
      }
      const TRANSFORMED int16_t *weights = transformed;
      const TINYET_ROM uint32_t *f = stream;
      for (int32_t channel = 0; channel < all; channel += CHANNELS) {
        products(inputs, weights, sums, s->in_c);
        weights += POSITIONS * CHANNELS * s->in_c;
        const int32_t left = all - channel, channels = left < CHANNELS ? left : (int32_t)CHANNELS;
        finish(places, count, channels, sums, s, f, away, channel);
        f += OF_STREAM * channels;
      }
      inputs += kept == NONE ? 0 : STEP * POSITIONS * s->in_c;
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->out_c;
  }
}

/* Products read four tiles always: what none is there for is cleared. inputs: of the last four of an image. */
static void clear_tiles(word *inputs, const tinyet_conv2d_shape *s) {
  const int32_t tiles = ((s->out_h + TILE - 1) / TILE) * ((s->out_w + TILE - 1) / TILE);
  memset(inputs, 0, tiles % TILES != 0 ? (size_t)(4 * STEP * POSITIONS * s->in_c) : 0);
}

static void clamp(int8_t *output, const tinyet_conv2d_shape *s, const tinyet_one_product_outputs *o) {
  tinyet_clamp_outputs(output, s->batch * s->out_h * s->out_w * s->out_c, o->clamp_low, o->clamp_high);
}

void tinyet_conv2d_s8_w16_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                        const tinyet_conv2d_s8_w16_winograd_f4x4_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  word *const inputs = (word *)scratch;
  clear_tiles(inputs, s);
  word *const sums = inputs + STEP * POSITIONS * s->in_c;
  some_channels(input, output, inputs, (uint32_t *)sums, params->weights, params->outputs.stream, s->out_c, s,
                &params->outputs, NONE);
  clamp(output, s, &params->outputs);
}

void tinyet_conv2d_s8_winograd_f4x4(const int8_t *input, int8_t *output, void *scratch,
                                    const tinyet_conv2d_s8_winograd_f4x4_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t in_c = s->in_c, each = STEP * POSITIONS * in_c, steps = params->kept > 0 ? params->kept : 1;
  word *const inputs = (word *)scratch, *const sums = inputs + each * steps, *const transformed = sums + POSITIONS * SUMS;
  const TINYET_ROM int8_t *weights = params->weights;
  const TINYET_ROM uint32_t *stream = params->outputs.stream;
  tiles_kept kept = params->kept > 0 ? ALL : NONE;
  clear_tiles(sums - each, s);
  for (int32_t first = 0; first < s->out_c;) {
    word *to = transformed;
    int32_t channels = 0;
    for (; channels < CHANNELS * params->at_once && first + channels < s->out_c; channels += CHANNELS) {
      for (int32_t c = 0; c < in_c; c++, to += 2, weights += TAPS * CHANNELS) {
        transform_weights(to, weights, 2 * in_c);
        transform_weights(to + 1, weights + 2, 2 * in_c);
      }
      to += 2 * (POSITIONS - 1) * in_c;
    }
    channels = s->out_c - first < channels ? s->out_c - first : channels;
    some_channels(input, output + first, inputs, (uint32_t *)sums, (const int16_t *)transformed, stream, channels, s,
                  &params->outputs, kept);
    kept = kept == ALL ? THERE : kept;
    first += channels;
    stream += OF_STREAM * channels;
  }
  clamp(output, s, &params->outputs);
}
