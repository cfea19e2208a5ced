/* branches: golden file
 */
#include "branches.h"

#include "branches_kernels.h"
#include "tinyet_concat.h"
#include "tinyet_dot_1x4.h"
#include "tinyet_fixed_point.h"
#include "tinyet_int16x2.h"
#include "tinyet_linear.h"
#include "tinyet_softmax.h"

/* ---- weights and tables: 1150 bytes ---- */

/* 2x2x4x4 four inputs of four outputs in turn */
static const TINYET_ROM int8_t linear_0_weights[64] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -127, -84, -41, 2, -38, 5, 48, 91, 51, 94, -118, -75, -115, -72, -29, 14, 45, 88, -124, -81, -121, -78, -35, 8, -32,
  11, 54, 97, 57, 100, -112, -69, -26, 17, 60, 103, 63, 106, -106, -63, 0, 0, 0, 0, 0, 0, 0, 0, -109, -66, -23, 20,
  -20, 23, 66, 109, 0, 0, 0, 0, 0, 0, 0, 0,
};

/* 8 */
static const TINYET_ROM int32_t linear_0_bias[8] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  388, -293, -974, 385, -296, -977, 0, 0,
};

/* 6 */
static const TINYET_ROM int32_t linear_0_multiplier[6] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  1099511680, 1236950528, 1374389504, 1511828480, 1649267456, 1786706432,
};

/* 6 as tinyet_requantize_form */
static const TINYET_ROM int8_t linear_0_shift[6] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  6, 6, 6, 6, 6, 6,
};

/* 256 Q0.31, of the maximum less 0, 1, 2 ... */
static const TINYET_ROM int32_t softmax_2_exponentials[256] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  2147483647, 2022423914, 1904647154, 1793729143, 1689270790, 1590894991, 1498248526, 1410997323, 1328827385,
  1251442311, 1178564040, 1109929811, 1045292601, 984419369, 927091314, 873101718, 822256262, 774371677, 729275860,
  686806140, 646809676, 609142306, 573668712, 540260847, 508798509, 479168520, 451263792, 424984237, 400235083,
  376927273, 354976670, 334304443, 314836068, 296501476, 279234536, 262973191, 247658824, 233236313, 219653661,
  206862040, 194815332, 183470177, 172785684, 162723445, 153247169, 144322751, 135918027, 128002796, 120548493,
  113528296, 106916954, 100690565, 94826804, 89304521, 84103847, 79206004, 74593406, 70249424, 66158425, 62305649,
  58677252, 55260155, 52042058, 49011358, 46157161, 43469178, 40937732, 38553698, 36308509, 34194066, 32202760,
  30327412, 28561285, 26898005, 25331588, 23856398, 22467103, 21158721, 19926533, 18766105, 17673249, 16644039,
  15674766, 14761940, 13902270, 13092665, 12330208, 11612153, 10935912, 10299055, 9699285, 9134443, 8602493, 8101524,
  7629728, 7185407, 6766960, 6372884, 6001757, 5652241, 5323082, 5013088, 4721149, 4446211, 4187284, 3943435, 3713787,
  3497513, 3293834, 3102016, 2921369, 2751241, 2591022, 2440132, 2298030, 2164203, 2038170, 1919476, 1807694, 1702422,
  1603281, 1509913, 1421983, 1339173, 1261186, 1187740, 1118571, 1053431, 992084, 934309, 879899, 828658, 780401,
  734954, 692154, 651846, 613885, 578135, 544467, 512760, 482899, 454777, 428293, 403351, 379862, 357741, 336907,
  317287, 298810, 281409, 265021, 249587, 235052, 221364, 208473, 196332, 184899, 174131, 163990, 154440, 145446,
  136976, 128999, 121487, 114412, 107749, 101475, 95565, 90000, 84759, 79823, 75174, 70796, 66674, 62791, 59134,
  55690, 52447, 49393, 46517, 43808, 41256, 38854, 36591, 34460, 32453, 30564, 28784, 27107, 25529, 24042, 22642,
  21323, 20082, 18912, 17811, 16774, 15797, 14877, 14011, 13195, 12426, 11703, 11021, 10379, 9775, 9206, 8669, 8165,
  7689, 7241, 6820, 6423, 6048, 5696, 5365, 5052, 4758, 4481, 4220, 3974, 3743, 3525, 3319, 3126, 2944, 2773, 2611,
  2459, 2316, 2181, 2054, 1934, 1822, 1716, 1616, 1522, 1433, 1350, 1271, 1197, 1127, 1062, 1000, 942, 887, 835, 786,
  741, 698, 657, 619, 583, 549, 517, 487,
};

