/* nested: golden file
 */
#include "nested.h"

#include "nested_kernels.h"
#include "tinyet_conv2d_dsp.h"
#include "tinyet_conv2d_k8_dsp.h"
#include "tinyet_conv2d_tiles_dsp.h"
#include "tinyet_dsp.h"
#include "tinyet_elementwise_dsp.h"
#include "tinyet_few_4_4_two_sided_t4_dsp.h"
#include "tinyet_few_4_5_two_sided_t5_dsp.h"
#include "tinyet_linear_tiles_dsp.h"
#include "tinyet_patches_2_3x1x12_s32_dsp.h"
#include "tinyet_pool_dsp.h"
#include "tinyet_tile_1x4_w16_3p_two_sided_s0_full_dsp.h"
#include "tinyet_tile_2x4_w8_18p_e8_alike_s4_t8_dsp.h"
#include "tinyet_tile_dsp.h"

/* ---- weights and tables: 520 bytes ---- */

/* 48 bias, weights and rounding of 4 channels after another */
static const TINYET_ROM int32_t stem_conv_weights[48] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -3609, 113127, -834, 369342, 63682945, 1983720435, 686874278, -1671278312, -1721807339, 181584008, -1115327686,
  804775341, 754246314, -1603906276, 1377372111, -997426623, -1047955650, 872147377, -424764061, 1495273174,
  1444744147, -930054587, 2067935480, -306862998, -357392025, 1562645210, 265799053, -2092353537, 2135307516,
  -239490962, -1519691231, 383700116, 333171089, -2024981501, 956362422, -1401790168, -1452319195, 451072152,
  -845839286, 1074263485, 17179616, 19327330, -639, -639, 21474603, 23622292, -639, -639,
};

/* 24 bias, weights and rounding of each channel */
static const TINYET_ROM int32_t blocks_0_body_weights[24] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -2940, -2687230, 4259692, 1099511680, -320, 7, -2096, -8388438, -1376490, 1236950528, -320, 7, -1252, -14024620,
  -7077698, 1374389504, -320, 7, -408, 13828094, -12713880, 1511828480, -320, 7,
};

/* 30 bias, weights and rounding of each channel */
static const TINYET_ROM int32_t blocks_1_body_weights[30] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -3102, 7274242, -14221384, 1099511680, -320, 7, -1870, -11862052, 146, 1236950528, -320, 7, -638, 2359478, 14352238,
  1374389504, -320, 7, -936, 16711570, -4849592, 1511828480, -320, 7, -1234, -2490260, 9502500, 1649267456, -320, 7,
};

/* 28 bias, weights and rounding of four outputs after another */
static const TINYET_ROM int32_t layer_2_int_weights[28] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -3870, -856, -2432, -948, -8978686, 9961508, -4391096, 14549098, -5177540, 13762654, -589950, -15073116, 65514,
  65294, 48, 65364, 1374389651, 1546188218, 1717986944, 1889785670, 224, 224, 224, 224, 6, 6, 6, 6,
};

/* 6x6x4 -> 6x6x4, kernel 3x3, stride 1x1 */
TINYET_DSP_FUNCTION void stem_conv_conv2d(const int8_t *input, int8_t *output, void *scratch,
    const int32_t *weights) {
  const tinyet_conv2d_shape_dsp shape = {1, /* in */ 6, 6, 4, /* out */ 6, 6, 4, /* kernel */ 3, 3, /* stride */ 1, 1,
      /* dilation */ 1, 1, /* pad */ 1, 1, /* pixel stride */ 4, 4, /* zero point */ -7};
  const tinyet_rounding_dsp rounding = {TINYET_DSP_ONE_SIDED, /* exponent */ 8, /* clamp */ -3, 127};
  const tinyet_tiles_dsp tiles = {tinyet_tile_2x4_w8_18p_e8_alike_s4_t8_dsp, NULL, NULL,
      tinyet_patches_2_3x1x12_s32_dsp, NULL,
      /* pixels */ 2, /* channels, words */ 4, 48, /* pairs */ 18};
  const tinyet_band_dsp band = {/* outputs */ 6, /* rows */ 8, /* columns */ 8};
  tinyet_conv2d_tiles_dsp(input, output, scratch, weights, shape, rounding, tiles, band);
}

