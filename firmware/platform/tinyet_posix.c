/* SPDX-License-Identifier: Apache-2.0 */
/* The platform of a POSIX process: the stream is standard input and output, the counter is the clock. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tinyet_platform.h"

static uint8_t free_memory[1u << 20];
static uint64_t started;

const tinyet_platform_facts tinyet_platform = {
    NULL, NULL, free_memory, free_memory + sizeof free_memory, TINYET_COUNTER_NANOSECONDS, 1000000000u, 0u, 0u,
};

size_t tinyet_platform_read(void *bytes, size_t n) {
  static uint8_t buffer[4096];
  static size_t begin;
  static size_t end;
  uint8_t *to = (uint8_t *)bytes;
  size_t done = 0u;
  while (done < n) {
    if (begin == end) {
      const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        break;
      }
      begin = 0u;
      end = (size_t)got;
    }
    const size_t part = n - done < end - begin ? n - done : end - begin;
    memcpy(to + done, buffer + begin, part);
    begin += part;
    done += part;
  }
  return done;
}

void tinyet_platform_write(const void *bytes, size_t n) {
  const uint8_t *from = (const uint8_t *)bytes;
  while (n > 0u) {
    const ssize_t put = write(STDOUT_FILENO, from, n);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      abort();
    }
    from += put;
    n -= (size_t)put;
  }
}

static uint64_t now(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) {
    abort();
  }
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void tinyet_platform_counter_restart(void) { started = now(); }

uint64_t tinyet_platform_counter(void) { return now() - started; }

void tinyet_platform_abort(void) { abort(); }
