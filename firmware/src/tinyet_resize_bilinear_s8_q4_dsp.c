/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_dsp.h"

/* Values are 128 more than they are, so that none is negative: two of them in the halves of a word take part in one
 * multiplication, and no half carries into the other. The sum of four weighted samples is at most 255 * 256. */
typedef struct {
  uint32_t even, odd;
} column;

typedef struct {
  column start, slope;
  uint32_t ones, bytes; /* 1 and 255 in each half */
} span;

enum { ONE = 16 };

static inline column column_at(const int8_t *above, const int8_t *below, int32_t up, int32_t down) {
  const uint32_t a = tinyet_load_dsp(above), b = tinyet_load_dsp(below), u = (uint32_t)up, d = (uint32_t)down;
  uint32_t more = 0x00800080u;
  TINYET_DSP_UNKNOWN(more);
  const column result = {tinyet_add_even_bytes_dsp(more, a) * u + tinyet_add_even_bytes_dsp(more, b) * d,
                         tinyet_add_odd_bytes_dsp(more, a) * u + tinyet_add_odd_bytes_dsp(more, b) * d};
  return result;
}

/* Ties away from zero, which is at 128 * 256: 127/256 are added, and the last one above it. */
static inline span span_of(column left, column right) {
  span result = {{left.even * ONE + 0x007f007fu, left.odd * ONE + 0x007f007fu},
                 {right.even - left.even, right.odd - left.odd},
                 0x00010001u,
                 0x00ff00ffu};
  /* In registers: with literals, the shifts before would be instructions. */
  TINYET_DSP_UNKNOWN(result.ones);
  TINYET_DSP_UNKNOWN(result.bytes);
  return result;
}

static inline uint32_t pixel_at(span s, int32_t weight) {
  uint32_t even = s.start.even + s.slope.even * (uint32_t)weight;
  uint32_t odd = s.start.odd + s.slope.odd * (uint32_t)weight;
  even += (even >> 15) & s.ones;
  odd += (odd >> 15) & s.ones;
  return (((even >> 8) & s.bytes) | (odd & 0xff00ff00u)) ^ 0x80808080u;
}

#define KERNEL tinyet_resize_bilinear_s8_q4_dsp
#define COLUMNS columns_between_sixteenths
#define PIXELS pixels_between_sixteenths
#include "tinyet_resize_body_dsp.h"
