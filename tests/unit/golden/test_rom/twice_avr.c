/* twice
 */
#include "twice.h"

#include "twice_kernels.h"
#include "tinyet_binary.h"
#include "tinyet_broadcast.h"
#include "tinyet_linear.h"

/* ---- weights and tables: 192 bytes ---- */

/* 6x6 */
static const TINYET_ROM float linear_0_weights[36] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -0.49609375f, -0.3359375f, -0.17578125f, -0.015625f, 0.14453125f, 0.3046875f, 0.46484375f, -0.37109375f,
  -0.2109375f, -0.05078125f, 0.109375f, 0.26953125f, 0.4296875f, -0.40625f, -0.24609375f, -0.0859375f, 0.07421875f,
  0.234375f, 0.39453125f, -0.44140625f, -0.28125f, -0.12109375f, 0.0390625f, 0.19921875f, 0.359375f, -0.4765625f,
  -0.31640625f, -0.15625f, 0.00390625f, 0.1640625f, 0.32421875f, 0.484375f, -0.3515625f, -0.19140625f, -0.03125f,
  0.12890625f,
};

/* 6 */
static const TINYET_ROM float linear_0_bias[6] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -0.49609375f, -0.4296875f, -0.36328125f, -0.296875f, -0.23046875f, -0.1640625f,
};

/* 6 bias */
static const float add_3_input_1[6] TINYET_ALIGNED(4) TINYET_WEIGHTS_PLACE = {
  -0.49609375f, -0.4296875f, -0.36328125f, -0.296875f, -0.23046875f, -0.1640625f,
};

/* ---- kernel parameters ---- */

static const TINYET_ROM tinyet_linear_f32_params linear_0_params = {
  .rows = 1,
  .depth = 6,
  .out_count = 6,
  .weights = linear_0_weights,
  .bias = linear_0_bias,
  .clamp_low = -TINYET_INFINITY,
  .clamp_high = TINYET_INFINITY,
};

static const TINYET_ROM tinyet_binary_f32_params add_3_params = {
  .shape = {
    .row = 6,
    .a_step = 1,
    .b_step = 1,
    .loops = 0,
    .size = {0, 0, 0, 0, 0},
    .a_jump = {0, 0, 0, 0, 0},
    .b_jump = {0, 0, 0, 0, 0},
  },
  .clamp_low = -TINYET_INFINITY,
  .clamp_high = TINYET_INFINITY,
};

/* ---- memory: one arena of 48 bytes; optimal (the lower bound)
 *
 *   offset    bytes   alive     tensor
 *        0       24   in..0     x: float32[1x6]
 *        0       24   1..2      y1_: float32[1x6]
 *       24       24   0..1      y0_: float32[1x6]
 *       24       24   2..3      y2: float32[1x6]
 *       24       24   3..out    z: float32[1x6]
 */
uint8_t twice_arena[TWICE_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

tinyet_status twice_run(void) {
  uint8_t *const arena = twice_arena;
  const float *const x = twice_input_0();

  /* 0: linear 1x6 -> 1x6, 36 MACs
   * model.py:10: y = self.linear(y)
   */
  float *const y0_ = (float *)(void *)(arena + 24);
  TINYET_LAYER_BEGIN(0u);
  {
    const tinyet_linear_f32_params params = linear_0_params;
    tinyet_linear_f32(x, y0_, &params);
  }
  TINYET_LAYER_END(0u);

  /* 1: linear 1x6 -> 1x6, 36 MACs
   * model.py:11: y = self.linear(y)
   */
  float *const y1_ = (float *)(void *)(arena + 0);
  TINYET_LAYER_BEGIN(1u);
  {
    const tinyet_linear_f32_params params = linear_0_params;
    tinyet_linear_f32(y0_, y1_, &params);
  }
  TINYET_LAYER_END(1u);

  /* 2: linear 1x6 -> 1x6, 36 MACs
   * model.py:12: y = self.linear(y)
   */
  float *const y2 = (float *)(void *)(arena + 24);
  TINYET_LAYER_BEGIN(2u);
  {
    const tinyet_linear_f32_params params = linear_0_params;
    tinyet_linear_f32(y1_, y2, &params);
  }
  TINYET_LAYER_END(2u);

  /* 3: add 1x6 -> 1x6
   * model.py:13: return y + self.linear.bias
   */
  float *const z = (float *)(void *)(arena + 24);
  TINYET_LAYER_BEGIN(3u);
  {
    const tinyet_binary_f32_params params = add_3_params;
    tinyet_add_f32(y2, add_3_input_1, z, &params);
  }
  TINYET_LAYER_END(3u);

  return TINYET_OK;
}
