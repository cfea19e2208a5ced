/* SPDX-License-Identifier: Apache-2.0 */
/* No UART: the stream is the console of whoever holds the core, an emulator or a debugger, which copies blocks of bytes by
 * semihosting. Without one of them a request is a fault. */
#include <string.h>

#include "tinyet_board.h"

#define BUFFER_BYTES 256u
#define STDIN 0u
#define STDOUT 1u

/* Bytes that wait here: those of in from in_at to in_end, and out_used of out. */
static uint8_t in[BUFFER_BYTES], out[BUFFER_BYTES];
static uint32_t in_at, in_end, out_used;

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
static uint32_t read_some(void) {
  const uint32_t n = request(SYS_READ, STDIN, in, sizeof in);
  return n <= sizeof in ? n : 0u;
}

static void write_all(void) { (void)request(SYS_WRITE, STDOUT, out, out_used); }

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
static uint32_t read_some(void) {
  const uintptr_t block[3] = {handles[STDIN], (uintptr_t)in, sizeof in};
  const uintptr_t missing = request(SYS_READ, block);
  return missing <= sizeof in ? (uint32_t)(sizeof in - missing) : 0u;
}

static void write_all(void) {
  const uintptr_t block[3] = {handles[STDOUT], (uintptr_t)out, out_used};
  (void)request(SYS_WRITE, block);
}

static void leave(void) { (void)request(SYS_EXIT, (const void *)(uintptr_t)APPLICATION_EXIT); }
#endif

void tinyet_uart_init(void) { open_console(); }

static void flush(void) {
  if (out_used > 0u) {
    write_all();
    out_used = 0u;
  }
}

uint8_t tinyet_uart_get(void) {
  if (in_at == in_end) {
    flush();
    in_at = 0u;
    in_end = read_some();
    while (in_end == 0u) {
      leave();
    }
  }
  return in[in_at++];
}

void tinyet_uart_put(uint8_t byte) {
  if (out_used == sizeof out) {
    flush();
  }
  out[out_used++] = byte;
}
