/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness: answers the requests that tinyet_harness.h describes.
 *
 * The counter's interrupt leaves its frame on the stack, wherever the model was: the stack bytes are the model's own only
 * when it is held back, and then the run as a whole is not counted, and the layers only up to the counter's first wrap.
 */
#include "tinyet_harness.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "tinyet_platform.h"

#if !defined(TINYET_TRACE) || !TINYET_TRACE
#error "build the harness and its model with -DTINYET_TRACE=1"
#endif

#define PROTOCOL 4u
#define END 0xC0u
#define ESCAPE 0xDBu
#define ESCAPED_END 0xDCu
#define ESCAPED_ESCAPE 0xDDu
#define HASH_DIGITS 64u
#define EMPTY_LAYERS 8u
#define UNINTERRUPTED 1u
#define STATES_STAY 2u
#define STACK_PATTERN 0xA55A3CC3u
#define STACK_FULL 0xFFFFFFFFu

#if defined(__arm__)
#define READ_STACK_POINTER "mov %0, sp"
#define HOLD_INTERRUPTS __asm volatile("cpsid i" ::: "memory")
#define ALLOW_INTERRUPTS __asm volatile("cpsie i" ::: "memory")
#elif defined(__riscv)
/* There is no interrupt to hold back: the counter needs none. */
#define READ_STACK_POINTER "mv %0, sp"
#define HOLD_INTERRUPTS ((void)0)
#define ALLOW_INTERRUPTS ((void)0)
#elif defined(__XTENSA_CALL0_ABI__)
#define READ_STACK_POINTER "mov %0, a1"
#define HOLD_INTERRUPTS ((void)0)
#define ALLOW_INTERRUPTS ((void)0)
#endif

enum { INFO = 1, RUN = 2, READ = 3, RESET = 4, ERROR = 0x7E, FAULT = 0x7F };

enum {
  BAD_FRAME = 1,       /* detail 0: cut short, or the CRC differs */
  UNKNOWN_COMMAND = 2, /* detail: the command */
  BAD_LENGTH = 3,      /* detail: the length of payload that this command takes */
  OUT_OF_ARENA = 4,    /* detail: bytes of the arena */
  NO_TRACE_MEMORY = 5, /* detail: the number of counts that the free RAM has room for */
};

typedef struct {
  uint8_t command;
  uint8_t tag;
  uint32_t length;
} header;

/* Where the model is to stop: behind so many runs of a layer. */
typedef struct {
  uint32_t layer; /* or TINYET_NO_LAYER */
  uint32_t runs;
} stop;

/* The request that is being answered, and the run that is being measured. */
static uint8_t request_tag;
static volatile uint32_t current_layer = TINYET_NO_LAYER;
static stop stop_behind;
static uint64_t layer_began;
static uint32_t event_layer; /* the layer that the event is in */
static uint64_t event_began;
static tinyet_tally *tallies; /* of the layers, and behind them of the events, by their numbers; in the free RAM */
static uint32_t tally_capacity;
static bool prepared;

/* ---- the stream ---- */

/* Where no file of the firmware carries the stream. */
__attribute__((weak)) size_t tinyet_harness_read(void *bytes, size_t n) { return tinyet_platform_read(bytes, n); }
__attribute__((weak)) void tinyet_harness_write(const void *bytes, size_t n) { tinyet_platform_write(bytes, n); }

/* ---- frames ---- */

static struct {
  uint32_t crc;
  uint32_t used;
  uint8_t bytes[128]; /* a system call a byte would be slow on a host */
} out;

static struct {
  uint32_t crc;
  bool at_end; /* the last byte was END */
  bool over;   /* the stream has ended */
} in;

static uint32_t crc_update(uint32_t crc, uint8_t byte) {
  static const uint32_t table[16] = {
      0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
      0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
  };
  crc ^= byte;
  crc = (crc >> 4) ^ table[crc & 15u];
  return (crc >> 4) ^ table[crc & 15u];
}

static void put_raw(uint32_t byte) {
  if (out.used == sizeof out.bytes) {
    tinyet_harness_write(out.bytes, out.used);
    out.used = 0u;
  }
  out.bytes[out.used] = (uint8_t)byte;
  out.used++;
}

