/* SPDX-License-Identifier: Apache-2.0 */
/* What picolibc asks of the system: its standard streams are the board's stream, unbuffered. There are no files, and the
 * heap lies between two symbols of the linker script. */
#include <stdio.h>
#include <stdlib.h>

#include "tinyet_platform.h"

static int put(char character, FILE *file) {
  (void)file;
  tinyet_platform_write(&character, 1u);
  return (unsigned char)character;
}

static int get(FILE *file) {
  (void)file;
  unsigned char character;
  (void)tinyet_platform_read(&character, 1u);
  return character;
}

static FILE stream = FDEV_SETUP_STREAM(put, get, NULL, _FDEV_SETUP_RW);

FILE *const stdin = &stream;
FILE *const stdout = &stream;
FILE *const stderr = &stream;

void _exit(int code) {
  (void)code;
  tinyet_platform_abort();
}
