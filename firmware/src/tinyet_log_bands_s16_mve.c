/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_elementwise_s16_mve.h"
#include "tinyet_fixed_fft.h"
#include "tinyet_fixed_fft_mve.h"
#include "tinyet_log_bands_mve.h"

#define TINYET_BLOCK 8 /* words of four numbers */

#if TINYET_MVE_ASM
#define TINYET_WORDS_AT(N) (z + TINYET_BLOCK * fours * (N))

/* Butterflies of five of one block. In a function of its own, where all registers are free. */
static __attribute__((noinline)) void fives_of(int32_t *z, int32_t fours, const int16_t *w) {
  int32_t *p0 = z, *p1 = TINYET_WORDS_AT(1), *p2 = TINYET_WORDS_AT(2), *p3 = TINYET_WORDS_AT(3), *p4 = TINYET_WORDS_AT(4);
  __asm__ volatile(TINYET_FAR_MVE(TINYET_FIVE_MVE)
                   : [p0] "+r"(p0), [p1] "+r"(p1), [p2] "+r"(p2), [p3] "+r"(p3), [p4] "+r"(p4), [w] "+r"(w)
                   : [fours] "r"(fours), TINYET_FIVES
                   : TINYET_ALL_VECTORS);
}

/* Stages whose numbers of a butterfly are `fours` blocks apart. */
static void stage_of(int32_t *z, int32_t blocks, int32_t radix, int32_t fours, const int16_t *twiddles) {
  if (fours == 1) {
    int32_t *x = z + TINYET_BLOCK * radix - TINYET_BLOCK / 2;
#define TINYET_NEAR(BUTTERFLY, RADIX, ...) \
  __asm__ volatile(TINYET_NEAR_MVE(BUTTERFLY) \
                   : [x] "+r"(x) \
                   : [w] "r"(twiddles), [blocks] "r"(blocks), [last] "i"(32 * RADIX - 16) __VA_ARGS__ \
                   : TINYET_ALL_VECTORS)
    if (radix == 4) {
      TINYET_NEAR(TINYET_FOUR_MVE, 4, );
    } else if (radix == 2) {
      TINYET_NEAR(TINYET_TWO_MVE, 2, );
    } else if (radix == 3) {
      TINYET_NEAR(TINYET_THREE_MVE, 3, , [sixty] "r"(TINYET_FFT_SIXTY * 65536));
    } else {
      TINYET_NEAR(TINYET_FIVE_MVE, 5, , TINYET_FIVES);
    }
#undef TINYET_NEAR
    return;
  }
  for (; blocks != 0; blocks--, z = TINYET_WORDS_AT(radix)) {
    const int16_t *w = twiddles;
    int32_t *p0 = z, *p1 = TINYET_WORDS_AT(1), *p2 = TINYET_WORDS_AT(2), *p3 = TINYET_WORDS_AT(3);
    if (radix == 4) {
      __asm__ volatile(TINYET_FAR_MVE(TINYET_FOUR_MVE)
                       : [p0] "+r"(p0), [p1] "+r"(p1), [p2] "+r"(p2), [p3] "+r"(p3), [w] "+r"(w)
                       : [fours] "r"(fours)
                       : TINYET_ALL_VECTORS);
    } else if (radix == 2) {
      __asm__ volatile(TINYET_FAR_MVE(TINYET_TWO_MVE)
                       : [p0] "+r"(p0), [p1] "+r"(p1), [w] "+r"(w)
                       : [fours] "r"(fours)
                       : TINYET_ALL_VECTORS);
    } else if (radix == 3) {
      __asm__ volatile(TINYET_FAR_MVE(TINYET_THREE_MVE)
                       : [p0] "+r"(p0), [p1] "+r"(p1), [p2] "+r"(p2), [w] "+r"(w)
                       : [fours] "r"(fours), [sixty] "r"(TINYET_FFT_SIXTY * 65536)
                       : TINYET_ALL_VECTORS);
    } else {
      fives_of(z, fours, twiddles);
    }
  }
}
#else
static int32_t word_of(int32_t k) { return (k >> 2) * TINYET_BLOCK + (k & 3); }

