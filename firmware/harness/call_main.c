/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_call_server.h"

int main(void) {
  while (tinyet_call_serve() != 0) {
  }
  return 0;
}
