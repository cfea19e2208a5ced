/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"

enum { PIXELS = 4, STEP = 2 /* words from tap to tap */, CHECK = 0 };

#include "tinyet_paired_windows_body.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2 && defined(__thumb__)
typedef struct {
  const word *patch, *end;
  const uint32_t *stream;
  int8_t *output;
  int32_t channels;
  int32_t row; /* bytes from pixel to pixel of the output */
  int32_t skip[2]; /* instructions of the straight code, in bytes, that the first turn does not execute: of fours, of twos */
  int32_t two_sided;
  const int8_t *weights;
} tile_walk;

/* Two taps of two words each. The first ones of a run are added to the half that a run begins with. */
#define FIRST                        \
  "ldm r0!, {r9, r10, r11, r12}\n"   \
  "ldrsb r4, [r1, #1]\n"             \
  "ldrsb lr, [r1], #2\n"             \
  "mla r3, r9, lr, r2\n"             \
  "mla lr, r10, lr, r2\n"            \
  "mla r3, r11, r4, r3\n"            \
  "mla r4, r12, r4, lr\n"
#define NEXT                         \
  "ldm r0!, {r9, r10, r11, r12}\n"   \
  "ldrsb lr, [r1], #1\n"             \
  "mla r3, r9, lr, r3\n"             \
  "mla r4, r10, lr, r4\n"            \
  "ldrsb lr, [r1], #1\n"             \
  "mla r3, r11, lr, r3\n"            \
  "mla r4, r12, lr, r4\n"
/* What a run has added up to goes to the sums: of a pair the first holds 2^16 times the second, too. */
#define DRAIN                        \
  "add.w r5, r5, r3\n"               \
  "add.w r6, r6, r3, asr #16\n"      \
  "add.w r7, r7, r4\n"               \
  "add.w r8, r8, r4, asr #16\n"
#define FOUR FIRST NEXT DRAIN
#define TWO_TWOS FIRST DRAIN FIRST DRAIN
enum { FOUR_BYTES = 4 * (7 + 7 + 4), TWO_TWOS_BYTES = 4 * 2 * (7 + 4) };
/* 256 times both sums of a pair, where its words were. */
#define SPLIT(both, high)                     \
  "sub " both ", " both ", " high ", lsl #16\n" \
  "lsls " both ", " both ", #8\n"             \
  "lsls " high ", " high ", #8\n"
#define ROUND(sum, negative, to)              \
  "smull r4, " sum ", " sum ", r9\n" negative(sum) \
  "add " sum ", " sum ", r10\n"               \
  "asr " sum ", " sum ", r11\n"               \
  "ssat " sum ", #8, " sum "\n"               \
  "strb " sum ", " to "\n"
#define KEEP(sum) ""
/* Halves of sums below zero are rounded away from it; the product has the sign of its sum. */
#define AWAY(sum) "asrs r4, " sum ", #31\n" "add " sum ", " sum ", r4, lsl #7\n"
#define OUTPUTS(negative)                     \
  ROUND("r5", negative, "[lr]")               \
  ROUND("r6", negative, "[lr, r3]")           \
  ROUND("r7", negative, "[lr, r3, lsl #1]")   \
  "add lr, lr, r3\n"                          \
  ROUND("r8", negative, "[lr, r3, lsl #1]")

/* All channels of four pixels. Words at r0, weights at r1, in r2 the half that a run begins with, runs in r3 and r4, sums in
 * r5 ... r8. On the stack the walk without its weights. */
__attribute__((naked, noinline)) static void tile_of(const tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #36\n"
      "ldm r0, {r3, r4, r5, r6, r7, r8, r9, r10, r11, r12}\n"
      "stm sp, {r3, r4, r5, r6, r7, r8, r9, r10, r11}\n"
      "mov r1, r12\n"
      "mov r2, #0x8000\n"
      "1:\n"
      "ldr r12, [sp, #8]\n"
      "ldm r12!, {r5, r6, lr}\n"
      "str r12, [sp, #8]\n"
      "mov r7, r5\n"
      "mov r8, r6\n"
      "ldr r0, [sp]\n"
      "cmp lr, #0\n"
      "bne 3f\n"
      "ldr r3, [sp, #24]\n"
      "adr.w r4, 2f\n"
      "add r4, r4, r3\n"
      "mov pc, r4\n"
      ".balign 4\n"
      "2:\n"
      FOUR FOUR FOUR FOUR
      "ldr r3, [sp, #4]\n"
      "cmp r0, r3\n"
      "bne 2b\n"
      "b 5f\n"
      "3:\n"
      "ldr r3, [sp, #28]\n"
      "adr.w r4, 4f\n"
      "add r4, r4, r3\n"
      "mov pc, r4\n"
      ".balign 4\n"
      "4:\n"
      TWO_TWOS TWO_TWOS TWO_TWOS TWO_TWOS
      "ldr r3, [sp, #4]\n"
      "cmp r0, r3\n"
      "bne 4b\n"
      "5:\n"
      "ldr r12, [sp, #8]\n"
      "ldr r9, [r12], #4\n"
      "cmp r9, #0\n"
      "bmi 8f\n"
      "6:\n"
      "ldm r12!, {r10, r11}\n" /* offset and shift behind the multiplier */
      "str r12, [sp, #8]\n"
      SPLIT("r5", "r6")
      SPLIT("r7", "r8")
      "ldr lr, [sp, #12]\n"
      "ldr r3, [sp, #20]\n"
      "ldr r12, [sp, #32]\n"
      "add r4, lr, #1\n"
      "str r4, [sp, #12]\n"
      "cmp r12, #0\n"
      "bne 9f\n"
      OUTPUTS(KEEP)
      "7:\n"
      "ldr r3, [sp, #16]\n"
      "subs r3, r3, #1\n"
      "str r3, [sp, #16]\n"
      "bne 1b\n"
      "add sp, sp, #36\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
      "8:\n" /* a weight by itself, and where its tap's words are */
      "ldr r0, [sp]\n"
      "ubfx r3, r9, #8, #23\n"
      "sxtb lr, r9\n"
      "add r3, r3, r0\n"
      "ldm r3, {r10, r11}\n"
      "mla r3, r10, lr, r2\n"
      "mla r4, r11, lr, r2\n"
      DRAIN
      "ldr r9, [r12], #4\n"
      "cmp r9, #0\n"
      "bmi 8b\n"
      "b 6b\n"
      "9:\n"
      OUTPUTS(AWAY)
      "b 7b\n");
}
#undef FIRST
#undef NEXT
#undef DRAIN
#undef FOUR
#undef TWO_TWOS
#undef SPLIT
#undef ROUND
#undef KEEP
#undef AWAY
#undef OUTPUTS

