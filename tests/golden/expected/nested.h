/* nested: golden file
 */
#ifndef NESTED_H
#define NESTED_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_ABI_VERSION != 2
#error "nested was generated for another version of the tinyet runtime: generate it again"
#endif

/* The tinyet that generated this, and the SHA-256 of the program that it was given. */
#define NESTED_TINYET_VERSION "1.2.3"
#define NESTED_MODEL_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Bytes of working memory: inputs, outputs and everything between. Weights are apart, in flash. */
#define NESTED_ARENA_BYTES 572u
#define NESTED_NUM_LAYERS 8
#define NESTED_NUM_INPUTS 1
#define NESTED_NUM_OUTPUTS 1

/* input 0: input, int8[1x6x6x4] scale=0.0500000007 zero_point=-7 */
#define NESTED_INPUT_0_OFFSET 428u /* in the arena */
#define NESTED_INPUT_0_BYTES 144u
#define NESTED_INPUT_0_COUNT 144u /* elements */
#define NESTED_INPUT_0_SCALE 0.05f /* real = scale * (value - zero point) */
#define NESTED_INPUT_0_ZERO_POINT -7

/* output 0: tinyet_linear_s8, int8[1x4] scale=0.0199999996 zero_point=3 */
#define NESTED_OUTPUT_0_OFFSET 0u /* in the arena */
#define NESTED_OUTPUT_0_BYTES 4u
#define NESTED_OUTPUT_0_COUNT 4u /* elements */
#define NESTED_OUTPUT_0_SCALE 0.02f /* real = scale * (value - zero point) */
#define NESTED_OUTPUT_0_ZERO_POINT 3

/* The classes, in the order of output 0: static const char *const labels[] = NESTED_LABELS; */
#define NESTED_NUM_CLASSES 4
#define NESTED_LABELS {"yes", "no", "the \"what\?\?/\"", "gr\303\266\303\237er"}

extern uint8_t nested_arena[NESTED_ARENA_BYTES];

/* Write input 0 here before each run; the run may overwrite it. int8_t[144], shape (1, 6, 6, 4), last dimension contiguous. */
static inline int8_t *nested_input_0(void) {
  return (int8_t *)(void *)(nested_arena + NESTED_INPUT_0_OFFSET);
}
/* Read output 0 here after a run. int8_t[4], shape (1, 4), last dimension contiguous. */
static inline const int8_t *nested_output_0(void) {
  return (const int8_t *)(const void *)(nested_arena + NESTED_OUTPUT_0_OFFSET);
}

/* One inference: reads the inputs in the arena, leaves the outputs there. 0 is success. Not reentrant. */
tinyet_status nested_run(void);

/* Quantizes 144 real numbers into input 0. */
void nested_set_input_0(const float *values);

/* The 4 real numbers of output 0. */
void nested_get_output_0(float *values);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
