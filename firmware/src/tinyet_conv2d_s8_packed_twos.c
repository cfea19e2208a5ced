/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_twos.h"
#include "tinyet_packed_twos_columns_body.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  const int32_t *patch; /* the first pixel's window */
  int32_t two_sided;    /* where sums are rounded two ways */
  int32_t skip;         /* of the straight code for three taps, in bytes, that the first turn does not execute */
  uint32_t bounds;      /* of outputs: high, and low in the next byte */
  int8_t *output;
  const uint32_t *stream;
  int32_t step;          /* bytes from window to window */
  const int8_t *all_end; /* of all pixels' outputs */
  const int32_t *last;   /* end of the window */
  int32_t kind;          /* zero for runs of two taps that straight code has room for, less for more, one for threes */
} block_walk;

/* Runs of the straight code for two taps, and for three, and its bytes for one of these. */
enum { TWOS = 16, THREES = 16, THREE_BYTES = 42 };

/* The carry of the shift is the sign of the lower half, which the upper half lacks. */
#define PAIR(both, high)                                 \
  "ldmia r7!, {r2, r3}\n"                                \
  "muls r2, r0, r2\n"                                    \
  "muls r3, r1, r3\n"                                    \
  "adds r2, r2, r3\n"                                    \
  "add " both ", r2\n"                                   \
  "asrs r2, r2, #16\n"                                   \
  "adcs " high ", " high ", r2\n"
#define TWO "ldmia r6!, {r0, r1}\n" PAIR("r8", "r4") PAIR("r9", "r5")
/* With 2^15 in the lower half there is no carry, and sums may be in registers that cannot add one. */
#define LIFTED(run, both, high)                          \
  "add " run ", r12\n"                                   \
  "add " both ", " run "\n"                              \
  "asrs " run ", " run ", #16\n"                         \
  "add " high ", " run "\n"
#define PAIR_OF_THREE(both, high)                        \
  "ldmia r7!, {r3, r4, r5}\n"                            \
  "muls r3, r0, r3\n"                                    \
  "muls r4, r1, r4\n"                                    \
  "muls r5, r2, r5\n"                                    \
  "adds r3, r3, r4\n"                                    \
  "adds r3, r3, r5\n"                                    \
  LIFTED("r3", both, high)
#define THREE "ldmia r6!, {r0, r1, r2}\n" PAIR_OF_THREE("r8", "r10") PAIR_OF_THREE("r9", "r11")
/* An output of the sum in a; r0 to r3 are used. */
#define SCALED(i, a, right)                              \
  "cmp " a ", r0\n"                                      \
  "bhs 2" #i "f\n"                                       \
  TINYET_THUMB1_SCALED(a, "r1", "r2", "r3", "#" right)   \
  "strb " a ", [r6, #" #i "]\n"                          \
  "3" #i ":\n"
#define ONE_SIDED(i, a)                                  \
  "ldmia r7!, {r0, r1, r2, r3}\n" /* limit, upper, lower, offset */ \
  SCALED(i, a, "14")
#define TWO_SIDED(i, a)                                  \
  "ldmia r7!, {r0, r1, r2}\n" /* split, less, offset */  \
  TINYET_THUMB1_BELOW(a, "r0", "r1")                     \
  "subs r3, r2, r1\n"                                    \
  "ldmia r7!, {r0, r1, r2}\n" /* limit, upper, lower */  \
  SCALED(i, a, "13")
/* Outside the range: the sign says which bound it is. */
#define BOUND(i, a)                                      \
  "2" #i ":\n"                                           \
  "ldr r1, [sp, #12]\n"                                  \
  TINYET_THUMB1_BOUND(a, "r1")                           \
  "strb r1, [r6, #" #i "]\n"                             \
  "b 3" #i "b\n"
#define BOUNDS BOUND(0, "r5") BOUND(1, "r4") BOUND(2, "r5") BOUND(3, "r5")
/* The second sums are in r4 and r5; the first ones are r8 and r9 less 65536 times these. */
#define FOUR(ROUNDED)                                    \
  "ldr r6, [sp, #16]\n"                                  \
  "lsls r0, r5, #16\n"                                   \
  "mov r1, r9\n"                                         \
  "subs r1, r1, r0\n"                                    \
  "mov r9, r1\n"                                         \
  ROUNDED(3, "r5")                                       \
  "lsls r0, r4, #16\n"                                   \
  "mov r1, r8\n"                                         \
  "subs r5, r1, r0\n"                                    \
  ROUNDED(1, "r4")                                       \
  ROUNDED(0, "r5")                                       \
  "mov r5, r9\n"                                         \
  ROUNDED(2, "r5")

