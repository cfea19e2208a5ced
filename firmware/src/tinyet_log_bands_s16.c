/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fixed_fft.h"
#include "tinyet_log_bands.h"

static void tinyet_stage(tinyet_number *z, int32_t count, int32_t radix, int32_t size,
                         const TINYET_ROM int16_t *twiddles) {
  const int32_t step = radix * size, stride = count / step;
  const tinyet_number *const end = z + count;
  for (int32_t j = 0; j < size; j++) {
    const int32_t at = j * stride;
    const tinyet_turn first = tinyet_turn_at(twiddles, at);
    tinyet_number *x = z + j;
    if (radix == 4) {
      const tinyet_turn second = tinyet_turn_at(twiddles, 2 * at), third = tinyet_turn_at(twiddles, 3 * at);
      for (; x < end; x += step) {
        const tinyet_number b = tinyet_times(x[size], first), d = tinyet_times(x[3 * size], third);
        tinyet_four(x, size, tinyet_halved(x[0]), b, tinyet_times(x[2 * size], second), d);
      }
    } else if (radix == 2) {
      for (; x < end; x += step) {
        tinyet_two(x, size, tinyet_halved(x[0]), tinyet_times(x[size], first));
      }
    } else if (radix == 3) {
      const tinyet_turn second = tinyet_turn_at(twiddles, 2 * at);
      for (; x < end; x += step) {
        tinyet_three(x, size, tinyet_halved(x[0]), tinyet_times(x[size], first), tinyet_times(x[2 * size], second));
      }
    } else {
      for (; x < end; x += step) {
        tinyet_number other[4];
        for (int32_t m = 0; m < 4; m++) {
          other[m] = tinyet_times(x[(m + 1) * size], tinyet_turn_at(twiddles, (m + 1) * at));
        }
        tinyet_five(x, size, tinyet_halved(x[0]), other);
      }
    }
  }
}

/* From the transform of pairs of values to that of the values: count + 1 numbers. */
static void tinyet_to_real(tinyet_number *z, int32_t count, const TINYET_ROM int16_t *split) {
  const tinyet_number ends = z[0];
  z[0].r = ends.r + ends.i;
  z[0].i = 0;
  z[count].r = ends.r - ends.i;
  z[count].i = 0;
  tinyet_number *low = z, *high = z + count;
  for (int32_t k = 0; k < count / 2; k++) {
    const tinyet_number here = *++low, there = *--high;
    const tinyet_number apart = {here.r - there.r, here.i + there.i};
    const tinyet_number odd = tinyet_times(apart, tinyet_turn_at(split, k));
    const int32_t even_r = (here.r + there.r) >> 1, even_i = (here.i - there.i) >> 1;
    low->r = even_r + odd.r;
    low->i = even_i + odd.i;
    high->r = even_r - odd.r;
    high->i = odd.i - even_i;
  }
}

/* Squares of the numbers, all of which are shifted to the left by `headroom` bits, the upper words; in place. */
static int32_t tinyet_powers(tinyet_number *z, uint32_t *power, const tinyet_log_bands_s16_params *params) {
  const tinyet_number *const end = z + params->high;
  int32_t largest = 0;
  z += params->low;
  for (const tinyet_number *x = z; x != end; x++) {
    largest |= (x->r ^ (x->r >> 31)) | (x->i ^ (x->i >> 31));
  }
  int32_t headroom = largest == 0 ? 31 : tinyet_leading_zeros((uint32_t)largest) - 1;
  headroom = headroom < params->most ? headroom : params->most;
  for (const tinyet_number *x = z; x != end; x++) {
    const int64_t r = tinyet_shift_left(x->r, headroom), i = tinyet_shift_left(x->i, headroom);
    *power++ = (uint32_t)(((uint64_t)(r * r) + (uint64_t)(i * i)) >> 32);
  }
  return headroom;
}

static void tinyet_bands(const uint32_t *power, int16_t *output, int32_t headroom,
                         const tinyet_log_bands_s16_params *params) {
  const TINYET_ROM uint16_t *weight = params->weights, *run = params->runs;
  const int32_t left = params->floor_shift + 2 * headroom, right = -left < 31 ? -left : 31;
  const uint64_t floor = left < 0 ? (uint64_t)(params->floor >> right) : (uint64_t)params->floor << (uint32_t)left;
  const int32_t offset = params->offset - headroom * 65536;
  for (int32_t band = 0; band < params->bands; band++) {
    uint64_t sum = 0;
    const uint32_t *x = power + *run++;
    for (int32_t count = *run++; count != 0; count--) {
      sum += (uint64_t)*x++ * *weight++;
    }
    sum += floor;
    const int32_t found = tinyet_log2_q15(sum == 0u ? 1u : sum, params->logarithms) + offset;
    const int32_t scaled = tinyet_requantize(found, params->multiplier, params->shift);
    *output++ = (int16_t)tinyet_clamp(scaled, INT16_MIN, INT16_MAX);
  }
}

/* Samples times their window, in the order of the first stage. */
static void tinyet_windowed(const int16_t *input, tinyet_number *z, const tinyet_log_bands_s16_params *params) {
  const int32_t given = params->given, right = params->right;
  const TINYET_ROM int16_t *window = params->window;
  const TINYET_ROM uint16_t *order = params->order;
  if (given < 2 * params->count) {
    memset(z, 0, (size_t)params->count * sizeof *z);
  }
  for (int32_t pair = given / 2; pair != 0; pair--) {
    tinyet_number *const place = z + *order++;
    place->r = (input[0] * (int32_t)window[0]) >> right;
    place->i = (input[1] * (int32_t)window[1]) >> right;
    input += 2;
    window += 2;
  }
  if (given % 2 != 0) {
    z[*order].r = (input[0] * (int32_t)window[0]) >> right;
  }
}

void tinyet_log_bands_s16(const int16_t *input, int16_t *output, void *scratch,
                          const tinyet_log_bands_s16_params *params) {
  tinyet_number *const z = (tinyet_number *)scratch;
  uint32_t *const power = (uint32_t *)scratch;
  const int32_t count = params->count;
  for (int32_t frame = 0; frame < params->frames; frame++) {
    tinyet_windowed(input, z, params);
    tinyet_first_stage(z, z + count, params->radix[0]);
    int32_t size = params->radix[0];
    for (int32_t stage = 1; stage < params->stages; stage++) {
      tinyet_stage(z, count, params->radix[stage], size, params->twiddles);
      size *= params->radix[stage];
    }
    tinyet_to_real(z, count, params->split);
    tinyet_bands(power, output, tinyet_powers(z, power, params), params);
    input += params->given;
    output += params->bands;
  }
}