/* 6x6x4 -> 6x6x4, kernel 1x1, stride 1x1 */
TINYET_DSP_FUNCTION void blocks_0_body_conv2d(const int8_t *input, int8_t *output, const int32_t *weights) {
  const tinyet_conv2d_shape_dsp shape = {1, /* in */ 1, 36, 4, /* out */ 1, 36, 4, /* kernel */ 1, 1, /* stride */ 1, 1,
      /* dilation */ 1, 1, /* pad */ 0, 0, /* pixel stride */ 4, 4, /* zero point */ 0};
  const tinyet_rounding_dsp rounding = {TINYET_DSP_TWO_SIDED, /* exponent */ 0, /* clamp */ -128, 127};
  tinyet_few_4_4_two_sided_t4_dsp(input, weights, output, output + 144);
  tinyet_clamp_pixels_dsp(output + 144, shape, rounding);
}

/* 6x6x4 -> 6x6x5, kernel 1x1, stride 1x1 */
TINYET_DSP_FUNCTION void blocks_1_body_conv2d(const int8_t *input, int8_t *output, const int32_t *weights) {
  const tinyet_conv2d_shape_dsp shape = {1, /* in */ 1, 36, 4, /* out */ 1, 36, 5, /* kernel */ 1, 1, /* stride */ 1, 1,
      /* dilation */ 1, 1, /* pad */ 0, 0, /* pixel stride */ 4, 5, /* zero point */ 0};
  const tinyet_rounding_dsp rounding = {TINYET_DSP_TWO_SIDED, /* exponent */ 0, /* clamp */ -128, 127};
  tinyet_few_4_5_two_sided_t5_dsp(input, weights, output, output + 180);
  tinyet_clamp_pixels_dsp(output + 180, shape, rounding);
}

/* averages of 36 pixels, 5 channels */
TINYET_DSP_FUNCTION void avg_pool2d_6(const int8_t *input, int8_t *output) {
  const tinyet_division division = {466034u, 24u, 0, 4626, 1u, 128, 36};
  tinyet_average_s8_dsp(input, output, /* images */ 1, /* pixels */ 36,
      /* channels */ 5, division);
}

/* 1 x 5 -> 4, fully connected */
TINYET_DSP_FUNCTION void layer_2_int_linear(const int8_t *input, int8_t *output, void *scratch,
    const int32_t *weights) {
  tinyet_linear_tiles_dsp(input, output, scratch, weights, /* rows */ 1, /* depth */ 5,
      /* outputs */ 4, /* lift */ -1, /* words */ 28, tinyet_tile_1x4_w16_3p_two_sided_s0_full_dsp);
}

/* ---- kernel parameters ---- */

static const tinyet_affine_s8_dsp_params blocks_0_add_params = {
  .walk = {
    .rows = 1,
    .row = 144,
    .clamp_low = -128,
    .clamp_high = 127,
  },
  .a_factor = 33554432,
  .b_factor = 0,
  .offset = 8617983,
};

static const tinyet_affine_s8_dsp_params blocks_1_add_params = {
  .walk = {
    .rows = 1,
    .row = 144,
    .clamp_low = -128,
    .clamp_high = 127,
  },
  .a_factor = 33554432,
  .b_factor = 0,
  .offset = 8617983,
};

/* ---- memory: one arena of 572 bytes; optimal (the lower bound)
 *
 *   offset    bytes   alive     tensor
 *        0      400   0         scratch_0
 *        0      144   1..2      exp_: int8[1x6x6x4] scale=0.0500000007 zero_point=-3
 *        0      144   2..3      unix_: int8[1x6x6x4] scale=0.0500000007 zero_point=-3, over exp_ row by row
 *        0      144   3..4      stem_conv_weights_2: int8[1x6x6x4] scale=0.0500000007 zero_point=-3
 *        0      144   4..5      x: int8[1x6x6x4] scale=0.0500000007 zero_point=-3
 *        0        5   6..7      nested_run_: int8[1x1x1x5] scale=0.0500000007 zero_point=-3
 *        0        5   6..7      value_5: int8[1x5] scale=0.0500000007 zero_point=-3
 *        0        4   7..out    tinyet_linear_s8: int8[1x4] scale=0.0199999996 zero_point=3, over value_5 row by row
 *        8       12   7         scratch_7
 *      144      180   5..6      arena_: int8[1x6x6x5] scale=0.0500000007 zero_point=-3
 *      400      144   0..1      default_: int8[1x6x6x4] scale=0.0500000007 zero_point=-3, over input row by row
 *      428      144   in..0     input: int8[1x6x6x4] scale=0.0500000007 zero_point=-7
 */