TINYET_FUNCTION void concat_1(const void *in_0, const void *in_1, void *out) {
  tinyet_concat_part(in_0, out, 0u, 6u, 10u, 1u);
  tinyet_concat_part(in_1, out, 6u, 4u, 10u, 1u);
}

/* ---- kernel parameters ---- */

static const tinyet_linear_s8_params linear_0_params = {
  .rows = 1,
  .depth = 8,
  .out_count = 6,
  .weights = linear_0_weights,
  .bias = linear_0_bias,
  .multiplier = linear_0_multiplier,
  .shift = linear_0_shift,
  .out_zero_point = 4,
  .clamp_low = -128,
  .clamp_high = 127,
};

static const tinyet_softmax_s8_params softmax_2_params = {
  .shape = {
    .outer = 1,
    .depth = 10,
    .inner = 1,
  },
  .exponentials = softmax_2_exponentials,
  .count = 256,
};

/* ---- memory: one arena of 22 bytes; optimal (the lower bound)
 *
 *   offset    bytes   alive     tensor
 *        0       10   1..out    joined: int8[1x10] scale=0.0599999987 zero_point=4
 *        4        8   in..0     left: int8[1x8] scale=0.0599999987 zero_point=4
 *        4       12   in..1     x: int8[1x12] scale=0.0599999987 zero_point=4
 *       12        4   in..1     right: int8[1x4] scale=0.0599999987 zero_point=4
 *       12       10   2..out    probabilities: int8[1x10] scale=0.00390625 zero_point=-128
 *       16        6   0..1      mapped: int8[1x6] scale=0.0599999987 zero_point=4
 */
uint8_t branches_arena[BRANCHES_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

tinyet_status branches_run(void) {
  uint8_t *const arena = branches_arena;
  const int8_t *const x = branches_input_0();

  /* 0: linear 1x8 -> 1x6, 48 MACs
   * model.py:12: a = self.linear(a)
   */
  const int8_t *const left = x;
  int8_t *const mapped = (int8_t *)(arena + 16);
  TINYET_LAYER_BEGIN(0u);
  tinyet_linear_s8(left, mapped, &linear_0_params);
  TINYET_LAYER_END(0u);

  /* 1: concat 1x6 + 1x4 -> 1x10
   * model.py:13: y = torch.cat([a, b], 1)
   */
  const int8_t *const right = x + 8;
  int8_t *const joined = (int8_t *)(arena + 0);
  TINYET_LAYER_BEGIN(1u);
  concat_1(mapped, right, joined);
  TINYET_LAYER_END(1u);

  /* 2: softmax 1x10 -> 1x10
   * model.py:14: return y, F.softmax(y, -1)
   */
  int8_t *const probabilities = (int8_t *)(arena + 12);
  TINYET_LAYER_BEGIN(2u);
  tinyet_softmax_s8(joined, probabilities, &softmax_2_params);
  TINYET_LAYER_END(2u);

  return TINYET_OK;
}

void branches_set_input_0(const float *values) {
  int8_t *const input = branches_input_0();
  for (uint32_t i = 0; i < BRANCHES_INPUT_0_COUNT; i++) {
    input[i] = (int8_t)tinyet_quantize_value(values[i], BRANCHES_INPUT_0_SCALE, BRANCHES_INPUT_0_ZERO_POINT, -128, 127);
  }
}

void branches_get_output_0(float *values) {
  const int8_t *const output = branches_output_0();
  for (uint32_t i = 0; i < BRANCHES_OUTPUT_0_COUNT; i++) {
    values[i] = BRANCHES_OUTPUT_0_SCALE * (float)(output[i] - BRANCHES_OUTPUT_0_ZERO_POINT);
  }
}

void branches_get_output_1(float *values) {
  const int8_t *const output = branches_output_1();
  for (uint32_t i = 0; i < BRANCHES_OUTPUT_1_COUNT; i++) {
    values[i] = BRANCHES_OUTPUT_1_SCALE * (float)(output[i] - BRANCHES_OUTPUT_1_ZERO_POINT);
  }
}
