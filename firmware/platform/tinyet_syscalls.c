/* SPDX-License-Identifier: Apache-2.0 */
/* What newlib asks of the system: output goes to the board's stream, the heap lies in the free RAM, no files. */
#include <errno.h>
#include <sys/stat.h>

#include "tinyet_platform.h"

void *_sbrk(int increment);
int _write(int file, const char *bytes, int n);
int _read(int file, char *bytes, int n);
int _close(int file);
int _fstat(int file, struct stat *status);
int _isatty(int file);
int _lseek(int file, int offset, int whence);
int _kill(int process, int signal);
int _getpid(void);
void _exit(int code) __attribute__((noreturn));
void _init(void);
void _fini(void);

void *_sbrk(int increment) {
  static uint8_t *end;
  if (end == NULL) {
    end = tinyet_platform.free_begin;
  }
  if (increment > tinyet_platform.free_end - end || increment < tinyet_platform.free_begin - end) {
    errno = ENOMEM;
    return (void *)-1;
  }
  uint8_t *begin = end;
  end += increment;
  return begin;
}

int _write(int file, const char *bytes, int n) {
  (void)file;
  tinyet_platform_write(bytes, (size_t)n);
  return n;
}

int _read(int file, char *bytes, int n) {
  (void)file;
  return n > 0 ? (int)tinyet_platform_read(bytes, 1u) : 0;
}

int _close(int file) {
  (void)file;
  return -1;
}

int _fstat(int file, struct stat *status) {
  (void)file;
  status->st_mode = S_IFCHR;
  return 0;
}

int _isatty(int file) {
  (void)file;
  return 1;
}

int _lseek(int file, int offset, int whence) {
  (void)file;
  (void)offset;
  (void)whence;
  return 0;
}

int _kill(int process, int signal) {
  (void)process;
  (void)signal;
  tinyet_platform_abort();
}

int _getpid(void) { return 1; }

void _exit(int code) {
  (void)code;
  tinyet_platform_abort();
}

void _init(void) {}

void _fini(void) {}
