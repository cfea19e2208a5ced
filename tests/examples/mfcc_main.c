/* SPDX-License-Identifier: Apache-2.0 */
/* The front end of the keyword spotter on the sounds of sounds.h: writes the cepstra, as they lie in memory. */
#include "mfcc.h"
#include "sounds.h"
#include "tinyet_platform.h"

int main(void) {
  static int16_t cepstra[MFCC_FRAMES * MFCC_CEPSTRA];
  static mfcc_workspace workspace;
  for (uint32_t i = 0; i < sizeof sounds / sizeof *sounds; i++) {
    mfcc(sounds[i], cepstra, &workspace);
    tinyet_platform_write(cepstra, sizeof cepstra);
  }
  return 0;
}
