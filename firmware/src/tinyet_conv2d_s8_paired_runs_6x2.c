/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"

enum { PIXELS = 6, STEP = 3 /* words from tap to tap */ };

#include "tinyet_paired_windows_body.h"

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
typedef struct {
  const void *patch;
  const uint32_t *stream;
  const int8_t *weights;
  int8_t *output;
  int32_t row; /* bytes from pixel to pixel of the output */
  int32_t pairs;
  int32_t two_sided;
} tile_walk;

#define WORD(at, x, a, b)                      \
  "lw t0, " #at "-12*" #x "(a6)\n"             \
  "mul t1, t0, t2\n" "add " a ", " a ", t1\n" \
  "mul t0, t0, t3\n" "add " b ", " b ", t0\n"
/* The tap that is the n-th from the run's end: seventeen instructions, of four bytes each. */
#define TAP(n)              \
  "lb t2, 1-2*" #n "(a7)\n" \
  "lb t3, 2-2*" #n "(a7)\n" \
  WORD(0, n, "a0", "a3") WORD(4, n, "a1", "a4") WORD(8, n, "a2", "a5")
/* That of a run: its products are what the others are added to. */
#define FIRST_WORD(at, a, b)                                                         \
  "lw t0, " #at "(a6)\n" "mul " a ", t0, t2\n" "mul " b ", t0, t3\n"
#define FIRST               \
  "lb t2, 1(a7)\n"          \
  "lb t3, 2(a7)\n"          \
  FIRST_WORD(0, "a0", "a3") FIRST_WORD(4, "a1", "a4") FIRST_WORD(8, "a2", "a5")
/* What a run has added up to goes to the sums, with a half of 2^16 that makes the lower part positive; of a pair the first
 * holds 2^16 times the second, too. */
#define DRAIN(run, both, high)             \
  "add " run ", " run ", t4\n"            \
  "add " both ", " both ", " run "\n"      \
  "srai " run ", " run ", 16\n"            \
  "add " high ", " high ", " run "\n"
#define ROUND(sum, away)                   \
  "mulh " sum ", " sum ", t2\n" away(sum)  \
  "add " sum ", " sum ", t3\n"             \
  "sra " sum ", " sum ", t4\n"             \
  "ble " sum ", t5, 8f\n"                  \
  "mv " sum ", t5\n"                       \
  "8:\n"                                   \
  "bge " sum ", t6, 8f\n"                  \
  "mv " sum ", t6\n"                       \
  "8:\n"                                   \
  "sb " sum ", 0(a2)\n"                    \
  "add a2, a2, a5\n"
#define KEEP(sum) ""
#define AWAY(sum) "srai a0, " sum ", 31\n" "andi a0, a0, 128\n" "sub " sum ", " sum ", a0\n"
#define TWO(both, high, away)              \
  "slli a0, " high ", 16\n"                \
  "sub " both ", " both ", a0\n"           \
  "slli " both ", " both ", 8\n"           \
  "slli " high ", " high ", 8\n"           \
  ROUND(both, away) ROUND(high, away)
#define CHANNEL(at, a, b, c, d, e, f, away) \
  "lw t2, 16+" #at "(t1)\n"                 \
  "lw t3, 20+" #at "(t1)\n"                 \
  "lw t4, 24+" #at "(t1)\n"                 \
  "mv a2, a4\n"                             \
  TWO(a, b, away) TWO(c, d, away) TWO(e, f, away) \
  "addi a4, a4, 1\n"
#define BOTH(away)                                    \
  CHANNEL(0, "s0", "s1", "s2", "s3", "s4", "s5", away) \
  CHANNEL(12, "s6", "s7", "s8", "s9", "s10", "s11", away)

/* All channels of six pixels; the walk moves on. Runs in a0 ... a5, sums in s0 ... s11; inputs behind a run's taps at a6,
 * weights at a7. */
