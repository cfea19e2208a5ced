/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_4x4.h"

enum { PIXELS = 4, CHANNELS = 4 };

static void copy(int8_t *to, const int8_t *from, int32_t count) {
  for (; count >= 4; count -= 4) {
    const int8_t a = from[0], b = from[1], c = from[2], d = from[3];
    to[0] = a, to[4] = b, to[8] = c, to[12] = d;
    from += 4;
    to += 16;
  }
  for (; count > 0; count--) {
    *to = *from++;
    to += 4;
  }
}

static void fill(int8_t *to, int32_t value, int32_t count) {
  for (; count > 0; count--) {
    *to = (int8_t)value;
    to += 4;
  }
}

/* What the window of one pixel sees, every fourth byte. */
static void gather(int8_t *patch, const int8_t *image, int32_t top, int32_t left, const tinyet_conv2d_shape *s,
                   int32_t padding) {
  const int32_t row = s->kernel_w * s->in_c;
  const int32_t whole = s->dilation_w == 1 && left >= 0 && left + s->kernel_w <= s->in_w ? 1 : 0;
  for (int32_t i = 0; i < s->kernel_h; i++) {
    const int32_t y = top + i * s->dilation_h;
    if (y < 0 || y >= s->in_h) {
      fill(patch, padding, row);
      patch += PIXELS * row;
    } else if (whole != 0) {
      copy(patch, image + (y * s->in_w + left) * s->in_c, row);
      patch += PIXELS * row;
    } else {
      for (int32_t j = 0; j < s->kernel_w; j++) {
        const int32_t x = left + j * s->dilation_w;
        if (x < 0 || x >= s->in_w) {
          fill(patch, padding, s->in_c);
        } else {
          copy(patch, image + (y * s->in_w + x) * s->in_c, s->in_c);
        }
        patch += PIXELS * s->in_c;
      }
    }
  }
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
#define PRODUCTS(i, c, A, B)        \
  "ldrsb r12, [r1, #" #i "+" #c "]\n" \
  "mla " A ", r10, r12, " A "\n"    \
  "mla " B ", r11, r12, " B "\n"
#define TAP(i)                  \
  "ldrsb r10, [r0, #" #i "]\n"   \
  "ldrsb r11, [r0, #" #i "+1]\n" \
  PRODUCTS(i, 0, "r2", "r6")    \
  PRODUCTS(i, 1, "r3", "r7")    \
  PRODUCTS(i, 2, "r4", "r8")    \
  PRODUCTS(i, 3, "r5", "r9")

/* Two pixels; sums of the first one in r2 ... r5, of the second in r6 ... r9. */
__attribute__((naked, noinline)) static void sums_2x4(const int8_t *patch __attribute__((unused)),
                                                      const int8_t *weights __attribute__((unused)),
                                                      uint32_t *sums __attribute__((unused)),
                                                      int32_t fours __attribute__((unused))) {
  __asm__ volatile(
      "push {r2, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "mov lr, r3\n"
      "ldm r2, {r2, r3, r4, r5, r6, r7, r8, r9}\n"
      "1:\n"
      TAP(0) TAP(4) TAP(8) TAP(12)
      "adds r0, r0, #16\n"
      "adds r1, r1, #16\n"
      "subs lr, lr, #1\n"
      "bne 1b\n"
      "pop {r0}\n"
      "stm r0, {r2, r3, r4, r5, r6, r7, r8, r9}\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef PRODUCTS
#undef TAP

static void sums_4x4(const int8_t *patch, const int8_t *weights, uint32_t *sums, int32_t fours) {
  sums_2x4(patch, weights, sums, fours);
  sums_2x4(patch + 2, weights, sums + 2 * CHANNELS, fours);
}
#else
#if defined(__riscv)
/* GCC would put sums into other registers, for which there are none left. */
static inline void add_product(int32_t *sum, int32_t x, int32_t w) {
  int32_t product;
  __asm__("mul %1, %2, %3\n\tadd %0, %0, %1" : "+r"(*sum), "=&r"(product) : "r"(x), "r"(w));
}
#define ADD(sum, x, w) add_product(&(sum), x, w)
#else
#define ADD(sum, x, w) (sum) += (x) * (w)
#endif

/* Sums of the first pixel, then of the second, ... Not inlined, because the loop needs nearly all registers. */
static __attribute__((noinline)) void sums_4x4(const int8_t *patch, const TINYET_ROM int8_t *weights, uint32_t *sums, int32_t fours) {
  int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  int32_t c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  for (int32_t taps = 4 * fours; taps > 0; taps -= 2) {
#define CHANNEL(n, k)                 \
  do {                                \
    const int32_t w = weights[k];     \
    ADD(a##n, x, w), ADD(b##n, y, w); \
    ADD(c##n, z, w), ADD(d##n, v, w); \
  } while (0)
#define TAP(k)                                                                                         \
  do {                                                                                                 \
    const int32_t x = patch[k], y = patch[(k) + 1], z = patch[(k) + 2], v = patch[(k) + 3];            \
    CHANNEL(0, k);                                                                                     \
    CHANNEL(1, (k) + 1);                                                                               \
    CHANNEL(2, (k) + 2);                                                                               \
    CHANNEL(3, (k) + 3);                                                                               \
    __asm__("" ::: "memory"); /* the next tap's loads stay behind it: registers are few */             \
  } while (0)
    TAP(0);
    TAP(4);
#undef CHANNEL
#undef TAP
    patch += 8;
    weights += 8;
  }
  sums[0] += (uint32_t)a0, sums[1] += (uint32_t)a1, sums[2] += (uint32_t)a2, sums[3] += (uint32_t)a3;
  sums[4] += (uint32_t)b0, sums[5] += (uint32_t)b1, sums[6] += (uint32_t)b2, sums[7] += (uint32_t)b3;
  sums[8] += (uint32_t)c0, sums[9] += (uint32_t)c1, sums[10] += (uint32_t)c2, sums[11] += (uint32_t)c3;
  sums[12] += (uint32_t)d0, sums[13] += (uint32_t)d1, sums[14] += (uint32_t)d2, sums[15] += (uint32_t)d3;
}
#endif

/* All channels of `count` pixels of the patch. */
static void outputs(const int8_t *patch, int8_t *output, int32_t count, int32_t fours,
                    const tinyet_conv2d_s8_4x4_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const TINYET_ROM uint32_t *f = layer->stream;
  const TINYET_ROM int8_t *weights = params->weights;
  const int32_t right = layer->right, two_sided = layer->two_sided, out_c = layer->out_c;
  const int32_t step = two_sided != 0 ? 6 : 4;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  for (int32_t first = 0; first < out_c; first += CHANNELS) {
    uint32_t sums[PIXELS * CHANNELS];
    for (int32_t i = 0; i < PIXELS * CHANNELS; i += CHANNELS) {
      sums[i] = f[0], sums[i + 1] = f[1], sums[i + 2] = f[2], sums[i + 3] = f[3];
    }
    sums_4x4(patch, weights, sums, fours);
    weights += 4 * CHANNELS * fours;
    f += CHANNELS;
    const int32_t left = out_c - first;
    for (int32_t c = 0; c < CHANNELS; c++, f += step) {
      int8_t *out = output + first + c;
      for (int32_t pixel = 0; c < left && pixel < count; pixel++) {
        *out = tinyet_two_products(sums[CHANNELS * pixel + c], f, right, two_sided, low, high);
        out += out_c;
      }
    }
  }
}

void tinyet_conv2d_s8_4x4(const int8_t *input, int8_t *output, void *scratch,
                          const tinyet_conv2d_s8_4x4_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, fours = (taps + 3) / 4, pixels = s->out_h * s->out_w;
  int8_t *const patch = (int8_t *)scratch;
  memset(scratch, 0, (size_t)(16 * fours));
  for (int32_t n = 0; n < s->batch; n++) {
    int32_t row = 0, column = 0;
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      for (int32_t i = 0; i < count; i++) {
        gather(patch + i, input, row * s->stride_h - s->pad_top, column * s->stride_w - s->pad_left, s,
               params->words.padding);
        if (++column == s->out_w) {
          column = 0, row++;
        }
      }
      outputs(patch, output, count, fours, params);
      output += count * s->out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
