/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of kernel calls, over any stream of bytes. The other side is tinyet/device/calls.py. All numbers are u32,
 * little-endian. A request and its answer begin with a magic number and the number of bytes that follow.
 *
 *   LAYOUTS  -> bytes of a pointer, number of functions, hash of their table, bytes of memory (0: a block each), number of
 *               u16 that follow; those of tinyet_call_layouts
 *   CALLS    numbers of blocks, pointers and calls
 *            of each block: bytes, where it lies in the memory, flags; if FILLED its bytes
 *            of each pointer: block and offset where it is written; block and offset of what it points at
 *            of each call: number of the function, number of arguments; of each argument a block and an offset, or NO_BLOCK
 *            and 32 bits of a number
 *         -> i32 status, u32 calls that were made, u32 bytes of stack of the one that took most (0: not known); of each
 *            block that is to be RETURNED its bytes
 *   ERROR    -> u32 reason
 *
 * Calls are made in their order, up to the first whose status is not TINYET_OK. What a request does not fill holds a
 * pattern. Nothing is kept from one request to the next.
 *
 * On a board all blocks lie in the free RAM, where the host says. With TINYET_CALL_SEPARATE each has memory of its own
 * of exactly its size, so that an address sanitizer sees every access beside one.
 */
#include "tinyet_call_server.h"

#include <stdbool.h>
#include <stddef.h>
#if defined(TINYET_CALL_SEPARATE)
#include <stdlib.h>
#endif

#include "tinyet_harness.h"
#include "tinyet_platform.h"

#define MAGIC 0x4C4C4143u /* "CALL" */
#define NO_BLOCK 0xFFFFFFFFu
#define FILLED 1u
#define RETURNED 2u
#define PATTERN 0xA5

enum { LAYOUTS = 1, CALLS = 2, ERROR = 3 };

enum {
  BAD_REQUEST = 1, /* it asks for what is not there, or has another length than it says */
  NO_MEMORY = 2,   /* a block lies outside the memory */
};

enum { MOST_BLOCKS = 96, MOST_ARGUMENTS = 32 };

#define STACK_PATTERN 0xA55A3CC3u

#if defined(__arm__)
#define READ_STACK_POINTER "mov %0, sp"
#elif defined(__riscv)
#define READ_STACK_POINTER "mv %0, sp"
#elif defined(__XTENSA_CALL0_ABI__)
#define READ_STACK_POINTER "mov %0, a1"
#endif

typedef struct {
  uint8_t *memory;
  uint32_t bytes;
  uint32_t flags;
} block;

/* Where no file of the firmware carries the stream. */
__attribute__((weak)) size_t tinyet_harness_read(void *bytes, size_t n) { return tinyet_platform_read(bytes, n); }
__attribute__((weak)) void tinyet_harness_write(const void *bytes, size_t n) { tinyet_platform_write(bytes, n); }

static block blocks[MOST_BLOCKS];
static uint32_t num_blocks;
static uint32_t left;   /* bytes of the request that are still to be read */
static bool over;       /* the stream has ended */
static uint32_t reason; /* why the request is refused; 0: it is not */
static uint32_t stack_bytes;

static void get(void *bytes, uint32_t n) {
  if (n > left) {
    reason = BAD_REQUEST;
    memset(bytes, 0, n);
    return;
  }
  left -= n;
  over = over || tinyet_harness_read(bytes, n) != n;
}

static uint32_t get_u32(void) {
  uint32_t value = 0u;
  get(&value, sizeof value);
  return value;
}

/* Begins an answer with these numbers, behind which so many bytes follow. */
static void put_head(uint32_t kind, const uint32_t *numbers, uint32_t count, uint32_t bytes) {
  const uint32_t head[3] = {MAGIC, 4u + count * 4u + bytes, kind};
  tinyet_harness_write(head, sizeof head);
  tinyet_harness_write(numbers, count * 4u);
}

#if defined(TINYET_CALL_SEPARATE)
static uint32_t room(void) { return 0u; }

static uint8_t *memory_of(uint32_t bytes, uint32_t place) {
  (void)place;
  return (uint8_t *)malloc(bytes);
}
#else
/* The first byte of the free RAM at an address that suits every type. */
static uint8_t *first(void) { return tinyet_platform.free_begin + (-(uintptr_t)tinyet_platform.free_begin & 15u); }

static uint32_t room(void) {
  const uint8_t *const end = tinyet_platform.free_end;
  return end > first() ? (uint32_t)(end - first()) : 0u;
}

static uint8_t *memory_of(uint32_t bytes, uint32_t place) {
  return place <= room() && bytes <= room() - place ? first() + place : NULL;
}
#endif

static void release(void) {
#if defined(TINYET_CALL_SEPARATE)
  for (uint32_t i = 0u; i < num_blocks; i++) {
    free(blocks[i].memory);
  }
#endif
  num_blocks = 0u;
}

static void get_blocks(uint32_t count) {
  for (uint32_t i = 0u; i < count && reason == 0u; i++) {
    block *const to = &blocks[i];
    to->bytes = get_u32();
    const uint32_t place = get_u32();
    to->flags = get_u32();
    to->memory = reason == 0u ? memory_of(to->bytes, place) : NULL;
    if (to->memory == NULL) {
      reason = reason == 0u ? NO_MEMORY : reason;
      return;
    }
    num_blocks = i + 1u;
    if ((to->flags & FILLED) != 0u) {
      get(to->memory, to->bytes);
    } else {
      memset(to->memory, PATTERN, to->bytes);
    }
  }
}