__attribute__((naked, noinline)) static void tile_of(tile_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      "addi sp, sp, -64\n"
      "sw a0, 0(sp)\n"
      "sw ra, 4(sp)\n"
      "sw s0, 8(sp)\n" "sw s1, 12(sp)\n" "sw s2, 16(sp)\n" "sw s3, 20(sp)\n" "sw s4, 24(sp)\n" "sw s5, 28(sp)\n"
      "sw s6, 32(sp)\n" "sw s7, 36(sp)\n" "sw s8, 40(sp)\n" "sw s9, 44(sp)\n" "sw s10, 48(sp)\n" "sw s11, 52(sp)\n"
      "1:\n"
      "lw t0, 0(sp)\n"
      "lw t1, 4(t0)\n"
      "lw s0, 0(t1)\n" "lw s1, 4(t1)\n" "mv s2, s0\n" "mv s3, s1\n" "mv s4, s0\n" "mv s5, s1\n"
      "lw s6, 8(t1)\n" "lw s7, 12(t1)\n" "mv s8, s6\n" "mv s9, s7\n" "mv s10, s6\n" "mv s11, s7\n"
      "lw a6, 0(t0)\n"
      "lw a7, 8(t0)\n"
      "li t4, 0x8000\n"
      "lla t5, 3f + 68\n" /* a run's first tap has been taken */
      "li t6, 68\n"
      "li ra, 12\n"
      "2:\n"
      "lb t1, 0(a7)\n"
      "bltz t1, 4f\n"
      FIRST
      "mul t3, t1, ra\n"
      "add a6, a6, t3\n"
      "mul t0, t1, t6\n"
      "slli t1, t1, 1\n"
      "add a7, a7, t1\n"
      "sub t0, t5, t0\n"
      "jr t0\n"
      ".option push\n"
      ".option norvc\n"
      ".option norelax\n"
      ".balign 4\n"
      TAP(11) TAP(10) TAP(9) TAP(8) TAP(7) TAP(6) TAP(5) TAP(4) TAP(3) TAP(2) TAP(1)
      "3:\n"
      DRAIN("a0", "s0", "s1") DRAIN("a1", "s2", "s3") DRAIN("a2", "s4", "s5")
      DRAIN("a3", "s6", "s7") DRAIN("a4", "s8", "s9") DRAIN("a5", "s10", "s11")
      "addi a7, a7, 1\n"
      "j 2b\n"
      ".option pop\n"
      "4:\n"
      "lw t0, 0(sp)\n"
      "addi a7, a7, 1\n"
      "sw a7, 8(t0)\n"
      "lw t1, 4(t0)\n"
      "lw a4, 12(t0)\n"
      "lw a5, 16(t0)\n"
      "lw a0, 24(t0)\n"
      "li t5, 127\n"
      "li t6, -128\n"
      "bnez a0, 5f\n"
      BOTH(KEEP)
      "4:\n"
      "lw t0, 0(sp)\n"
      "addi t1, t1, 40\n"
      "sw t1, 4(t0)\n"
      "sw a4, 12(t0)\n"
      "lw a0, 20(t0)\n"
      "addi a0, a0, -1\n"
      "sw a0, 20(t0)\n"
      "beqz a0, 6f\n"
      "j 1b\n"
      "6:\n"
      "lw ra, 4(sp)\n"
      "lw s0, 8(sp)\n" "lw s1, 12(sp)\n" "lw s2, 16(sp)\n" "lw s3, 20(sp)\n" "lw s4, 24(sp)\n" "lw s5, 28(sp)\n"
      "lw s6, 32(sp)\n" "lw s7, 36(sp)\n" "lw s8, 40(sp)\n" "lw s9, 44(sp)\n" "lw s10, 48(sp)\n" "lw s11, 52(sp)\n"
      "addi sp, sp, 64\n"
      "ret\n"
      "5:\n"
      BOTH(AWAY)
      "j 4b\n");
}
#undef WORD
#undef TAP
#undef FIRST_WORD
#undef FIRST
#undef DRAIN
#undef ROUND
#undef KEEP
#undef AWAY
#undef TWO
#undef CHANNEL
#undef BOTH

