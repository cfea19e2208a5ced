/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of QEMU's that counts what one run of a model executes, layer by layer. `tinyet validate --estimate` builds it with
 * this machine's compiler and reads its files.
 *
 * It knows no instructions: it counts how often each translated block ran, and behind which other.
 * tinyet decodes the code from the firmware's ELF file. Of QEMU's interface it uses what has been the same since its first
 * version, and declares that itself: distributions ship QEMU without the header.
 *
 * Arguments:
 *   out=PATH          run number n goes to PATH.n, counted from 0, complete before the firmware goes on
 *   restart=ADDRESS   of the function that restarts the counter: a run is about to begin
 *   counter=ADDRESS   of the function that reads the counter: the first call of a run begins it, one that no mark has
 *                     announced ends it
 *   begin=, end=      of the functions that mark where a layer begins and ends
 *   mark=ADDRESS      of another function that reads the counter; may be given several times
 *   quiet=FROM-TO     code that is no part of a run, in hexadecimal like all addresses: the functions above, interrupts
 *   flash=FROM-TO,line=BYTES,code=LINES,data=LINES
 *                     count reads of the flash that none of its buffers holds, for instructions and for data: LINES lines of
 *                     BYTES each, of which the one that was used longest ago makes room; no lines for data where they are kept
 *                     among those for instructions
 *   memory=FROM-TO    count accesses of data there; may be given several times
 *
 * A file holds for each run of a layer, in their order, and for what lies between them (-1), "segment NUMBER", a line
 *   START INSTRUCTIONS COUNT                of each block: how often it ran; then of each that it ran right behind
 *   behind START INSTRUCTIONS COUNT         how often that was
 * and "flash CODE NEXT DATA": lines read for instructions, of these right behind the line before, and for data; and for each
 * memory, in their order, "memory READS WRITES READ_BYTES WRITTEN_BYTES".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- QEMU's interface ---- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*cb)(unsigned, void *),
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*cb)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *),
                                      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

EXPORT int qemu_plugin_version = TINYET_QEMU_PLUGIN_API;

/* ---- what is counted ---- */

enum { MOST_RANGES = 32, MOST_MARKS = 8, MOST_LINES = 4096, MOST_MEMORIES = 16, BETWEEN = -1 };

typedef struct block {
  struct block *next_touched; /* of those that ran in this segment */
  uint64_t start;
  uint64_t last; /* where its last instruction begins */
  uint64_t instructions;
  uint64_t count;
  struct edge *edges; /* of those that it ran behind; the one found last is in front */
  size_t num_edges, room_for_edges;
} block;

typedef struct edge {
  const block *from;
  uint64_t count;
} edge;

typedef struct {
  uint64_t from, to;
} range;

/* Lines of the flash that a buffer holds, the one used last in front. */
typedef struct {
  uint64_t lines[MOST_LINES];
  unsigned size, used;
} buffer;

static const char *out = "profile";
static range quiet[MOST_RANGES];
static unsigned num_quiet;
static uint64_t marks[MOST_MARKS];
static unsigned num_marks;
static uint64_t restart_at, counter_at, begin_at, end_at;

static enum { IDLE, ARMED, RUNNING } state;
static bool announced; /* a mark ran, and will read the counter */
static int layer, segment;
static unsigned runs;
static block *touched, *previous;
static FILE *file;

static range flash;
static uint64_t line_bytes;
static buffer code_buffer, data_buffer;
static uint64_t code_reads, next_reads, data_reads, previous_line;

static struct {
  range at;
  uint64_t accesses[2], bytes[2]; /* reads, writes */
} memories[MOST_MEMORIES];
static unsigned num_memories;

/* Whether the line must be read; afterwards the buffer holds it. */
static bool misses(buffer *held, uint64_t line) {
  unsigned at = 0;
  while (at < held->used && held->lines[at] != line) {
    at++;
  }
  const bool missing = at == held->used;
  if (missing && held->used < held->size) {
    held->used++;
  }
  if (missing && at == held->size) {
    at--;
  }
  if (held->size > 0) {
    memmove(held->lines + 1, held->lines, at * sizeof held->lines[0]);
    held->lines[0] = line;
  }
  return missing;
}