static void put_bytes(const void *bytes, uint32_t n) {
  const uint8_t *from = (const uint8_t *)bytes;
  for (uint32_t i = 0u; i < n; i++) {
    const uint8_t byte = from[i];
    out.crc = crc_update(out.crc, byte);
    if (byte == END || byte == ESCAPE) {
      put_raw(ESCAPE);
      put_raw(byte == END ? ESCAPED_END : ESCAPED_ESCAPE);
    } else {
      put_raw(byte);
    }
  }
}

static void put_u8(uint32_t value) {
  const uint8_t byte = (uint8_t)value;
  put_bytes(&byte, 1u);
}

static void put_u32(uint32_t value) {
  for (uint32_t shift = 0u; shift < 32u; shift += 8u) {
    put_u8(value >> shift);
  }
}

static void put_u64(uint64_t value) {
  put_u32((uint32_t)value);
  put_u32((uint32_t)(value >> 32));
}

static void begin_reply(uint32_t command, uint32_t length) {
  out.used = 0u;
  out.crc = 0xFFFFFFFFu;
  put_raw(END);
  put_u8(command);
  put_u8(request_tag);
  put_u32(length);
}

static void end_reply(void) {
  put_u32(~out.crc);
  put_raw(END);
  tinyet_harness_write(out.bytes, out.used);
  out.used = 0u;
}

static void reply_error(uint32_t reason, uint32_t detail) {
  begin_reply(ERROR, 8u);
  put_u32(reason);
  put_u32(detail);
  end_reply();
}

static uint32_t raw_byte(void) {
  uint8_t byte = END;
  if (tinyet_harness_read(&byte, 1u) != 1u) {
    in.over = true;
  }
  return byte;
}

/* Reads n bytes of a frame's body; a NULL destination drops them. False: the frame ended or is damaged. */
static bool get_bytes(uint8_t *to, uint32_t n) {
  for (uint32_t i = 0u; i < n; i++) {
    uint32_t byte = raw_byte();
    if (byte == ESCAPE) {
      byte = raw_byte();
      if (byte == ESCAPED_END) {
        byte = END;
      } else if (byte == ESCAPED_ESCAPE) {
        byte = ESCAPE;
      } else {
        in.at_end = byte == END;
        return false;
      }
    } else if (byte == END) {
      in.at_end = true;
      return false;
    }
    in.crc = crc_update(in.crc, (uint8_t)byte);
    if (to != NULL) {
      to[i] = (uint8_t)byte;
    }
  }
  return true;
}

static uint32_t decode_u32(const uint8_t bytes[4]) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool get_u32(uint32_t *value) {
  uint8_t bytes[4];
  if (!get_bytes(bytes, 4u)) {
    return false;
  }
  *value = decode_u32(bytes);
  return true;
}

static void skip_to_end(void) {
  while (!in.at_end) {
    in.at_end = raw_byte() == END;
  }
}

/* Checks the CRC and that the frame ends behind it. */
static bool get_end(void) {
  const uint32_t crc = ~in.crc;
  uint32_t sent;
  if (!get_u32(&sent) || sent != crc) {
    return false;
  }
  in.at_end = raw_byte() == END;
  return in.at_end && !in.over;
}

/* Waits for a frame and reads its header. An END right after an END is the gap between two frames, not a frame. */
static bool get_header(header *request) {
  uint8_t bytes[6];
  do {
    in.at_end = false;
    in.crc = 0xFFFFFFFFu;
  } while (!get_bytes(bytes, 1u) && in.at_end && !in.over);
  request->command = 0u;
  request->tag = 0u;
  if (in.at_end || in.over || !get_bytes(bytes + 1, 5u)) {
    return false;
  }
  request->command = bytes[0];
  request->tag = bytes[1];
  request->length = decode_u32(bytes + 2);
  return true;
}

/* ---- counting ---- */

static uint64_t count_since(uint64_t began, uint64_t ended) {
  const uint32_t bits = tinyet_platform.counter_irq_bits;
  const uint64_t interrupts = bits == 0u ? 0u : (ended >> bits) - (began >> bits);
  return ((ended - began) & 0xFFFFFFFFFFFFu) | interrupts << 48;
}

/* Not inlined into run_empty_layers: it must pay for the calls that a model pays for. */
__attribute__((noinline)) void tinyet_trace_begin(uint32_t layer) {
  current_layer = layer;
  layer_began = tinyet_platform_counter();
}

/* Adds to what the layer or event has had so far, and tells how often it has run. What the model's description does not
 * know is not counted. */
