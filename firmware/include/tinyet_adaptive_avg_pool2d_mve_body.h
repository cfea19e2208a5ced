/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling of integers over windows given by tables, for cores with Helium. The file that includes this has defined
 *
 *   KERNEL     the function's name
 *   element    the type of the elements
 *   LANES      how many channels a vector of sums has, BITS those of a sum
 *   LOAD       the instruction that loads as many, under a predicate
 *   EACH(Q)    Q of each vector of words that sums become: q0, or q0 and q1
 *   WIDENED    instructions that make these of q0
 *   STORED     instructions that store them, `there` of them, at `to` */
#ifndef TINYET_ADAPTIVE_AVG_POOL2D_MVE_BODY_H
#define TINYET_ADAPTIVE_AVG_POOL2D_MVE_BODY_H

#include "tinyet_adaptive_avg_pool2d_mve.h"

/* Up to LANES channels of a window. */
static void channels_of(const element *from, element *to, int32_t there, int32_t height, int32_t width, int32_t channels,
                        int32_t row, const tinyet_average_mve *d) {
#if TINYET_MVE_ASM
  const int32_t size = (int32_t)sizeof(element), pixel = size * channels, skip = size * (row - width * channels);
  __asm__ volatile(
      "vctp." BITS " %[there]\n"
      "vmov.i32 q0, #0\n"
      "1:\n"
      "dls lr, %[width]\n"
      "2:\n"
      "vpst\n" LOAD " q2, [%[from]]\n"
      "add.w %[from], %[from], %[pixel]\n"
      "vadd.i" BITS " q0, q0, q2\n"
      "le lr, 2b\n"
      "add.w %[from], %[from], %[skip]\n"
      "subs.w %[height], %[height], #1\n"
      "bne.w 1b\n" WIDENED
      "ldrd %[width], lr, [%[d]]\n"
      "vdup.32 q3, %[width]\n"
#define TINYET_MVE_OFFSET(Q) "vshr.s32 q2, " Q ", #31\nvmla.s32 " Q ", q2, lr\n"
      EACH(TINYET_MVE_OFFSET)
      "ldrd %[width], lr, [%[d], #8]\n"
#define TINYET_MVE_DIVIDED(Q) "vadd.i32 " Q ", " Q ", %[width]\nvmulh.u32 " Q ", " Q ", q3\nvshl.u32 " Q ", lr\n"
      EACH(TINYET_MVE_DIVIDED)
      "ldr.w lr, [%[d], #16]\n"
#define TINYET_MVE_MOVED(Q) "vsub.i32 " Q ", " Q ", lr\n"
      EACH(TINYET_MVE_MOVED) STORED
      : [from] "+l"(from), [height] "+r"(height), [width] "+r"(width)
      : [to] "l"(to), [there] "r"(there), [pixel] "r"(pixel), [skip] "r"(skip), [d] "r"(d)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  for (int32_t c = 0; c < there; c++) {
    int32_t sum = 0;
    for (int32_t y = 0; y < height; y++) {
      for (int32_t x = 0; x < width; x++) {
        sum += from[y * row + x * channels + c];
      }
    }
    const uint32_t moved = (uint32_t)(sum + d->offset - (sum < 0 ? d->even : 0));
    const uint32_t high = (uint32_t)(((uint64_t)moved * (uint32_t)d->multiplier) >> 32);
    to[c] = (element)((int32_t)(high >> (uint32_t)-d->shift) - d->bias);
  }
#endif
}

void KERNEL(const element *input, element *output, const tinyet_adaptive_avg_pool2d_mve_params *params) {
  const tinyet_adaptive_avg_pool2d_shape *const s = &params->shape;
  const int32_t channels = s->channels, row = s->in_w * channels;
  const tinyet_average_mve *const divisions = (const tinyet_average_mve *)(const void *)params->divisions;
  for (int32_t n = 0; n < s->batch; n++, input += s->in_h * row) {
    for (int32_t out_y = 0; out_y < s->out_h; out_y++) {
      const int32_t top = s->rows[2 * out_y], height = s->rows[2 * out_y + 1];
      for (int32_t out_x = 0; out_x < s->out_w; out_x++, output += channels) {
        const int32_t left = s->columns[2 * out_x], width = s->columns[2 * out_x + 1];
        const element *const window = input + top * row + left * channels;
        const tinyet_average_mve *const division = divisions + (height * width - params->first_count);
        for (int32_t c = 0; c < channels; c += LANES) {
          const int32_t there = channels - c < LANES ? channels - c : LANES;
          channels_of(window + c, output + c, there, height, width, channels, row, division);
        }
      }
    }
  }
}

#endif