static void fetch(const block *now) {
  for (uint64_t line = now->start / line_bytes; line <= now->last / line_bytes; line++) {
    if (line != previous_line && misses(&code_buffer, line)) {
      code_reads++;
      next_reads += line == previous_line + 1;
    }
    previous_line = line;
  }
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
  (void)cpu, (void)data;
  for (unsigned i = 0; state == RUNNING && i < num_memories; i++) {
    if (address >= memories[i].at.from && address < memories[i].at.to) {
      memories[i].accesses[qemu_plugin_mem_is_store(info)]++;
      memories[i].bytes[qemu_plugin_mem_is_store(info)] += UINT64_C(1) << qemu_plugin_mem_size_shift(info);
    }
  }
  if (state == RUNNING && line_bytes != 0 && !qemu_plugin_mem_is_store(info) && address >= flash.from && address < flash.to &&
      misses(data_buffer.size > 0 ? &data_buffer : &code_buffer, address / line_bytes)) {
    data_reads++;
  }
}

static void write_block(const char *what, const block *written, uint64_t count) {
  fprintf(file, "%s%llx %llu %llu\n", what, (unsigned long long)written->start, (unsigned long long)written->instructions,
          (unsigned long long)count);
}

/* Writes what the segment has executed, and begins another. */
static void change_segment(int next) {
  fprintf(file, "segment %d\n", segment);
  while (touched != NULL) {
    block *done = touched;
    touched = done->next_touched;
    write_block("", done, done->count);
    for (size_t i = 0; i < done->num_edges; i++) {
      write_block("behind ", done->edges[i].from, done->edges[i].count);
    }
    done->count = done->num_edges = 0;
  }
  fprintf(file, "flash %llu %llu %llu\n", (unsigned long long)code_reads, (unsigned long long)next_reads,
          (unsigned long long)data_reads);
  code_reads = next_reads = data_reads = 0;
  for (unsigned i = 0; i < num_memories; i++) {
    fprintf(file, "memory %llu %llu %llu %llu\n", (unsigned long long)memories[i].accesses[0],
            (unsigned long long)memories[i].accesses[1], (unsigned long long)memories[i].bytes[0],
            (unsigned long long)memories[i].bytes[1]);
    memset(memories[i].accesses, 0, sizeof memories[i].accesses);
    memset(memories[i].bytes, 0, sizeof memories[i].bytes);
  }
  previous = NULL;
  segment = next;
}

static void run_begins(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%u", out, runs);
  file = fopen(path, "w");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  state = RUNNING;
  layer = -1;
  segment = BETWEEN;
  previous = NULL;
}

static void run_ends(void) {
  change_segment(BETWEEN);
  fprintf(file, "end\n");
  if (fclose(file) != 0) {
    perror(out);
    exit(1);
  }
  runs++;
  state = IDLE;
}

static void on_function(unsigned cpu, void *data) {
  const uint64_t at = *(const uint64_t *)data;
  (void)cpu;
  if (at == restart_at) {
    state = state == IDLE ? ARMED : state;
  } else if (at == counter_at) {
    if (announced) {
      announced = false;
    } else if (state == ARMED) {
      run_begins();
    } else if (state == RUNNING) {
      run_ends();
    }
  } else {
    announced = true;
    if (state == RUNNING && at == begin_at) {
      change_segment(++layer);
    } else if (state == RUNNING && at == end_at) {
      change_segment(BETWEEN);
    }
  }
}

static void *grown(void *memory, size_t bytes) {
  memory = realloc(memory, bytes);
  if (memory == NULL) {
    perror("tinyet_profile");
    exit(1);
  }
  return memory;
}

