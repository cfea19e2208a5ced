/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARDWARE_SERIAL_H
#define HARDWARE_SERIAL_H

#include "Stream.h"

/* As a USB port of the board's own: it is ready a while after begin() only, and takes 64 bytes at a time. */
class HardwareSerial : public Stream {
public:
  void begin(unsigned long baud);
  void end() {}
  int available() override;
  int read() override;
  int peek() override;
  size_t write(uint8_t byte) override;
  size_t write(const uint8_t *bytes, size_t n) override;
  using Print::write;
  operator bool();

private:
  unsigned long ready_at;
  int ahead; /* the byte that peek() has seen, plus 1; or 0 */
};

extern HardwareSerial Serial;

#endif
