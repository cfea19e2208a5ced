/* mixed: golden file
 */
#include "mixed.h"

#include "mixed_kernels.h"
#include "tinyet_conv2d.h"
#include "tinyet_dot_1x4.h"
#include "tinyet_int16x2.h"
#include "tinyet_linear.h"
#include "tinyet_math.h"
#include "tinyet_quantize.h"
#include "tinyet_softmax.h"
#include "tinyet_window.h"

/* ---- weights and tables: 192 bytes ---- */

/* 24 four channels in turn */
static const TINYET_ROM float conv2d_0_weights[24] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -0.49609375f, -0.3359375f, -0.17578125f, -0.015625f, 0.14453125f, 0.3046875f, 0.46484375f, -0.37109375f,
  -0.2109375f, -0.05078125f, 0.109375f, 0.26953125f, 0.4296875f, -0.40625f, -0.24609375f, -0.0859375f, 0.07421875f,
  0.234375f, 0.39453125f, -0.44140625f, -0.28125f, -0.12109375f, 0.0390625f, 0.19921875f,
};

/* 3 */
static const TINYET_ROM float conv2d_0_bias[3] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  0.5f, -0.25f, 0.125f,
};

/* 1x3x4x4 four inputs of four outputs in turn */
static const TINYET_ROM int8_t linear_2_weights[48] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -127, -96, -65, -34, -10, 21, 52, 83, 107, -117, -86, -55, -31, 0, 31, 62, -3, 28, 59, 90, 114, -110, -79, -48, -24,
  7, 38, 69, 93, 124, -100, -69, 121, -103, -72, -41, -17, 14, 45, 76, 100, -124, -93, -62, -38, -7, 24, 55,
};

/* 4 */
static const TINYET_ROM int32_t linear_2_bias[4] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  315, -1394, 722, -987,
};

/* 4 */
static const TINYET_ROM int32_t linear_2_multiplier[4] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  1466015573, 1649267371, 1832519339, 2015771307,
};

/* 4 as tinyet_requantize_form */
static const TINYET_ROM int8_t linear_2_shift[4] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  6, 6, 6, 6,
};

/* ---- kernel parameters ---- */

static const tinyet_conv2d_f32_params conv2d_0_params = {
  .shape = {
    .batch = 1,
    .in_h = 5,
    .in_w = 5,
    .in_c = 2,
    .out_h = 2,
    .out_w = 2,
    .out_c = 3,
    .kernel_h = 2,
    .kernel_w = 2,
    .stride_h = 2,
    .stride_w = 2,
    .dilation_h = 1,
    .dilation_w = 1,
    .pad_top = 0,
    .pad_left = 0,
    .groups = 1,
  },
  .values = {
    .weights = conv2d_0_weights,
    .bias = conv2d_0_bias,
    .clamp_low = -TINYET_INFINITY,
    .clamp_high = TINYET_INFINITY,
  },
};

static const tinyet_quantize_params quantize_1_params = {
  .scale = 0.02f,
  .zero_point = 5,
  .count = 12,
};

static const tinyet_linear_s8_params linear_2_params = {
  .rows = 1,
  .depth = 12,
  .out_count = 4,
  .weights = linear_2_weights,
  .bias = linear_2_bias,
  .multiplier = linear_2_multiplier,
  .shift = linear_2_shift,
  .out_zero_point = -128,
  .clamp_low = -128,
  .clamp_high = 127,
};

static const tinyet_quantize_params dequantize_3_params = {
  .scale = 0.015f,
  .zero_point = -128,
  .count = 4,
};

static const tinyet_softmax_shape softmax_4_params = {
  .outer = 1,
  .depth = 4,
  .inner = 1,
};

/* ---- memory: one arena of 224 bytes; optimal (the lower bound)
 *
 *   offset    bytes   alive     tensor
 *        0       48   0..1      conv: float32[1x2x2x3], over image row by row
 *        0       48   0..1      flat: float32[1x12]
 *        0        4   2..3      head: int8[1x4] scale=0.0149999997 zero_point=-128
 *        4       16   3..4      head_f32: float32[1x4]
 *        4       16   4..out    probabilities: float32[1x4]
 *       24      200   in..0     image: float32[1x5x5x2]
 *       48       12   1..2      flat_s8: int8[1x12] scale=0.0199999996 zero_point=5
 */
uint8_t mixed_arena[MIXED_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

tinyet_status mixed_run(void) {
  uint8_t *const arena = mixed_arena;
  const float *const image = mixed_input_0();

  /* 0: conv2d 1x5x5x2 -> 1x2x2x3, 96 MACs
   * model.py:10: x = self.conv(x)
   */
  float *const conv = (float *)(void *)(arena + 0);
  TINYET_LAYER_BEGIN(0u);
  tinyet_conv2d_f32_2x4(image, conv, &conv2d_0_params);
  TINYET_LAYER_END(0u);

  /* 1: quantize 1x12 -> 1x12
   * model.py:12: x = F.relu(self.head(x))
   */
  const float *const flat = conv;
  int8_t *const flat_s8 = (int8_t *)(arena + 48);
  TINYET_LAYER_BEGIN(1u);
  tinyet_quantize_f32_s8(flat, flat_s8, &quantize_1_params);
  TINYET_LAYER_END(1u);

  /* 2: linear 1x12 -> 1x4, 48 MACs
   * model.py:13: x = F.relu(self.head(x))
   */
  int8_t *const head = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(2u);
  tinyet_linear_s8(flat_s8, head, &linear_2_params);
  TINYET_LAYER_END(2u);

  /* 3: dequantize 1x4 -> 1x4
   * model.py:14: x = F.relu(self.head(x))
   */
  float *const head_f32 = (float *)(void *)(arena + 4);
  TINYET_LAYER_BEGIN(3u);
  tinyet_dequantize_s8_f32(head, head_f32, &dequantize_3_params);
  TINYET_LAYER_END(3u);

  /* 4: softmax 1x4 -> 1x4
   * model.py:15: return F.softmax(x, -1)
   */
  float *const probabilities = (float *)(void *)(arena + 4);
  TINYET_LAYER_BEGIN(4u);
  tinyet_softmax_f32(head_f32, probabilities, &softmax_4_params);
  TINYET_LAYER_END(4u);

  return TINYET_OK;
}
