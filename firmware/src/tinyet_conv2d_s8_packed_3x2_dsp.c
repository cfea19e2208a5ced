/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_packed_dsp.h"

/* All channels of three pixels. */
typedef struct {
  const uint32_t *pixels, *end;
  uint32_t skip; /* steps of straight code that the first turn leaves out */
  int8_t *output;
  int32_t step; /* bytes from pixel to pixel of the output */
  int32_t offset, exponent;
  int8_t *last; /* where the output of the first pixel ends */
  const int32_t *weights;
} three_pixels;

/* Of straight code, each for two pairs of input values. */
enum { STEPS = 8 };

#if TINYET_DSP_ASM
/* Inputs at r0 … lr, weights at r1, sums in r2 … r4, and 256 times those of b more in r5 … r7. On the stack: inputs, their
 * end, where the first turn begins, where what follows the last one is, output, step, offset, exponent, last. */
#define PRODUCTS(W)              \
  "ldmia.w r0!, {r8, r9, r10}\n" \
  "smlad r5, " W ", r8, r5\n"    \
  "smlad r6, " W ", r9, r6\n"    \
  "smlad r7, " W ", r10, r7\n"   \
  "sxtb16 " W ", " W "\n"        \
  "smlad r2, " W ", r8, r2\n"    \
  "smlad r3, " W ", r9, r3\n"    \
  "smlad r4, " W ", r10, r4\n"
#define STEP "ldrd r11, r12, [r1], #8\n" PRODUCTS("r11") PRODUCTS("r12") /* 17 instructions of 4 bytes */
#define BY_THREE(OP, A0, A1, A2, REST) OP " " A0 ", " A0 REST OP " " A1 ", " A1 REST OP " " A2 ", " A2 REST
#define ONE_SIDED(A0, A1, A2, M) \
  BY_THREE("smmla", A0, A1, A2, ", " M ", r11\n") \
  BY_THREE("asr", A0, A1, A2, ", r12\n")
#define TWO_SIDED_SUM(A, M)        \
  "add r11, r12, " A ", asr #31\n" \
  "smmlar " A ", " A ", " M ", r11\n"
#define TWO_SIDED(A0, A1, A2, M)                                              \
  "ldr r11, [sp, #24]\n"                                                      \
  "lsl r12, r11, r10\n"                                                       \
  "asr r12, r12, #1\n" TWO_SIDED_SUM(A0, M) TWO_SIDED_SUM(A1, M) TWO_SIDED_SUM(A2, M) \
  BY_THREE("asr", A0, A1, A2, ", r10\n")
#define STORE(A0, A1, A2)            \
  "ssat " A0 ", #8, " A0 "\n"        \
  "ssat " A1 ", #8, " A1 "\n"        \
  "ssat " A2 ", #8, " A2 "\n"        \
  "strb " A2 ", [r0, lr, lsl #1]\n"  \
  "strb " A1 ", [r0, lr]\n"          \
  "strb " A0 ", [r0], #1\n"
#define NEXT             \
  "str r0, [sp, #16]\n"  \
  "ldr r8, [sp, #32]\n"  \
  "cmp r0, r8\n"         \
  "bne.w 1b\n"

