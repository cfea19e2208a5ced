/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_conv2d_paired.h"
#include "tinyet_one_product.h"
#include "tinyet_straight.h"

enum { PIXELS = 6, STEP = 3 /* words from tap to tap */, CHECK = 0 };

#include "tinyet_paired_windows_body.h"

#if defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_mul) && !defined(__riscv_32e)
/* third(x) is x where a tile has three words of pixels, nothing where it has two. */
#define THIRD(x) x
#define NONE(x) ""
#define WORD(at, m, a, b)                      \
  "lw t0, " #at "-12*" #m "(a6)\n"             \
  "mul t1, t0, t2\n" "add " a ", " a ", t1\n"  \
  "mul t0, t0, t3\n" "add " b ", " b ", t0\n"
/* The tap that is the m-th from the run's end. */
#define TAP(m, third)       \
  "3" #m ":\n"              \
  "lb t2, -2*" #m "(a7)\n"  \
  "lb t3, 1-2*" #m "(a7)\n" \
  WORD(0, m, "a0", "a3") WORD(4, m, "a1", "a4") third(WORD(8, m, "a2", "a5"))
/* That of a run: its products are what the others are added to. */
#define FIRST_WORD(at, a, b) "lw t0, " #at "(a6)\n" "mul " a ", t0, t2\n" "mul " b ", t0, t3\n"
#define FIRST(third)        \
  "lb t2, 1(a7)\n"          \
  "lb t3, 2(a7)\n"          \
  FIRST_WORD(0, "a0", "a3") FIRST_WORD(4, "a1", "a4") third(FIRST_WORD(8, "a2", "a5"))
/* Where a run of n taps goes, of which m are left: three instructions of four bytes each, TINYET_PAIRED_STEP. */
#define ENTRY(n, m) "addi a6, a6, 12*" #n "\n" "addi a7, a7, 1+2*" #n "\n" "j 3" #m "f\n"
/* What a run has added up to goes to the sums, with a half of 2^16 that makes the lower part positive; of a pair the first
 * holds 2^16 times the second, too. */
#define DRAIN(run, both, high)             \
  "add " run ", " run ", t6\n"             \
  "add " both ", " both ", " run "\n"      \
  "srai " run ", " run ", 16\n"            \
  "add " high ", " high ", " run "\n"
#define ROUND(sum, multiplier, shift, low, high, zero, less, to) \
  "mulhsu " sum ", " sum ", " multiplier "\n" less(sum, zero)    \
  "sra " sum ", " sum ", " shift "\n"                            \
  "ble " sum ", " high ", 8f\n"                                  \
  "mv " sum ", " high "\n"                                       \
  "8:\n"                                                         \
  "bge " sum ", " low ", 8f\n"                                   \
  "mv " sum ", " low "\n"                                        \
  "8:\n"                                                         \
  "sb " sum ", " to "\n"
#define KEEP(sum, zero) ""
/* Of a sum below zero. */
#define LESS(sum, zero) "slt t0, " sum ", " zero "\n" "sub " sum ", " sum ", t0\n"
/* Both sums of a pair. */
#define SPLIT(both, high) "slli t0, " high ", 16\n" "sub " both ", " both ", t0\n"
#define OUTPUT(sum, less) ROUND(sum, "t1", "t2", "t3", "t4", "a0", less, "0(a3)")
/* What makes outputs of one channel, whose words of the stream are at ra; row 0 or the last at a3. */
#define CHANNEL(at)                               \
  "lw t1, " #at "(ra)\n" "lw t2, " #at "+4(ra)\n" \
  "lw t0, " #at "+8(ra)\n"                        \
  "andi t3, t2, -128\n"                           \
  "add a3, a3, t0\n"                              \
  "addi t4, t3, 255\n"
/* The first channel's outputs from row to row, the second's back again. */
#define ONWARD "add a3, a3, a5\n"
#define BACK "sub a3, a3, a5\n"
#define SUMS(third) \
  SPLIT("s0", "s1") SPLIT("s2", "s3") third(SPLIT("s4", "s5")) SPLIT("s6", "s7") SPLIT("s8", "s9") third(SPLIT("s10", "s11"))
#define FIRST_OUTPUTS(less, third)                                                                 \
  OUTPUT("s0", less) ONWARD OUTPUT("s1", less) ONWARD OUTPUT("s2", less) ONWARD OUTPUT("s3", less) \
  third(ONWARD OUTPUT("s4", less) ONWARD OUTPUT("s5", less))
#define SECOND_OUTPUTS(less, third)                        \
  third(OUTPUT("s11", less) BACK OUTPUT("s10", less) BACK) \
  OUTPUT("s9", less) BACK OUTPUT("s8", less) BACK OUTPUT("s7", less) BACK OUTPUT("s6", less)

/* All channels of six pixels, or of four. Runs in a0 ... a5, sums in s0 ... s11; inputs behind a run's taps at a6, weights at
 * a7, a pair's words of the stream at ra. */