static void outputs(const void *patch, int8_t *output, int32_t row,
                    const tinyet_conv2d_s8_paired_runs_6x2_params *params) {
  tile_walk walk = {patch, params->stream, params->weights, output, row, (params->shape.out_c + 1) / 2,
                    params->two_sided};
  tile_of(&walk);
}
#else
/* The sums of two pixels and one channel; gives the weights behind the runs. */
static const TINYET_ROM int8_t *sums_of(const word *x, const TINYET_ROM int8_t *weights, int32_t channel,
                                        uint32_t sums[2]) {
  for (int32_t taps = *weights; taps != TINYET_PAIRED_END; taps = *weights) {
    uint32_t run = 0x8000u;
    for (weights++; taps > 0; taps--) {
      const int32_t weight = weights[channel];
      run += *x * (uint32_t)weight;
      x += STEP;
      weights += 2;
    }
    sums[0] += run;
    sums[1] += (uint32_t)((int32_t)run >> 16);
  }
  return weights + 1;
}

static void outputs(const void *patch, int8_t *output, int32_t row,
                    const tinyet_conv2d_s8_paired_runs_6x2_params *params) {
  const TINYET_ROM uint32_t *f = params->stream;
  const TINYET_ROM int8_t *weights = params->weights;
  const int32_t away = params->two_sided != 0 ? 128 : 0;
  for (int32_t pairs = (params->shape.out_c + 1) / 2; pairs > 0; pairs--) {
    const TINYET_ROM int8_t *behind = weights;
    for (int32_t c = 0; c < 2; c++) {
      const TINYET_ROM uint32_t *const rounding = f + 4 + 3 * c;
      const int32_t multiplier = (int32_t)rounding[0], offset = (int32_t)rounding[1];
      for (int32_t pair = 0; pair < PIXELS / 2; pair++) {
        uint32_t sums[2] = {f[2 * c], f[2 * c + 1]};
        behind = sums_of((const word *)patch + pair, weights, c, sums);
        int8_t *const out = output + 2 * pair * row + c;
        const int32_t low = (int32_t)(sums[0] - (sums[1] << 16)), high = (int32_t)sums[1];
        out[0] = tinyet_one_product(low * 256, multiplier, offset, away, rounding[2]);
        out[row] = tinyet_one_product(high * 256, multiplier, offset, away, rounding[2]);
      }
    }
    weights = behind;
    output += 2;
    f += 10;
  }
}
#endif

void tinyet_conv2d_s8_paired_runs_6x2(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_conv2d_s8_paired_runs_6x2_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t taps = s->kernel_h * s->kernel_w * s->in_c, pixels = s->out_h * s->out_w;
  const int32_t out_c = s->out_c, even = out_c + (out_c & 1);
  word *const patch = (word *)scratch;
  int8_t *const apart = (int8_t *)scratch + 4 * STEP * taps;
  memset(scratch, 0, (size_t)(4 * STEP * taps));
  for (int32_t n = 0; n < s->batch; n++) {
    window_walk walk = first_window(input, s);
    for (int32_t pixel = 0; pixel < pixels; pixel += PIXELS) {
      const int32_t count = pixels - pixel < PIXELS ? pixels - pixel : (int32_t)PIXELS;
      gather_windows(patch, count, &walk, s, params->padding);
      if (count == PIXELS && even == out_c) {
        outputs(patch, output, out_c, params);
      } else {
        outputs(patch, apart, even, params);
        for (int32_t i = 0; i < count; i++) {
          memcpy(output + i * out_c, apart + i * even, (size_t)out_c);
        }
      }
      tinyet_clamp_outputs(output, count * out_c, params->clamp_low, params->clamp_high);
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
