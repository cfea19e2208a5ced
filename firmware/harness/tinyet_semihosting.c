/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's stream in QEMU: blocks of bytes, copied from and to the host's own streams by semihosting. A byte of an
 * emulated UART takes a hundred times as long. On a board, and in other emulators, the stream is that of the platform:
 * there, a request of semihosting would be a fault. */
#include <stdbool.h>
#include <string.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

#define STDIN 0u
#define STDOUT 1u

/* 0 in the file. The host starts QEMU with a copy in which it is not (tinyet/device/qemu.py). */
extern const volatile uint32_t tinyet_semihosting;
const volatile uint32_t tinyet_semihosting = 0u;

#if defined(__XTENSA__)
#define SYS_EXIT 1u
#define SYS_READ 3u
#define SYS_WRITE 4u

/* Tensilica's simulator calls. */
static uint32_t request(uint32_t number, uint32_t handle, void *bytes, uint32_t n) {
  register uint32_t a2 __asm("a2") = number;
  register uint32_t a3 __asm("a3") = handle;
  register void *a4 __asm("a4") = bytes;
  register uint32_t a5 __asm("a5") = n;
  __asm volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
  return a2;
}

static void open_console(void) {}

/* How many bytes were read; 0: there will be no more. */
static size_t read_some(uint8_t *to, size_t n) {
  const uint32_t got = request(SYS_READ, STDIN, to, n);
  return got <= n ? got : 0u;
}

static void write_all(const void *from, size_t n) { (void)request(SYS_WRITE, STDOUT, (void *)(uintptr_t)from, n); }

static void leave(void) { (void)request(SYS_EXIT, 0u, NULL, 0u); }
#else
#define SYS_OPEN 0x01u
#define SYS_WRITE 0x05u
#define SYS_READ 0x06u
#define SYS_EXIT 0x18u
#define APPLICATION_EXIT 0x20026u

static uintptr_t handles[2];

/* Arm's semihosting, which RISC-V has taken over. */
static uintptr_t request(uintptr_t number, const void *block) {
#if defined(__riscv)
  register uintptr_t a0 __asm("a0") = number;
  register const void *a1 __asm("a1") = block;
  __asm volatile(
      ".option push\n\t.option norvc\n\t.balign 16\n\t"
      "slli zero, zero, 0x1f\n\tebreak\n\tsrai zero, zero, 7\n\t"
      ".option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
#else
  register uintptr_t r0 __asm("r0") = number;
  register const void *r1 __asm("r1") = block;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

static void open_console(void) {
  static const char *const names[2] = {"/dev/stdin", "/dev/stdout"};
  static const uintptr_t modes[2] = {1u, 5u}; /* "rb", "wb" */
  for (uint32_t i = 0u; i < 2u; i++) {
    const uintptr_t block[3] = {(uintptr_t)names[i], modes[i], strlen(names[i])};
    handles[i] = request(SYS_OPEN, block);
  }
}

/* How many bytes were read; 0: there will be no more. */
static size_t read_some(uint8_t *to, size_t n) {
  const uintptr_t block[3] = {handles[STDIN], (uintptr_t)to, n};
  const uintptr_t missing = request(SYS_READ, block);
  return missing <= n ? n - missing : 0u;
}

static void write_all(const void *from, size_t n) {
  const uintptr_t block[3] = {handles[STDOUT], (uintptr_t)from, n};
  (void)request(SYS_WRITE, block);
}

static void leave(void) { (void)request(SYS_EXIT, (const void *)(uintptr_t)APPLICATION_EXIT); }
#endif

static void open_once(void) {
  static bool is_open = false;
  if (!is_open) {
    open_console();
    is_open = true;
  }
}

size_t tinyet_harness_read(void *bytes, size_t n) {
  if (tinyet_semihosting == 0u) {
    return tinyet_platform_read(bytes, n);
  }
  open_once();
  uint8_t *to = (uint8_t *)bytes;
  size_t done = 0u;
  while (done < n) {
    const size_t got = read_some(to + done, n - done);
    if (got == 0u) {
      leave();
    }
    done += got;
  }
  return n;
}

void tinyet_harness_write(const void *bytes, size_t n) {
  if (tinyet_semihosting == 0u) {
    tinyet_platform_write(bytes, n);
    return;
  }
  open_once();
  write_all(bytes, n);
}