/* All blocks of four outputs of pixels whose windows lie one behind another; gives the stream behind the last block.
 * Inputs in r0 to r2, weights in r2 to r5, both sums of pairs in r8 and r9, the second ones in r4 and r5, in runs of
 * three taps in r10 and r11 until they are complete; inputs at r6, then outputs, the stream at r7, the end of the window
 * in lr, and in r12 what is behind straight code of twos, with runs of three taps 2^15. On the stack the walk until its last two
 * words, with addresses of code for the second and the third word. What blocks of the stream say where to go on counts
 * from four bytes behind the instruction that goes there: how many there are until 8, 6 and 2 is in
 * tinyet/ops/shared/packed_twos.py. */
__attribute__((naked, noinline)) static const uint32_t *blocks_of(const block_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("")
      "sub sp, sp, #32\n"
      "mov r1, sp\n"
      "ldmia r0!, {r4, r5, r6, r7}\n"
      "stmia r1!, {r4, r5, r6, r7}\n"
      "mov r3, r5\n"
      "ldmia r0!, {r4, r5, r6, r7}\n"
      "stmia r1!, {r4, r5, r6, r7}\n"
      "mov r7, r5\n"
      "ldmia r0!, {r1, r2}\n"
      "mov lr, r1\n"
      "adr r1, 3f\n"
      "cmp r3, #0\n"
      "beq 10f\n"
      "adr r1, 5f\n"
      "10:\n"
      "mov r12, r1\n"
      "cmp r2, #0\n"
      "bne 10f\n"
      "b 1f\n"
      "10:\n"
      "str r1, [sp, #4]\n"
      "bpl 10f\n"
      "adr r1, 13f\n"
      "mov r12, r1\n"
      "b 1f\n"
      "10:\n"
      "movs r1, #128\n"
      "lsls r1, r1, #8\n"
      "mov r12, r1\n"
      "adr r1, 9f\n"
      "ldr r2, [sp, #8]\n"
      "adds r1, r1, r2\n"
      "str r1, [sp, #8]\n"
      "b 1f\n"
      ".balign 4\n"
      "5:\n"
      FOUR(TWO_SIDED)
      "b 4f\n"
      BOUNDS
      ".balign 4\n"
      "3:\n"
      FOUR(ONE_SIDED)
      "4:\n"
      "adds r6, r6, #4\n"
      "str r6, [sp, #16]\n"
      "1:\n"
      "ldmia r7!, {r0, r1, r2, r4, r5}\n"
      "mov r8, r0\n"
      "mov r9, r1\n"
      "ldr r6, [sp]\n"
      "add pc, r2\n"
      BOUNDS
      "8:\n"
      "mov r10, r4\n"
      "mov r11, r5\n"
      "ldr r0, [sp, #8]\n"
      "mov pc, r0\n"
      "6:\n" /* behind the last block of a pixel */
      "ldr r6, [sp, #16]\n"
      "ldr r1, [sp, #28]\n"
      "cmp r6, r1\n"
      "beq 7f\n"
      "ldr r7, [sp, #20]\n"
      "ldr r1, [sp, #24]\n"
      "add lr, r1\n"
      "ldr r2, [sp]\n"
      "adds r2, r2, r1\n"
      "str r2, [sp]\n"
      "b 1b\n"
      "7:\n"
      "mov r0, r7\n"
      "add sp, sp, #32\n"
      TINYET_THUMB1_RETURN("")
      "2:\n"
      TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO TWO
      "mov pc, r12\n"
      ".balign 4\n"
      "13:\n"
      "cmp r6, lr\n"
      "beq 10f\n"
      "b 2b\n"
      "10:\n"
      "ldr r0, [sp, #4]\n"
      "mov pc, r0\n"
      ".balign 4\n"
      "9:\n"
      THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE
      "cmp r6, lr\n"
      "beq 10f\n"
      "b 9b\n" /* farther than a branch with a condition goes */
      "10:\n"
      "ldr r6, [sp]\n"
      "b 12f\n"
      "11:\n" /* a tap by itself */
      "ldr r0, [r6, r0]\n"
      "ldmia r7!, {r3, r4}\n"
      "muls r3, r0, r3\n"
      "muls r4, r0, r4\n"
      LIFTED("r3", "r8", "r10")
      LIFTED("r4", "r9", "r11")
      "12:\n"
      "ldmia r7!, {r0}\n"
      "cmp r0, #0\n"
      "bge 11b\n"
      "mov r4, r10\n"
      "mov r5, r11\n"
      "ldr r0, [sp, #4]\n"
      "mov pc, r0\n");
}
#undef LIFTED
#undef PAIR_OF_THREE
#undef THREE
#undef PAIR
#undef TWO
#undef SCALED
#undef ONE_SIDED
#undef TWO_SIDED
#undef BOUND
#undef BOUNDS
#undef FOUR

