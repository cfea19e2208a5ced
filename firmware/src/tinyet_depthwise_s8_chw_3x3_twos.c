/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_twos.h"

/* An input below the one that a line's next output reads at the same tap. */
static inline uint32_t two(int32_t input, int32_t next) { return (uint32_t)input + ((uint32_t)next << 16); }

/* Lines of inputs, rows or columns, and where their words begin. */
typedef struct {
  const int8_t *from;
  int32_t step, next; /* bytes from input to input, and from line to line */
  int32_t lines, count;
  int32_t before; /* inputs that windows see before the first one of a line */
  int32_t stride;
  int32_t pitch; /* words from line to line */
  int32_t words; /* of a line that windows read, for stride 2 a multiple of three */
  int32_t padding;
} line_walk;

/* Outputs and windows along lines, rows of the image or columns. */
typedef struct {
  int32_t lines, count; /* of outputs */
  int32_t along, across; /* bytes from output to output, and from line to line */
  int32_t stride, next;  /* from window to window, and from line to line of these */
  int32_t pitch;         /* words from line to line of the plane */
} outline;

/* What a channel's words in the stream say, as the assembly reads it. */
typedef struct {
  uint32_t both[15]; /* of both sums 2^16 one + the other, of one; nine weights; limit, upper, lower and offset */
  uint32_t divided;  /* not zero: lines of three taps are two runs */
} channel_constants;

static void spread(channel_constants *to, const TINYET_ROM uint32_t *stream) {
  uint32_t *const weights = to->both + 2;
  to->both[0] = UINT32_C(0x10001) * stream[0], to->both[1] = stream[0];
  for (int32_t i = 0; i < 8; i += 4) {
    const uint32_t four = stream[1 + i / 4];
    weights[i] = (uint32_t)((int32_t)(four << 24) >> 24);
    weights[i + 1] = (uint32_t)((int32_t)(four << 16) >> 24);
    weights[i + 2] = (uint32_t)((int32_t)(four << 8) >> 24);
    weights[i + 3] = (uint32_t)((int32_t)four >> 24);
  }
  weights[8] = (uint32_t)((int32_t)(stream[3] << 24) >> 24), to->divided = stream[3] >> 8;
  to->both[11] = stream[4], to->both[12] = stream[5], to->both[13] = stream[6], to->both[14] = stream[7];
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  const int8_t *from;
  int32_t step;
  uint32_t *to;
  uint32_t turns; /* bytes of a line's words that turns of straight code write */
  int32_t back;   /* bytes from behind a line's inputs to the next line */
  uint32_t gap;   /* bytes from behind a line's words to those of the next line */
  int32_t padding;
  uint32_t border; /* padding in the upper half */
  uint32_t begin;  /* bytes of straight code that the first turn leaves out */
  uint32_t rest;   /* what is behind the turns: a number of inputs */
  uint32_t *end;   /* of the last line's words, where another line would begin */
  uint32_t inside; /* whether a line's first word has an input, not padding, in its lower half */
} gathering;

#define OVER(x, before) "lsls r2, " x ", #16\n" "adds " before ", " before ", r2\n"
#define TWO_INPUTS "ldrsb r5, [r0, r1]\n" "ldrsb r6, [r0, r7]\n" "add r0, r8\n"
#define OPENED                                   \
  TINYET_THUMB1_ENTRY("")                        \
  "sub sp, sp, #24\n"                            \
  "ldmia r0!, {r1, r2, r3, r4, r5, r6}\n"        \
  "mov r7, r2\n"                                 \
  "adds r2, r2, r2\n"                            \
  "mov r8, r2\n"                                 \
  "mov r9, r5\n"                                 \
  "mov r10, r6\n"                                \
  "mov r11, r4\n"                                \
  "ldmia r0!, {r2, r4, r5, r6}\n"                \
  "str r2, [sp]\n"                               \
  "str r4, [sp, #4]\n"                           \
  "adr r2, 1f\n"                                 \
  "adds r5, r5, r2\n"                            \
  "str r5, [sp, #8]\n"
#define CLOSED                                   \
  "add r0, r9\n"                                 \
  "add r3, r10\n"                                \
  "cmp r3, lr\n"                                 \
  "bne 10b\n"                                    \
  "add sp, sp, #24\n"                            \
  TINYET_THUMB1_RETURN("")

