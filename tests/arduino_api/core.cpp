/* SPDX-License-Identifier: Apache-2.0 */
/* A core: start-up code, time, Serial, and the main() that calls the sketch. The build defines TINYET_CLOCK_HZ and
 * TINYET_UART_BASE. */
#include <Arduino.h>

static volatile uint32_t &reg(uintptr_t address) { return *reinterpret_cast<volatile uint32_t *>(address); }

/* ---- start ---- */

extern "C" {
extern uint8_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[], __stack_top[];
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
__attribute__((noreturn)) void Reset_Handler(void);
__attribute__((noreturn)) void Fault_Handler(void);
void SysTick_Handler(void);
int main(void);
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    reinterpret_cast<vector>(__stack_top),
    Reset_Handler,
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    nullptr,
    nullptr,
    nullptr,
    Fault_Handler,
    Fault_Handler,
    nullptr,
    Fault_Handler,
    SysTick_Handler,
};

void Reset_Handler(void) {
#if defined(__ARM_FP)
  reg(0xE000ED88u) |= 0xFu << 20;
  __asm volatile("dsb\n\tisb" ::: "memory");
#endif
  memcpy(__data_start, __data_load, static_cast<size_t>(__data_end - __data_start));
  memset(__bss_start, 0, static_cast<size_t>(__bss_end - __bss_start));
  for (vector *init = __init_array_start; init < __init_array_end; init++) {
    (*init)();
  }
  main();
  Fault_Handler();
}

void Fault_Handler(void) {
  for (;;) {
  }
}

/* ---- time: SysTick's interrupt each millisecond ---- */

static volatile uint32_t milliseconds;
static const uint32_t period = TINYET_CLOCK_HZ / 1000u;

void SysTick_Handler(void) { milliseconds = milliseconds + 1u; }

static void start_time() {
  reg(0xE000E014u) = period - 1u;
  reg(0xE000E018u) = 0u;
  reg(0xE000E010u) = 7u;
}

unsigned long millis(void) { return milliseconds; }

unsigned long micros(void) {
  uint32_t before, ticks;
  do {
    before = milliseconds;
    ticks = period - 1u - reg(0xE000E018u);
  } while (before != milliseconds);
  return before * 1000u + ticks / (TINYET_CLOCK_HZ / 1000000u);
}

void delay(unsigned long wait) {
  const uint32_t began = milliseconds;
  while (milliseconds - began < wait) {
    yield();
  }
}

void yield(void) {}

/* ---- Serial ---- */

#define UART_DATA reg(TINYET_UART_BASE)
#define UART_STATE reg(TINYET_UART_BASE + 4u)
#define TX_FULL 1u
#define RX_FULL 2u

HardwareSerial Serial;

void HardwareSerial::begin(unsigned long baud) {
  reg(TINYET_UART_BASE + 0x10u) = TINYET_CLOCK_HZ / baud;
  reg(TINYET_UART_BASE + 8u) = 3u;
  ready_at = millis() + 5u;
}

HardwareSerial::operator bool() { return ready_at != 0u && millis() >= ready_at; }

int HardwareSerial::available() { return ahead != 0 || (UART_STATE & RX_FULL) != 0u ? 1 : 0; }

int HardwareSerial::peek() {
  if (ahead == 0 && (UART_STATE & RX_FULL) != 0u) {
    ahead = static_cast<int>(UART_DATA & 0xFFu) + 1;
  }
  return ahead - 1;
}

int HardwareSerial::read() {
  const int byte = peek();
  ahead = 0;
  return byte;
}

size_t HardwareSerial::write(uint8_t byte) {
  while ((UART_STATE & TX_FULL) != 0u) {
  }
  UART_DATA = byte;
  return 1u;
}

size_t HardwareSerial::write(const uint8_t *bytes, size_t n) {
  const size_t part = min(n, static_cast<size_t>(64u));
  return Print::write(bytes, part);
}

/* ---- Print ---- */

size_t Print::write(const uint8_t *bytes, size_t n) {
  for (size_t i = 0u; i < n; i++) {
    write(bytes[i]);
  }
  return n;
}

size_t Print::print(long value, int base) {
  const bool negative = base == DEC && value < 0;
  const unsigned long size = negative ? 0ul - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
  return (negative ? print('-') : 0u) + print(size, base);
}

size_t Print::print(unsigned long value, int base) {
  char digits[8 * sizeof value];
  size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789ABCDEF"[value % static_cast<unsigned long>(base)];
    value /= static_cast<unsigned long>(base);
  } while (value != 0u);
  return write(digits + at, sizeof digits - at);
}

int main(void) {
  start_time();
  setup();
  for (;;) {
    loop();
  }
}
