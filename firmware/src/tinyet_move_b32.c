/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_move.h"

typedef uint32_t __attribute__((may_alias)) element;

void tinyet_move_b32(const void *input, void *output, const tinyet_move_params *params) {
  TINYET_MOVE_BODY(element, input, output, params);
}