typedef struct {
  block_walk walk;
  int32_t channels, rest; /* of all, and of a last block that is not whole */
} all_blocks;

/* step: words from window to window. */
static all_blocks blocks_in(const int32_t *patch, int32_t step, const tinyet_conv2d_s8_packed_twos_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const int32_t first = params->runs & (THREES - 1);
  const all_blocks found = {{patch,
                             layer->two_sided,
                             first != 0 ? (THREES - first) * THREE_BYTES : 0,
                             ((uint32_t)layer->clamp_high & 255u) | ((uint32_t)layer->clamp_low & 255u) << 8,
                             0,
                             layer->stream,
                             4 * step,
                             0,
                             patch + params->runs * params->run,
                             params->run == 3 ? 1 : params->runs > TWOS ? -1 : 0},
                            layer->out_c,
                            layer->out_c & 3};
  return found;
}

/* All channels of so many pixels; gives where they end. */
static int8_t *pixels(all_blocks *all, int32_t count, int8_t *output) {
  block_walk *const walk = &all->walk;
  if (all->rest == 0) {
    walk->output = output;
    walk->all_end = output + count * all->channels;
    (void)blocks_of(walk);
    return output + count * all->channels;
  }
  const int32_t *const patch = walk->patch, *const last = walk->last;
  const uint32_t *const stream = walk->stream;
  for (; count > 0; count--) {
    int8_t behind[4], *const end = output + (all->channels - all->rest);
    if (end != output) {
      walk->output = output;
      walk->all_end = end;
      walk->stream = blocks_of(walk);
    }
    walk->output = behind;
    walk->all_end = behind + 4;
    (void)blocks_of(walk);
    memcpy(end, behind, (size_t)all->rest);
    output = end + all->rest;
    walk->patch += walk->step / 4;
    walk->last += walk->step / 4;
    walk->stream = stream;
  }
  walk->patch = patch;
  walk->last = last;
  return output;
}
#else
/* What a run adds to both sums of a pair. */
static inline void drain(uint32_t *both, uint32_t *high, uint32_t run) {
  *both += run;
  *high += ((run + UINT32_C(0x8000)) >> 16 ^ UINT32_C(0x8000)) - UINT32_C(0x8000);
}

typedef struct {
  const int32_t *patch;
  int32_t step;
  const tinyet_conv2d_s8_packed_twos_params *params;
} all_blocks;

static all_blocks blocks_in(const int32_t *patch, int32_t step, const tinyet_conv2d_s8_packed_twos_params *params) {
  const all_blocks found = {patch, step, params};
  return found;
}

TINYET_TWO_PRODUCTS(of_factors, const uint32_t *)

/* An output, of what the stream has of a channel. */
static inline int8_t rounded(uint32_t a, const TINYET_ROM uint32_t *f, int32_t right, int32_t two_sided, int8_t low,
                             int8_t high) {
  if (two_sided == 0) {
    return tinyet_two_products(a, f, right, 0, low, high);
  }
  const uint32_t factors[4] = {f[3], f[4], f[5], f[2] - (a < f[0] ? f[1] : 0u)};
  return of_factors(a, factors, right, 0, low, high);
}