static void outputs(const word *patch, int8_t *output, int32_t row, int32_t fours,
                    const tinyet_conv2d_s8_paired_fours_4x1_params *params) {
  const int32_t skip = -fours & 3;
  const tile_walk walk = {patch,
                          patch + 4 * STEP * fours,
                          params->outputs.stream,
                          output,
                          params->shape.out_c,
                          row,
                          {skip * FOUR_BYTES, skip * TWO_TWOS_BYTES},
                          params->outputs.two_sided,
                          params->weights};
  tile_of(&walk);
}
#else
/* What a run of taps adds to the sums of two pixels. */
static inline void add_run(uint32_t sums[2], uint32_t run) {
  run += 0x8000u;
  sums[0] += run;
  sums[1] += (uint32_t)((int32_t)run >> 16);
}

static void outputs(const word *patch, int8_t *output, int32_t row, int32_t fours,
                    const tinyet_conv2d_s8_paired_fours_4x1_params *params) {
  const TINYET_ROM uint32_t *f = params->outputs.stream;
  const TINYET_ROM int8_t *weights = params->weights;
  const int32_t taps = 4 * fours, away = params->outputs.two_sided != 0 ? 128 : 0;
  for (int32_t channels = params->shape.out_c; channels > 0; channels--) {
    const int32_t length = f[2] != 0 ? 2 : 4;
    const TINYET_ROM uint32_t *rounding = f + 3;
    for (int32_t pair = 0; pair < PIXELS / 2; pair++) {
      const word *const x = patch + pair;
      uint32_t sums[2] = {f[0], f[1]};
      for (int32_t tap = 0; tap < taps; tap += length) {
        uint32_t run = 0;
        for (int32_t i = tap; i < tap + length; i++) {
          const int32_t weight = weights[i];
          run += x[STEP * i] * (uint32_t)weight;
        }
        add_run(sums, run);
      }
      for (rounding = f + 3; (int32_t)*rounding < 0; rounding++) {
        const uint32_t tap = (*rounding & 0x7FFFFFFFu) >> 8 >> 3;
        const int32_t weight = (int8_t)*rounding;
        add_run(sums, x[STEP * tap] * (uint32_t)weight);
      }
      const int32_t low = (int32_t)(sums[0] - (sums[1] << 16)), high = (int32_t)sums[1];
      int8_t *const out = output + 2 * pair * row;
      out[0] = (int8_t)tinyet_one_product(low * 256, (int32_t)rounding[0], (int32_t)rounding[1], away, rounding[2]);
      out[row] = (int8_t)tinyet_one_product(high * 256, (int32_t)rounding[0], (int32_t)rounding[1], away, rounding[2]);
    }
    weights += taps;
    output++;
    f = rounding + 3;
  }
}
#endif

void tinyet_conv2d_s8_paired_fours_4x1(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_conv2d_s8_paired_fours_4x1_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, fours = (taps + 3) / 4, pixels = s->out_h * s->out_w;
  const int32_t out_c = s->out_c;
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)scratch + 16 * STEP * fours;
  memset(scratch, 0, (size_t)(16 * STEP * fours));
  for (int32_t n = 0; n < s->batch; n++) {
    window_walk walk = first_window(input, s);
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      gather_windows(patch, count, &walk, s, params->outputs.padding);
      if (count == PIXELS) {
        outputs(patch, output, out_c, fours, params);
      } else {
        outputs(patch, apart, out_c, fours, params);
        memcpy(output, apart, (size_t)(count * out_c));
      }
      tinyet_clamp_outputs(output, count * out_c, params->outputs.clamp_low, params->outputs.clamp_high);
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
