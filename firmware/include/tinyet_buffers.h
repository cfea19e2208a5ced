/* SPDX-License-Identifier: Apache-2.0 */
/* For models whose inputs and outputs are buffers of the caller's: what a run looks at before it begins. */
#ifndef TINYET_BUFFERS_H
#define TINYET_BUFFERS_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

/* Whether a run looks at the addresses that it is given: not in release builds, which define NDEBUG, as <assert.h> has it. */
#if !defined(TINYET_BUFFER_CHECK) && defined(NDEBUG)
#define TINYET_BUFFER_CHECK 0
#elif !defined(TINYET_BUFFER_CHECK)
#define TINYET_BUFFER_CHECK 1
#endif

#if TINYET_BUFFER_CHECK
/* align: a power of two. An AVR reads from any address, and nothing is aligned there (TINYET_ALIGNED). */
static inline int tinyet_is_buffer(const void *buffer, uint32_t align) {
#if defined(__AVR__)
  (void)align;
  return buffer != NULL;
#else
  return buffer != NULL && ((uintptr_t)buffer & (uintptr_t)(align - 1u)) == 0u;
#endif
}

/* Whether two pieces of memory have no byte in common. */
static inline int tinyet_are_apart(const void *one, uint32_t one_bytes, const void *other, uint32_t other_bytes) {
  const uintptr_t a = (uintptr_t)one;
  const uintptr_t b = (uintptr_t)other;
  return a < b ? b - a >= one_bytes : a - b >= other_bytes;
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
