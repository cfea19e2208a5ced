/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_sum_mve.h"

/* Up to eight channels. */
static void sum_channels(const int8_t *from, int8_t *to, int32_t count, const tinyet_sum_s8_mve_params *p) {
#if TINYET_MVE_ASM
  int32_t pixels = p->pixels;
  /* The count of lanes holds until LCTP: words of an odd one would be written by halves. */
  __asm__ volatile(
      "ldm.w %[params], {r8, r9, r10, r12}\n"
      "dlstp.16 lr, %[count]\n"
      "vmov.i16 q0, #0\n"
      "1:\n"
      "vldrb.s16 q1, [%[from]]\n"
      "add.w %[from], %[from], %[channels]\n"
      "vadd.i16 q0, q0, q1\n"
      "subs.w %[pixels], %[pixels], #1\n"
      "bne.w 1b\n"
      "lctp\n"
      "vmovlb.s16 q1, q0\n"
      "vmovlt.s16 q2, q0\n"
      "vadd.i32 q1, q1, r8\n"
      "vadd.i32 q2, q2, r8\n"
      "vshr.s32 q0, q1, #31\n"
      "vshr.s32 q3, q2, #31\n"
      "vqrdmlah.s32 q0, q1, r9\n"
      "vqrdmlah.s32 q3, q2, r9\n"
      "vrshl.s32 q0, r10\n"
      "vrshl.s32 q3, r10\n"
      "vqmovnb.s32 q0, q0\n"
      "vqmovnt.s32 q0, q3\n"
      "vqadd.s16 q0, q0, r12\n"
      "vqmovnb.s16 q0, q0\n"
      "vctp.16 %[count]\n"
      "vpst\n"
      "vstrbt.16 q0, [%[to]]\n"
      : [from] "+l"(from), [pixels] "+r"(pixels)
      : [to] "l"(to), [count] "r"(count), [channels] "r"(p->channels), [params] "r"(p)
      : "r8", "r9", "r10", "r12", "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  const tinyet_rounding_mve rounding = {0, 0, p->zero_point, -128, 127};
  for (int32_t c = 0; c < count; c++) {
    int32_t sum = p->bias;
    for (int32_t i = 0; i < p->pixels; i++) {
      sum += from[i * p->channels + c];
    }
    to[c] = tinyet_round_mve(sum, p->multiplier, p->shift, &rounding);
  }
#endif
}

void tinyet_sum_s8_mve(const int8_t *input, int8_t *output, const tinyet_sum_s8_mve_params *p) {
  for (int32_t image = 0; image < p->images; image++) {
    for (int32_t c = 0; c < p->channels; c += 8) {
      sum_channels(input + c, output + c, p->channels - c < 8 ? p->channels - c : 8, p);
    }
    input += p->pixels * p->channels;
    output += p->channels;
  }
}
