/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear_mve.h"

typedef struct {
  const int8_t *input, *weights;
  int32_t *sums;
  const int32_t *end; /* of the sums */
  int32_t vectors;    /* of sixteen inputs */
} job;

#if TINYET_MVE_ASM
/* clang-format off */
/* r1: inputs, r3: weights, r5: sums, r9: what is left of the vectors. */
#define TINYET_MVE_SIXTEEN \
  "vldrb.8 q0, [r1], #16\n" \
  "vldrw.32 q1, [r3], #16\n" \
  "vmladava.s8 r0, q0, q1\n" \
  "vldrw.32 q2, [r3], #16\n" \
  "vmladava.s8 r2, q0, q2\n" \
  "vldrw.32 q3, [r3], #16\n" \
  "vmladava.s8 r4, q0, q3\n" \
  "vldrw.32 q1, [r3], #16\n" \
  "vmladava.s8 r6, q0, q1\n" \
  "vldrw.32 q2, [r3], #16\n" \
  "vmladava.s8 r8, q0, q2\n" \
  "vldrw.32 q3, [r3], #16\n" \
  "vmladava.s8 r10, q0, q3\n" \
  "vldrw.32 q1, [r3], #16\n" \
  "vmladava.s8 r12, q0, q1\n" \
  "vldrw.32 q2, [r3], #16\n" \
  "vmladava.s8 lr, q0, q2\n"

/* Eight vectors a round; the first round begins behind those that its text has more, each of 68 bytes. On the stack: where that is,
 * the inputs, the rounds behind the first. */
__attribute__((naked)) static void products(TINYET_MVE_UNUSED const job *j) {
  __asm__ volatile(
      "push {r0, r4-r11, lr}\n"
      "ldm.w r0, {r1, r3, r5, r7, r9}\n"
      "sub.w r9, r9, #1\n"
      "adr.w r0, 2f\n"
      "mvn.w r2, r9\n"
      "and.w r2, r2, #7\n"
      "mov.w r4, #68\n"
      "mla r0, r2, r4, r0\n"
      "orr.w r0, r0, #1\n"
      "lsr.w r9, r9, #3\n"
      "push {r0, r1, r9}\n"
      "1:\n"
      "ldm.w r3!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
      "ldrd r1, r9, [sp, #4]\n"
      "ldr.w pc, [sp]\n"
      ".p2align 2\n"
      "2:\n" TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN
      TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN TINYET_MVE_SIXTEEN
      "subs.w r9, r9, #1\n"
      "bpl.w 2b\n"
      "stm.w r5!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
      "cmp.w r5, r7\n"
      "bne.w 1b\n"
      "add.w sp, sp, #16\n"
      "pop.w {r4-r11, pc}\n");
}

#define TINYET_MVE_OUTPUTS(ROUND) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6}\n" \
      "vdup.32 q6, r5\n" \
      "vdup.32 q7, r6\n" \
      "dlstp.32 lr, %[count]\n" \
      "1:\n" \
      "vldrw.32 q0, [%[sums]], #16\n" \
      "vldrw.32 q1, [%[ends]], #16\n" \
      "vldrw.32 q2, [%[ends]], #16\n" \
      "vqrdmulh.s32 q1, q0, q1\n" ROUND \
      "vrshl.s32 q1, q1, q2\n" \
      "vadd.i32 q1, q1, r4\n" \
      "vmax.s32 q1, q1, q6\n" \
      "vmin.s32 q1, q1, q7\n" \
      "vstrb.32 q1, [%[to]], #4\n" \
      "letp lr, 1b\n" \
      : [sums] "+l"(sums), [ends] "+l"(ends), [to] "+l"(output) \
      : [state] "r"(&r->zero_point), [count] "r"(count) \
      : "r4", "r5", "r6", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d12", "d13", "d14", "d15", "memory")
/* clang-format on */
#else
static void products(const job *j) {
  const int8_t *w = j->weights;
  for (int32_t *sums = j->sums; sums != j->end; sums += 8) {
    memcpy(sums, w, 32);
    w += 32;
    for (int32_t k = 0; k < 16 * j->vectors; k += 16) {
      for (int32_t i = 0; i < 8; i++) {
        for (int32_t n = 0; n < 16; n++) {
          sums[i] += j->input[k + n] * *w++;
        }
      }
    }
  }
}
#endif

static void round_outputs(const int32_t *sums, const int32_t *ends, int8_t *output, int32_t count, const tinyet_rounding_mve *r) {
#if TINYET_MVE_ASM
  if (r->one_sided) {
    TINYET_MVE_OUTPUTS("");
  } else {
    TINYET_MVE_OUTPUTS("vshr.s32 q0, q0, #31\nvadd.i32 q1, q1, q0\n");
  }
#else
  for (int32_t i = 0; i < count; i++) {
    const int32_t *const four = ends + (i & ~3) * 2 + (i & 3);
    output[i] = tinyet_round_mve(sums[i], four[0], four[4], r);
  }
#endif
}

void tinyet_linear_s8_1x8_mve(const int8_t *input, int8_t *output, void *scratch, const int8_t *weights,
                              const tinyet_linear_shape_mve *s) {
  int32_t *const sums = (int32_t *)scratch, *const end = sums + 8 * s->eights;
  const int32_t *const ends = (const int32_t *)(const void *)(weights + s->ends);
  int8_t *const row = (int8_t *)end;
  for (int32_t i = 0; i < s->rows; i++, input += s->depth, output += s->count) {
    const job j = {s->depth % 16 != 0 ? row : input, weights, sums, end, (s->depth + 15) >> 4};
    if (s->depth % 16 != 0) {
      tinyet_copy_mve(row, input, s->depth);
    }
    products(&j);
    round_outputs(sums, ends, output, s->count, &s->rounding);
  }
}
