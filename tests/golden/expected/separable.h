/* separable: golden file
 */
#ifndef SEPARABLE_H
#define SEPARABLE_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TINYET_ABI_VERSION != 2
#error "separable was generated for another version of the tinyet runtime: generate it again"
#endif

/* The tinyet that generated this, and the SHA-256 of the program that it was given. */
#define SEPARABLE_TINYET_VERSION "1.2.3"
#define SEPARABLE_MODEL_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Bytes of working memory: inputs, outputs and everything between. Weights are apart, in flash. */
#define SEPARABLE_ARENA_BYTES 256u
#define SEPARABLE_NUM_LAYERS 3
#define SEPARABLE_NUM_INPUTS 1
#define SEPARABLE_NUM_OUTPUTS 1

/* input 0: x, int8[1x8x6x3] scale=0.0500000007 zero_point=-7 */
#define SEPARABLE_INPUT_0_OFFSET 0u /* in the arena */
#define SEPARABLE_INPUT_0_BYTES 144u
#define SEPARABLE_INPUT_0_COUNT 144u /* elements */
#define SEPARABLE_INPUT_0_SCALE 0.05f /* real = scale * (value - zero point) */
#define SEPARABLE_INPUT_0_ZERO_POINT -7

/* output 0: logits, int8[1x5] scale=0.0900000036 zero_point=3 */
#define SEPARABLE_OUTPUT_0_OFFSET 48u /* in the arena */
#define SEPARABLE_OUTPUT_0_BYTES 5u
#define SEPARABLE_OUTPUT_0_COUNT 5u /* elements */
#define SEPARABLE_OUTPUT_0_SCALE 0.09f /* real = scale * (value - zero point) */
#define SEPARABLE_OUTPUT_0_ZERO_POINT 3

extern uint8_t separable_arena[SEPARABLE_ARENA_BYTES];

/* Write input 0 here before each run; the run may overwrite it. int8_t[144], shape (1, 8, 6, 3), last dimension contiguous. */
static inline int8_t *separable_input_0(void) {
  return (int8_t *)(void *)(separable_arena + SEPARABLE_INPUT_0_OFFSET);
}
/* Read output 0 here after a run. int8_t[5], shape (1, 5), last dimension contiguous. */
static inline const int8_t *separable_output_0(void) {
  return (const int8_t *)(const void *)(separable_arena + SEPARABLE_OUTPUT_0_OFFSET);
}

/* One inference: reads the inputs in the arena, leaves the outputs there. 0 is success. Not reentrant. */
tinyet_status separable_run(void);

/* Quantizes 144 real numbers into input 0. */
void separable_set_input_0(const float *values);

/* The 5 real numbers of output 0. */
void separable_get_output_0(float *values);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
