/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_layer_norm_mve.h"

/* The integer part of sqrt(x), x of 63 bits or 64: the root of the upper word a bit at a time, the lower half of the root by a
 * division of what that leaves (P. Zimmermann, Karatsuba Square Root). */
static uint32_t root_of(uint64_t x) {
  uint32_t rest = (uint32_t)(x >> 32), upper = 0;
  const uint32_t low = (uint32_t)x;
  for (uint32_t bit = UINT32_C(1) << 30; bit != 0; bit >>= 2) {
    const uint32_t tried = upper + bit;
    upper >>= 1;
    if (rest >= tried) {
      rest -= tried;
      upper += bit;
    }
  }
  /* rest is at most twice the root: a bit less, and nothing leaves a word. */
  const uint32_t half = (rest << 15) + (low >> 17), lower = half / upper;
  const uint32_t left = (rest << 16) + (low >> 16) - 2 * lower * upper;
  const int64_t remainder = (int64_t)(((uint64_t)left << 16) | (low & 0xffffu)) - (int64_t)((uint64_t)lower * lower);
  return (upper << 16) + lower - (remainder < 0 ? 1u : 0u);
}

/* Sums of values and of their squares. */
static void sums_of(const int8_t *input, int32_t count, int32_t *sum, int32_t *squares) {
#if TINYET_MVE_ASM
  register int32_t a __asm__("r4") = 0;
  register int32_t b __asm__("r6") = 0; /* even registers */
  __asm__ volatile(
      "dlstp.8 lr, %[count]\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vaddva.s8 %[a], q0\n"
      "vmladava.s8 %[b], q0, q0\n"
      "letp lr, 1b\n"
      : [from] "+l"(input), [a] "+r"(a), [b] "+r"(b)
      : [count] "r"(count)
      : "lr", "d0", "d1", "memory");
  *sum = a;
  *squares = b;
#else
  *sum = *squares = 0;
  for (int32_t i = 0; i < count; i++) {
    *sum += input[i];
    *squares += input[i] * input[i];
  }
#endif
}

/* Of a row; in the order in which the assembly loads them. */
typedef struct {
  int32_t offset, multiplier, normal_shift, left, right, zero_point; /* right: not above 0 */
  const int32_t *weight, *bias;
  int32_t count, factor;
} row_state;

#if TINYET_MVE_ASM
/* clang-format off */
#define TINYET_MVE_NORMALISED(SCALED) \
  __asm__ volatile( \
      "ldr.w r4, [%[state], #36]\n" \
      "vdup.32 q2, r4\n" \
      "ldm.w %[state], {r4, r5, r6, r8, r9, r10, r11, r12, lr}\n" \
      "dlstp.32 lr, lr\n" \
      "1:\n" \
      "vldrb.s32 q0, [%[from]], #4\n" \
      "vmlas.s32 q0, q2, r4\n" SCALED \
      "vldrw.32 q3, [r11], #16\n" \
      "vshl.s32 q1, r8\n" \
      "vqrdmulh.s32 q1, q1, q3\n" \
      "vldrw.32 q0, [r12], #16\n" \
      "vadd.i32 q1, q1, q0\n" \
      "vshl.s32 q1, r9\n" \
      "vadd.i32 q1, q1, r10\n" \
      "vqmovnb.s32 q1, q1\n" \
      "vqmovnb.s16 q1, q1\n" \
      "vstrb.32 q1, [%[to]], #4\n" \
      "letp lr, 1b\n" \
      : [from] "+l"(input), [to] "+l"(output) \
      : [state] "r"(s) \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "memory")
#define TINYET_MVE_TO_THE_RIGHT \
  "vshr.s32 q1, q0, #31\n" \
  "vqrdmlah.s32 q1, q0, r5\n" \
  "vrshl.s32 q1, r6\n"
#define TINYET_MVE_TO_THE_LEFT \
  "vshl.s32 q0, r6\n" \
  "vqrdmulh.s32 q1, q0, r5\n"
/* clang-format on */
#endif

static void normalise(const int8_t *input, int8_t *output, const row_state *s) {
#if TINYET_MVE_ASM
  if (s->normal_shift < 0) {
    TINYET_MVE_NORMALISED(TINYET_MVE_TO_THE_RIGHT);
  } else {
    TINYET_MVE_NORMALISED(TINYET_MVE_TO_THE_LEFT);
  }
#else
  for (int32_t i = 0; i < s->count; i++) {
    const int32_t normal = tinyet_requantize(s->factor * input[i] + s->offset, s->multiplier, s->normal_shift);
    const int32_t scaled = tinyet_high_mul(normal * (1 << s->left), s->weight[i]) + s->bias[i];
    output[i] = (int8_t)tinyet_clamp((scaled >> -s->right) + s->zero_point, INT8_MIN, INT8_MAX);
  }
#endif
}

void tinyet_layer_norm_s8_mve(const int8_t *input, int8_t *output, const tinyet_layer_norm_s8_mve_params *p) {
  const int32_t count = p->count, zero_point = p->in_zero_point;
  const uint64_t epsilon = (uint64_t)p->epsilon, unit = UINT64_C(1) << (2 * p->half_fraction);
  row_state state = {0, 0, 0, p->left, -p->shift, p->out_zero_point, p->weight, p->bias, count, count};
  for (int32_t row = p->rows; row > 0; row--) {
    int32_t sum, squares;
    sums_of(input, count, &sum, &squares);
    /* Less the zero point: 256^2 times count fits an unsigned word. */
    const uint32_t all = (uint32_t)(squares - 2 * zero_point * sum) + (uint32_t)(zero_point * zero_point * count);
    sum -= zero_point * count;
    /* As in the portable kernel. */
    const uint64_t spread = (uint64_t)(uint32_t)count * all - (uint64_t)((int64_t)sum * sum);
    const uint64_t widened = (spread << (2 * p->half_fraction)) + epsilon;
    const uint64_t positive = widened < unit ? unit : widened;
    const int32_t pairs = __builtin_clzll(positive) / 2;
    const uint64_t reciprocal = (UINT64_C(1) << 62) / root_of(positive << (2 * pairs));
    state.multiplier = reciprocal > INT32_MAX ? INT32_MAX : (int32_t)reciprocal;
    state.normal_shift = pairs + p->half_fraction - 31 + 20;
    state.offset = -count * zero_point - sum;
    normalise(input, output, &state);
    input += count;
    output += count;
  }
}
