/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small network listens all the time, and wakes a large one. They share one arena: what either leaves there is gone when the other
 * runs, so the second of sound stays in a buffer of the application's.
 *
 * demo.py puts this file in place of the generated src/main.c, with the seconds of setup.h where a real board has its microphone.
 */
#include <stdint.h>
#include <string.h>

#include "cascade.h" /* both models */
#include "setup.h"   /* written by demo.py: windows */
#include "tinyet_platform.h"

_Static_assert(WAKE_INPUT_0_COUNT == KEYWORDS_INPUT_0_COUNT, "both networks take the same features");
static const char *const class_names[] = KEYWORDS_LABELS;

static void print(const char *text) { tinyet_platform_write(text, strlen(text)); }

/* The word that is said in a second of sound; NULL where nobody speaks, or a run has failed. */
static const char *hear(const float *window) {
  float speech;
  wake_set_input_0(window);
  if (wake_run() != TINYET_OK) {
    return NULL;
  }
  wake_get_output_0(&speech);
  if (!(speech > 0.0f)) {
    return NULL; /* the large network has not run */
  }
  keywords_set_input_0(window);
  if (keywords_run() != TINYET_OK) {
    return NULL;
  }
  const int8_t *const scores = keywords_output_0();
  uint32_t best = 0u;
  for (uint32_t i = 1u; i < KEYWORDS_OUTPUT_0_COUNT; i++) {
    best = scores[i] > scores[best] ? i : best;
  }
  return class_names[best];
}

int main(void) {
  for (uint32_t second = 0u; second < WINDOWS; second++) {
    const char *const word = hear(windows[second]);
    print(word == NULL ? "asleep" : word);
    print("\n");
  }
  print("done\n");
  return 0;
}