static tinyet_number number_at(const int32_t *z, int32_t k) {
  const tinyet_number out = {z[word_of(k)], z[word_of(k) + 4]};
  return out;
}

static void put(int32_t *z, int32_t k, tinyet_number x) {
  z[word_of(k)] = x.r;
  z[word_of(k) + 4] = x.i;
}

static void stage_of(int32_t *z, int32_t blocks, int32_t radix, int32_t fours, const int16_t *twiddles) {
  static const int8_t order[4][4] = {{1, 0, 0, 0}, {1, 2, 0, 0}, {1, 3, 2, 0}, {1, 4, 2, 3}};
  for (int32_t block = 0; block < blocks; block++, z += TINYET_BLOCK * fours * radix) {
    for (int32_t j = 0; j < 4 * fours; j++) {
      tinyet_number out[5], other[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
      const tinyet_number a = tinyet_halved(number_at(z, j));
      for (int32_t m = 0; m < radix - 1; m++) {
        const int32_t which = order[radix - 2][m];
        const tinyet_number x = number_at(z, j + 4 * fours * which);
        other[which - 1] = tinyet_times(x, tinyet_turn_at(twiddles, 4 * ((j >> 2) * (radix - 1) + m) + (j & 3)));
      }
      if (radix == 4) {
        tinyet_four(out, 1, a, other[0], other[1], other[2]);
      } else if (radix == 2) {
        tinyet_two(out, 1, a, other[0]);
      } else if (radix == 3) {
        tinyet_three(out, 1, a, other[0], other[1]);
      } else {
        tinyet_five(out, 1, a, other);
      }
      for (int32_t m = 0; m < radix; m++) {
        put(z, j + 4 * fours * m, out[m]);
      }
    }
  }
}
#endif

/* Samples times their window, and the first stage: of `pairs` of each quarter, where the last one that has samples is number
 * `quarters` - 1. */
static void first_stage_of(const int16_t *input, int32_t *z, int32_t first, int32_t pairs, int32_t quarters,
                           const tinyet_log_bands_s16_mve_params *p) {
  const int16_t *x[4], *window = p->window + 8 * first;
  const uint16_t *order = p->order + first;
  for (int32_t k = 0; k < 4; k++) { /* samples of the first quarter stand for those that are not given, times zero */
    x[k] = input + 2 * (first + (k < quarters ? k * p->quarter : 0));
  }
#if TINYET_MVE_ASM
  int32_t waiting[4];
  __asm__ volatile(
      "dlstp.32 lr, %[pairs]\n"
      "1:\n"
      "vldrh.u16 q0, [%[x0]], #16\n"
      "vldrh.u16 q1, [%[window], #48]\n"
      "vmullb.s16 q2, q0, q1\n"
      "vldrh.u16 q3, [%[window], #16]\n"
      "vmullt.s16 q0, q0, q1\n"
      "vldrh.u16 q1, [%[x2]], #16\n"
      "vshl.s32 q2, %[left]\n"
      "vldrh.u16 q5, [%[window], #32]\n"
      "vshl.s32 q0, %[left]\n"
      "vmullb.s16 q4, q1, q3\n"
      "vmullt.s16 q1, q1, q3\n"
      "vshl.s32 q4, %[left]\n"
      "vshl.s32 q1, %[left]\n"
      "vadd.i32 q3, q2, q4\n"
      "vsub.i32 q2, q2, q4\n"
      "vadd.i32 q4, q0, q1\n"
      "vstrw.32 q4, [%[waiting]]\n"
      "vsub.i32 q0, q0, q1\n"
      "vldrh.u16 q1, [%[x1]], #16\n"
      "vmullb.s16 q6, q1, q5\n"
      "vldrh.u16 q4, [%[x3]], #16\n"
      "vmullt.s16 q1, q1, q5\n"
      "vldrh.u16 q5, [%[window]], #64\n"
      "vshl.s32 q6, %[left]\n"
      "vshl.s32 q1, %[left]\n"
      "vmullb.s16 q7, q4, q5\n"
      "vmullt.s16 q4, q4, q5\n"
      "vshl.s32 q7, %[left]\n"
      "vshl.s32 q4, %[left]\n"
      "vadd.i32 q5, q6, q7\n"
      "vsub.i32 q6, q6, q7\n"
      "vadd.i32 q7, q1, q4\n"
      "vsub.i32 q1, q1, q4\n"
      "vldrh.u32 q4, [%[order]], #8\n"
      "vadd.i32 q4, q4, %[z]\n"
      "vsub.i32 q3, q3, q5\n" /* the third number's real part, and the first one's, which is 2 * q5 more */
      "vadd.i32 q5, q5, q5\n"
      "vstrw.32 q3, [q4, #8]\n"
      "vadd.i32 q5, q5, q3\n"
      "vstrw.32 q5, [q4]\n"
      "vadd.i32 q3, q2, q1\n"
      "vldrw.u32 q5, [%[waiting]]\n"
      "vsub.i32 q2, q2, q1\n"
      "vstrw.32 q3, [q4, #4]\n"
      "vsub.i32 q3, q0, q6\n"
      "vstrw.32 q2, [q4, #12]\n"
      "vadd.i32 q0, q0, q6\n"
      "vstrw.32 q3, [q4, #20]\n"
      "vadd.i32 q1, q5, q7\n"
      "vstrw.32 q0, [q4, #28]\n"
      "vsub.i32 q5, q5, q7\n"
      "vstrw.32 q1, [q4, #16]\n"
      "vstrw.32 q5, [q4, #24]\n"
      "letp lr, 1b\n"
      : [x0] "+r"(x[0]), [x1] "+r"(x[1]), [x2] "+r"(x[2]), [x3] "+r"(x[3]), [window] "+r"(window), [order] "+l"(order)
      : [pairs] "r"(pairs), [left] "r"(-p->right), [z] "r"(z), [waiting] "r"(waiting)
      : TINYET_ALL_VECTORS);
#else
  static const int8_t places[4] = {3, 2, 1, 0};
  for (int32_t pair = 0; pair < pairs; pair++) {
    tinyet_number four[4];
    for (int32_t k = 0; k < 4; k++) {
      const int16_t *const w = window + 8 * (pair & ~3) + 8 * places[k] + 2 * (pair & 3), *const from = x[k] + 2 * pair;
      four[k].r = (from[0] * (int32_t)w[0]) >> p->right;
      four[k].i = (from[1] * (int32_t)w[1]) >> p->right;
    }
    tinyet_first_stage(four, four + 4, 4);
    for (int32_t k = 0; k < 4; k++) {
      put(z, order[pair] / 8 + k, four[k]);
    }
  }
#endif
}

/* From the transform of pairs of values to that of the values: count + 1 numbers. */
static void to_real(int32_t *z, int32_t count, const int16_t *split) {
  int32_t *const last = z + 2 * count, *const middle = z + TINYET_BLOCK * (count >> 3) + ((count >> 1) & 3);
  const int32_t r = z[0], i = z[4];
#if TINYET_MVE_ASM
  /* Where four numbers lie one before the other, of which the first begins a block, from the block before on. */
  static const uint32_t down[4] = {32, 12, 8, 4};
  int32_t *low = z;
  __asm__ volatile(
      "vldrw.u32 q7, [%[down]]\n"
      "vadd.i32 q7, q7, %[last]\n"
      "dlstp.32 lr, %[pairs]\n"
      "1:\n"
      "vldrw.u32 q2, [q7, #-32]!\n"
      "vldrw.u32 q0, [%[low]]\n"
      "vsub.i32 q4, q0, q2\n"
      "vldrw.u32 q3, [q7, #16]\n"
      "vadd.i32 q0, q0, q2\n"
      "vldrw.u32 q1, [%[low], #16]\n"
      "vadd.i32 q5, q1, q3\n"
      "vldrh.u16 q6, [%[split]], #16\n"
      "vshllt.s16 q2, q6, #15\n"
      "vshllb.s16 q6, q6, #15\n"
      "vsub.i32 q1, q1, q3\n"
      "vqdmulh.s32 q3, q4, q6\n"
      "vshr.s32 q0, q0, #1\n"
      "vqdmulh.s32 q6, q5, q6\n"
      "vshr.s32 q1, q1, #1\n"
      "vqdmulh.s32 q5, q5, q2\n"
      "vqdmulh.s32 q4, q4, q2\n"
      "vsub.i32 q3, q3, q5\n"
      "vadd.i32 q6, q6, q4\n"
      "vsub.i32 q2, q0, q3\n"
      "vstrw.32 q2, [q7]\n"
      "vadd.i32 q0, q0, q3\n"
      "vsub.i32 q3, q6, q1\n"
      "vstrw.32 q3, [q7, #16]\n"
      "vadd.i32 q1, q1, q6\n"
      "vstrw.32 q1, [%[low], #16]\n"
      "vstrw.32 q0, [%[low]], #32\n"
      "letp lr, 1b\n"
      : [low] "+r"(low), [split] "+r"(split)
      : [down] "r"(down), [last] "r"(last), [pairs] "r"(count >> 1)
      : TINYET_ALL_VECTORS);
#else
  for (int32_t k = 1; k < count / 2; k++) {
    const tinyet_number here = number_at(z, k), there = number_at(z, count - k);
    const tinyet_number apart = {here.r - there.r, here.i + there.i};
    const tinyet_number odd = tinyet_times(apart, tinyet_turn_at(split, k));
    const int32_t even_r = (here.r + there.r) >> 1, even_i = (here.i - there.i) >> 1;
    const tinyet_number low = {even_r + odd.r, even_i + odd.i}, high = {even_r - odd.r, odd.i - even_i};
    put(z, k, low);
    put(z, count - k, high);
  }
#endif
  middle[4] = -middle[4];
  z[0] = r + i;
  z[4] = 0;
  last[0] = r - i;
  last[4] = 0;
}

/* How far all parts of the numbers from `from` to `to` can be shifted to the left; 0 <= from < 4. */
static int32_t headroom_of(const int32_t *z, int32_t from, int32_t to) {
  int32_t largest = 0;
#if TINYET_MVE_ASM
  /* q3: the largest, q4: the least. */
  __asm__ volatile(
      "mov.w %[largest], #0\n"
      "vidup.u32 q0, %[largest], #1\n"
      "mov.w %[largest], #0\n"
      "vdup.32 q3, %[largest]\n"
      "vdup.32 q4, %[largest]\n"
      "vctp.32 %[to]\n"
      "vpst\n"
      "vcmpt.u32 cs, q0, %[from]\n"
      "vpstttt\n"
      "vldrwt.u32 q1, [%[z]]\n"
      "vldrwt.u32 q2, [%[z], #16]\n"
      "vmaxt.s32 q3, q3, q1\n"
      "vmint.s32 q4, q4, q1\n"
      "vpstt\n"
      "vmaxt.s32 q3, q3, q2\n"
      "vmint.s32 q4, q4, q2\n"
      "subs.w lr, %[to], #4\n"
      "ble.w 2f\n"
      "add.w %[z], %[z], #32\n"
      "dlstp.32 lr, lr\n"
      "1:\n"
      "vldrw.u32 q1, [%[z]], #16\n"
      "vmax.s32 q3, q3, q1\n"
      "vldrw.u32 q2, [%[z]], #16\n"
      "vmin.s32 q4, q4, q1\n"
      "vmax.s32 q3, q3, q2\n"
      "vmin.s32 q4, q4, q2\n"
      "letp lr, 1b\n"
      "2:\n"
      "vmvn q4, q4\n"
      "vmaxv.s32 %[largest], q3\n"
      "vmaxv.s32 %[largest], q4\n"
      : [z] "+r"(z), [largest] "=&Te"(largest)
      : [from] "r"(from), [to] "r"(to)
      : "lr", "cc", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "memory");
#else
  for (int32_t k = from; k < to; k++) {
    const tinyet_number x = number_at(z, k);
    largest |= (x.r ^ (x.r >> 31)) | (x.i ^ (x.i >> 31));
  }
#endif
  return largest == 0 ? 31 : tinyet_leading_zeros((uint32_t)largest) - 1;
}

/* Squares of the numbers, shifted to the left by `headroom` bits, the upper words, of whole blocks. `power` may begin where z does
 * or before it. */
static void powers_of(const int32_t *z, uint32_t *power, int32_t count, int32_t headroom) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "dlstp.32 lr, %[count]\n"
      "1:\n"
      "vldrw.u32 q0, [%[z]], #16\n"
      "vldrw.u32 q1, [%[z]], #16\n"
      "vshl.s32 q0, %[headroom]\n"
      "vshl.s32 q1, %[headroom]\n"
      "vmul.i32 q2, q0, q0\n"
      "vmul.i32 q3, q1, q1\n"
      "vmulh.s32 q0, q0, q0\n"
      "vadd.i32 q3, q3, q2\n"
      "vmulh.s32 q1, q1, q1\n"
      "vcmp.u32 hi, q2, q3\n"
      "vadd.i32 q0, q0, q1\n"
      "vpst\n"
      "vaddt.i32 q0, q0, %[one]\n"
      "vstrw.32 q0, [%[power]], #16\n"
      "letp lr, 1b\n"
      : [z] "+r"(z), [power] "+r"(power)
      : [count] "r"(count), [headroom] "r"(headroom), [one] "r"(1)
      : "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory");
