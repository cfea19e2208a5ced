/* SPDX-License-Identifier: Apache-2.0 */
/* For models whose memory is the caller's: the check of an instance when a run begins. */
#ifndef TINYET_CONTEXT_H
#define TINYET_CONTEXT_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

/* Of an arena's address. An 8-bit core reads words at any. */
#if defined(__AVR__)
#define TINYET_CONTEXT_ALIGN 1u
#else
#define TINYET_CONTEXT_ALIGN 16u
#endif

/* Whether a run looks if another one has not returned: not in release builds, which define NDEBUG, as <assert.h> has it. The flag is
 * there in any case, so that files compiled with other flags agree on what an instance is. */
#if !defined(TINYET_BUSY_CHECK) && defined(NDEBUG)
#define TINYET_BUSY_CHECK 0
#elif !defined(TINYET_BUSY_CHECK)
#define TINYET_BUSY_CHECK 1
#endif

typedef volatile uint32_t tinyet_busy;

/* Bytes of an arena that live, counted from its first. */
typedef struct {
  uint32_t offset;
  uint32_t bytes;
} tinyet_range;

static inline int tinyet_is_arena(const void *arena) {
  return arena != NULL && (uintptr_t)arena % TINYET_CONTEXT_ALIGN == 0u;
}

/* Where a core has no exchange of its own, an interrupt between the two lines still finds the flag as it is, and leaves it so. */
static inline tinyet_status tinyet_enter(tinyet_busy *busy, const void *arena) {
  if (arena == NULL) {
    return TINYET_BAD_ARENA;
  }
#if !TINYET_BUSY_CHECK
  (void)busy;
#else
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4)
  const uint32_t before = __atomic_exchange_n(busy, 1u, __ATOMIC_ACQUIRE);
#else
  const uint32_t before = *busy;
  *busy = 1u;
#endif
  if (before != 0u) {
    return TINYET_BUSY;
  }
#endif
  return TINYET_OK;
}

static inline void tinyet_leave(tinyet_busy *busy) {
#if !TINYET_BUSY_CHECK
  (void)busy;
#elif defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4)
  __atomic_store_n(busy, 0u, __ATOMIC_RELEASE);
#else
  *busy = 0u;
#endif
}

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
