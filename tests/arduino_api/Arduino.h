/* SPDX-License-Identifier: Apache-2.0 */
/* As much of the Arduino API as a sketch of a generated library may use, with the signatures and macros that real cores
 * have, for boards with a CMSDK UART and SysTick, which QEMU has. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "avr/pgmspace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef bool boolean;
typedef uint8_t byte;
typedef uint16_t word;

unsigned long millis(void);
unsigned long micros(void);
void delay(unsigned long milliseconds);
void yield(void);
void setup(void);
void loop(void);

#ifdef __cplusplus
}
#endif

/* Cores define these, too, whatever a library's own names may be. */
#define HIGH 0x1
#define LOW 0x0
#define INPUT 0x0
#define OUTPUT 0x1
#define DEFAULT 1
#define PI 3.1415926535897932384626433832795
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define abs(x) ((x) > 0 ? (x) : -(x))
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define sq(x) ((x) * (x))
#define bit(b) (1UL << (b))
#define interrupts() __asm volatile("cpsie i" ::: "memory")
#define noInterrupts() __asm volatile("cpsid i" ::: "memory")

#ifdef __cplusplus
#include "HardwareSerial.h"
#endif

#endif