uint8_t nested_arena[NESTED_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

tinyet_status nested_run(void) {
  uint8_t *const arena = nested_arena;
  const int8_t *const input = nested_input_0();

  /* 0: conv2d 1x6x6x4 -> 1x6x6x4, 5184 MACs
   * stem.conv (model.py:10): x = F.relu(self.stem.conv(x))
   */
  int8_t *const default_ = (int8_t *)(arena + 400);
  void *const scratch_0 = arena + 0;
  TINYET_LAYER_BEGIN(0u);
  stem_conv_conv2d(input, default_, scratch_0, stem_conv_weights);
  TINYET_LAYER_END(0u);

  /* 1: conv2d 1x6x6x4 -> 1x6x6x4, 576 MACs
   * blocks.0.body (model.py:11): y = self.body(self.body(x))
   */
  int8_t *const exp_ = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(1u);
  blocks_0_body_conv2d(default_, exp_, blocks_0_body_weights);
  TINYET_LAYER_END(1u);

  /* 2: conv2d 1x6x6x4 -> 1x6x6x4, 576 MACs
   * blocks.0.body (model.py:12): y = self.body(self.body(x))
   */
  int8_t *const unix_ = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(2u);
  blocks_0_body_conv2d(exp_, unix_, blocks_0_body_weights);
  TINYET_LAYER_END(2u);

  /* 3: add 1x6x6x4 + 1x6x6x4 -> 1x6x6x4
   * blocks.0 (model.py:13): return y + y
   */
  int8_t *const stem_conv_weights_2 = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(3u);
  tinyet_affine_s8_unary_dsp(unix_, stem_conv_weights_2, &blocks_0_add_params);
  TINYET_LAYER_END(3u);

  /* 4: add 1x6x6x4 + 1x6x6x4 -> 1x6x6x4
   * blocks.1 (model.py:14): return y + y
   */
  int8_t *const x = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(4u);
  tinyet_affine_s8_unary_dsp(stem_conv_weights_2, x, &blocks_1_add_params);
  TINYET_LAYER_END(4u);

  /* 5: conv2d 1x6x6x4 -> 1x6x6x5, 720 MACs
   * blocks.1.body (model.py:15): x = self.blocks[1].body(x)
   */
  int8_t *const arena_ = (int8_t *)(arena + 144);
  TINYET_LAYER_BEGIN(5u);
  blocks_1_body_conv2d(x, arena_, blocks_1_body_weights);
  TINYET_LAYER_END(5u);

  /* 6: avg_pool2d 1x6x6x5 -> 1x1x1x5
   * model.py:16: x = F.adaptive_avg_pool2d(x, 1)
   */
  int8_t *const nested_run_ = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(6u);
  avg_pool2d_6(arena_, nested_run_);
  TINYET_LAYER_END(6u);

  /* 7: linear 1x5 -> 1x4, 20 MACs
   * 2.int (model.py:18): return self.heads['int'](x)
   */
  const int8_t *const value_5 = nested_run_;
  int8_t *const tinyet_linear_s8 = (int8_t *)(arena + 0);
  void *const scratch_7 = arena + 8;
  TINYET_LAYER_BEGIN(7u);
  layer_2_int_linear(value_5, tinyet_linear_s8, scratch_7, layer_2_int_weights);
  TINYET_LAYER_END(7u);

  return TINYET_OK;
}

void nested_set_input_0(const float *values) {
  int8_t *const input = nested_input_0();
  for (uint32_t i = 0; i < NESTED_INPUT_0_COUNT; i++) {
    input[i] = (int8_t)tinyet_quantize_value(values[i], NESTED_INPUT_0_SCALE, NESTED_INPUT_0_ZERO_POINT, -128, 127);
  }
}

void nested_get_output_0(float *values) {
  const int8_t *const output = nested_output_0();
  for (uint32_t i = 0; i < NESTED_OUTPUT_0_COUNT; i++) {
    values[i] = NESTED_OUTPUT_0_SCALE * (float)(output[i] - NESTED_OUTPUT_0_ZERO_POINT);
  }
}