#else
  for (int32_t k = 0; k < count; k++) {
    const tinyet_number x = number_at(z, k);
    const uint32_t r = (uint32_t)x.r << (uint32_t)headroom, i = (uint32_t)x.i << (uint32_t)headroom;
    const uint64_t squares = (uint64_t)((int64_t)(int32_t)r * (int32_t)r) + (uint64_t)((int64_t)(int32_t)i * (int32_t)i);
    power[k] = (uint32_t)(squares >> 32);
  }
#endif
}

/* sum + the powers, weighted. */
static uint64_t band_of(const uint32_t *power, const uint16_t *weight, int32_t count, uint64_t sum) {
#if TINYET_MVE_ASM
  /* An even and an odd register. */
  register uint32_t low __asm__("r4") = (uint32_t)sum, high __asm__("r5") = (uint32_t)(sum >> 32);
  if (count != 0) {
    __asm__ volatile(
        "dlstp.32 lr, %[count]\n"
        "1:\n"
        "vldrw.u32 q0, [%[power]], #16\n"
        "vldrh.u32 q1, [%[weight]], #8\n"
        "vmlaldava.u32 %[low], %[high], q0, q1\n"
        "letp lr, 1b\n"
        : [power] "+r"(power), [weight] "+l"(weight), [low] "+r"(low), [high] "+r"(high)
        : [count] "r"(count)
        : "lr", "d0", "d1", "d2", "d3", "memory");
  }
  return (uint64_t)high << 32 | low;
#else
  for (; count != 0; count--) {
    sum += (uint64_t)*power++ * *weight++;
  }
  return sum;
#endif
}

