/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dsp.h"

/* Channels 0 ... 3, in 1/1024. */
typedef struct {
  int32_t a, b, c, d;
} column;

typedef struct {
  column start, slope;
} span;

enum { ONE = 1024 };

static inline column column_at(const int8_t *above, const int8_t *below, int32_t up, int32_t down) {
  const uint32_t x = tinyet_load_dsp(above), y = tinyet_load_dsp(below);
  const uint32_t weights = tinyet_low_int16x2_dsp((uint32_t)up, (uint32_t)down);
  const uint32_t x_even = tinyet_even_bytes_dsp(x), y_even = tinyet_even_bytes_dsp(y);
  const uint32_t x_odd = tinyet_odd_bytes_dsp(x), y_odd = tinyet_odd_bytes_dsp(y);
  const column result = {tinyet_smlad_dsp(tinyet_low_int16x2_dsp(x_even, y_even), weights, 0),
                         tinyet_smlad_dsp(tinyet_low_int16x2_dsp(x_odd, y_odd), weights, 0),
                         tinyet_smlad_dsp(tinyet_high_int16x2_dsp(x_even, y_even), weights, 0),
                         tinyet_smlad_dsp(tinyet_high_int16x2_dsp(x_odd, y_odd), weights, 0)};
  return result;
}

static inline span span_of(column left, column right) {
  const span result = {{left.a * ONE, left.b * ONE, left.c * ONE, left.d * ONE},
                       {right.a - left.a, right.b - left.b, right.c - left.c, right.d - left.d}};
  return result;
}

/* Of a sum in 1/2^20, ties away from zero. */
static inline uint32_t rounded(int32_t sum) {
  return (uint32_t)tinyet_smmlar_dsp(sum + (sum >> 31), INT32_C(1) << 12, 0);
}

static inline uint32_t pixel_at(span s, int32_t weight) {
  const uint32_t a = rounded(s.start.a + s.slope.a * weight), b = rounded(s.start.b + s.slope.b * weight);
  const uint32_t c = rounded(s.start.c + s.slope.c * weight), d = rounded(s.start.d + s.slope.d * weight);
  const uint32_t even = tinyet_low_int16x2_dsp(a, c), odd = tinyet_low_int16x2_dsp(b, d);
  return (even & 0x00ff00ffu) | ((odd & 0x00ff00ffu) << 8);
}

#define KERNEL tinyet_resize_bilinear_s8_q10_dsp
#define COLUMNS columns_between
#define PIXELS pixels_between
#include "tinyet_resize_body_dsp.h"