static uint32_t add_run(uint32_t number, uint64_t count) {
  if (number >= tally_capacity) {
    return 0u;
  }
  tallies[number].count += count;
  tallies[number].runs++;
  return tallies[number].runs;
}

__attribute__((noinline)) int tinyet_trace_end(uint32_t layer) {
  const uint64_t ended = tinyet_platform_counter();
  const uint32_t runs = add_run(layer, count_since(layer_began, ended));
  current_layer = TINYET_NO_LAYER;
  return layer == stop_behind.layer && runs == stop_behind.runs;
}

/* Parts of a layer. */
__attribute__((noinline)) void tinyet_trace_event_begin(uint32_t event) {
  event_layer = current_layer;
  current_layer = event;
  event_began = tinyet_platform_counter();
}

__attribute__((noinline)) void tinyet_trace_event_end(uint32_t event) {
  const uint64_t ended = tinyet_platform_counter();
  (void)add_run(event, count_since(event_began, ended));
  current_layer = event_layer;
}

static tinyet_status run_nothing(void) { return TINYET_OK; }

static tinyet_status run_empty_layers(void) {
  TINYET_LAYER_BEGIN(0u);
  TINYET_LAYER_END(0u);
  TINYET_LAYER_BEGIN(1u);
  TINYET_LAYER_END(1u);
  TINYET_LAYER_BEGIN(2u);
  TINYET_LAYER_END(2u);
  TINYET_LAYER_BEGIN(3u);
  TINYET_LAYER_END(3u);
  TINYET_LAYER_BEGIN(4u);
  TINYET_LAYER_END(4u);
  TINYET_LAYER_BEGIN(5u);
  TINYET_LAYER_END(5u);
  TINYET_LAYER_BEGIN(6u);
  TINYET_LAYER_END(6u);
  TINYET_LAYER_BEGIN(7u);
  TINYET_LAYER_END(7u);
  return TINYET_OK;
}

typedef struct {
  tinyet_status status;
  uint32_t stack_bytes;
  uint64_t count;
  uint32_t failed; /* the layer or event that returned the status, or TINYET_NO_LAYER */
} measurement;

/* Of the events, as many as there is room for. */
static uint32_t num_events(void) {
  const uint32_t first = tinyet_harness_model.num_layers;
  const uint32_t room = tally_capacity > first ? tally_capacity - first : 0u;
  return tinyet_harness_model.num_events < room ? tinyet_harness_model.num_events : room;
}

/* Calls run with the whole stack below this function's frame painted, and looks afterwards how far down the paint is
 * gone. The frame does not move in between: it has no array, and the arguments go in registers. */
__attribute__((noinline)) static measurement measure(tinyet_status (*run)(void), stop behind, bool uninterrupted) {
  measurement result = {TINYET_OK, 0u, 0u, TINYET_NO_LAYER};
  volatile uint32_t *limit = (volatile uint32_t *)(uintptr_t)tinyet_platform.stack_limit;
#if defined(READ_STACK_POINTER)
  volatile uint32_t *top;
  __asm volatile(READ_STACK_POINTER : "=r"(top));
  if (limit == NULL) {
    top = NULL; /* its end is not known: nothing is painted, and 0 bytes are found */
  }
  if (uninterrupted && limit != NULL) {
    /* For the stack's sake only: a framework may need them to serve the stream. From before the paint to after the look at it:
     * one that waits comes as soon as it may, and leaves its frame where the model's were. */
    HOLD_INTERRUPTS;
  }
  for (volatile uint32_t *word = limit; word < top; word++) {
    *word = STACK_PATTERN;
  }
#endif
  for (uint32_t number = 0u; number < tally_capacity; number++) {
    tallies[number].count = 0u;
    tallies[number].runs = 0u;
  }
  stop_behind = behind;
  /* Reading the counter takes stack, too, and that is none of the model's: where the stack is asked for, nothing is counted. */
  uint64_t began = 0u, ended = 0u;
  if (!uninterrupted) {
    tinyet_platform_counter_restart();
    began = tinyet_platform_counter();
  }
  result.status = run();
  if (!uninterrupted) {
    ended = tinyet_platform_counter();
  }
  result.failed = current_layer;
  current_layer = TINYET_NO_LAYER;
  result.count = count_since(began, ended);
#if defined(READ_STACK_POINTER)
  while (limit < top && *limit == STACK_PATTERN) {
    limit++;
  }
  ALLOW_INTERRUPTS;
  /* Where the last word has lost its paint, or the frame of this function is below it, how much it was cannot be known. */
  const bool full = top != NULL && limit == (volatile uint32_t *)(uintptr_t)tinyet_platform.stack_limit;
  result.stack_bytes = full ? STACK_FULL : (uint32_t)((uintptr_t)top - (uintptr_t)limit);
#else
  (void)limit;
#endif
  return result;
}

