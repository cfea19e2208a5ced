/* separable: golden file
 */
#include "separable.h"

#include "separable_kernels.h"
#include "tinyet_conv2d.h"
#include "tinyet_conv2d_4x4.h"
#include "tinyet_depthwise_planes.h"
#include "tinyet_dot_1x4.h"
#include "tinyet_int16x2.h"
#include "tinyet_linear.h"
#include "tinyet_one_product.h"
#include "tinyet_packed_words.h"

/* ---- weights and tables: 737 bytes ---- */

/* 1x20 as tinyet_conv2d_4x4.h */
static const TINYET_ROM uint32_t conv2d_0_stream[20] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  0xfffff19au, 0xffffffa0u, 0xffffffb3u, 0xffffffc5u, 0x000099cau, 0x0001a6d0u, 0x00001c9cu, 0x8100d2c0u, 0x000088b3u,
  0x0001dbaau, 0x00001d5cu, 0x810122c8u, 0x00007b08u, 0x00021084u, 0x00002158u, 0x8101082eu, 0x00006fd9u, 0x0002455eu,
  0x00002550u, 0x81012279u,
};

/* 1x28x4 four channels a tap */
static const TINYET_ROM int8_t conv2d_0_weights[112] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -127, 107, 86, 65, -90, -111, 123, 102, -53, -74, -95, -116, -16, -37, -58, -79, 21, 0, -21, -42, 58, 37, 16, -5,
  95, 74, 53, 32, -123, 111, 90, 69, -86, -107, 127, 106, -49, -70, -91, -112, -12, -33, -54, -75, 25, 4, -17, -38,
  62, 41, 20, -1, 99, 78, 57, 36, -119, 115, 94, 73, -82, -103, -124, 110, -45, -66, -87, -108, -8, -29, -50, -71, 29,
  8, -13, -34, 66, 45, 24, 3, 103, 82, 61, 40, -115, 119, 98, 77, -78, -99, -120, 114, -41, -62, -83, -104, -4, -25,
  -46, -67, 33, 12, -9, -30, 70, 49, 28, 7, 0, 0, 0, 0,
};

/* 4x4 as tinyet_depthwise_planes.h */
static const TINYET_ROM int32_t conv2d_1_stream[16] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -1073280, 1662676126, 38920, 16, -195296, 1870510472, 38920, 16, 682688, 2078345012, 38920, 16, -1056576,
  1143089776, 38928, 32,
};

/* 4x10 nine, and the power of two that sums are multiplied by */
static const TINYET_ROM int8_t conv2d_1_weights[40] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -127, 32, -64, -74, 85, -11, -21, -117, 42, 5, 95, -1, -97, -107, 52, -44, -54, 105, 9, 5, 62, -34, 125, 115, 19,
  -77, -87, 72, -24, 5, 29, -67, 92, 82, -14, -110, -120, 39, -57, 6,
};

/* 2x12x4x4 four inputs of four outputs in turn */
static const TINYET_ROM int8_t linear_2_weights[384] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -127, -98, -69, -40, -10, 19, 48, 77, 107, -119, -90, -61, -31, -2, 27, 56, -11, 18, 47, 76, 106, -120, -91, -62,
  -32, -3, 26, 55, 85, 114, -112, -83, 105, -121, -92, -63, -33, -4, 25, 54, 84, 113, -113, -84, -54, -25, 4, 33, -34,
  -5, 24, 53, 83, 112, -114, -85, -55, -26, 3, 32, 62, 91, 120, -106, 82, 111, -115, -86, -56, -27, 2, 31, 61, 90,
  119, -107, -77, -48, -19, 10, -57, -28, 1, 30, 60, 89, 118, -108, -78, -49, -20, 9, 39, 68, 97, 126, 59, 88, 117,
  -109, -79, -50, -21, 8, 38, 67, 96, 125, -100, -71, -42, -13, -80, -51, -22, 7, 37, 66, 95, 124, -101, -72, -43,
  -14, 16, 45, 74, 103, 36, 65, 94, 123, -102, -73, -44, -15, 15, 44, 73, 102, -123, -94, -65, -36, -103, -74, -45,
  -16, 14, 43, 72, 101, -124, -95, -66, -37, -7, 22, 51, 80, 13, 42, 71, 100, -125, -96, -67, -38, -8, 21, 50, 79,
  109, -117, -88, -59, -126, -97, -68, -39, -9, 20, 49, 78, 108, -118, -89, -60, -30, -1, 28, 57, 86, 115, -111, -82,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -53, -24, 5, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 63, 92, 121, -105, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, -76, -47, -18, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 69, 98, 127, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, -99, -70, -41, -12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 46, 75, 104, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, -122, -93, -64, -35, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6, 23, 52, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 110, -116, -87, -58, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -29, 0, 29, 58, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  87, 116, -110, -81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

/* 8 */
static const TINYET_ROM int32_t linear_2_bias[8] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  2826, -1721, 617, -1635, -1592, 0, 0, 0,
};

/* 5 */
static const TINYET_ROM int32_t linear_2_multiplier[5] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  2003554593, 1126999356, 1252221533, 1377443710, 1502665886,
};

