/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_move.h"

void tinyet_move_b8(const void *input, void *output, const tinyet_move_params *params) {
  TINYET_MOVE_BODY(uint8_t, input, output, params);
}
