/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_twos.h"

/* An input below the one that a line's next output reads at the same tap. */
static inline uint32_t two(int32_t input, int32_t next) { return (uint32_t)input + ((uint32_t)next << 16); }

/* Inputs of a row or a column, and where their words begin. */
typedef struct {
  const int8_t *from;
  int32_t step; /* bytes from input to input */
  uint32_t *to;
  const uint32_t *end; /* of the words of each two inputs */
  int32_t odd;         /* whether there is another input */
  int32_t padding;
} line;

/* Outputs and windows along lines, rows of the image or columns. */
typedef struct {
  int32_t lines, count; /* of outputs */
  int32_t along, across; /* bytes from output to output, and from line to line */
  int32_t stride, next;  /* from window to window, and from line to line of these */
  int32_t pitch;         /* words from line to line of the plane */
} outline;

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
#define INPUT(x) "ldrsb " x ", [r0, r1]\n" "add r0, r8\n"
#define TWO_INPUTS(x, y) "ldrsb " x ", [r0, r1]\n" "ldrsb " y ", [r0, r7]\n" "add r0, r8\n"
#define TWO(x, before) "lsls r2, " x ", #16\n" "adds " before ", " before ", r2\n"
/* Inputs at r0, zero in r1, words to r3 until r12; what is not yet complete in r4 and, with stride 2, r5; in r8 the
 * bytes from input to input, or to the next but one, in lr the line. */
#define LINE(name, STEP, PAIRS, ONE, LAST)                                              \
  __attribute__((naked, noinline)) static void name(const line *l __attribute__((unused))) { \
    __asm__ volatile(                                                                  \
        ".syntax unified\n"                                                            \
        "push {r4, r5, r6, r7, lr}\n"                                                  \
        "mov r4, r8\n"                                                                 \
        "push {r4}\n"                                                                  \
        "mov lr, r0\n"                                                                 \
        "ldmia r0!, {r1, r2, r3, r6}\n"                                                \
        STEP                                                                           \
        "mov r8, r2\n"                                                                 \
        "mov r12, r6\n"                                                                \
        "ldr r4, [r0, #4]\n"                                                           \
        "mov r5, r4\n"                                                                 \
        "mov r0, r1\n"                                                                 \
        "movs r1, #0\n"                                                                \
        "cmp r3, r12\n"                                                                \
        "beq 2f\n"                                                                     \
        "1:\n"                                                                         \
        PAIRS                                                                          \
        "bne 1b\n"                                                                     \
        "2:\n"                                                                         \
        "mov r2, lr\n"                                                                 \
        "ldr r7, [r2, #20]\n"                                                          \
        "lsls r7, r7, #16\n"                                                           \
        "ldr r2, [r2, #16]\n"                                                          \
        "cmp r2, #0\n"                                                                 \
        "beq 3f\n"                                                                     \
        "ldrsb r6, [r0, r1]\n"                                                         \
        ONE                                                                            \
        "3:\n"                                                                         \
        "adds r4, r4, r7\n"                                                            \
        LAST                                                                           \
        "pop {r4}\n"                                                                   \
        "mov r8, r4\n"                                                                 \
        "pop {r4, r5, r6, r7, pc}\n");                                                 \
  }

LINE(line_of_stride_1,
     "mov r7, r2\n" "adds r2, r2, r2\n",
     TWO_INPUTS("r5", "r6") TWO("r5", "r4") TWO("r6", "r5") "stmia r3!, {r4, r5}\n" "mov r4, r6\n" "cmp r3, r12\n",
     TWO("r6", "r4") "stmia r3!, {r4}\n" "mov r4, r6\n",
     "stmia r3!, {r4}\n")
LINE(line_of_stride_2,
     "",
     INPUT("r6") TWO("r6", "r4") INPUT("r7") TWO("r7", "r5") "stmia r3!, {r4, r5}\n" "mov r4, r6\n" "mov r5, r7\n"
     "cmp r3, r12\n",
     TWO("r6", "r4") "stmia r3!, {r4}\n" "mov r4, r5\n" "mov r5, r6\n",
     "adds r5, r5, r7\n" "stmia r3!, {r4, r5}\n")
#undef INPUT
#undef TWO_INPUTS
#undef TWO
#undef LINE

/* A line of inputs, so that a word at the place of each holds the one `stride` further on, too. */
static void line_of_twos(const line *l, int32_t stride) {
  if (stride == 1) {
    line_of_stride_1(l);
  } else {
    line_of_stride_2(l);
  }
}

