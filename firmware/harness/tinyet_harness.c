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

#include "tinyet_frames.h"
#include "tinyet_platform.h"

#if !defined(TINYET_TRACE) || !TINYET_TRACE
#error "build the harness and its model with -DTINYET_TRACE=1"
#endif

#define PROTOCOL 5u
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
#elif defined(__AVR__)
#define READ_STACK_POINTER "in %A0, __SP_L__\n\tin %B0, __SP_H__"
#define HOLD_INTERRUPTS __asm volatile("cli" ::: "memory")
#define ALLOW_INTERRUPTS __asm volatile("sei" ::: "memory")
#endif

/* Where the model is to stop: behind so many runs of a layer. */
typedef struct {
  uint32_t layer; /* or TINYET_NO_LAYER */
  uint32_t runs;
} stop;

/* The request that is being answered, and the run that is being measured. */
static volatile uint32_t current_layer = TINYET_NO_LAYER;
static stop stop_behind;
static uint64_t layer_began;
static uint32_t event_layer; /* the layer that the event is in */
static uint64_t event_began;
static tinyet_tally *tallies; /* of the layers, and behind them of the events, by their numbers; in the free RAM */
static uint32_t tally_capacity;
static const tinyet_model *selected = &tinyet_harness_model;
static bool prepared;

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