/* Outputs of up to four sums. */
static void logarithms_of(const uint64_t sums[4], int16_t *output, int32_t count, int32_t offset,
                          const tinyet_log_bands_s16_mve_params *p) {
#if TINYET_MVE_ASM
  /* q2: how many zeros are in front of the highest bit; q0: the bits behind it. */
  __asm__ volatile(
      "vld20.32 {q0, q1}, [%[sums]]\n"
      "vld21.32 {q0, q1}, [%[sums]]\n"
      "vclz.i32 q2, q1\n"
      "vsub.i32 q3, q2, %[word]\n"
      "vshl.u32 q1, q1, q2\n"
      "vshl.u32 q0, q0, q3\n"
      "vorr q0, q0, q1\n"
      "vclz.i32 q1, q0\n"
      "vadd.i32 q2, q2, q1\n"
      "vshl.u32 q0, q0, q1\n"
      "vshr.u32 q1, q2, #6\n" /* a sum of 0 counts as 1 */
      "vshl.i32 q0, q0, #1\n"
      "vsub.i32 q2, q2, q1\n"
      "vshr.u32 q1, q0, #27\n"
      "vldrh.u32 q3, [%[table], q1, uxtw #1]\n"
      "vldrh.u32 q4, [%[next], q1, uxtw #1]\n"
      "vshl.i32 q0, q0, #5\n"
      "vshl.i32 q2, q2, #15\n"
      "vsub.i32 q4, q4, q3\n"
      "vshr.u32 q0, q0, #16\n"
      "vmul.i32 q0, q0, q4\n"
      "vsub.i32 q3, q3, q2\n"
      "vshr.u32 q0, q0, #16\n"
      "vadd.i32 q3, q3, %[offset]\n"
      "vadd.i32 q0, q0, q3\n" TINYET_MVE_S16_SCALED("q1", "q0", "%[multiplier]", "%[shift]")
      "vqmovnb.s32 q1, q1\n"
      "vctp.32 %[count]\n"
      "vpst\n"
      "vstrht.32 q1, [%[output]]\n"
      :
      : [sums] "r"(sums), [word] "r"(32), [table] "r"(p->logarithms), [next] "r"(p->logarithms + 1),
        [offset] "r"(offset + (63 << 15)), [multiplier] "r"(p->multiplier), [shift] "r"(p->shift), [count] "r"(count),
        [output] "l"(output)
      : "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "memory");
#else
  for (int32_t k = 0; k < count; k++) {
    const int32_t found = tinyet_log2_q15(sums[k] == 0u ? 1u : sums[k], p->logarithms) + offset;
    output[k] = (int16_t)tinyet_clamp(tinyet_requantize(found, p->multiplier, p->shift), INT16_MIN, INT16_MAX);
  }
#endif
}

static void bands_of(const uint32_t *power, int16_t *output, int32_t headroom, const tinyet_log_bands_s16_mve_params *p) {
  const uint16_t *weight = p->weights, *run = p->runs;
  const int32_t left = p->floor_shift + 2 * headroom, right = -left < 31 ? -left : 31;
  const uint64_t floor = left < 0 ? (uint64_t)(p->floor >> right) : (uint64_t)p->floor << (uint32_t)left;
  for (int32_t band = 0; band < p->bands; band += 4) {
    uint64_t sums[4];
    const int32_t count = p->bands - band < 4 ? p->bands - band : 4;
    for (int32_t k = 0; k < count; k++, weight += run[1], run += 2) {
      sums[k] = band_of(power + run[0], weight, run[1], floor);
    }
    logarithms_of(sums, output + band, count, p->offset - headroom * 65536, p);
  }
}

void tinyet_log_bands_s16_mve(const int16_t *input, int16_t *output, void *scratch,
                              const tinyet_log_bands_s16_mve_params *params) {
  int32_t *const z = (int32_t *)scratch;
  const int32_t count = params->count, quarters = params->given / params->quarter;
  const int32_t more = params->given - quarters * params->quarter, skipped = params->low & 3;
  for (int32_t frame = 0; frame < params->frames; frame++, input += 2 * params->given, output += params->bands) {
    if (more != 0) {
      first_stage_of(input, z, 0, more, quarters + 1, params);
    }
    first_stage_of(input, z, more, params->quarter - more, quarters, params);
    const int16_t *twiddles = params->twiddles;
    for (int32_t stage = 1, fours = 1, blocks = count >> 2; stage < params->stages; stage++) {
      const int32_t radix = params->radix[stage];
      blocks /= radix;
      stage_of(z, blocks, radix, fours, twiddles);
      twiddles += 8 * fours * (radix - 1);
      fours *= radix;
    }
    to_real(z, count, params->split);
    const int32_t *const from = z + 2 * (params->low - skipped);
    const int32_t free = headroom_of(from, skipped, params->high - params->low + skipped);
    const int32_t headroom = free < params->most ? free : params->most;
    powers_of(from, (uint32_t *)scratch, params->high - params->low + skipped, headroom);
    bands_of((const uint32_t *)scratch, output, headroom, params);
  }
}
