/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PRINT_H
#define PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

class __FlashStringHelper;
#define F(text) (reinterpret_cast<const __FlashStringHelper *>(text))

#define DEC 10
#define HEX 16

class Print {
public:
  virtual size_t write(uint8_t byte) = 0;
  virtual size_t write(const uint8_t *bytes, size_t n);
  size_t write(const char *text) { return write(reinterpret_cast<const uint8_t *>(text), strlen(text)); }
  size_t write(const char *bytes, size_t n) { return write(reinterpret_cast<const uint8_t *>(bytes), n); }
  virtual int availableForWrite() { return 0; }
  virtual void flush() {}

  size_t print(const __FlashStringHelper *text) { return write(reinterpret_cast<const char *>(text)); }
  size_t print(const char text[]) { return write(text); }
  size_t print(char c) { return write(static_cast<uint8_t>(c)); }
  size_t print(unsigned char value, int base = DEC) { return print(static_cast<unsigned long>(value), base); }
  size_t print(int value, int base = DEC) { return print(static_cast<long>(value), base); }
  size_t print(unsigned int value, int base = DEC) { return print(static_cast<unsigned long>(value), base); }
  size_t print(long value, int base = DEC);
  size_t print(unsigned long value, int base = DEC);

  size_t println() { return write("\r\n"); }
  size_t println(const __FlashStringHelper *text) { return print(text) + println(); }
  size_t println(const char text[]) { return print(text) + println(); }
  size_t println(int value, int base = DEC) { return print(value, base) + println(); }
  size_t println(long value, int base = DEC) { return print(value, base) + println(); }
  size_t println(unsigned long value, int base = DEC) { return print(value, base) + println(); }
};

#endif