static __attribute__((noinline)) void all_channels(const three_pixels *p) {
  /* r7 may be the frame pointer, which is not to be named among the registers that are lost. p is in r0 or r7. */
  __asm__ volatile(
      "push {r0, r7}\n"
      "mov r12, %[p]\n"
      "ldmia.w r12, {r0, r1, r2, r4, r5, r6, r8, r9, r10}\n"
      "adr.w r11, 2f\n"
      "movs r3, #68\n"
      "mla r2, r2, r3, r11\n"
      "adr.w r3, 3f\n"
      "adr.w r11, 4f\n"
      "cmp r8, #0\n"
      "it eq\n"
      "moveq r3, r11\n"
      "orr r2, r2, #1\n" /* Thumb */
      "orr r3, r3, #1\n"
      "push {r0-r6, r8, r9}\n"
      "mov r1, r10\n"
      "1:\n"
      "ldrd r2, r5, [r1], #8\n"
      "ldrd r0, lr, [sp]\n"
      "mov r3, r2\n"
      "mov r4, r2\n"
      "mov r6, r5\n"
      "mov r7, r5\n"
      "ldr pc, [sp, #8]\n"
      ".p2align 2\n"
      "2:\n"
      ".rept %c[steps]\n" STEP ".endr\n"
      "cmp r0, lr\n"
      "bne.w 2b\n"
      "ldmia.w r1!, {r8, r9, r10}\n"
      "ldrd r0, lr, [sp, #16]\n"
      "sub r5, r5, r2\n"
      "sub r6, r6, r3\n"
      "sub r7, r7, r4\n"
      "ldr pc, [sp, #12]\n"
      ".p2align 2\n"
      "3:\n"
      "ldrd r11, r12, [sp, #24]\n"
      BY_THREE("lsl", "r2", "r3", "r4", ", r10\n")
      "ror r10, r10, #8\n"
      BY_THREE("asr", "r5", "r6", "r7", ", r10\n")
      "uxtab r11, r11, r10, ror #8\n"
      ONE_SIDED("r2", "r3", "r4", "r8")
      "sxtab r11, r11, r10, ror #16\n"
      STORE("r2", "r3", "r4")
      ONE_SIDED("r5", "r6", "r7", "r9")
      STORE("r5", "r6", "r7")
      NEXT
      "b.w 5f\n"
      ".p2align 2\n"
      "4:\n"
      BY_THREE("lsl", "r2", "r3", "r4", ", #1\n")
      BY_THREE("asr", "r5", "r6", "r7", ", #7\n")
      TWO_SIDED("r2", "r3", "r4", "r8")
      STORE("r2", "r3", "r4")
      "lsr r10, r10, #8\n"
      TWO_SIDED("r5", "r6", "r7", "r9")
      STORE("r5", "r6", "r7")
      NEXT
      "5:\n"
      "add sp, sp, #36\n"
      "pop {r0, r7}\n"
      :
      : [p] "r"(p), [steps] "i"(STEPS)
      : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc");
}
#else
static void all_channels(const three_pixels *p) {
  const tinyet_rounding_dsp rounding = {p->exponent != 0 ? TINYET_DSP_ONE_SIDED : TINYET_DSP_TWO_SIDED, p->exponent, -128, 127};
  const int32_t *w = p->weights;
  for (int8_t *out = p->output; out != p->last; out += 2) {
    int32_t sums[2][3] = {{w[0], w[0], w[0]}, {w[1], w[1], w[1]}};
    w += 2;
    for (const uint32_t *x = p->pixels; x != p->end; x += 3) {
      const uint32_t both = (uint32_t)*w++, first = tinyet_even_bytes_dsp(both);
      for (int32_t j = 0; j < 3; j++) {
        sums[0][j] = tinyet_smlad_dsp(first, x[j], sums[0][j]);
        sums[1][j] = tinyet_smlad_dsp(both, x[j], sums[1][j]);
      }
    }
    for (int32_t k = 0; k < 2; k++) {
      const int32_t byte = w[2] >> (8 * k) & 0xff;
      const int32_t shift = k == 1 && p->exponent != 0 ? 8 - byte : byte;
      const int32_t offset =
          p->exponent != 0 ? p->offset + (1 << (shift - 2)) : tinyet_shift_left(p->offset, shift) >> 1;
      for (int32_t j = 0; j < 3; j++) {
        const int32_t sum = k == 0 ? sums[0][j] : (int32_t)((uint32_t)sums[1][j] - (uint32_t)sums[0][j]) >> 8;
        out[j * p->step + k] = tinyet_round_dsp(sum, w[k], offset, shift, rounding);
      }
    }
    w += 3;
  }
}
#endif

/* Four times `fours` neighbouring values, at least one, into every third word; where the next ones go. */
TINYET_DSP_INLINE uint32_t *widen_int8x4(uint32_t *to, const int8_t *from, int32_t fours) {
  const int8_t *const end = from + 4 * fours;
#if TINYET_DSP_ASM
  const uint32_t at = (-(uint32_t)fours & 3) * 20 + 1; /* the first turn begins in the middle; Thumb */
  uint32_t even, word;
  __asm__ volatile(
      "adr.w %[word], 1f\n"
      "add %[word], %[word], %[at]\n"
      "bx %[word]\n"
      ".p2align 2\n"
      "1:\n"
      ".rept 4\n" /* 5 instructions of 4 bytes */
      "ldr.w %[word], [%[from]], #4\n"
      "sxtb16 %[even], %[word]\n"
      "sxtb16 %[word], %[word], ror #8\n"
      "str.w %[even], [%[to]], #12\n"
      "str.w %[word], [%[to]], #12\n"
      ".endr\n"
      "cmp %[from], %[end]\n"
      "bne 1b\n"
      : [to] "+r"(to), [from] "+r"(from), [even] "=&r"(even), [word] "=&r"(word)
      : [end] "r"(end), [at] "r"(at)
      : "memory", "cc");
#else
  for (; from != end; from += 4, to += 6) {
    tinyet_widen_dsp(to, from, 4, 3);
  }
#endif
  return to;
}

/* memcpy for few bytes from any address to any. */
TINYET_DSP_INLINE void copy(int8_t *to, const int8_t *from, int32_t count) {
  for (; count >= 4; count -= 4, from += 4, to += 4) {
    memcpy(to, from, 4);
  }
  for (; count > 0; count--) {
    TINYET_DSP_UNKNOWN(count); /* or it becomes a call of memcpy after all */
    *to++ = *from++;
  }
}

/* What a dilated kernel row sees of the image from column `left` on. What lies outside stays as it is. */
static __attribute__((noinline)) void gather(int8_t *to, const int8_t *row, int32_t left,
                                             const tinyet_conv2d_s8_packed_3x2_dsp_params *s) {
  for (int32_t kx = s->kernel_w; kx != 0; kx--, left += s->dilation_w, to += s->in_c) {
    if ((uint32_t)left < (uint32_t)s->in_w) {
      copy(to, row + left * s->in_pixel_stride, s->in_c);
    }
  }
}

/* What all pixels have in common. */
typedef struct {
  const tinyet_conv2d_s8_packed_3x2_dsp_params *s;
  int8_t *edge;  /* room for a kernel row, in whole words, and for one more */
  int32_t count; /* of values in a kernel row */
  int32_t words; /* of a kernel row, of all three pixels */
  int32_t line;  /* bytes of a row of the image */
  uint32_t blank; /* four bytes of what padding reads as */
} window;

/* All that the kernel sees for one pixel. */
TINYET_DSP_INLINE void pixel(uint32_t *to, const int8_t *input, int32_t top, int32_t left, const window v) {
  const int32_t in_c = v.s->in_c, count = v.count;
  const int32_t first = left < 0 ? -left : 0, over = left + v.s->kernel_w - v.s->in_w;
  const int32_t length = count - (first + (over > 0 ? over : 0)) * in_c; /* bytes inside the image */
  const int whole = length == count && v.s->dilation_w == 1;
  if (!whole) {
    uint32_t *const edge = (uint32_t *)(void *)v.edge;
    for (int32_t i = count >> 2; i >= 0; i--) {
      TINYET_DSP_UNKNOWN(i); /* or it becomes a call of memset */
      edge[i] = v.blank;
    }
  }
  for (int32_t ky = v.s->kernel_h; ky != 0; ky--, top += v.s->dilation_h) {
    if ((uint32_t)top >= (uint32_t)v.s->in_h) {
      const uint32_t blank = tinyet_both_dsp(v.s->in_zero_point);
      for (int32_t pairs = v.words; pairs != 0; pairs -= 3, to += 3) {
        TINYET_DSP_UNKNOWN(pairs); /* or where that ends is computed in advance, which takes longer */
        *to = blank;
      }
      continue;
    }
    const int8_t *const row = input + top * v.line, *from = v.edge;
    if (whole) {
      from = row + left * v.s->in_pixel_stride;
    } else if (v.s->dilation_w != 1) {
      gather(v.edge, row, left, v.s);
    } else {
      copy(v.edge + first * in_c, row + (left + first) * v.s->in_pixel_stride, length);
    }
    if (count >= 4) {
      to = widen_int8x4(to, from, count >> 2);
      from += count & ~3;
    }
    if ((count & 2) != 0) {
      tinyet_widen_dsp(to, from, 2, 3);
      from += 2;
      to += 3;
    }
    if ((count & 1) != 0) {
      tinyet_widen_dsp(to, from, 1, 3);
      to += 3;
    }
  }
}

void tinyet_conv2d_s8_packed_3x2_dsp(const int8_t *input, int8_t *output, void *scratch,
                                     const tinyet_conv2d_s8_packed_3x2_dsp_params *s) {
  const int32_t values = s->kernel_w * s->in_c;
  const int32_t words = 3 * ((values >> 2) * 2 + (((values & 3) + 1) >> 1));
  const int32_t pairs = s->kernel_h * words / 3, even = pairs + (pairs & 1);
  const int32_t count = s->out_h * s->out_w;
  uint32_t *const pixels = (uint32_t *)scratch;
  const window v = {
      s, (int8_t *)(pixels + 3 * even), values, words, s->in_w * s->in_pixel_stride,
      0x01010101u * (uint8_t)s->in_zero_point};
  three_pixels block;
  block.pixels = pixels;
  block.end = pixels + 3 * even;
  block.skip = (uint32_t)(-(even / 2) & (STEPS - 1));
  block.step = s->out_pixel_stride;
  block.offset = s->offset;
  block.exponent = s->exponent;
  memset(pixels + 3 * even - 3, 0, 12); /* the last pair may be no input: it meets weights of zero */
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t first = 0, y = 0, x = 0; first < count; first += 3) {
      if (first > count - 3) {
        first = count - 3;
        y = first / s->out_w;
        x = first % s->out_w;
      }
      for (int32_t j = 0; j < 3; j++) {
        pixel(pixels + j, input, y * s->stride_h - s->pad_top, x * s->stride_w - s->pad_left, v);
        if (++x == s->out_w) {
          x = 0;
          y++;
        }
      }
      block.output = output + first * s->out_pixel_stride;
      block.last = block.output + (s->out_c & ~1);
      block.weights = s->weights;
      all_channels(&block);
      if (s->out_c % 2 != 0) {
        block.output = block.last - 1;
        block.last = block.output + 2;
        block.weights = s->weights + s->out_c / 2 * (even + 5);
        all_channels(&block);
      }
    }
    input += s->in_h * s->in_w * s->in_pixel_stride;
    output += count * s->out_pixel_stride;
  }
  if (s->clamp_low > -128 || s->clamp_high < 127) {
    const int32_t between = s->out_pixel_stride - s->out_c;
    const int32_t run = between == 0 ? s->batch * count * s->out_c : s->out_c; /* bytes without a gap */
    for (int8_t *value = output - s->batch * count * s->out_pixel_stride; value != output; value += between) {
      for (const int8_t *const end = value + run; value != end; value++) {
        *value = (int8_t)tinyet_clamp(*value, s->clamp_low, s->clamp_high);
      }
    }
  }
}
