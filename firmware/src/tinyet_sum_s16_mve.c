/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_sum_mve.h"

#if TINYET_MVE_ASM
/* clang-format off */
/* q3, q2: sums to outputs, four by four; r4, r5: multiplier, shift. */
#define TINYET_MVE_ROUNDED(TO, FROM) \
  "vshr.s32 " TO ", " FROM ", #31\n" \
  "vqrdmlah.s32 " TO ", " FROM ", r4\n" \
  "vrshl.s32 " TO ", r5\n" \
  "vqmovnb.s32 " TO ", " TO "\n"

static void sum_eight(const int16_t *from, int16_t *to, const tinyet_sum_s16_mve_params *p) {
  __asm__ volatile(
      "ldm.w %[p], {r4, r5}\n"
      "vmov.i32 q0, #0\n"
      "vmov.i32 q1, #0\n"
      "dls lr, %[pixels]\n"
      "1:\n"
      "vldrh.s32 q2, [%[from]]\n"
      "vldrh.s32 q3, [%[from], #8]\n"
      "add.w %[from], %[from], %[step]\n"
      "vadd.i32 q0, q0, q2\n"
      "vadd.i32 q1, q1, q3\n"
      "le lr, 1b\n" TINYET_MVE_ROUNDED("q2", "q0") TINYET_MVE_ROUNDED("q3", "q1")
      "vstrh.32 q2, [%[to]]\n"
      "vstrh.32 q3, [%[to], #8]\n"
      : [from] "+l"(from)
      : [to] "l"(to), [pixels] "r"(p->pixels), [step] "r"(2 * p->channels), [p] "r"(p)
      : "r4", "r5", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
}

/* Up to four. */
static void sum_some(const int16_t *from, int16_t *to, int32_t count, const tinyet_sum_s16_mve_params *p) {
  __asm__ volatile(
      "ldm.w %[p], {r4, r5}\n"
      "vmov.i32 q0, #0\n"
      "vctp.32 %[count]\n"
      "dls lr, %[pixels]\n"
      "1:\n"
      "vpst\n"
      "vldrht.s32 q2, [%[from]]\n"
      "add.w %[from], %[from], %[step]\n"
      "vadd.i32 q0, q0, q2\n"
      "le lr, 1b\n" TINYET_MVE_ROUNDED("q2", "q0")
      "vpst\n"
      "vstrht.32 q2, [%[to]]\n"
      : [from] "+l"(from)
      : [to] "l"(to), [count] "r"(count), [pixels] "r"(p->pixels), [step] "r"(2 * p->channels), [p] "r"(p)
      : "r4", "r5", "lr", "d0", "d1", "d4", "d5", "memory");
}
/* clang-format on */
#endif

void tinyet_sum_s16_mve(const int16_t *input, int16_t *output, const tinyet_sum_s16_mve_params *p) {
  for (int32_t image = 0; image < p->images; image++) {
#if TINYET_MVE_ASM
    int32_t c = 0;
    for (; c + 8 <= p->channels; c += 8) {
      sum_eight(input + c, output + c, p);
    }
    for (; c < p->channels; c += 4) {
      sum_some(input + c, output + c, p->channels - c, p);
    }
#else
    for (int32_t c = 0; c < p->channels; c++) {
      int32_t sum = 0;
      for (int32_t i = 0; i < p->pixels; i++) {
        sum += input[i * p->channels + c];
      }
      output[c] = (int16_t)tinyet_clamp(tinyet_requantize(sum, p->multiplier, p->shift), INT16_MIN, INT16_MAX);
    }
#endif
    input += p->pixels * p->channels;
    output += p->channels;
  }
}
