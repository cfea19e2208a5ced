/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_sum_mve.h"

/* Up to eight channels. */
static void sum_channels(const int8_t *from, int8_t *to, int32_t count, const tinyet_sum_s8_mve_params *p) {
#if TINYET_MVE_ASM
  int32_t left = p->pixels;
  /* q4, q5: sums of even and odd channels. */
  __asm__ volatile(
      "vdup.32 q4, %[bias]\n"
      "vdup.32 q5, %[bias]\n"
      "vctp.16 %[count]\n"
      "1:\n"
      "cmp.w %[left], #256\n"
      "csel lr, %[left], %[most], lt\n"
      "sub.w %[left], %[left], lr\n"
      "vmov.i16 q0, #0\n"
      "dls lr, lr\n"
      "2:\n"
      "vpst\n"
      "vldrbt.s16 q1, [%[from]]\n"
      "add.w %[from], %[from], %[channels]\n"
      "vadd.i16 q0, q0, q1\n"
      "le lr, 2b\n"
      "vmovlb.s16 q1, q0\n"
      "vmovlt.s16 q0, q0\n"
      "vadd.i32 q4, q4, q1\n"
      "vadd.i32 q5, q5, q0\n"
      "cmp.w %[left], #0\n"
      "bne.w 1b\n"
      "vshr.s32 q0, q4, #31\n"
      "vshr.s32 q1, q5, #31\n"
      "vqrdmlah.s32 q0, q4, %[multiplier]\n"
      "vqrdmlah.s32 q1, q5, %[multiplier]\n"
      "vrshl.s32 q0, %[shift]\n"
      "vrshl.s32 q1, %[shift]\n"
      "vqmovnb.s32 q0, q0\n"
      "vqmovnt.s32 q0, q1\n"
      "vqadd.s16 q0, q0, %[zero]\n"
      "vqmovnb.s16 q0, q0\n"
      "vpst\n"
      "vstrbt.16 q0, [%[to]]\n"
      : [from] "+l"(from), [left] "+r"(left)
      : [to] "l"(to), [count] "r"(count), [channels] "r"(p->channels), [most] "r"(256), [bias] "r"(p->bias),
        [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [zero] "r"(p->zero_point)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d8", "d9", "d10", "d11", "memory");
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

void tinyet_sum_s8_many_mve(const int8_t *input, int8_t *output, const tinyet_sum_s8_mve_params *p) {
  for (int32_t image = 0; image < p->images; image++) {
    for (int32_t c = 0; c < p->channels; c += 8) {
      sum_channels(input + c, output + c, p->channels - c < 8 ? p->channels - c : 8, p);
    }
    input += p->pixels * p->channels;
    output += p->channels;
  }
}