/* ---- commands ---- */

static uint32_t sum_bytes(const tinyet_io *io, uint32_t n) {
  uint32_t bytes = 0u;
  for (uint32_t i = 0u; i < n; i++) {
    bytes += io[i].bytes;
  }
  return bytes;
}

static void put_io(const tinyet_io *io, uint32_t n) {
  put_u32(n);
  for (uint32_t i = 0u; i < n; i++) {
    put_u32(io[i].offset);
    put_u32(io[i].bytes);
  }
}

static void serve_info(const header *request) {
  const tinyet_model *model = &tinyet_harness_model;
  const stop nowhere = {TINYET_NO_LAYER, 0u};
  const uint32_t name_bytes = (uint32_t)strlen(model->name) & 0xFFu;
  if (!get_bytes(NULL, request->length) || !get_end()) {
    reply_error(BAD_FRAME, 0u);
    return;
  }
  if (tally_capacity < model->num_layers || tally_capacity < EMPTY_LAYERS) {
    reply_error(NO_TRACE_MEMORY, tally_capacity);
    return;
  }
  if (model->init != NULL && !prepared) {
    /* Now, so that no run pays for it; should it fail, the run says so again. The host may ask for INFO twice. */
    prepared = true;
    (void)model->init();
  }
  const uint64_t nothing = measure(run_nothing, nowhere, false).count;
  const uint64_t empty_layers = measure(run_empty_layers, nowhere, false).count;
  /* Not the first layer: on a core with caches it would pay for bringing the code in. */
  const uint64_t empty_layer = tallies[EMPTY_LAYERS - 1u].count;
  begin_reply(INFO, 7u * 4u + 3u * 8u + 4u + 3u * 4u + 8u * (model->num_inputs + model->num_outputs) + 1u + name_bytes +
                        HASH_DIGITS);
  put_u32(PROTOCOL);
  put_u32(model->abi);
  put_u32(model->arena_bytes);
  put_u32(model->num_layers);
  put_u32(tinyet_platform.counter_kind);
  put_u32(tinyet_platform.counter_hz);
  put_u32((uint32_t)(tinyet_platform.stack_top - tinyet_platform.stack_limit));
  put_u64(nothing);
  put_u64(empty_layers);
  put_u64(empty_layer);
  put_u32(tinyet_platform.counter_irq_instructions);
  put_io(model->inputs, model->num_inputs);
  put_io(model->outputs, model->num_outputs);
  put_u32(model->num_states);
  put_u8(name_bytes);
  put_bytes(model->name, name_bytes);
  put_bytes(model->hash, HASH_DIGITS);
  end_reply();
}

/* left: bytes of the payload that have not been read. */
static void refuse_length(uint32_t left, uint32_t wanted) {
  reply_error(get_bytes(NULL, left) && get_end() ? BAD_LENGTH : BAD_FRAME, wanted);
}

