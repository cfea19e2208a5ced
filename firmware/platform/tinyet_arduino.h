/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tinyet_platform.h over the Arduino API: the stream is Serial, the counter is micros().
 *
 * A sketch that serves a model to a host:
 *
 *   TINYET_ARDUINO_FACTS(number of the model's layers and events);
 *   void setup() { tinyet_arduino_begin(); }
 *   void loop() { tinyet_harness_serve(); }
 */
#ifndef TINYET_ARDUINO_H
#define TINYET_ARDUINO_H

#include "tinyet_platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens Serial; on a board whose USB port is its own, waits until a host has opened the other end. */
void tinyet_arduino_begin(void);

#ifdef __cplusplus
}

/* Defines the facts of the board, in one C++ file of a sketch. Arduino says neither where the stack is nor where RAM is
 * free, so the harness gets an array for what it counts: an entry for each layer; it asks for at least 8. */
#define TINYET_ARDUINO_FACTS(layers)                                                                      \
  static tinyet_tally tinyet_arduino_tallies[(layers) > 8 ? (layers) : 8] __attribute__((aligned(8)));    \
  const tinyet_platform_facts tinyet_platform = {                                                         \
      NULL,                                                                                               \
      NULL,                                                                                               \
      reinterpret_cast<uint8_t *>(tinyet_arduino_tallies),                                                \
      reinterpret_cast<uint8_t *>(tinyet_arduino_tallies) + sizeof tinyet_arduino_tallies,                \
      TINYET_COUNTER_NANOSECONDS,                                                                         \
      1000000000u,                                                                                        \
      0u,                                                                                                 \
      0u,                                                                                                 \
  }
#endif

#endif