typedef struct {
  const int8_t *end;  /* of the first line's outputs that are one of two */
  uint32_t down;      /* bytes from behind three words of a window to the next three */
  int32_t channels;   /* bytes from output to output */
  uint32_t back;      /* bytes from behind the last ones to the window of the next two outputs */
  uint32_t bounds;    /* of outputs: high, and low in the next byte */
  int32_t lines;
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
#define VALUE(sum, lower)       \
  "muls " lower ", " sum ", " lower "\n" \
  "lsrs " lower ", " lower ", #14\n"     \
  "muls " sum ", r2, " sum "\n"          \
  "adds " sum ", " sum ", " lower "\n"   \
  "adds " sum ", " sum ", r4\n"          \
  "lsrs " sum ", " sum ", #24\n"
#define BOUND(sum)              \
  "lsrs " sum ", " sum ", #31\n" \
  "lsls " sum ", " sum ", #3\n"  \
  "ldr r4, [sp, #4]\n"          \
  "lsrs r4, r4, " sum "\n"      \
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
  "adds r1, r1, r2\n"           \
  "adds r1, r1, r2\n"           \
  "mov r12, r1\n"               \
  "add r6, r11\n"               \
  "cmp r12, lr\n"               \
  "bne 1b\n"

/* All outputs of a channel, two of a line at a time. Inputs at r6, the stream at r7; the first sum in r8, which holds
 * 65536 times the second, too, and that one in r5; in r9 ... r12 and lr down, channels, back, outputs and where those
 * of a line end that are one of two. One that is not is computed with whatever stands behind it: with zero for the
 * bytes from output to output, it overwrites the other. On the stack the walk and its bounds. */
#define CHANNEL(name, ROW)                                                                                       \
  __attribute__((naked, noinline)) static void name(const uint32_t *plane __attribute__((unused)),               \
                                                    int8_t *output __attribute__((unused)),                      \
                                                    const uint32_t *stream __attribute__((unused)),              \
                                                    plane_walk *walk __attribute__((unused))) {                  \
    __asm__ volatile(                                                                                            \
        ".syntax unified\n"                                                                                      \
        "push {r4, r5, r6, r7, lr}\n"                                                                            \
        "mov r4, r8\n"                                                                                           \
        "mov r5, r9\n"                                                                                           \
        "mov r6, r10\n"                                                                                          \
        "mov r7, r11\n"                                                                                          \
        "push {r4, r5, r6, r7}\n"                                                                                \
        "mov r6, r0\n"                                                                                           \
        "mov r12, r1\n"                                                                                          \
        "mov r7, r2\n"                                                                                           \
        "ldr r4, [r3, #16]\n"                                                                                    \
        "push {r3, r4}\n"                                                                                        \
        "ldmia r3!, {r0, r1, r2, r4}\n"                                                                          \
        "mov lr, r0\n"                                                                                           \
        "mov r9, r1\n"                                                                                           \
        "mov r10, r2\n"                                                                                          \
        "mov r11, r4\n"                                                                                          \
        "cmp r12, lr\n"                                                                                          \
        "beq 4f\n"                                                                                               \
        OUTPUTS(ROW)                                                                                             \
        "4:\n" /* behind what is in twos, or behind the one that is not, where channels are zero */              \
        "ldr r3, [sp]\n"                                                                                         \
        "ldr r0, [r3, #32]\n"                                                                                    \
        "mov r1, r10\n"                                                                                          \
        "cmp r1, #0\n"                                                                                           \
        "beq 5f\n"                                                                                               \
        "cmp r0, #0\n"                                                                                           \
        "beq 8f\n"                                                                                               \
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
        "subs r0, r0, #1\n"                                                                                      \
        "str r0, [r3, #20]\n"                                                                                    \
        "beq 9f\n"                                                                                               \
        "cmp r12, lr\n"                                                                                          \
        "beq 4b\n"                                                                                               \
        "b 1b\n"                                                                                                 \
        "6:\n"                                                                                                   \
        "push {r4}\n"                                                                                            \
        "ldr r4, [sp, #8]\n"                                                                                     \
        "lsrs r0, r0, #31\n"                                                                                     \
        "lsls r0, r0, #3\n"                                                                                      \
        "lsrs r4, r4, r0\n"                                                                                      \
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
        "pop {r4, r5, r6, r7}\n"                                                                                 \
        "mov r8, r4\n"                                                                                           \
        "mov r9, r5\n"                                                                                           \
        "mov r10, r6\n"                                                                                          \
        "mov r11, r7\n"                                                                                          \
        "pop {r4, r5, r6, r7, pc}\n");                                                                           \
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

static void channel(const uint32_t *plane, int8_t *output, const uint32_t *stream, const outline *o,
                    const tinyet_packed_words *words) {
  const int32_t twos = o->count / 2, odd = o->count & 1;
  plane_walk walk = {output + 2 * twos * o->along,
                     (uint32_t)(4 * (o->pitch - 3)),
                     o->along,
                     (uint32_t)(4 * (2 * o->stride - 2 * o->pitch - 3)),
                     ((uint32_t)words->clamp_high & 255u) | ((uint32_t)words->clamp_low & 255u) << 8,
                     o->lines,
                     o->across,
                     (uint32_t)(4 * (o->next * o->pitch - 2 * (twos + odd) * o->stride)),
                     odd != 0 ? o->along : 0,
                     o->across - 2 * twos * o->along};
  if (stream[0] != 0u) {
    in_twos(plane, output, stream + 1, &walk);
  } else {
    in_rows(plane, output, stream + 1, &walk);
  }
}
#else
/* What a run adds to both sums. */
static inline void drain(uint32_t *both, uint32_t *high, uint32_t run) {
  *both += run;
  *high += ((run + UINT32_C(0x8000)) >> 16 ^ UINT32_C(0x8000)) - UINT32_C(0x8000);
}

static void channel(const uint32_t *plane, int8_t *output, const TINYET_ROM uint32_t *stream, const outline *o,
                    const tinyet_packed_words *words) {
  const TINYET_ROM uint32_t *const rounding = stream + 12;
  const int8_t low = (int8_t)words->clamp_low, high = (int8_t)words->clamp_high;
  for (int32_t y = 0; y < o->lines; y++) {
    const uint32_t *at = plane + y * o->next * o->pitch;
    int8_t *out = output + y * o->across;
    for (int32_t left = o->count; left > 0; left -= 2) {
      uint32_t first = stream[1], second = stream[2];
      const TINYET_ROM uint32_t *w = stream + 3;
      const uint32_t *in = at;
      for (int32_t i = 0; i < 3; i++) {
        const uint32_t two_taps = in[0] * w[0] + in[1] * w[1], one = in[2] * w[2];
        if (stream[0] != 0u) {
          drain(&first, &second, two_taps);
          drain(&first, &second, one);
        } else {
          drain(&first, &second, two_taps + one);
        }
        w += 3;
        in += o->pitch;
      }
      *out = tinyet_two_products(first - (second << 16), rounding, 14, 0, low, high);
      out += o->along;
      if (left > 1) {
        *out = tinyet_two_products(second, rounding, 14, 0, low, high);
        out += o->along;
      }
      at += 2 * o->stride;
    }
  }
}

/* A line of inputs, so that a word at the place of each holds the one `stride` further on, too. */
static void line_of_twos(const line *l, int32_t stride) {
  const int8_t *from = l->from;
  uint32_t *to = l->to;
  int32_t last[2] = {l->padding, l->padding};
  const int32_t count = (int32_t)(l->end - to) + l->odd;
  for (int32_t i = 0; i < count; i++) {
    const int32_t input = *from;
    from += l->step;
    *to++ = two(last[0], input);
    last[0] = stride == 1 ? input : last[1];
    last[1] = input;
  }
  for (int32_t i = 0; i < stride; i++) {
    *to++ = two(last[i], l->padding);
  }
}
#endif

/* How many inputs windows reach: of `size`, behind `before` of padding, for so many outputs. */
static int32_t reached(int32_t size, int32_t before, int32_t outputs, int32_t stride) {
  const int32_t most = (outputs - 1) * stride + 3 - before;
  return size < most ? size : most;
}

void tinyet_depthwise_s8_chw_3x3_twos(const int8_t *input, int8_t *output, void *scratch,
                                      const tinyet_depthwise_s8_chw_3x3_twos_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t padding = params->words.padding, in_row = s->in_w * s->in_c, out_row = s->out_w * s->in_c;
  const int32_t width = reached(s->in_w, s->pad_left, s->out_w, s->stride_w);
  const int32_t height = reached(s->in_h, s->pad_top, s->out_h, s->stride_h);
  const outline along = {s->out_h,    s->out_w,    s->in_c,      out_row,
                         s->stride_w, s->stride_h, (s->out_w - 1) * s->stride_w + 3 + s->stride_w};
  const outline down = {s->out_w,    s->out_h,    out_row,       s->in_c,
                        s->stride_h, s->stride_w, (s->out_h - 1) * s->stride_h + 3 + s->stride_h};
  const int32_t turned = params->down;
  const outline *const o = turned != 0 ? &down : &along;
  const int32_t lines = turned != 0 ? width : height, inputs = turned != 0 ? height : width;
  const int32_t next = turned != 0 ? s->in_c : in_row;
  const int32_t first = turned != 0 ? s->pad_left * o->pitch + s->pad_top : s->pad_top * o->pitch + s->pad_left;
  uint32_t *const words = (uint32_t *)scratch;
  const uint32_t border = two(padding, padding);
  for (int32_t i = ((o->lines - 1) * o->next + 3) * o->pitch - 1; i >= 0; i--) {
    words[i] = border;
  }
  line l = {input, turned != 0 ? in_row : s->in_c, 0, 0, inputs & 1, padding};
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *stream = params->words.stream;
    for (int32_t c = 0; c < s->in_c; c++) {
      l.from = input + c;
      l.to = words + first; /* before the line's first input by what its first words overwrite */
      for (int32_t y = 0; y < lines; y++) {
        l.end = l.to + (inputs - l.odd);
        line_of_twos(&l, o->stride);
        l.to += o->pitch;
        l.from += next;
      }
      channel(words + o->stride, output + c, stream, o, &params->words);
      stream += 16;
    }
    input += s->in_h * in_row;
    output += s->out_h * out_row;
  }
}