/* 5 as tinyet_requantize_form */
static const TINYET_ROM int8_t linear_2_shift[5] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  8, 7, 7, 7, 7,
};

/* ---- kernel parameters ---- */

static const tinyet_conv2d_s8_4x4_params conv2d_0_params = {
  .shape = {
    .batch = 1,
    .in_h = 8,
    .in_w = 6,
    .in_c = 3,
    .out_h = 4,
    .out_w = 3,
    .out_c = 4,
    .kernel_h = 3,
    .kernel_w = 3,
    .stride_h = 2,
    .stride_w = 2,
    .dilation_h = 1,
    .dilation_w = 1,
    .pad_top = 1,
    .pad_left = 1,
    .groups = 1,
  },
  .words = {
    .stream = conv2d_0_stream,
    .out_c = 4,
    .padding = -7,
    .right = 16,
    .two_sided = 0,
    .clamp_low = -128,
    .clamp_high = 127,
  },
  .weights = conv2d_0_weights,
};

static const tinyet_depthwise_s8_cwh_3x3_2x1_params conv2d_1_params = {
  .shape = {
    .batch = 1,
    .in_h = 4,
    .in_w = 3,
    .in_c = 4,
    .out_h = 4,
    .out_w = 3,
    .out_c = 4,
    .kernel_h = 3,
    .kernel_w = 3,
    .stride_h = 1,
    .stride_w = 1,
    .dilation_h = 1,
    .dilation_w = 1,
    .pad_top = 1,
    .pad_left = 1,
    .groups = 4,
  },
  .stream = conv2d_1_stream,
  .padding = -128,
  .clamp_low = -128,
  .clamp_high = 127,
  .weights = conv2d_1_weights,
  .words = 4,
};

static const tinyet_linear_s8_params linear_2_params = {
  .rows = 1,
  .depth = 48,
  .out_count = 5,
  .weights = linear_2_weights,
  .bias = linear_2_bias,
  .multiplier = linear_2_multiplier,
  .shift = linear_2_shift,
  .out_zero_point = 3,
  .clamp_low = -128,
  .clamp_high = 127,
};

/* ---- memory: one arena of 256 bytes; optimal (the lower bound)
 *
 *   offset    bytes   alive     tensor
 *        0      144   in..0     x: int8[1x8x6x3] scale=0.0500000007 zero_point=-7
 *        0       48   0..1      relu: int8[1x4x3x4] scale=0.0309999995 zero_point=-128, over x row by row
 *        0       48   1..2      depthwise: int8[1x4x3x4] scale=0.0410000011 zero_point=9
 *        0       48   1..2      flat: int8[1x48] scale=0.0410000011 zero_point=9
 *       48      120   1         scratch_1
 *       48        5   2..out    logits: int8[1x5] scale=0.0900000036 zero_point=3
 *      144      112   0         scratch_0
 */
uint8_t separable_arena[SEPARABLE_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

tinyet_status separable_run(void) {
  uint8_t *const arena = separable_arena;
  const int8_t *const x = separable_input_0();

  /* 0: conv2d 1x8x6x3 -> 1x4x3x4, 1296 MACs
   * model.py:10: x = F.relu(self.conv(x))
   */
  int8_t *const relu = (int8_t *)(arena + 0);
  void *const scratch_0 = arena + 144;
  TINYET_LAYER_BEGIN(0u);
  tinyet_conv2d_s8_4x4(x, relu, scratch_0, &conv2d_0_params);
  TINYET_LAYER_END(0u);

  /* 1: conv2d 1x4x3x4 -> 1x4x3x4, 432 MACs
   * model.py:11: x = self.depthwise(x)
   */
  int8_t *const depthwise = (int8_t *)(arena + 0);
  void *const scratch_1 = arena + 48;
  TINYET_LAYER_BEGIN(1u);
  tinyet_depthwise_s8_cwh_3x3_2x1(relu, depthwise, scratch_1, &conv2d_1_params);
  TINYET_LAYER_END(1u);

  /* 2: linear 1x48 -> 1x5, 240 MACs
   * model.py:13: return self.linear(x)
   */
  const int8_t *const flat = depthwise;
  int8_t *const logits = (int8_t *)(arena + 48);
  TINYET_LAYER_BEGIN(2u);
  tinyet_linear_s8(flat, logits, &linear_2_params);
  TINYET_LAYER_END(2u);

  return TINYET_OK;
}

void separable_set_input_0(const float *values) {
  int8_t *const input = separable_input_0();
  for (uint32_t i = 0; i < SEPARABLE_INPUT_0_COUNT; i++) {
    input[i] = (int8_t)tinyet_quantize_value(values[i], SEPARABLE_INPUT_0_SCALE, SEPARABLE_INPUT_0_ZERO_POINT, -128, 127);
  }
}

void separable_get_output_0(float *values) {
  const int8_t *const output = separable_output_0();
  for (uint32_t i = 0; i < SEPARABLE_OUTPUT_0_COUNT; i++) {
    values[i] = SEPARABLE_OUTPUT_0_SCALE * (float)(output[i] - SEPARABLE_OUTPUT_0_ZERO_POINT);
  }
}
