/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

enum { PIXELS = TINYET_BYTES_PIXELS, RUN = TINYET_BYTES_RUN };

/* The walk of the windows over an image. row: bytes of one of the image's; whole: of one of a window's without gaps, jump: from
 * one to the next; last_left, last_top: where such a window ends in the image; at: a window's first byte, right: from there to
 * the next; rows_inside: whether the image has all of a window's rows; pixels: that are left; column: outputs that are left in
 * their row. */
typedef struct {
  const int8_t *image;
  tinyet_extent in_h, in_w, in_c, row, kernel_h, kernel_w, step_h, step_w, stride_h, stride_w, first_left, out_w;
  tinyet_extent whole, jump, right, last_left, last_top;
  tinyet_extent top, left, at, column, pixels;
  uint8_t padding, rows_inside;
} walk;

/* To the first window of a row. */
static TINYET_BYTES_APART void conv_bytes_row(walk *k, tinyet_extent top) {
  k->top = top;
  k->left = k->first_left;
  k->at = top * k->row + k->first_left * k->in_c;
  k->column = k->out_w;
  k->rows_inside = top >= 0 && top <= k->last_top;
}

/* Copies inputs, plus 128, four bytes from one to the next, and adds them to the sum. */
static inline uint8_t *copy(uint8_t *patch, const int8_t *from, tinyet_extent count, tinyet_bytes_sum *sum) {
#ifdef __AVR__
  uint8_t value;
  const uint8_t zero = 0u;
  __asm__ volatile(
      "1:\n"
      "ld %[value], X+\n"
      "subi %[value], 0x80\n"
      "st Z, %[value]\n"
      "adiw r30, 4\n"
      "add %A[sum], %[value]\n"
      "adc %B[sum], %[zero]\n"
      "adc %C[sum], %[zero]\n"
      "sbiw %[count], 1\n"
      "brne 1b\n"
      : "+x"(from), "+z"(patch), [count] "+&w"(count), [value] "=&d"(value), [sum] "+&r"(*sum)
      : [zero] "r"(zero)
      : "memory");
#else
  for (; count > 0; count--, patch += PIXELS) {
    const uint8_t value = (uint8_t)((uint8_t)*from++ ^ 0x80u);
    *patch = value;
    *sum += value;
  }
#endif
  return patch;
}

static inline uint8_t *fill(uint8_t *patch, uint8_t value, tinyet_extent count) {
  for (; count > 0; count--, patch += PIXELS) {
    *patch = value;
  }
  return patch;
}

/* What the window of a pixel sees, plus 128, four bytes from tap to tap; gives the sum. Columns from `left` on, a piece of each
 * row of the image: all of the window, where it has no gaps, else one. */
static TINYET_BYTES_APART tinyet_bytes_sum conv_bytes_piece(uint8_t *patch, const walk *k, tinyet_extent left,
                                                            tinyet_extent columns, tinyet_extent behind) {
  const tinyet_extent in_c = k->in_c, before = left < 0 ? -left : 0, end = k->in_w - left;
  const tinyet_extent there = (end < columns ? end : columns) - before;
  const tinyet_extent all = columns * in_c, first = there > 0 ? before * in_c : all, copied = there > 0 ? there * in_c : 0;
  const tinyet_extent last = all - first - copied;
  const int8_t *from = k->image + k->top * k->row + (left + before) * in_c;
  tinyet_extent y = k->top, blank = 0;
  tinyet_bytes_sum sum = 0u;
  for (tinyet_extent i = k->kernel_h; i > 0; i--, y += k->step_h, from += k->jump) {
    if (copied > 0 && y >= 0 && y < k->in_h) {
      patch = fill(patch, k->padding, first);
      patch = copy(patch, from, copied, &sum);
      patch = fill(patch, k->padding, last);
      blank += first + last;
    } else {
      patch = fill(patch, k->padding, all);
      blank += all;
    }
    patch += behind;
  }
  return sum + TINYET_BYTES_SUM((uint32_t)(uint16_t)blank * k->padding);
}

