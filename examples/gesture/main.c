/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gestures from a stream of accelerations: a sliding window, the network, and what it saw over the serial port.
 *
 * demo.py puts this file in place of the generated src/main.c, with the recording of setup.h where a real board has its
 * sensor: read_sensor() is what you change.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gesture.h"
#include "setup.h" /* written by demo.py: the recording, counts in a g */
#include "tinyet_platform.h"

#define AXES 3u
#define WINDOW (GESTURE_INPUT_0_COUNT / AXES)
#define HOP 32u /* new samples for each answer: three a second */

static const char *const class_names[] = GESTURE_LABELS;

/* Where the sensor code goes. Waits for the next sample, 100 of which come in a second, and gives its raw x, y and z;
 * false when there will be no more, which is true of a recording only. With an accelerometer on I2C or SPI:
 *
 *   while (!data_ready) {              // set by the interrupt of the sensor's DRDY pin
 *     __WFI();                         // the core sleeps meanwhile
 *   }
 *   data_ready = false;
 *   i2c_read(SENSOR, OUT_X_L, xyz, 6); // raw counts, as they are
 */
static bool read_sensor(int16_t xyz[AXES]) {
  static uint32_t next;
  if (next == sizeof recording / sizeof *recording) {
    return false;
  }
  memcpy(xyz, recording[next++], AXES * sizeof *xyz);
  return true;
}

static int16_t window[AXES][WINDOW]; /* the newest sample is the last */

/* Lets HOP samples more into the window; false at the end. */
static bool advance(void) {
  for (uint32_t axis = 0; axis < AXES; axis++) {
    memmove(window[axis], window[axis] + HOP, (WINDOW - HOP) * sizeof **window);
  }
  for (uint32_t i = WINDOW - HOP; i < WINDOW; i++) {
    int16_t xyz[AXES];
    if (!read_sensor(xyz)) {
      return false;
    }
    for (uint32_t axis = 0; axis < AXES; axis++) {
      window[axis][i] = xyz[axis];
    }
  }
  return true;
}

/* The window in g, as the network was trained: (3, 128), one axis after the other. */
static void set_input(void) {
  static float g[GESTURE_INPUT_0_COUNT];
  for (uint32_t i = 0; i < GESTURE_INPUT_0_COUNT; i++) {
    g[i] = (float)window[i / WINDOW][i % WINDOW] / COUNTS_A_G;
  }
  gesture_set_input_0(g);
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

/* A line: the likeliest class, and the scores of all. */
static void report(void) {
  const int8_t *const scores = gesture_output_0();
  uint32_t best = 0;
  for (uint32_t i = 1; i < GESTURE_OUTPUT_0_COUNT; i++) {
    best = scores[i] > scores[best] ? i : best;
  }
  print(class_names[best]);
  for (uint32_t i = 0; i < GESTURE_OUTPUT_0_COUNT; i++) {
    print(" ");
    print_integer(scores[i]);
  }
  print("\n");
}

int main(void) {
  uint32_t hops = 0;
  while (advance()) {
    if (++hops * HOP < WINDOW) {
      continue; /* the window is not full yet */
    }
    set_input();
    if (gesture_run() != TINYET_OK) {
      print("failed\n");
      tinyet_platform_abort();
    }
    report();
  }
  print("done\n");
  return 0;
}