static int8_t *pixel(const int32_t *window, int8_t *output, const tinyet_conv2d_s8_packed_twos_params *params) {
  const tinyet_packed_words *const layer = &params->words;
  const TINYET_ROM uint32_t *w = layer->stream;
  const int32_t right = layer->right, step = layer->two_sided != 0 ? 6 : 4;
  const int8_t low = (int8_t)layer->clamp_low, high = (int8_t)layer->clamp_high;
  for (int32_t left = layer->out_c; left > 0; left -= 4) {
    if (left < 4 && left != layer->out_c) {
      w += 5; /* behind the last whole block */
    }
    uint32_t first = w[0], second = w[1], of_first = w[3], of_second = w[4];
    const int32_t *x = window;
    w += 5;
    if (params->run == 3) {
      /* Words that the first sums are lessened by are added behind each run. */
      for (int32_t i = 0; i < params->runs; i++) {
        const uint32_t a = (uint32_t)x[0], b = (uint32_t)x[1], c = (uint32_t)x[2];
        drain(&first, &of_first, a * w[0] + b * w[1] + c * w[2]);
        drain(&second, &of_second, a * w[3] + b * w[4] + c * w[5]);
        first += UINT32_C(0x8000), second += UINT32_C(0x8000);
        x += 3;
        w += 6;
      }
      for (; (int32_t)w[0] >= 0; w += 3) {
        const uint32_t a = (uint32_t)window[w[0] / 4u];
        drain(&first, &of_first, a * w[1]);
        drain(&second, &of_second, a * w[2]);
        first += UINT32_C(0x8000), second += UINT32_C(0x8000);
      }
      w++;
    } else {
      for (int32_t i = 0; i < params->runs; i++) {
        const uint32_t a = (uint32_t)x[0], b = (uint32_t)x[1];
        drain(&first, &of_first, a * w[0] + b * w[1]);
        drain(&second, &of_second, a * w[2] + b * w[3]);
        x += 2;
        w += 4;
      }
    }
    const uint32_t sums[4] = {first - (of_first << 16), of_first, second - (of_second << 16), of_second};
    for (int32_t i = 0; i < 4; i++, w += step) {
      static const int32_t channel[4] = {3, 1, 0, 2};
      if (channel[i] < left) {
        output[channel[i]] = rounded(sums[channel[i]], w, right, step == 6 ? 1 : 0, low, high);
      }
    }
    output += left < 4 ? left : 4;
  }
  return output;
}

static int8_t *pixels(all_blocks *all, int32_t count, int8_t *output) {
  const int32_t *window = all->patch;
  for (; count > 0; count--) {
    output = pixel(window, output, all->params);
    window += all->step;
  }
  return output;
}
#endif

void tinyet_conv2d_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                  const tinyet_conv2d_s8_packed_twos_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t of_column = s->kernel_h * s->in_c;
  const int32_t fours = in_fours(input, s->in_c), padding = params->words.padding;
  /* Columns that a window shares with the next one of its row, which has so many new ones. */
  const int32_t shared = s->dilation_w == 1 && s->stride_w < s->kernel_w ? s->kernel_w - s->stride_w : 0;
  const int32_t fresh = s->kernel_w - shared, apart = s->stride_w - fresh * s->dilation_w;
  const int32_t neighbours = s->dilation_w == 1 && apart == 0 ? 1 : 0;
  int32_t *const patch = (int32_t *)scratch;
  all_blocks blocks = blocks_in(patch, fresh * of_column, params);
  for (int32_t n = 0; n < s->batch; n++) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const column_rows rows = rows_at(input, out_y * s->stride_h - s->pad_top, s);
      int32_t x = -s->pad_left, columns = s->kernel_w, *to = patch;
      for (int32_t left = s->out_w; left > 0;) {
        const int32_t count = left < params->strip ? left : params->strip;
        if (neighbours != 0) {
          const int32_t all = columns + (count - 1) * fresh;
          to = columns_from(to, &rows, x, all, s, padding, fours);
          x += all;
        } else {
          for (int32_t i = 0; i < count; i++) {
            for (; columns > 0; columns--) {
              to = column(to, &rows, x, s, padding, fours);
              x += s->dilation_w;
            }
            x += apart;
            columns = fresh;
          }
        }
        columns = fresh;
        output = pixels(&blocks, count, output);
        left -= count;
        const int32_t *const end = to;
        to = patch + shared * of_column;
        if (shared != 0 && left != 0) {
          moved_down(patch, end - shared * of_column, to);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}

void tinyet_conv2d_1x1_s8_packed_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_packed_twos_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t fours = in_fours(input, s->in_c);
  int32_t *const patch = (int32_t *)scratch;
  all_blocks blocks = blocks_in(patch, s->in_c, params);
  for (int32_t left = s->batch * s->out_h * s->out_w; left > 0;) {
    const int32_t count = left < params->strip ? left : params->strip;
    (void)widened(patch, input, count * s->in_c, 0, 1, fours);
    output = pixels(&blocks, count, output);
    input += count * s->in_c;
    left -= count;
  }
}