/* A place of so many bytes in a block. */
static uint8_t *get_address(uint32_t of, uint32_t bytes) {
  const uint32_t offset = get_u32();
  if (of >= num_blocks || offset > blocks[of].bytes || bytes > blocks[of].bytes - offset) {
    reason = BAD_REQUEST;
    return NULL;
  }
  return blocks[of].memory + offset;
}

static void get_pointers(uint32_t count) {
  for (uint32_t i = 0u; i < count && reason == 0u; i++) {
    uint8_t *const at = get_address(get_u32(), (uint32_t)sizeof(void *));
    const void *const to = get_address(get_u32(), 0u);
    if (reason == 0u) {
      memcpy(at, &to, sizeof to);
    }
  }
}

/* Calls a function with the stack below this frame painted, and adds how far down the paint is gone. Nothing interrupts: a
 * handler's frame is none of the call's. */
__attribute__((noinline)) static tinyet_status run(const tinyet_callable *callable, const tinyet_call_argument *arguments) {
#if defined(READ_STACK_POINTER)
  volatile uint32_t *low = (volatile uint32_t *)(uintptr_t)tinyet_platform.stack_limit;
  volatile uint32_t *top;
#if defined(__arm__)
  __asm volatile("cpsid i" ::: "memory");
#endif
  __asm volatile(READ_STACK_POINTER : "=r"(top));
  for (volatile uint32_t *word = low; word < top; word++) {
    *word = STACK_PATTERN;
  }
#endif
  const tinyet_status status =
      tinyet_call_around != NULL ? tinyet_call_around(callable, arguments) : callable->run(arguments);
#if defined(READ_STACK_POINTER)
  while (low < top && *low == STACK_PATTERN) {
    low++;
  }
  const uint32_t bytes = (uint32_t)((uintptr_t)top - (uintptr_t)low);
  stack_bytes = bytes > stack_bytes ? bytes : stack_bytes;
#if defined(__arm__)
  __asm volatile("cpsie i" ::: "memory");
#endif
#endif
  return status;
}

/* Makes the next call of the request; the status is the call's. */
static tinyet_status make_call(void) {
  tinyet_call_argument arguments[MOST_ARGUMENTS];
  const uint32_t function = get_u32(), count = get_u32();
  if (reason != 0u || function >= tinyet_num_callables || tinyet_callables[function].arguments != count ||
      count > MOST_ARGUMENTS) {
    reason = BAD_REQUEST;
    return TINYET_OK;
  }
  memset(arguments, 0, sizeof arguments);
  for (uint32_t i = 0u; i < count; i++) {
    const uint32_t of = get_u32();
    if (of == NO_BLOCK) {
      arguments[i].word = get_u32();
    } else {
      arguments[i].address = get_address(of, 0u);
    }
  }
  return reason == 0u && !over ? run(&tinyet_callables[function], arguments) : TINYET_OK;
}

static void skip_rest(void) {
  uint8_t dropped[32];
  while (left > 0u && !over) {
    get(dropped, left < sizeof dropped ? left : (uint32_t)sizeof dropped);
  }
}

static void serve_calls(void) {
  const uint32_t wanted_blocks = get_u32(), wanted_pointers = get_u32(), wanted_calls = get_u32();
  if (wanted_blocks > MOST_BLOCKS) {
    reason = BAD_REQUEST;
    return;
  }
  get_blocks(wanted_blocks);
  get_pointers(wanted_pointers);
  tinyet_status status = TINYET_OK;
  uint32_t made = 0u;
  stack_bytes = 0u;
  for (; made < wanted_calls && reason == 0u && status == TINYET_OK; made++) {
    status = make_call();
  }
  if (status != TINYET_OK) {
    skip_rest();
  }
  if (reason == 0u && (left != 0u || over)) {
    reason = BAD_REQUEST;
  }
  if (reason != 0u) {
    return;
  }
  uint32_t bytes = 0u;
  for (uint32_t i = 0u; i < num_blocks; i++) {
    bytes += (blocks[i].flags & RETURNED) != 0u ? blocks[i].bytes : 0u;
  }
  const uint32_t numbers[] = {(uint32_t)status, made, stack_bytes};
  put_head(CALLS, numbers, 3u, bytes);
  for (uint32_t i = 0u; i < num_blocks; i++) {
    if ((blocks[i].flags & RETURNED) != 0u) {
      tinyet_harness_write(blocks[i].memory, blocks[i].bytes);
    }
  }
}

static void serve_layouts(void) {
  const uint32_t numbers[] = {(uint32_t)sizeof(void *), tinyet_num_callables, tinyet_callables_hash, room(),
                              tinyet_num_call_layouts};
  const uint32_t bytes = tinyet_num_call_layouts * 2u;
  put_head(LAYOUTS, numbers, 5u, bytes);
  tinyet_harness_write(tinyet_call_layouts, bytes);
}

int tinyet_call_serve(void) {
  uint32_t head[3]; /* magic, bytes, kind */
  if (tinyet_harness_read(head, sizeof head) != sizeof head) {
    return 0;
  }
  over = false;
  reason = head[0] == MAGIC && head[1] >= 4u ? 0u : (uint32_t)BAD_REQUEST;
  left = reason == 0u ? head[1] - 4u : 0u;
  if (reason == 0u && head[2] == LAYOUTS && left == 0u) {
    serve_layouts();
  } else if (reason == 0u && head[2] == CALLS) {
    serve_calls();
  } else {
    reason = BAD_REQUEST;
  }
  release();
  skip_rest();
  if (reason != 0u && !over) {
    put_head(ERROR, &reason, 1u, 0u);
  }
  return over ? 0 : 1;
}
