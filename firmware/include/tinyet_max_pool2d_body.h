/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum pooling of integers of any type. The file that includes this has defined
 *
 *   KERNEL    the function's name
 *   element   the type of the elements
 *   LEAST     its least value
 *   QUADS     1: four channels stay in registers while the window is walked; 0: one */
#ifndef TINYET_MAX_POOL2D_BODY_H
#define TINYET_MAX_POOL2D_BODY_H

#include "tinyet_max_pool2d.h"
#include "tinyet_window.h"

/* What the greatest one so far is held in: a register where one holds an element, a word elsewhere. */
#ifdef __AVR__
typedef element held;
#else
typedef int32_t held;
#endif

static inline held greater(held a, held b) { return a > b ? a : b; }

#if defined(__AVR__) && QUADS
/* Four channels of `count` taps; one at least. */
static inline void greater_of_four(const element *x, tinyet_extent count, tinyet_extent step, held *m0, held *m1, held *m2,
                                   held *m3) {
#define ONE(load, m) load "\n" "cp %[" m "], __tmp_reg__\n" "brge 2f\n" "mov %[" m "], __tmp_reg__\n" "2:\n"
  __asm__ volatile(
      "1:\n" ONE("ld __tmp_reg__, Z", "m0") ONE("ldd __tmp_reg__, Z+1", "m1") ONE("ldd __tmp_reg__, Z+2", "m2")
      ONE("ldd __tmp_reg__, Z+3", "m3")
      "add r30, %A[step]\n"
      "adc r31, %B[step]\n"
      "subi %A[count], 1\n"
      "sbci %B[count], 0\n"
      "brne 1b\n"
      : [m0] "+r"(*m0), [m1] "+r"(*m1), [m2] "+r"(*m2), [m3] "+r"(*m3), "+z"(x), [count] "+d"(count)
      : [step] "r"(step)
      : "memory");
#undef ONE
}
#endif

/* One output pixel: the taps inside the image are rows x columns, `row_step` and `column_step` elements apart. */
static void pool_pixel(const element *input, element *output, tinyet_extent channels, tinyet_extent rows,
                       tinyet_extent columns, tinyet_extent row_step, tinyet_extent column_step) {
  tinyet_extent c = 0;
#if QUADS
  for (; c + 4 <= channels; c += 4) {
    held m0 = LEAST, m1 = LEAST, m2 = LEAST, m3 = LEAST;
    const element *row = input + c;
    for (tinyet_extent i = rows; i != 0; i--) {
      const element *x = row;
#ifdef __AVR__
      greater_of_four(x, columns, column_step, &m0, &m1, &m2, &m3);
#else
      for (tinyet_extent j = columns; j != 0; j--) {
        m0 = greater(x[0], m0), m1 = greater(x[1], m1), m2 = greater(x[2], m2), m3 = greater(x[3], m3);
        x += column_step;
      }
#endif
      row += row_step;
    }
    output[0] = (element)m0, output[1] = (element)m1, output[2] = (element)m2, output[3] = (element)m3;
    output += 4;
  }
#endif
  for (; c < channels; c++) {
    held m = LEAST;
    const element *row = input + c;
    for (tinyet_extent i = rows; i != 0; i--) {
      const element *x = row;
      for (tinyet_extent j = columns; j != 0; j--) {
        m = greater(*x, m);
        x += column_step;
      }
      row += row_step;
    }
    *output++ = (element)m;
  }
}

#define OF(field) TINYET_EXTENT(p->field)

void KERNEL(const element *input, element *output, const tinyet_max_pool2d_params *params) {
  const tinyet_max_pool2d_params *const p = params;
  const tinyet_extent row_step = OF(dilation_h) * OF(in_w) * OF(channels), column_step = OF(dilation_w) * OF(channels);
  for (tinyet_extent n = 0; n < OF(batch); n++) {
    for (tinyet_extent out_y = 0; out_y < OF(out_h); out_y++) {
      const tinyet_short_span y =
          tinyet_short_span_inside(out_y * OF(stride_h) - OF(pad_top), OF(kernel_h), OF(dilation_h), OF(in_h));
      for (tinyet_extent out_x = 0; out_x < OF(out_w); out_x++) {
        const tinyet_short_span x =
            tinyet_short_span_inside(out_x * OF(stride_w) - OF(pad_left), OF(kernel_w), OF(dilation_w), OF(in_w));
        /* An empty span may start outside the image: then no pointer is formed and no tap is read. */
        const tinyet_extent taps = y.count * x.count;
        const element *const corner = taps != 0 ? input + (y.start * OF(in_w) + x.start) * OF(channels) : input;
        pool_pixel(corner, output, OF(channels), taps != 0 ? y.count : 0, x.count, row_step, column_step);
        output += OF(channels);
      }
    }
    input += OF(in_h) * OF(in_w) * OF(channels);
  }
}

#undef OF

#endif
