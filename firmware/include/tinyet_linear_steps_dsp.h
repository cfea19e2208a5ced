/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of one row of inputs for four outputs of a fully connected layer (see tinyet_dsp.h), eight inputs a step.
 * Straight code for TINYET_DSP_STEPS of them is entered so far from its end as is left of a whole number of turns, so that
 * layers of all sizes share it. */
#ifndef TINYET_LINEAR_STEPS_DSP_H
#define TINYET_LINEAR_STEPS_DSP_H

#include "tinyet_dsp.h"

enum { TINYET_DSP_STEPS = 6 };

/* The multiply loops' start values, in the order in which they are read, and results. */
typedef struct {
  const uint32_t *inputs; /* pairs, four words a step */
  const int32_t *weights;
  const uint32_t *end; /* of the inputs */
  int32_t skipped;     /* bytes of straight code that the first turn leaves out */
  void *output;
  int32_t results[4];
  const int32_t *surplus; /* subtracted from the sums at the start, if there is any */
} tinyet_row_sums_dsp;

/* Steps that the first turn leaves out, of `steps` in all. */
TINYET_DSP_INLINE int32_t tinyet_skipped_dsp(int32_t steps) {
  return (int32_t)((uint32_t)(steps + TINYET_DSP_STEPS - 1) / TINYET_DSP_STEPS) * TINYET_DSP_STEPS - steps;
}

#if TINYET_DSP_ASM
/* Inputs at r0, weights at r1, sums, which start with what the weights begin with, in r2 … ; a STEP has instructions of 4
 * bytes. START and FINISH find p->output at r12 and the results behind it. All may use the other registers. The addresses of
 * Thumb code are odd; ADR counts from a multiple of four. r7 may be the frame pointer, which is not to be named among the
 * registers that are lost; p is in r0 or r7. */
#define TINYET_DSP_SUM_STEPS(p, sums, START, STEP, FINISH, ...)                  \
  __asm__ volatile(TINYET_DSP_LINES                                             \
                   ".p2align 2\n"                                               \
                   "push {r0, r7}\n"                                            \
                   "mov r12, %[row]\n"                                          \
                   "ldmia.w r12!, {r0, r1, r8, r9}\n"                           \
                   "adr.w r10, 2f + 1\n"                                        \
                   "add r9, r9, r10\n"                                          \
                   "push {r8, r12}\n"                                           \
                   "ldmia.w r1!, {" sums "}\n" START                            \
                   "bx r9\n"                                                    \
                   ".p2align 2\n"                                               \
                   "2:\n"                                                       \
                   ".rept %c[steps]\n" STEP                                     \
                   ".endr\n"                                                    \
                   "ldr.w r8, [sp]\n"                                           \
                   "cmp r0, r8\n"                                               \
                   "bne.w 2b\n"                                                 \
                   "pop {r8, r12}\n" FINISH                                     \
                   "str r1, [r12, #-12]\n"                                      \
                   "pop {r0, r7}\n"                                             \
                   :                                                            \
                   : [row] "r"(p), [steps] "i"(TINYET_DSP_STEPS) __VA_ARGS__    \
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "memory", "cc")
#endif

#endif