/* Inputs at r0, zero in r1, words to r3; what is not yet complete in r4; in r7 and r8 the bytes from input to input and
 * to the next but one, in r9 to r11 back, gap and turns, in r12 where the turns' words end, in lr where all do. On the
 * stack padding, border, and code: where a line begins, and what is behind its turns. */
#define PAIR                                     \
  TWO_INPUTS OVER("r5", "r4") OVER("r6", "r5") "stmia r3!, {r4, r5}\n" "mov r4, r6\n"
enum { PAIRS = 4, PAIR_BYTES = 18 };
__attribute__((naked, noinline)) static void lines_of_stride_1(const gathering *g __attribute__((unused))) {
  __asm__ volatile(
      OPENED
      "ldr r0, [r0]\n"
      "mov lr, r0\n"
      "adr r4, 2f\n"
      "cmp r6, #0\n"
      "bne 11f\n"
      "adr r4, 3f\n"
      "11:\n"
      "mov r2, r11\n"
      "cmp r2, #0\n"
      "bne 12f\n"
      "str r4, [sp, #8]\n"
      "12:\n"
      "str r4, [sp, #12]\n"
      "mov r0, r1\n"
      "movs r1, #0\n"
      "10:\n"
      "ldr r4, [sp]\n"
      "mov r12, r3\n"
      "add r12, r11\n"
      "ldr r2, [sp, #8]\n"
      "mov pc, r2\n"
      ".balign 4\n"
      "1:\n"
      PAIR PAIR PAIR PAIR
      "cmp r3, r12\n"
      "bne 1b\n"
      "ldr r2, [sp, #12]\n"
      "mov pc, r2\n"
      ".balign 4\n"
      "2:\n"
      "ldrsb r5, [r0, r1]\n"
      "add r0, r7\n"
      OVER("r5", "r4")
      "stmia r3!, {r4}\n"
      "mov r4, r5\n"
      ".balign 4\n"
      "3:\n"
      "ldr r2, [sp, #4]\n"
      "adds r4, r4, r2\n"
      "stmia r3!, {r4}\n"
      CLOSED);
}
#undef PAIR

/* The same of words of inputs of which the next but one is in the upper half, three of four that follow each other. */
#define PAIR                                     \
  TWO_INPUTS OVER("r6", "r4")                    \
  "ldrsb r2, [r0, r1]\n"                         \
  "lsls r2, r2, #16\n"                           \
  "adds r5, r5, r2\n"                            \
  "stmia r3!, {r4, r5}\n"                        \
  "ldrsb r4, [r0, r7]\n"                         \
  "add r0, r8\n"                                 \
  OVER("r4", "r6")                               \
  "stmia r3!, {r6}\n"
enum { FOURS = 2, FOUR_BYTES = 28 };
__attribute__((naked, noinline)) static void lines_of_stride_2(const gathering *g __attribute__((unused))) {
  __asm__ volatile(
      OPENED
      "ldmia r0!, {r2, r4}\n"
      "mov lr, r2\n"
      "adr r2, 20f\n"
      "lsls r5, r6, #2\n"
      "adds r5, r5, r2\n" /* of as many bytes each */
      "mov r2, r11\n"
      "cmp r2, #0\n"
      "bne 12f\n"
      "str r5, [sp, #8]\n"
      "12:\n"
      "str r5, [sp, #12]\n"
      "ldr r5, [sp, #8]\n"
      "str r5, [sp, #16]\n"
      "cmp r4, #0\n"
      "beq 13f\n"
      "adr r5, 4f\n"
      "str r5, [sp, #8]\n"
      "13:\n"
      "mov r0, r1\n"
      "movs r1, #0\n"
      "10:\n"
      "ldr r4, [sp]\n"
      "mov r12, r3\n"
      "add r12, r11\n"
      "ldr r2, [sp, #8]\n"
      "mov pc, r2\n"
      ".balign 4\n"
      "4:\n"
      "ldrsb r4, [r0, r1]\n"
      "add r0, r7\n"
      "ldr r2, [sp, #16]\n"
      "mov pc, r2\n"
      ".balign 4\n"
      "1:\n"
      PAIR PAIR
      "cmp r3, r12\n"
      "bne 1b\n"
      "ldr r2, [sp, #12]\n"
      "mov pc, r2\n"
      ".balign 4\n"
      "20:\n"
      "b 21f\n"
      "nop\n"
      "b 22f\n"
      "nop\n"
      "b 23f\n"
      "nop\n"
      "b 24f\n"
      "nop\n"
      "b 5f\n"
      "21:\n" /* no input more */
      "ldr r5, [sp]\n"
      "ldr r2, [sp, #4]\n"
      "adds r4, r4, r2\n"
      "adds r5, r5, r2\n"
      "mov r6, r5\n"
      "b 6f\n"
      "22:\n" /* one */
      "ldrsb r5, [r0, r1]\n"
      "add r0, r7\n"
      "ldr r6, [sp]\n"
      "ldr r2, [sp, #4]\n"
      "adds r4, r4, r2\n"
      "b 7f\n"
      "23:\n" /* two */
      TWO_INPUTS
      OVER("r6", "r4")
      "ldr r2, [sp, #4]\n"
      "7:\n"
      "adds r5, r5, r2\n"
      "adds r6, r6, r2\n"
      "b 6f\n"
      "24:\n" /* three */
      TWO_INPUTS
      OVER("r6", "r4")
      "ldrsb r2, [r0, r1]\n"
      "add r0, r7\n"
      "lsls r2, r2, #16\n"
      "adds r5, r5, r2\n"
      "ldr r2, [sp, #4]\n"
      "adds r6, r6, r2\n"
      "6:\n"
      "stmia r3!, {r4, r5, r6}\n"
      "5:\n"
      CLOSED);
}
#undef PAIR
#undef OVER
#undef TWO_INPUTS
#undef OPENED
#undef CLOSED

