/* SPDX-License-Identifier: Apache-2.0 */
/* The platform of a sketch: Serial and micros(), which every Arduino core has. C++11. */
#include "tinyet_arduino.h"

#include <Arduino.h>

#ifndef TINYET_ARDUINO_BAUD
#define TINYET_ARDUINO_BAUD 115200ul
#endif

void tinyet_arduino_begin(void) {
  Serial.begin(TINYET_ARDUINO_BAUD);
  while (!Serial) {
    yield();
  }
}

/* Wherever it waits it yields: some cores move USB's data only then. */
size_t tinyet_platform_read(void *bytes, size_t n) {
  uint8_t *to = static_cast<uint8_t *>(bytes);
  for (size_t i = 0; i < n; i++) {
    int byte = Serial.read();
    while (byte < 0) {
      yield();
      byte = Serial.read();
    }
    to[i] = static_cast<uint8_t>(byte);
  }
  return n;
}

void tinyet_platform_write(const void *bytes, size_t n) {
  const uint8_t *from = static_cast<const uint8_t *>(bytes);
  while (n > 0u) {
    const size_t written = Serial.write(from, n);
    from += written;
    n -= written;
    if (n > 0u) {
      yield();
    }
  }
}

/* micros() comes back to 0 after 71 minutes, so that what has passed is added up from one reading to the next. */
static uint32_t last_reading;
static uint64_t microseconds;

uint64_t tinyet_platform_counter(void) {
  const uint32_t reading = static_cast<uint32_t>(micros());
  microseconds += static_cast<uint32_t>(reading - last_reading);
  last_reading = reading;
  return microseconds * 1000u;
}

void tinyet_platform_counter_restart(void) {
  last_reading = static_cast<uint32_t>(micros());
  microseconds = 0u;
}

void tinyet_platform_abort(void) {
  Serial.flush();
  for (;;) {
    yield();
  }
}