#define TILE(name, third)                                                                                              \
  __attribute__((naked, noinline)) static void name(                                                                   \
      const void *patch __attribute__((unused)), const uint32_t *stream __attribute__((unused)),                       \
      const int8_t *weights __attribute__((unused)), int8_t *output __attribute__((unused)),                           \
      int32_t row __attribute__((unused)), int32_t two_sided __attribute__((unused))) {                                \
    __asm__ volatile(                                                                                                  \
        "addi sp, sp, -80\n"                                                                                           \
        "sw a0, 0(sp)\n" "sw a3, 4(sp)\n" "sw a4, 8(sp)\n" "sw a5, 12(sp)\n"                                           \
        "sw ra, 28(sp)\n"                                                                                              \
        "sw s0, 32(sp)\n" "sw s1, 36(sp)\n" "sw s2, 40(sp)\n" "sw s3, 44(sp)\n" "sw s4, 48(sp)\n" "sw s5, 52(sp)\n"    \
        "sw s6, 56(sp)\n" "sw s7, 60(sp)\n" "sw s8, 64(sp)\n" "sw s9, 68(sp)\n" "sw s10, 72(sp)\n" "sw s11, 76(sp)\n"  \
        "mv ra, a1\n"                                                                                                  \
        "mv a7, a2\n"                                                                                                  \
        "lla t5, 4f - 12\n" /* a run has a tap at least */                                                             \
        "li t6, 0x8000\n"                                                                                              \
        "lbu t1, 0(a7)\n"                                                                                              \
        "1:\n"                                                                                                         \
        "lw s0, 0(ra)\n" "lw s1, 4(ra)\n" "mv s2, s0\n" "mv s3, s1\n" third("mv s4, s0\n" "mv s5, s1\n")               \
        "lw s6, 8(ra)\n" "lw s7, 12(ra)\n" "mv s8, s6\n" "mv s9, s7\n" third("mv s10, s6\n" "mv s11, s7\n")            \
        "lw a6, 0(sp)\n"                                                                                               \
        "2:\n"                                                                                                         \
        FIRST(third)                                                                                                   \
        "add t4, t1, t5\n"                                                                                             \
        "jr t4\n"                                                                                                      \
        ".option push\n"                                                                                               \
        ".option norvc\n"                                                                                              \
        ".option norelax\n"                                                                                            \
        ".balign 4\n"                                                                                                  \
        "4:\n"                                                                                                         \
        ENTRY(1, 0) ENTRY(2, 1) ENTRY(3, 2) ENTRY(4, 3) ENTRY(5, 4) ENTRY(6, 5) ENTRY(7, 6) ENTRY(8, 7) ENTRY(9, 8)    \
        ENTRY(10, 9) ENTRY(11, 10) ENTRY(12, 11)                                                                       \
        ".option pop\n"                                                                                                \
        TAP(11, third) TAP(10, third) TAP(9, third) TAP(8, third) TAP(7, third) TAP(6, third) TAP(5, third)            \
        TAP(4, third) TAP(3, third) TAP(2, third) TAP(1, third)                                                        \
        "30:\n"                                                                                                        \
        DRAIN("a0", "s0", "s1") DRAIN("a1", "s2", "s3") third(DRAIN("a2", "s4", "s5"))                                 \
        DRAIN("a3", "s6", "s7") DRAIN("a4", "s8", "s9") third(DRAIN("a5", "s10", "s11"))                               \
        "lbu t1, 0(a7)\n"                                                                                              \
        "bnez t1, 2b\n"                                                                                                \
        "lw a3, 4(sp)\n" "lw a5, 8(sp)\n" "lw a1, 12(sp)\n"                                                            \
        CHANNEL(16) SUMS(third)                                                                                        \
        "bnez a1, 6f\n"                                                                                                \
        FIRST_OUTPUTS(KEEP, third) CHANNEL(32) SECOND_OUTPUTS(KEEP, third)                                             \
        "5:\n"                                                                                                         \
        "addi a7, a7, 1\n"                                                                                             \
        "lbu t1, 0(a7)\n"                                                                                              \
        "addi ra, ra, 48\n"                                                                                            \
        "bnez t1, 1b\n"                                                                                                \
        "lw ra, 28(sp)\n"                                                                                              \
        "lw s0, 32(sp)\n" "lw s1, 36(sp)\n" "lw s2, 40(sp)\n" "lw s3, 44(sp)\n" "lw s4, 48(sp)\n" "lw s5, 52(sp)\n"    \
        "lw s6, 56(sp)\n" "lw s7, 60(sp)\n" "lw s8, 64(sp)\n" "lw s9, 68(sp)\n" "lw s10, 72(sp)\n" "lw s11, 76(sp)\n"  \
        "addi sp, sp, 80\n"                                                                                            \
        "ret\n"                                                                                                        \
        "6:\n"                                                                                                         \
        "lw a0, 28(ra)\n"                                                                                              \
        FIRST_OUTPUTS(LESS, third) CHANNEL(32)                                                                         \
        "lw a0, 44(ra)\n"                                                                                              \
        SECOND_OUTPUTS(LESS, third)                                                                                    \
        "j 5b\n");                                                                                                     \
  }
