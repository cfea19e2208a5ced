/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness: serves a model, or several, over the board's byte stream, so that a host can feed it, compare its outputs,
 * count its layers and look into its arena.
 *
 * The protocol, over any stream of bytes. The other side is tinyet/device/protocol.py.
 *
 * A frame is END body END, where in the body each END byte is sent as ESCAPE ESCAPED_END and each ESCAPE byte as
 * ESCAPE ESCAPED_ESCAPE, so that an END on the line is always the edge of a frame and whoever has lost the thread
 * finds it there. The body, numbers little-endian:
 *
 *   command  1 byte
 *   tag      1 byte, chosen by the host, repeated in the reply
 *   length   4 bytes, of the payload
 *   payload
 *   crc      4 bytes, CRC-32 (IEEE 802.3, as zlib) of all bytes before it
 *
 * The host asks, the board answers once, with the same command or with ERROR; or with FAULT, and then never again.
 *
 *   INFO   -> u32 protocol, abi, arena bytes, layers, counter kind, counter hz, bytes of stack, then the three readings
 *             below, counter_irq_instructions; u32 number of inputs, (u32 offset, bytes) each; outputs likewise; u32 how
 *             many of the last inputs, and of the last outputs, are states; u8 length and name; 64 digits of hash
 *   RUN    u32 last layer to run, or NO_LAYER; u32 after how many runs of it to stop; u32 UNINTERRUPTED to hold the
 *          counter's interrupt back, STATES_STAY to go on with the states of the run before, or both, or 0; the inputs'
 *          bytes one after the other, without those of states that stay
 *          -> i32 status, u32 layer or event that failed, or NO_LAYER; u32 stack bytes, or STACK_FULL when it has overflown;
 *             u32 layers, u32 events; u64 count of the whole run, of each layer, of each event; u32 how often each layer
 *             ran; the outputs' bytes, if the status is TINYET_OK
 *   READ   u32 offset, u32 bytes -> bytes of the arena
 *   RESET  -> nothing; the states are what they are at first
 *   IDENTITY -> TINYET_IDENTITY_BYTES, of a tinyet_identity
 *   SELFTEST -> i32 status of the check of the constants, i32 of the self-test
 *   STEP   the inputs' bytes, as for RUN without states -> u32 slices; u64 count of each, with what the harness takes for
 *          each layer in it; i32 status of the last; the outputs' bytes
 *   SELECT u32 number -> nothing; from now on the requests are for this model of the firmware, counted from 0, which is the
 *          one at the start
 *   ERROR  -> u32 reason, u32 detail
 *   FAULT  -> u32 words, see tinyet_fault.c, tinyet_fault_riscv.c and tinyet_fault_xtensa.c
 *
 * A count is ticks in bits 0 ... 47 and, above, how often the counter's interrupt ran meanwhile. A layer may run several
 * times, a tile of rows each; its count is the sum. What the measurement itself costs is in the counts, each time that a
 * layer runs: it is measured when the harness starts, by running models that do nothing.
 * INFO's three readings are the count of a run without layers, of a run with EMPTY_LAYERS layers, and of one layer.
 */
#ifndef TINYET_HARNESS_H
#define TINYET_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where an input or an output lies in the arena, in bytes. An input that the model takes by rows lies beside it. */
#define TINYET_BESIDE_ARENA 0xFFFFFFFFu
typedef struct {
  uint32_t offset;
  uint32_t bytes;
} tinyet_io;

/* Of a model that tests itself. */
#define TINYET_IDENTITY_BYTES 128u
typedef struct {
  void (*identity)(void *to); /* a tinyet_identity */
  tinyet_status (*constants)(void);
  tinyet_status (*selftest)(void);
} tinyet_checks;

/* Of a model that runs in slices. */
typedef struct {
  uint32_t slices;
  void (*restart)(void);
  tinyet_status (*step)(void);
} tinyet_steps;

/* Of a model whose inputs and outputs are its caller's: the buffers are at offsets behind the arena, from `from` on. */
typedef struct {
  uint32_t from;
  uint32_t bytes;
  uint8_t *memory;
} tinyet_buffers;

/* What the harness knows of a model. The generated model_desc.c defines the first. */
typedef struct tinyet_model {
  const char *name;
  const char *hash; /* 64 hexadecimal digits: the hash of the program the code was generated from */
  uint32_t abi;     /* TINYET_ABI_VERSION of that code */
  uint8_t *arena;
  uint32_t arena_bytes;
  uint32_t num_layers; /* calls between TINYET_LAYER_BEGIN and TINYET_LAYER_END */
  uint32_t num_inputs;
  const tinyet_io *inputs;
  uint32_t num_outputs;
  const tinyet_io *outputs;
  tinyet_status (*run)(void);
  uint32_t num_events;         /* parts of layers, between TINYET_EVENT_BEGIN and TINYET_EVENT_END */
  tinyet_status (*init)(void); /* NULL where there is nothing to prepare */
  uint8_t *image;              /* the input that lies beside the arena; NULL where none does */
  uint32_t num_states;         /* the last of the inputs, and of the outputs: what survives from run to run */
  void (*reset)(void);         /* lets them be what they are at first; NULL where there are none */
  const tinyet_checks *checks; /* of a model that tests itself; NULL for others */
  const tinyet_steps *steps;   /* of a model that runs in slices; NULL for others */
  const tinyet_buffers *buffers; /* of a model that is given its inputs and outputs; NULL for others */
  const struct tinyet_model *next; /* another model of the firmware; NULL where there is none */
} tinyet_model;

extern const tinyet_model tinyet_harness_model;

#define TINYET_NO_LAYER 0xFFFFFFFFu

/* Answers requests until the stream ends; on a board, for ever. */
void tinyet_harness_serve(void);

/* The stream that it answers over, as tinyet_platform_read and tinyet_platform_write: theirs, unless a file of the
 * firmware defines these functions. */
size_t tinyet_harness_read(void *bytes, size_t n);
void tinyet_harness_write(const void *bytes, size_t n);

/* For the fault handler. */
uint32_t tinyet_harness_layer(void); /* the layer that is running, or TINYET_NO_LAYER */
/* Sends num_words words as a FAULT frame that answers the present request. */
void tinyet_harness_send_fault(const uint32_t *words, uint32_t num_words);

#ifdef __cplusplus
}
#endif

#endif