/* How the lines of an image are gathered; `from` is set for each channel. */
static gathering gathered(uint32_t *to, const line_walk *w) {
  const uint32_t padding = (uint32_t)w->padding;
  gathering g = {0, w->step, to, 0, 0, 0, w->padding, padding << 16, 0, 0, to + w->lines * w->pitch, 0};
  if (w->stride == 1) {
    const int32_t pairs = w->count / 2;
    g.turns = (uint32_t)(8 * pairs);
    g.begin = (uint32_t)(-pairs & (PAIRS - 1)) * PAIR_BYTES;
    g.rest = (uint32_t)(w->count & 1);
    g.back = w->next - w->count * w->step;
    g.gap = (uint32_t)(4 * (w->pitch - w->count - 1));
    return g;
  }
  /* A line's first input is in its first word, or in the second one. */
  const int32_t inside = w->before == 0 ? 1 : 0, inputs = w->count - inside;
  const int32_t fours = inputs / 4, words = 3 * fours, all = words < w->words;
  g.turns = (uint32_t)(4 * words);
  g.begin = (uint32_t)(-fours & (FOURS - 1)) * FOUR_BYTES;
  g.rest = all != 0 ? (uint32_t)(inputs & 3) : 4u;
  g.back = w->next - w->count * w->step;
  g.gap = (uint32_t)(4 * (w->pitch - words - (all != 0 ? 3 : 0)));
  g.inside = (uint32_t)inside;
  return g;
}

static void gather(gathering *g, const line_walk *w) {
  g->from = w->from;
  if (w->stride == 1) {
    lines_of_stride_1(g);
  } else {
    lines_of_stride_2(g);
  }
}

typedef struct {
  uint32_t twos;      /* bytes of a line's outputs that are one of two */
  uint32_t down;      /* bytes from behind three words of a window to the next three */
  int32_t channels;   /* bytes from output to output */
  uint32_t back;      /* bytes from behind the last ones to the window of the next two outputs */
  uint32_t bounds;    /* of outputs: high, and low in the next byte */
  const uint32_t *last; /* the window that a line behind the last one would begin with */
  int32_t across;     /* bytes from line to line of outputs */
  uint32_t turn;      /* bytes from the window behind the last one of a line to the first one of the next */
  int32_t odd;        /* bytes from output to output where a line's last one is not one of two, else 0 */
  int32_t behind;     /* bytes from the end of what is in twos to the next line */
} plane_walk;

#define LOWEST "asrs r0, r0, #16\n" "adcs r5, r0\n"
#define ROW_OF_THREE          \
  "ldmia r6!, {r0, r1, r2}\n" \
  "ldmia r7!, {r3, r4}\n"     \
  "muls r0, r3, r0\n"         \
  "muls r1, r4, r1\n"         \
  "adds r0, r0, r1\n"         \
  "ldmia r7!, {r3}\n"         \
  "muls r2, r3, r2\n"         \
  "adds r0, r0, r2\n"         \
  "add r8, r0\n" LOWEST