/* The patch of the next four pixels, or as many as are left: how many. base: of each minus 128 times the sum. */
static TINYET_BYTES_APART uint8_t conv_bytes_gather(uint8_t *patch, walk *k, uint32_t *base) {
  uint8_t count = 0u;
  do {
    tinyet_bytes_sum sum = 0u;
    if (k->rows_inside != 0u && k->left >= 0 && k->left <= k->last_left) {
      uint8_t *to = patch + count;
      const int8_t *from = k->image + k->at;
      for (tinyet_extent i = k->kernel_h; i > 0; i--, from += k->jump) {
        to = copy(to, from, k->whole, &sum);
      }
    } else if (k->step_w == 1 || k->kernel_w == 1) {
      sum = conv_bytes_piece(patch + count, k, k->left, k->kernel_w, 0);
    } else {
      const tinyet_extent tap = PIXELS * k->in_c, others = (k->kernel_w - 1) * tap;
      uint8_t *to = patch + count;
      for (tinyet_extent j = 0, left = k->left; j < k->kernel_w; j++, left += k->step_w, to += tap) {
        sum += conv_bytes_piece(to, k, left, 1, others);
      }
    }
    uint32_t whole = sum;
    whole <<= 8;
    __asm__("" : "+r"(whole)); /* moved by a byte, and back by a bit: the compiler would shift seven times */
    base[count++] = 0u - (whole >> 1);
    k->left += k->stride_w;
    k->at += k->right;
    if (--k->column == 0) {
      conv_bytes_row(k, k->top + k->stride_h);
    }
  } while (--k->pixels > 0 && count < PIXELS);
  return count;
}

/* Adds a channel's products with four pixels' inputs, four a tap, to their sums. */
static TINYET_BYTES_APART void conv_bytes_products(const uint8_t *x, const TINYET_ROM uint8_t *w, tinyet_extent taps,
                                                   uint32_t *sums) {
#ifdef __AVR__
  while (taps > 0) {
    uint8_t count = taps > 256 ? 0u : (uint8_t)taps, value, weight;
    const uint8_t zero = 0u;
    tinyet_bytes_sum a = 0u, b = 0u, c = 0u, d = 0u;
    __asm__ volatile(
        "1:\n"
        TINYET_LPM "%[w], Z+\n" TINYET_BYTES_TAP("x", "a") TINYET_BYTES_TAP("x", "b") TINYET_BYTES_TAP("x", "c")
            TINYET_BYTES_TAP("x", "d")
        "dec %[count]\n"
        "brne 1b\n"
        "clr __zero_reg__\n"
        : "+x"(x), "+z"(w), [count] "+&r"(count), [x] "=&r"(value), [w] "=&r"(weight), [a] "+&r"(a), [b] "+&r"(b),
          [c] "+&r"(c), [d] "+&r"(d)
        : [zero] "r"(zero)
        : "memory", "r0");
    sums[0] += a;
    sums[1] += b;
    sums[2] += c;
    sums[3] += d;
    taps = taps > 256 ? taps - 256 : 0;
  }
#else
  for (; taps > 0; taps--, x += TINYET_BYTES_PIXELS) {
    const uint32_t weight = *w++;
    sums[0] += x[0] * weight;
    sums[1] += x[1] * weight;
    sums[2] += x[2] * weight;
    sums[3] += x[3] * weight;
  }
#endif
}

/* What makes outputs of a patch. base: of each pixel minus 128 times the sum of its inputs. pairs: of taps; odd: 1 where there is one
 * more. */
typedef struct {
  const uint8_t *patch;
  int8_t *output; /* goes on channel by channel */
  const TINYET_ROM uint32_t *stream;
  const TINYET_ROM uint8_t *weights;
  tinyet_extent out_c, channels;
  uint8_t pairs, pixels, two_sided;
  int8_t low, high;
  uint32_t base[PIXELS];
  uint8_t odd;
} job;

#ifdef __AVR__
TINYET_STATIC_ASSERT(offsetof(job, base) == 17 && offsetof(job, odd) == 33, "as the assembly has it");

