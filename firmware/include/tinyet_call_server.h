/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves single calls of kernels over the board's byte stream: a call and all its memory are data, so that a host can try
 * any kernel on any values without compiling for it. The protocol is described in tinyet_call_server.c.
 */
#ifndef TINYET_CALL_SERVER_H
#define TINYET_CALL_SERVER_H

#include <stdint.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a parameter of a function gets: an address, 32 bits of an integer, or a float32. */
typedef union {
  void *address;
  uint32_t word;
  float real;
} tinyet_call_argument;

/* A function that the host can ask for, by its place in the table. */
typedef struct {
  tinyet_status (*run)(const tinyet_call_argument *arguments);
  uint32_t arguments;
} tinyet_callable;

/* The table, which a generated C file defines, and a number for its source. */
extern const tinyet_callable tinyet_callables[];
extern const uint32_t tinyet_num_callables;
extern const uint32_t tinyet_callables_hash;

/* The compiler's layout of each parameter struct: its bytes, then for each field the offset, the bytes, those of one
 * element, and its kind. */
enum { TINYET_FIELD_OTHER = 0, TINYET_FIELD_REAL = 1 };
extern const uint16_t tinyet_call_layouts[];
extern const uint32_t tinyet_num_call_layouts;

/* Makes a call in the server's place, with something around it. A firmware need not have it. */
extern tinyet_status tinyet_call_around(const tinyet_callable *callable, const tinyet_call_argument *arguments)
    __attribute__((weak));

/* Answers one request. Returns 0 when the stream has ended, which happens on a host computer only. */
int tinyet_call_serve(void);

#ifdef __cplusplus
}
#endif

#endif
