/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tinyet_pad.h"

/* `count` bytes of the repeated pattern; where its bytes differ, count is a multiple of the element's size. */
static uint8_t *fill(uint8_t *out, int32_t count, uint32_t pattern) {
  if (pattern == (pattern & 0xffu) * 0x01010101u) {
    memset(out, (int)(pattern & 0xffu), (size_t)count);
  } else {
    for (int32_t i = 0; i < count; i++) {
      out[i] = (uint8_t)(pattern >> (8u * ((uint32_t)i & 3u)));
    }
  }
  return out + count;
}

static inline uint8_t *copy(uint8_t *out, const uint8_t *from, int32_t bytes) {
  memcpy(out, from, (size_t)bytes);
  return out + bytes;
}

/* Where position `at` of the unpadded dimension is read; -1: nowhere, the constant stands there. */
static inline int32_t source(int32_t at, int32_t size, int32_t mode) {
  if (at >= 0 && at < size) {
    return at;
  }
  if (mode == TINYET_PAD_CONSTANT) {
    return -1;
  }
  if (mode == TINYET_PAD_REFLECT) {
    return at < 0 ? -at : 2 * (size - 1) - at;
  }
  return at < 0 ? 0 : size - 1;
}

/* One row: `first` items before the image's (negative: cropped), then the image's, then what is left. */
static uint8_t *pad_row(const uint8_t *in, uint8_t *out, int32_t in_count, int32_t out_count, int32_t first,
                        const tinyet_pad_params *p) {
  const int32_t start = first < 0 ? -first : 0, bytes = p->item_bytes;
  const int32_t room = first + in_count > out_count ? out_count - first : in_count;
  const int32_t tail = out_count - (first + room);
  if (p->mode == TINYET_PAD_CONSTANT) {
    out = fill(out, first > 0 ? first * bytes : 0, p->fill);
    out = copy(out, in + start * bytes, (room - start) * bytes);
    return fill(out, tail * bytes, p->fill);
  }
  for (int32_t i = -first; i < 0; i++) {
    out = copy(out, in + source(i, in_count, p->mode) * bytes, bytes);
  }
  out = copy(out, in, in_count * bytes);
  for (int32_t i = 0; i < tail; i++) {
    out = copy(out, in + source(in_count + i, in_count, p->mode) * bytes, bytes);
  }
  return out;
}

void tinyet_pad(const void *input, void *output, const tinyet_pad_params *params) {
  enum { OUTER = TINYET_PAD_DIMS - 1 };
  const uint8_t *const in = (const uint8_t *)input;
  uint8_t *out = (uint8_t *)output;
  const int32_t in_count = params->in_size[OUTER], out_count = params->out_size[OUTER];
  int32_t index[OUTER] = {0};
  for (int32_t row = 0; row < params->rows; row++) {
    int32_t from = 0;
    int32_t inside = 1;
    for (int32_t d = 0; d < OUTER; d++) {
      const int32_t at = source(index[d] - params->before[d], params->in_size[d], params->mode);
      inside &= at >= 0 ? 1 : 0;
      from = from * params->in_size[d] + at;
    }
    if (inside != 0) {
      out = pad_row(in + from * in_count * params->item_bytes, out, in_count, out_count, params->before[OUTER], params);
    } else {
      out = fill(out, out_count * params->item_bytes, params->fill);
    }
    for (int32_t d = OUTER - 1; d >= 0 && ++index[d] == params->out_size[d]; d--) {
      index[d] = 0;
    }
  }
}