/* `channels` channels. Registers 2 to 13 are sums of 24 bits, 14 is zero; 18 to 21 are a sum, 22 to 25 what it becomes. */
static TINYET_BYTES_APART void conv_bytes_outputs(job *of) {
  __asm__ volatile(
      "push r28\n"
      "push r29\n"
      "movw r28, r30\n"
      "ldd r16, Y+14\n"
      "bst r16, 0\n" /* two-sided */
      "clr r14\n"
      "1:\n"
      "ldd r26, Y+0\n"
      "ldd r27, Y+1\n"
      "ldd r30, Y+6\n"
      "ldd r31, Y+7\n"
      "ldd r17, Y+12\n"
      "clr r2\n"
      "clr r3\n"
      "movw r4, r2\n"
      "movw r6, r2\n"
      "movw r8, r2\n"
      "movw r10, r2\n"
      "movw r12, r2\n"
#define TAP(a, b, c) "ld r16, X+\n" "mul r16, r15\n" "add " a ", r0\n" "adc " b ", r1\n" "adc " c ", r14\n"
#define TAPS \
  TINYET_LPM "r15, Z+\n" TAP("r2", "r3", "r4") TAP("r5", "r6", "r7") TAP("r8", "r9", "r10") TAP("r11", "r12", "r13")
      "ldd r16, Y+33\n"
      "sbrs r16, 0\n"
      "rjmp 2f\n" TAPS
      "tst r17\n"
      "breq 8f\n"
      "2:\n" TAPS TAPS
      "dec r17\n"
      "brne 2b\n"
      "8:\n"
#undef TAP
#undef TAPS
      "std Y+6, r30\n"
      "std Y+7, r31\n"
      "ldd r26, Y+2\n"
      "ldd r27, Y+3\n"
      "adiw r26, 1\n" /* where the next channel's outputs are */
      "std Y+2, r26\n"
      "std Y+3, r27\n"
      "sbiw r26, 1\n"
      "ldd r17, Y+13\n"
#define BASE(offset, a, b, c)                                                                          \
  "ldd r18, Y+" #offset "\n" "ldd r19, Y+" #offset "+1\n" "ldd r20, Y+" #offset "+2\n" "ldd r21, Y+" #offset "+3\n" \
  "add r18, " a "\n" "adc r19, " b "\n" "adc r20, " c "\n" "adc r21, r14\n"                             \
  "rcall 4f\n"
      BASE(17, "r2", "r3", "r4")
      "dec r17\n"
      "breq 3f\n"
      BASE(21, "r5", "r6", "r7")
      "dec r17\n"
      "breq 3f\n"
      BASE(25, "r8", "r9", "r10")
      "dec r17\n"
      "breq 3f\n"
      BASE(29, "r11", "r12", "r13")
#undef BASE
      "3:\n"
      "ldd r30, Y+4\n"
      "ldd r31, Y+5\n"
      "adiw r30, 20\n"
      "brtc 5f\n"
      "adiw r30, 8\n"
      "5:\n"
      "std Y+4, r30\n"
      "std Y+5, r31\n"
      "ldd r18, Y+10\n"
      "ldd r19, Y+11\n"
      "subi r18, 1\n"
      "sbci r19, 0\n"
      "std Y+10, r18\n"
      "std Y+11, r19\n"
      "breq 7f\n"
      "rjmp 1b\n"
      "7:\n"
      "rjmp 6f\n"
      /* Adds the channel's start to the sum, and stores its output. */
      "4:\n"
      "ldd r30, Y+4\n"
      "ldd r31, Y+5\n"
      TINYET_LPM "r16, Z+\n" "add r18, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r19, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r20, r16\n"
      TINYET_LPM "r16, Z+\n" "adc r21, r16\n"
      TINYET_BYTES_OUTPUT("r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r16", "ldd r25, Y+15", "ldd r25, Y+16")
      "st X, r25\n"
      "ldd r16, Y+8\n"
      "add r26, r16\n"
      "ldd r16, Y+9\n"
      "adc r27, r16\n"
      "ret\n"
      "6:\n"
      "clr __zero_reg__\n"
      "pop r29\n"
      "pop r28\n"
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
}
#else
static void conv_bytes_outputs(job *of) {
  const uint8_t step = of->two_sided != 0 ? 7u : 5u;
  const tinyet_extent taps = 2 * of->pairs + of->odd;
  for (; of->channels > 0; of->channels--) {
    const TINYET_ROM uint32_t *const f = of->stream;
    const uint32_t start = f[0];
    uint32_t sums[PIXELS] = {of->base[0] + start, of->base[1] + start, of->base[2] + start, of->base[3] + start};
    conv_bytes_products(of->patch, of->weights, taps, sums);
    int8_t *out = of->output++;
    for (uint8_t i = 0; i < of->pixels; i++, out += of->out_c) {
      *out = tinyet_bytes_output(sums[i], f + 1, of->two_sided, of->low, of->high);
    }
    of->stream += step;
    of->weights += taps;
  }
}
#endif

/* All channels, whose products need several sums of 24 bits. base: as of a job. */
static TINYET_BYTES_APART void conv_bytes_long_outputs(job *of, const uint8_t *patch, const uint32_t *base, tinyet_extent taps) {
  for (tinyet_extent c = of->out_c; c > 0; c--) {
    tinyet_extent rest = taps;
    memcpy(of->base, base, sizeof of->base);
    of->patch = patch;
    for (; rest > RUN; rest -= RUN, of->patch += PIXELS * RUN, of->weights += RUN) {
      conv_bytes_products(of->patch, of->weights, RUN, of->base);
    }
    of->pairs = (uint8_t)(rest / 2);
    of->odd = (uint8_t)(rest % 2);
    of->channels = 1;
    conv_bytes_outputs(of);
  }
}

void tinyet_conv2d_s8_bytes_4x1(const int8_t *input, int8_t *output, void *scratch,
                                const tinyet_conv2d_s8_bytes_4x1_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent taps = TINYET_EXTENT(s->kernel_h * s->kernel_w * s->in_c);
  uint8_t *const patch = (uint8_t *)scratch;
  uint32_t base[PIXELS] = {0u, 0u, 0u, 0u};
  job of;
  walk k;
  of.out_c = TINYET_EXTENT(s->out_c);
  of.two_sided = words->two_sided != 0;
  of.low = (int8_t)words->clamp_low;
  of.high = (int8_t)words->clamp_high;
  k.image = input;
  k.in_h = TINYET_EXTENT(s->in_h);
  k.in_w = TINYET_EXTENT(s->in_w);
  k.in_c = TINYET_EXTENT(s->in_c);
  k.row = k.in_w * k.in_c;
  k.kernel_h = TINYET_EXTENT(s->kernel_h);
  k.kernel_w = TINYET_EXTENT(s->kernel_w);
  k.step_h = TINYET_EXTENT(s->dilation_h);
  k.step_w = TINYET_EXTENT(s->dilation_w);
  k.stride_h = TINYET_EXTENT(s->stride_h);
  k.stride_w = TINYET_EXTENT(s->stride_w);
  k.whole = k.kernel_w * k.in_c;
  k.right = k.stride_w * k.in_c;
  k.jump = k.step_h * k.row;
  k.last_left = k.step_w == 1 || k.kernel_w == 1 ? k.in_w - k.kernel_w : -1;
  k.last_top = k.in_h - 1 - (k.kernel_h - 1) * k.step_h;
  k.first_left = TINYET_EXTENT(-s->pad_left);
  k.out_w = TINYET_EXTENT(s->out_w);
  k.padding = (uint8_t)words->padding;
  of.patch = patch;
  of.pairs = (uint8_t)(taps / 2);
  of.odd = (uint8_t)(taps % 2);
  memset(scratch, 0, (size_t)(PIXELS * taps));
  for (tinyet_extent n = TINYET_EXTENT(s->batch); n > 0; n--) {
    conv_bytes_row(&k, TINYET_EXTENT(-s->pad_top));
    k.pixels = TINYET_EXTENT(s->out_h) * k.out_w;
    while (k.pixels > 0) {
      of.pixels = conv_bytes_gather(patch, &k, taps > RUN ? base : of.base);
      of.output = output;
      of.stream = words->stream;
      of.weights = params->weights;
      if (taps > RUN) {
        conv_bytes_long_outputs(&of, patch, base, taps);
      } else {
        of.channels = of.out_c;
        conv_bytes_outputs(&of);
      }
      output += of.pixels * of.out_c;
    }
    k.image += k.in_h * k.row;
  }
}