TILE(six_pixels, THIRD)
TILE(four_pixels, NONE)
#undef THIRD
#undef NONE
#undef WORD
#undef TAP
#undef FIRST_WORD
#undef FIRST
#undef ENTRY
#undef DRAIN
#undef ROUND
#undef KEEP
#undef LESS
#undef SPLIT
#undef OUTPUT
#undef CHANNEL
#undef ONWARD
#undef BACK
#undef SUMS
#undef FIRST_OUTPUTS
#undef SECOND_OUTPUTS
#undef TILE

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_runs_6x2_params *params) {
  if (count > 4) {
    six_pixels(patch, params->outputs.stream, params->weights, output, row, params->outputs.two_sided);
  } else {
    four_pixels(patch, params->outputs.stream, params->weights, output, row, params->outputs.two_sided);
  }
}
#else
/* The sums of two pixels and one channel; gives the weights behind the runs. */
static const TINYET_ROM int8_t *sums_of(const word *x, const TINYET_ROM int8_t *weights, int32_t channel,
                                        uint32_t sums[2]) {
  for (int32_t left = (uint8_t)*weights; left != TINYET_PAIRED_END; left = (uint8_t)*weights) {
    uint32_t run = 0x8000u;
    for (weights++; left > 0; left -= TINYET_PAIRED_STEP) {
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

static void outputs(const void *patch, int8_t *output, int32_t row, int32_t count,
                    const tinyet_conv2d_s8_paired_runs_6x2_params *params) {
  const int32_t words = count > 4 ? PIXELS / 2 : 2;
  const TINYET_ROM uint32_t *f = params->outputs.stream;
  const TINYET_ROM int8_t *weights = params->weights;
  for (int32_t pairs = (params->shape.out_c + 1) / 2; pairs > 0; pairs--) {
    const TINYET_ROM int8_t *behind = weights;
    int8_t *to = output;
    for (int32_t c = 0; c < 2; c++) {
      const TINYET_ROM uint32_t *const r = f + 4 + 4 * c;
      const int32_t place = (int32_t)(r[1] & ~(uint32_t)127) + 128;
      const int32_t zero = params->outputs.two_sided != 0 ? (int32_t)r[3] : INT32_MIN;
      to += (int32_t)r[2];
      for (int32_t pair = 0; pair < words; pair++) {
        uint32_t sums[2] = {f[2 * c], f[2 * c + 1]};
        behind = sums_of((const word *)patch + pair, weights, c, sums);
        int8_t *const out = to + 2 * pair * row;
        const int32_t low = (int32_t)(sums[0] - (sums[1] << 16)), high = (int32_t)sums[1];
        out[0] = tinyet_straight(low, r[0], r[1] & 31u, place, zero);
        out[row] = tinyet_straight(high, r[0], r[1] & 31u, place, zero);
      }
    }
    weights = behind;
    f += 12;
  }
}
#endif

/* Pixels, less what their inputs are counted from. Where there are not six, the last is the others, too. */
static __attribute__((noinline)) void gather_centred(word *to, const int8_t *pixels, int32_t count,
                                                     const TINYET_ROM uint32_t *centre, int32_t taps) {
  const int8_t *const last = pixels + (count - 1) * taps;
  const int8_t *a = pixels, *b = a < last ? a + taps : last, *c = b < last ? b + taps : last;
  const int8_t *d = c < last ? c + taps : last, *e = d < last ? d + taps : last, *f = e < last ? e + taps : last;
#define TAP(i)                                                            \
  do {                                                                    \
    const uint32_t less = centre[i];                                      \
    to[STEP * (i)] = (uint32_t)a[i] + ((uint32_t)b[i] << 16) - less;      \
    to[STEP * (i) + 1] = (uint32_t)c[i] + ((uint32_t)d[i] << 16) - less;  \
    to[STEP * (i) + 2] = (uint32_t)e[i] + ((uint32_t)f[i] << 16) - less;  \
  } while (0)
  for (const word *const end = to + STEP * taps; to != end; to += 4 * STEP) {
    TAP(0);
    TAP(1);
    TAP(2);
    TAP(3);
    a += 4, b += 4, c += 4, d += 4, e += 4, f += 4, centre += 4;
  }
#undef TAP
}

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
      if (params->centred != 0) {
        gather_centred(patch, input + pixel * taps, count,
                       params->outputs.stream + even / 2 * 12, taps);
      } else {
        gather_windows(patch, count, &walk, s, params->outputs.padding);
      }
      if (count == PIXELS && even == out_c) {
        outputs(patch, output, out_c, count, params);
      } else {
        outputs(patch, apart, even, count, params);
        for (int32_t i = 0; i < count; i++) {
          memcpy(output + i * out_c, apart + i * even, (size_t)out_c);
        }
      }
      tinyet_clamp_outputs(output, count * out_c, params->outputs.clamp_low, params->outputs.clamp_high);
      output += count * out_c;
    }
    input += s->in_h * s->in_w * s->in_c;
  }
}