#define EMPTY_LAYER(number)     \
  TINYET_LAYER_BEGIN(number##u); \
  TINYET_LAYER_END(number##u)

static tinyet_status run_empty_layers(void) {
  EMPTY_LAYER(0);
  EMPTY_LAYER(1);
  EMPTY_LAYER(2);
  EMPTY_LAYER(3);
  EMPTY_LAYER(4);
  EMPTY_LAYER(5);
  EMPTY_LAYER(6);
  EMPTY_LAYER(7);
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
  const uint32_t first = selected->num_layers;
  const uint32_t room = tally_capacity > first ? tally_capacity - first : 0u;
  return selected->num_events < room ? selected->num_events : room;
}

/* Calls run with the whole stack below this function's frame painted, and looks afterwards how far down the paint is
 * gone. The frame does not move in between: it has no array, and the arguments go in registers. */
__attribute__((noinline)) static measurement measure(tinyet_status (*run)(void), stop behind, bool uninterrupted) {
  measurement result = {TINYET_OK, 0u, 0u, TINYET_NO_LAYER};
  volatile uint32_t *limit = (volatile uint32_t *)(uintptr_t)tinyet_platform.stack_limit;
#if defined(READ_STACK_POINTER)
  volatile uint32_t *top;
  __asm volatile(READ_STACK_POINTER : "=r"(top));
#if defined(__AVR__)
  /* It may have any address, that of the free byte below the stack: whole words below it are painted. */
  top = (volatile uint32_t *)((uintptr_t)top & ~(uintptr_t)3u);
#endif
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

/* Where an offset lies: in the arena, or in a buffer of the caller's. */
static uint8_t *place_of(const tinyet_model *model, uint32_t offset) {
  const tinyet_buffers *buffers = model->buffers;
  return buffers != NULL && offset >= buffers->from ? buffers->memory + (offset - buffers->from) : model->arena + offset;
}

/* Behind the last of all offsets. */
static uint32_t end_of(const tinyet_model *model) {
  return model->buffers != NULL ? model->buffers->from + model->buffers->bytes : model->arena_bytes;
}

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

/* Now, so that no run pays for it; should it fail, the run says so again. The host may ask for INFO twice. */
static void prepare(void) {
  for (const tinyet_model *model = &tinyet_harness_model; !prepared && model != NULL; model = model->next) {
    if (model->init != NULL) {
      (void)model->init();
    }
  }
  prepared = true;
}

static void serve_info(const header *request) {
  const tinyet_model *model = selected;
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
  prepare();
  const uint64_t nothing = measure(run_nothing, nowhere, false).count;
  const uint64_t empty_layers = measure(run_empty_layers, nowhere, false).count;
  /* Not the first layer: on a core with caches it would pay for bringing the code in. */
  const uint64_t empty_layer = tallies[EMPTY_LAYERS - 1u].count;
  begin_reply(INFO, 7u * 4u + 3u * 8u + 4u + 3u * 4u + 8u * (model->num_inputs + model->num_outputs) + 1u + name_bytes +
                        HASH_DIGITS);
  put_u32(PROTOCOL);
  put_u32(model->abi);
  put_u32(end_of(model));
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

/* Whether a request has this length, and is answered: else it has been refused. */
static bool has_length(const header *request, uint32_t wanted) {
  if (request->length != wanted) {
    refuse_length(request->length, wanted);
  }
  return request->length == wanted;
}

static bool ended(bool whole) {
  if (!whole || !get_end()) {
    reply_error(BAD_FRAME, 0u);
    return false;
  }
  return true;
}

/* Straight into the arena: there is no room for the inputs twice. */
static bool get_inputs(uint32_t count) {
  const tinyet_model *model = selected;
  bool whole = true;
  for (uint32_t i = 0u; whole && i < count; i++) {
    const tinyet_io *input = &model->inputs[i];
    whole = get_bytes(input->offset == TINYET_BESIDE_ARENA ? model->image : place_of(model, input->offset), input->bytes);
  }
  return whole;
}

static void serve_run(const header *request) {
  const tinyet_model *model = selected;
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
  whole = whole && get_inputs(given);
  if (!ended(whole)) {
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
    put_bytes(place_of(model, model->outputs[i].offset), model->outputs[i].bytes);
  }
  end_reply();
}

/* Reads a payload of so many numbers, and no more; false, and it is refused, where it is another. */
static bool get_numbers(const header *request, uint32_t *numbers, uint32_t count) {
  if (!has_length(request, 4u * count)) {
    return false;
  }
  bool whole = true;
  for (uint32_t i = 0u; whole && i < count; i++) {
    whole = get_u32(&numbers[i]);
  }
  return ended(whole);
}

static void serve_read(const header *request) {
  const tinyet_model *model = selected;
  uint32_t span[2]; /* offset, bytes */
  if (!get_numbers(request, span, 2u)) {
    return;
  }
  const bool beside = model->buffers != NULL && span[0] >= model->buffers->from;
  const uint32_t end = beside ? end_of(model) : model->arena_bytes;
  if (span[0] > end || span[1] > end - span[0]) {
    reply_error(OUT_OF_ARENA, end);
    return;
  }
  begin_reply(READ, span[1]);
  put_bytes(place_of(model, span[0]), span[1]);
  end_reply();
}

static void serve_reset(const header *request) {
  if (!get_numbers(request, NULL, 0u)) {
    return;
  }
  if (selected->reset != NULL) {
    selected->reset();
  }
  begin_reply(RESET, 0u);
  end_reply();
}

/* Of a model that tests itself. */
static void serve_checks(const header *request) {
  const tinyet_checks *checks = selected->checks;
  if (!has_length(request, 0u) || !ended(true)) {
    return;
  }
  if (request->command == IDENTITY) {
    uint32_t found[TINYET_IDENTITY_BYTES / 4u];
    checks->identity(found);
    begin_reply(IDENTITY, TINYET_IDENTITY_BYTES);
    put_bytes(found, TINYET_IDENTITY_BYTES);
  } else {
    const tinyet_status constants = checks->constants();
    const tinyet_status selftest = checks->selftest();
    begin_reply(SELFTEST, 8u);
    put_u32((uint32_t)constants);
    put_u32((uint32_t)selftest);
  }
  end_reply();
}

/* Runs the model in slices, and counts each. The reply is sent between them. */
static void serve_step(const header *request) {
  const tinyet_model *model = selected;
  const uint32_t given = model->num_inputs - model->num_states;
  if (!has_length(request, sum_bytes(model->inputs, given)) || !ended(get_inputs(given))) {
    return;
  }
  stop_behind.layer = TINYET_NO_LAYER;
  model->steps->restart();
  begin_reply(STEP, 8u + 8u * model->steps->slices + sum_bytes(model->outputs, model->num_outputs));
  put_u32(model->steps->slices);
  tinyet_status status = TINYET_MORE_STEPS;
  for (uint32_t slice = 0u; slice < model->steps->slices; slice++) {
    tinyet_platform_counter_restart();
    const uint64_t began = tinyet_platform_counter();
    if (status == TINYET_MORE_STEPS) {
      status = model->steps->step();
    }
    put_u64(count_since(began, tinyet_platform_counter()));
  }
  put_u32((uint32_t)status);
  for (uint32_t i = 0u; i < model->num_outputs; i++) {
    put_bytes(place_of(model, model->outputs[i].offset), model->outputs[i].bytes);
  }
  end_reply();
}

static void serve_select(const header *request) {
  uint32_t number;
  uint32_t count = 0u;
  const tinyet_model *found = NULL;
  if (!get_numbers(request, &number, 1u)) {
    return;
  }
  for (const tinyet_model *model = &tinyet_harness_model; model != NULL; model = model->next) {
    found = count == number ? model : found;
    count++;
  }
  if (found == NULL) {
    reply_error(NO_MODEL, count);
    return;
  }
  selected = found;
  begin_reply(SELECT, 0u);
  end_reply();
}

/* The tallies go to the end of the free RAM. */
static void place_tallies(void) {
  uint32_t wanted = EMPTY_LAYERS;
  for (const tinyet_model *model = &tinyet_harness_model; model != NULL; model = model->next) {
    const uint32_t counts = model->num_layers + model->num_events;
    wanted = counts > wanted ? counts : wanted;
  }
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
    } else if (request.command == STEP && selected->steps != NULL) {
      serve_step(&request);
    } else if ((request.command == IDENTITY || request.command == SELFTEST) && selected->checks != NULL) {
      serve_checks(&request);
    } else if (request.command == SELECT) {
      serve_select(&request);
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
