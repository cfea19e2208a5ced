/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness: serves one model over the board's byte stream, so that a host can feed it, compare its outputs,
 * count its layers and look into its arena. The protocol is described in tinyet_harness.c.
 */
#ifndef TINYET_HARNESS_H
#define TINYET_HARNESS_H

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

/* What the harness knows of the model. The generated model_desc.c defines the one instance. */
typedef struct {
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
} tinyet_model;

extern const tinyet_model tinyet_harness_model;

#define TINYET_NO_LAYER 0xFFFFFFFFu

/* Answers requests until the stream ends; on a board, for ever. */
void tinyet_harness_serve(void);

/* For the fault handler. */
uint32_t tinyet_harness_layer(void); /* the layer that is running, or TINYET_NO_LAYER */
/* Sends num_words words as a FAULT frame that answers the present request. */
void tinyet_harness_send_fault(const uint32_t *words, uint32_t num_words);

#ifdef __cplusplus
}
#endif

#endif