static void count_edge(block *now, const block *from) {
  size_t at = 0;
  while (at < now->num_edges && now->edges[at].from != from) {
    at++;
  }
  if (at == now->room_for_edges) {
    now->room_for_edges = 2 * at + 4;
    now->edges = grown(now->edges, now->room_for_edges * sizeof now->edges[0]);
  }
  edge found = {from, 0};
  if (at == now->num_edges) {
    now->num_edges++;
  } else {
    found = now->edges[at];
  }
  now->edges[at] = now->edges[0];
  found.count++;
  now->edges[0] = found;
}

static void on_block(unsigned cpu, void *data) {
  block *now = data;
  (void)cpu;
  if (state != RUNNING) {
    return;
  }
  if (now->count == 0) {
    now->next_touched = touched;
    touched = now;
  }
  now->count++;
  if (previous != NULL) {
    count_edge(now, previous);
  }
  previous = now;
  if (line_bytes != 0 && now->start >= flash.from && now->start < flash.to) {
    fetch(now);
  }
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) {
    perror("tinyet_profile");
    exit(1);
  }
  return memory;
}

static bool is_function(uint64_t at) {
  bool found = at == restart_at || at == counter_at || at == begin_at || at == end_at;
  for (unsigned i = 0; i < num_marks; i++) {
    found = found || at == marks[i];
  }
  return found;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  const uint64_t start = qemu_plugin_tb_vaddr(tb);
  const size_t n = qemu_plugin_tb_n_insns(tb);
  (void)id;
  if (is_function(start)) {
    uint64_t *at = allocate(sizeof *at);
    *at = start;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_function, QEMU_PLUGIN_CB_NO_REGS, at);
  }
  for (unsigned i = 0; i < num_quiet; i++) {
    if (start >= quiet[i].from && start < quiet[i].to) {
      return;
    }
  }
  block *made = allocate(sizeof *made);
  made->start = start;
  made->last = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, n - 1));
  made->instructions = n;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, made);
  for (size_t i = 0; (line_bytes != 0 || num_memories != 0) && i < n; i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    /* Asked for reads alone, QEMU 7.2 tells of writes alone. */
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
  }
}

/* ---- arguments ---- */

static bool takes(const char *argument, const char *name, const char **value) {
  const size_t n = strlen(name);
  *value = argument + n + 1;
  return strncmp(argument, name, n) == 0 && argument[n] == '=';
}

static range range_of(const char *text) {
  char *rest;
  range result;
  result.from = strtoull(text, &rest, 16);
  result.to = *rest == '-' ? strtoull(rest + 1, NULL, 16) : result.from;
  return result;
}

static unsigned lines_of(const char *text) {
  const unsigned long lines = strtoul(text, NULL, 10);
  return lines < MOST_LINES ? (unsigned)lines : MOST_LINES;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    const char *value;
    if (takes(argv[i], "out", &value)) {
      out = strdup(value);
    } else if (takes(argv[i], "restart", &value)) {
      restart_at = strtoull(value, NULL, 16);
    } else if (takes(argv[i], "counter", &value)) {
      counter_at = strtoull(value, NULL, 16);
    } else if (takes(argv[i], "begin", &value)) {
      begin_at = strtoull(value, NULL, 16);
    } else if (takes(argv[i], "end", &value)) {
      end_at = strtoull(value, NULL, 16);
    } else if (takes(argv[i], "mark", &value) && num_marks < MOST_MARKS) {
      marks[num_marks++] = strtoull(value, NULL, 16);
    } else if (takes(argv[i], "quiet", &value) && num_quiet < MOST_RANGES) {
      quiet[num_quiet++] = range_of(value);
    } else if (takes(argv[i], "memory", &value) && num_memories < MOST_MEMORIES) {
      memories[num_memories++].at = range_of(value);
    } else if (takes(argv[i], "flash", &value)) {
      flash = range_of(value);
    } else if (takes(argv[i], "line", &value)) {
      line_bytes = strtoull(value, NULL, 10);
    } else if (takes(argv[i], "code", &value)) {
      code_buffer.size = lines_of(value);
    } else if (takes(argv[i], "data", &value)) {
      data_buffer.size = lines_of(value);
    } else {
      fprintf(stderr, "tinyet_profile: unknown argument %s\n", argv[i]);
      return 1;
    }
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  return 0;
}