static void serve_run(const header *request) {
  const tinyet_model *model = &tinyet_harness_model;
  const uint32_t least = model->num_inputs - model->num_states;
  const uint32_t shortest = 3u * 4u + sum_bytes(model->inputs, least);
  stop behind;
  uint32_t flags = 0u;
  if (request->length < shortest) {
    refuse_length(request->length, shortest);
    return;
  }
  bool whole = get_u32(&behind.layer) && get_u32(&behind.runs) && get_u32(&flags);
  const uint32_t given = (flags & STATES_STAY) != 0u ? least : model->num_inputs;
  const uint32_t wanted = 3u * 4u + sum_bytes(model->inputs, given);
  if (whole && request->length != wanted) {
    refuse_length(request->length - 3u * 4u, wanted);
    return;
  }
  if (given > least) {
    model->reset(); /* the first run would do it, and undo what is given */
  }
  /* Straight into the arena: there is no room for the inputs twice. */
  for (uint32_t i = 0u; whole && i < given; i++) {
    const tinyet_io *input = &model->inputs[i];
    whole = get_bytes(input->offset == TINYET_BESIDE_ARENA ? model->image : model->arena + input->offset, input->bytes);
  }
  if (!whole || !get_end()) {
    reply_error(BAD_FRAME, 0u);
    return;
  }
  if (tally_capacity < model->num_layers) {
    reply_error(NO_TRACE_MEMORY, tally_capacity);
    return;
  }
  const measurement result = measure(model->run, behind, (flags & UNINTERRUPTED) != 0u);
  const uint32_t num_outputs = result.status == TINYET_OK ? model->num_outputs : 0u;
  const uint32_t layers = model->num_layers;
  const uint32_t events = num_events();
  begin_reply(RUN,
              5u * 4u + 8u + 8u * (layers + events) + 4u * layers + sum_bytes(model->outputs, num_outputs));
  put_u32((uint32_t)result.status);
  put_u32(result.failed);
  put_u32(result.stack_bytes);
  put_u32(layers);
  put_u32(events);
  put_u64(result.count);
  for (uint32_t number = 0u; number < layers + events; number++) {
    put_u64(tallies[number].count);
  }
  for (uint32_t layer = 0u; layer < layers; layer++) {
    put_u32(tallies[layer].runs);
  }
  for (uint32_t i = 0u; i < num_outputs; i++) {
    put_bytes(model->arena + model->outputs[i].offset, model->outputs[i].bytes);
  }
  end_reply();
}

static void serve_read(const header *request) {
  const tinyet_model *model = &tinyet_harness_model;
  uint32_t offset;
  uint32_t bytes;
  if (request->length != 8u) {
    refuse_length(request->length, 8u);
    return;
  }
  if (!get_u32(&offset) || !get_u32(&bytes) || !get_end()) {
    reply_error(BAD_FRAME, 0u);
    return;
  }
  if (offset > model->arena_bytes || bytes > model->arena_bytes - offset) {
    reply_error(OUT_OF_ARENA, model->arena_bytes);
    return;
  }
  begin_reply(READ, bytes);
  put_bytes(model->arena + offset, bytes);
  end_reply();
}

static void serve_reset(const header *request) {
  if (request->length != 0u) {
    refuse_length(request->length, 0u);
    return;
  }
  if (!get_end()) {
    reply_error(BAD_FRAME, 0u);
    return;
  }
  if (tinyet_harness_model.reset != NULL) {
    tinyet_harness_model.reset();
  }
  begin_reply(RESET, 0u);
  end_reply();
}

/* The tallies go to the end of the free RAM. */
static void place_tallies(void) {
  const uint32_t counts = tinyet_harness_model.num_layers + tinyet_harness_model.num_events;
  const uint32_t wanted = counts < EMPTY_LAYERS ? EMPTY_LAYERS : counts;
  const uintptr_t begin = (uintptr_t)tinyet_platform.free_begin;
  const uintptr_t end = (uintptr_t)tinyet_platform.free_end & ~((uintptr_t)_Alignof(tinyet_tally) - 1u);
  const uintptr_t available = end > begin ? (end - begin) / sizeof(tinyet_tally) : 0u;
  tally_capacity = available < wanted ? (uint32_t)available : wanted;
  tallies = (tinyet_tally *)(end - sizeof(tinyet_tally) * (uintptr_t)tally_capacity);
}

void tinyet_harness_serve(void) {
  place_tallies();
  while (!in.over) {
    header request;
    const bool whole = get_header(&request);
    request_tag = request.tag;
    if (in.over) {
      break;
    }
    if (!whole) {
      reply_error(BAD_FRAME, 0u);
    } else if (request.command == INFO) {
      serve_info(&request);
    } else if (request.command == RUN) {
      serve_run(&request);
    } else if (request.command == READ) {
      serve_read(&request);
    } else if (request.command == RESET) {
      serve_reset(&request);
    } else {
      reply_error(get_bytes(NULL, request.length) && get_end() ? UNKNOWN_COMMAND : BAD_FRAME, request.command);
    }
    skip_to_end();
  }
}

uint32_t tinyet_harness_layer(void) { return current_layer; }

void tinyet_harness_send_fault(const uint32_t *words, uint32_t num_words) {
  begin_reply(FAULT, 4u * num_words);
  for (uint32_t i = 0u; i < num_words; i++) {
    put_u32(words[i]);
  }
  end_reply();
}