#define ROW_OF_TWO_AND_ONE    \
  "ldmia r6!, {r0, r1, r2}\n" \
  "ldmia r7!, {r3, r4}\n"     \
  "muls r0, r3, r0\n"         \
  "muls r1, r4, r1\n"         \
  "adds r0, r0, r1\n"         \
  "asrs r1, r0, #16\n"        \
  "adcs r5, r1\n"             \
  "ldmia r7!, {r3}\n"         \
  "muls r2, r3, r2\n"         \
  "adds r0, r0, r2\n"         \
  "add r8, r0\n"              \
  "asrs r2, r2, #16\n"        \
  "adcs r5, r2\n"
#define VALUE(sum, lower) TINYET_THUMB1_SCALED(sum, "r2", lower, "r4", "#14")
#define BOUND(sum)              \
  "ldr r4, [sp, #4]\n"          \
  TINYET_THUMB1_BOUND(sum, "r4") \
  "mov " sum ", r4\n"
/* Both outputs' sums in r0 and r5; what is beyond the range is one of its bounds, as the sign says. */
#define OUTPUTS(ROW)            \
  "1:\n"                        \
  "ldmia r7!, {r3, r5}\n"       \
  "mov r8, r3\n"                \
  ROW "add r6, r9\n" ROW "add r6, r9\n" ROW \
  "lsls r1, r5, #16\n"          \
  "mov r0, r8\n"                \
  "subs r0, r0, r1\n"           \
  "ldmia r7!, {r1, r2, r3, r4}\n" /* limit, upper, lower, offset */ \
  "subs r7, r7, #60\n"          \
  "cmp r0, r1\n"                \
  "bhs 6f\n"                    \
  "cmp r5, r1\n"                \
  "bhs 7f\n"                    \
  "mov r1, r3\n"                \
  VALUE("r0", "r1")             \
  "2:\n"                        \
  VALUE("r5", "r3")             \
  "3:\n"                        \
  "mov r1, r12\n"               \
  "mov r2, r10\n"               \
  "strb r5, [r1, r2]\n"         \
  "strb r0, [r1]\n"             \
  "add r12, r2\n"               \
  "add r12, r2\n"               \
  "add r6, r11\n"               \
  "cmp r12, lr\n"               \
  "bne 1b\n"

/* All outputs of a channel, two of a line at a time. Inputs at r6, the constants at r7; the first sum in r8, which holds
 * 65536 times the second, too, and that one in r5; in r9 ... r12 and lr down, channels, back, outputs and where those
 * of a line end that are one of two. One that is not is computed with whatever stands behind it: with zero for the
 * bytes from output to output, it overwrites the other. On the stack the walk and its bounds. */
#define CHANNEL(name, ROW)                                                                                       \
  __attribute__((naked, noinline)) static void name(const uint32_t *plane __attribute__((unused)),               \
                                                    int8_t *output __attribute__((unused)),                      \
                                                    const uint32_t *constants __attribute__((unused)),           \
                                                    plane_walk *walk __attribute__((unused))) {                  \
    __asm__ volatile(                                                                                            \
        TINYET_THUMB1_ENTRY("")                                                                                  \
        "mov r6, r0\n"                                                                                           \
        "mov r12, r1\n"                                                                                          \
        "mov r7, r2\n"                                                                                           \
        "ldr r4, [r3, #16]\n"                                                                                    \
        "push {r3, r4}\n"                                                                                        \
        "ldmia r3!, {r0, r1, r2, r4}\n"                                                                          \
        "add r0, r12\n"                                                                                          \
        "mov lr, r0\n"                                                                                           \
        "mov r9, r1\n"                                                                                           \
        "mov r10, r2\n"                                                                                          \
        "mov r11, r4\n"                                                                                          \
        OUTPUTS(ROW)                                                                                             \
        "4:\n" /* behind what is in twos, or behind the one that is not, where channels are zero */              \
        "ldr r3, [sp]\n"                                                                                         \
        "ldr r0, [r3, #32]\n"                                                                                    \
        "cmp r0, #0\n"                                                                                           \
        "beq 8f\n"                                                                                               \
        "mov r1, r10\n"                                                                                          \
        "cmp r1, #0\n"                                                                                           \
        "beq 5f\n"                                                                                               \
        "movs r1, #0\n"                                                                                          \
        "mov r10, r1\n"                                                                                          \
        "b 1b\n"                                                                                                 \
        "5:\n"                                                                                                   \
        "mov r10, r0\n"                                                                                          \
        "8:\n"                                                                                                   \
        "ldr r0, [r3, #36]\n"                                                                                    \
        "add r12, r0\n"                                                                                          \
        "ldr r0, [r3, #24]\n"                                                                                    \
        "add lr, r0\n"                                                                                           \
        "ldr r0, [r3, #28]\n"                                                                                    \
        "add r6, r0\n"                                                                                           \
        "ldr r0, [r3, #20]\n"                                                                                    \
        "cmp r6, r0\n"                                                                                           \
        "beq 9f\n"                                                                                               \
        "b 1b\n"                                                                                                 \
        "6:\n"                                                                                                   \
        "push {r4}\n"                                                                                            \
        "ldr r4, [sp, #8]\n"                                                                                     \
        TINYET_THUMB1_BOUND("r0", "r4")                                                                          \
        "mov r0, r4\n"                                                                                           \
        "pop {r4}\n"                                                                                             \
        "cmp r5, r1\n"                                                                                           \
        "blo 2b\n"                                                                                               \
        "b 10f\n"                                                                                                \
        "7:\n"                                                                                                   \
        VALUE("r0", "r3")                                                                                        \
        "10:\n"                                                                                                  \
        BOUND("r5")                                                                                              \
        "b 3b\n"                                                                                                 \
        "9:\n"                                                                                                   \
        "add sp, sp, #8\n"                                                                                       \
        TINYET_THUMB1_RETURN(""));                                                                               \
  }

