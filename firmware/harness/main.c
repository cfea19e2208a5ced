/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_harness.h"

int main(void) {
  tinyet_harness_serve();
  return 0;
}
