/* branches: golden file
 */
#ifndef BRANCHES_H
#define BRANCHES_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_ABI_VERSION != 2
#error "branches was generated for another version of the tinyet runtime: generate it again"
#endif

/* The tinyet that generated this, and the SHA-256 of the program that it was given. */
#define BRANCHES_TINYET_VERSION "1.2.3"
#define BRANCHES_MODEL_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Bytes of working memory: inputs, outputs and everything between. Weights are apart, in flash. */
#define BRANCHES_ARENA_BYTES 22u
#define BRANCHES_NUM_LAYERS 3
#define BRANCHES_NUM_INPUTS 1
#define BRANCHES_NUM_OUTPUTS 2

/* input 0: x, int8[1x12] scale=0.0599999987 zero_point=4 */
#define BRANCHES_INPUT_0_OFFSET 4u /* in the arena */
#define BRANCHES_INPUT_0_BYTES 12u
#define BRANCHES_INPUT_0_COUNT 12u /* elements */
#define BRANCHES_INPUT_0_SCALE 0.06f /* real = scale * (value - zero point) */
#define BRANCHES_INPUT_0_ZERO_POINT 4

/* output 0: joined, int8[1x10] scale=0.0599999987 zero_point=4 */
#define BRANCHES_OUTPUT_0_OFFSET 0u /* in the arena */
#define BRANCHES_OUTPUT_0_BYTES 10u
#define BRANCHES_OUTPUT_0_COUNT 10u /* elements */
#define BRANCHES_OUTPUT_0_SCALE 0.06f /* real = scale * (value - zero point) */
#define BRANCHES_OUTPUT_0_ZERO_POINT 4

/* output 1: probabilities, int8[1x10] scale=0.00390625 zero_point=-128 */
#define BRANCHES_OUTPUT_1_OFFSET 12u /* in the arena */
#define BRANCHES_OUTPUT_1_BYTES 10u
#define BRANCHES_OUTPUT_1_COUNT 10u /* elements */
#define BRANCHES_OUTPUT_1_SCALE 0.00390625f /* real = scale * (value - zero point) */
#define BRANCHES_OUTPUT_1_ZERO_POINT -128

extern uint8_t branches_arena[BRANCHES_ARENA_BYTES];

/* Write input 0 here before each run; the run may overwrite it. int8_t[12], shape (1, 12), last dimension contiguous. */
static inline int8_t *branches_input_0(void) {
  return (int8_t *)(void *)(branches_arena + BRANCHES_INPUT_0_OFFSET);
}
/* Read output 0 here after a run. int8_t[10], shape (1, 10), last dimension contiguous. */
static inline const int8_t *branches_output_0(void) {
  return (const int8_t *)(const void *)(branches_arena + BRANCHES_OUTPUT_0_OFFSET);
}
/* Read output 1 here after a run. int8_t[10], shape (1, 10), last dimension contiguous. */
static inline const int8_t *branches_output_1(void) {
  return (const int8_t *)(const void *)(branches_arena + BRANCHES_OUTPUT_1_OFFSET);
}

/* One inference: reads the inputs in the arena, leaves the outputs there. 0 is success. Not reentrant. */
tinyet_status branches_run(void);

/* Quantizes 12 real numbers into input 0. */
void branches_set_input_0(const float *values);

/* The 10 real numbers of output 0. */
void branches_get_output_0(float *values);

/* The 10 real numbers of output 1. */
void branches_get_output_1(float *values);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