CHANNEL(in_rows, ROW_OF_THREE)
CHANNEL(in_twos, ROW_OF_TWO_AND_ONE)
#undef LOWEST
#undef ROW_OF_THREE
#undef ROW_OF_TWO_AND_ONE
#undef VALUE
#undef BOUND
#undef OUTPUTS
#undef CHANNEL

/* How the outputs of all channels are computed, of windows from `plane` on. A line of one output is one of twos that lie in
 * one place. */
static plane_walk walked(const uint32_t *plane, const outline *o, const tinyet_packed_words *words) {
  const int32_t twos = o->count / 2, odd = o->count > 1 ? o->count & 1 : 0, apart = o->stride == 1 ? 2 : 3;
  const int32_t pairs = o->count > 1 ? twos + odd : 1;
  const plane_walk walk = {(uint32_t)(2 * twos * o->along),
                           (uint32_t)(4 * (o->pitch - 3)),
                           o->count > 1 ? o->along : 0,
                           (uint32_t)(4 * (apart - 2 * o->pitch - 3)),
                           ((uint32_t)words->clamp_high & 255u) | ((uint32_t)words->clamp_low & 255u) << 8,
                           plane + o->lines * o->next * o->pitch,
                           o->across,
                           (uint32_t)(4 * (o->next * o->pitch - pairs * apart)),
                           odd != 0 ? o->along : 0,
                           o->across - 2 * twos * o->along};
  return walk;
}

static void channel(const uint32_t *plane, int8_t *output, const channel_constants *of, plane_walk *walk) {
  if (of->divided != 0u) {
    in_twos(plane, output, of->both, walk);
  } else {
    in_rows(plane, output, of->both, walk);
  }
}
#else
typedef struct {
  uint32_t *to;
} gathering;

static gathering gathered(uint32_t *to, const line_walk *w __attribute__((unused))) {
  const gathering g = {to};
  return g;
}

/* Of a line, padding before it and behind it. */
static int32_t input_at(const int8_t *from, int32_t at, const line_walk *w) {
  return at < 0 || at >= w->count ? w->padding : from[at * w->step];
}

static void gather(gathering *g, const line_walk *w) {
  const int8_t *from = w->from;
  uint32_t *line = g->to;
  for (int32_t y = 0; y < w->lines; y++) {
    uint32_t *to = line;
    if (w->stride == 1) {
      for (int32_t i = 0; i <= w->count; i++) {
        *to++ = two(input_at(from, i - 1, w), input_at(from, i, w));
      }
    } else {
      for (int32_t i = 0; i < w->words; i++) {
        const int32_t at = i / 3 * 4 + i % 3 - w->before;
        *to++ = two(input_at(from, at, w), input_at(from, at + 2, w));
      }
    }
    from += w->next;
    line += w->pitch;
  }
}

TINYET_TWO_PRODUCTS(output_of, const uint32_t *)

typedef struct {
  const outline *o;
  const tinyet_packed_words *words;
} plane_walk;

static plane_walk walked(const uint32_t *plane __attribute__((unused)), const outline *o, const tinyet_packed_words *words) {
  const plane_walk walk = {o, words};
  return walk;
}

