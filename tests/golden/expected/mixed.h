/* mixed: golden file
 */
#ifndef MIXED_H
#define MIXED_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_ABI_VERSION != 2
#error "mixed was generated for another version of the tinyet runtime: generate it again"
#endif

/* The tinyet that generated this, and the SHA-256 of the program that it was given. */
#define MIXED_TINYET_VERSION "1.2.3"
#define MIXED_MODEL_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Bytes of working memory: inputs, outputs and everything between. Weights are apart, in flash. */
#define MIXED_ARENA_BYTES 224u
#define MIXED_NUM_LAYERS 5
#define MIXED_NUM_INPUTS 1
#define MIXED_NUM_OUTPUTS 1

/* input 0: image, float32[1x5x5x2] */
#define MIXED_INPUT_0_OFFSET 24u /* in the arena */
#define MIXED_INPUT_0_BYTES 200u
#define MIXED_INPUT_0_COUNT 50u /* elements */

/* output 0: probabilities, float32[1x4] */
#define MIXED_OUTPUT_0_OFFSET 4u /* in the arena */
#define MIXED_OUTPUT_0_BYTES 16u
#define MIXED_OUTPUT_0_COUNT 4u /* elements */

extern uint8_t mixed_arena[MIXED_ARENA_BYTES];

/* Write input 0 here before each run; the run may overwrite it. float[50], shape (1, 5, 5, 2), last dimension contiguous. */
static inline float *mixed_input_0(void) {
  return (float *)(void *)(mixed_arena + MIXED_INPUT_0_OFFSET);
}
/* Read output 0 here after a run. float[4], shape (1, 4), last dimension contiguous. */
static inline const float *mixed_output_0(void) {
  return (const float *)(const void *)(mixed_arena + MIXED_OUTPUT_0_OFFSET);
}

/* One inference: reads the inputs in the arena, leaves the outputs there. 0 is success. Not reentrant. */
tinyet_status mixed_run(void);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
