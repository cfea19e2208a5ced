/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a microphone's buffer to a word: cepstra (mfcc.c), the network, and what it heard over the serial port.
 *
 * demo.py puts this file in place of the generated src/main.c, with the recordings of setup.h where a real board has
 * its microphone.
 */
#include <stdint.h>
#include <string.h>

#include "keyword_spotting.h"
#include "mfcc.h"
#include "setup.h" /* written by demo.py: recordings, mean and scale of the features */
#include "tinyet_platform.h"

_Static_assert(KEYWORD_SPOTTING_INPUT_0_COUNT == MFCC_FRAMES * MFCC_CEPSTRA, "the network takes other features");
static const char *const class_names[] = KEYWORD_SPOTTING_LABELS;

static int16_t cepstra[MFCC_FRAMES * MFCC_CEPSTRA];
static float features[MFCC_FRAMES * MFCC_CEPSTRA];
static mfcc_workspace workspace;

/* The next second of sound, or NULL when there is none. On a real board: wait until the driver of the microphone (I2S
 * or PDM, with DMA into two buffers in turn) has filled one, and return that. */
static const int16_t *listen(void) {
  static uint32_t next;
  return next < sizeof recordings / sizeof *recordings ? recordings[next++] : NULL;
}

/* Every coefficient about as large as the others. One rounding each: the same on any core, with or without an FPU. */
static void normalise(void) {
  for (uint32_t i = 0; i < MFCC_FRAMES * MFCC_CEPSTRA; i++) {
    const uint32_t n = i % MFCC_CEPSTRA;
    features[i] = (float)(cepstra[i] - feature_mean[n]) * feature_scale[n];
  }
}

static void print(const char *text) { tinyet_platform_write(text, strlen(text)); }

static void print_integer(int32_t value) {
  char digits[11];
  size_t at = sizeof digits;
  uint32_t rest = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
  do {
    digits[--at] = (char)('0' + (char)(rest % 10u));
    rest /= 10u;
  } while (rest != 0u);
  if (value < 0) {
    digits[--at] = '-';
  }
  tinyet_platform_write(digits + at, sizeof digits - at);
}

/* A line of a word and its numbers. */
static void print_line(const char *word, const int16_t *values, uint32_t count) {
  print(word);
  for (uint32_t i = 0; i < count; i++) {
    print(" ");
    print_integer(values[i]);
  }
  print("\n");
}

static void report(uint32_t front_end_ticks, uint32_t network_ticks) {
  const int8_t *const scores = keyword_spotting_output_0();
  int16_t shown[KEYWORD_SPOTTING_OUTPUT_0_COUNT];
  uint32_t best = 0;
  for (uint32_t i = 0; i < KEYWORD_SPOTTING_OUTPUT_0_COUNT; i++) {
    shown[i] = scores[i];
    best = scores[i] > scores[best] ? i : best;
  }
  print("heard ");
  print(class_names[best]);
  print("\n");
  print_line("scores", shown, KEYWORD_SPOTTING_OUTPUT_0_COUNT);
  print("ticks ");
  print_integer((int32_t)front_end_ticks);
  print(" ");
  print_integer((int32_t)network_ticks);
  print("\n");
  /* For whoever checks the front end; a product would leave this out. */
  print_line("cepstra", cepstra, MFCC_FRAMES * MFCC_CEPSTRA);
}

int main(void) {
  const int16_t *microphone;
  while ((microphone = listen()) != NULL) {
    tinyet_platform_counter_restart();
    mfcc(microphone, cepstra, &workspace);
    const uint64_t front_end = tinyet_platform_counter();
    tinyet_platform_counter_restart();
    normalise();
    keyword_spotting_set_input_0(features);
    if (keyword_spotting_run() != TINYET_OK) {
      print("failed\n");
      tinyet_platform_abort();
    }
    report((uint32_t)front_end, (uint32_t)tinyet_platform_counter());
  }
  print("done\n");
  return 0;
}