/* What a run adds to both sums. */
static inline void drain(uint32_t *both, uint32_t *high, uint32_t run) {
  *both += run;
  *high += ((run + UINT32_C(0x8000)) >> 16 ^ UINT32_C(0x8000)) - UINT32_C(0x8000);
}

static void channel(const uint32_t *plane, int8_t *output, const channel_constants *of, const plane_walk *walk) {
  const outline *const o = walk->o;
  const uint32_t *const rounding = of->both + 11;
  const int8_t low = (int8_t)walk->words->clamp_low, high = (int8_t)walk->words->clamp_high;
  for (int32_t y = 0; y < o->lines; y++) {
    const uint32_t *at = plane + y * o->next * o->pitch;
    int8_t *out = output + y * o->across;
    for (int32_t left = o->count; left > 0; left -= 2) {
      uint32_t first = of->both[0], second = of->both[1];
      const uint32_t *w = of->both + 2;
      const uint32_t *in = at;
      for (int32_t i = 0; i < 3; i++) {
        const uint32_t two_taps = in[0] * w[0] + in[1] * w[1], one = in[2] * w[2];
        if (of->divided != 0u) {
          drain(&first, &second, two_taps);
          drain(&first, &second, one);
        } else {
          drain(&first, &second, two_taps + one);
        }
        w += 3;
        in += o->pitch;
      }
      *out = output_of(first - (second << 16), rounding, 14, 0, low, high);
      out += o->along;
      if (left > 1) {
        *out = output_of(second, rounding, 14, 0, low, high);
        out += o->along;
      }
      at += o->stride == 1 ? 2 : 3;
    }
  }
}
#endif

/* How many inputs windows reach: of `size`, behind `before` of padding, for so many outputs. */
static int32_t reached(int32_t size, int32_t before, int32_t outputs, int32_t stride) {
  const int32_t most = (outputs - 1) * stride + 3 - before;
  return size < most ? size : most;
}

/* Words of a line: of stride 1 one more at its beginning, for what inputs that are not padded begin with. */
static int32_t words_of_line(int32_t outputs, int32_t stride) {
  return stride == 1 ? outputs + 3 : 3 * ((outputs + 1) / 2);
}

void tinyet_depthwise_s8_chw_3x3_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_depthwise_s8_chw_3x3_twos_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t padding = params->words.padding, in_row = s->in_w * s->in_c, out_row = s->out_w * s->in_c;
  const int32_t width = reached(s->in_w, s->pad_left, s->out_w, s->stride_w);
  const int32_t height = reached(s->in_h, s->pad_top, s->out_h, s->stride_h);
  const int32_t turned = params->down;
  const outline along = {s->out_h,    s->out_w,    s->in_c, out_row,
                         s->stride_w, s->stride_h, words_of_line(s->out_w, s->stride_w)};
  const outline down = {s->out_w,    s->out_h,    out_row, s->in_c,
                        s->stride_h, s->stride_w, words_of_line(s->out_h, s->stride_h)};
  const outline *const o = turned != 0 ? &down : &along;
  const int32_t before = turned != 0 ? s->pad_top : s->pad_left;
  line_walk lines = {input,
                     turned != 0 ? in_row : s->in_c,
                     turned != 0 ? s->in_c : in_row,
                     turned != 0 ? width : height,
                     turned != 0 ? height : width,
                     before,
                     o->stride,
                     o->pitch,
                     o->pitch,
                     padding};
  uint32_t *const words = (uint32_t *)scratch;
  uint32_t *const first = words + (turned != 0 ? s->pad_left : s->pad_top) * o->pitch + (o->stride == 1 ? before : 0);
  const uint32_t *const plane = words + (o->stride == 1 ? 1 : 0);
  const uint32_t border = two(padding, padding);
  for (int32_t i = ((o->lines - 1) * o->next + 3) * o->pitch - 1; i >= 0; i--) {
    words[i] = border;
  }
  channel_constants constants;
  gathering g = gathered(first, &lines);
  plane_walk walk = walked(plane, o, &params->words);
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *stream = params->words.stream;
    for (int32_t c = 0; c < s->in_c; c++) {
      lines.from = input + c;
      gather(&g, &lines);
      spread(&constants, stream);
      channel(plane, output + c, &constants, &walk);
      stream += 8;
    }
    input += s->in_h * in_row;
    output += s->out_h * out_row;
  }
}
