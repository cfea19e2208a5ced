/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_planes.h"
#include "tinyet_fives_body.h"

enum { BANDS = 5 };

/* Where rows of the image are that a row of the plane is made of: their addresses in the assembly, else bytes from the image's
 * first one, or -1 for a row of padding. */
typedef int32_t band_rows[BANDS];

/* How a channel's plane is packed, as the assembly reads it. */
typedef struct {
  const band_rows *rows, *rows_end;
  int32_t channels;
  int32_t inputs; /* bytes of a row of the image that is packed */
  int32_t gap;    /* bytes of the plane from the end of a row's inputs to the next ones */
  const int8_t *image, *padding;
} packing;

/* What a channel's outputs are made of: as the assembly reads it. */
typedef struct {
  int32_t weights[9];
  int32_t start, multiplier;
  uint32_t third_sum;
  int32_t places[BANDS - 1]; /* bytes from an output of the first band to those of the others */
  int32_t step;              /* bytes from output to output */
  int32_t back;              /* bytes from the last input of a window to the next window */
  int32_t down;              /* bytes from the last input of a row of a window to the first one of the next */
  int32_t turn;              /* bytes from the window behind the last one of a row to the first one of the next */
  int32_t line;              /* bytes from row to row of outputs */
  int32_t rows;
  int8_t *output, *end; /* that of a row */
} outputs_of_bands;

#ifdef IN_THUMB
static inline int32_t row_of(const packing *of, int32_t at) {
  return (int32_t)(uintptr_t)(at < 0 ? of->padding : of->image + at);
}

#define PLACE                                                                     \
  "ldrsb r8, [r1, r6]\n" "ldrsb r9, [r2, r6]\n" "ldrsb r10, [r3, r6]\n"           \
  "ldrsb r11, [r4, r6]\n" "ldrsb r12, [r5, r6]\n"                                 \
  "add r6, r6, r7\n"                                                              \
  "add r8, r8, r11, lsl #19\n" "add r9, r9, r12, lsl #19\n"                       \
  "add r10, r10, r11, lsl #6\n" "add r10, r10, r12, lsl #12\n"                    \
  "stm r0!, {r8, r9, r10}\n"

/* A channel's plane. On the stack: 0, rows that are left; 8, the channel, and 12, the end of its inputs in a row; 16, the gap. */
__attribute__((naked, noinline)) static void pack(word *to __attribute__((unused)), const packing *of __attribute__((unused)),
                                                  int32_t channel __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "sub sp, sp, #20\n"
      "ldm r1, {r4, r5, r7, r8, r9}\n"
      "add r8, r8, r2\n"
      "stm sp, {r4, r5}\n"
      "strd r2, r8, [sp, #8]\n"
      "str r9, [sp, #16]\n"
      "1:\n"
      "ldm r4!, {r1, r2, r3, r5, r6}\n"
      "str r4, [sp]\n"
      "mov r4, r5\n"
      "mov r5, r6\n"
      "ldrd r6, lr, [sp, #8]\n"
      "2:\n"
      PLACE
      "cmp r6, lr\n"
      "bge 3f\n"
      PLACE
      "cmp r6, lr\n"
      "blt 2b\n"
      "3:\n"
      "ldrd r4, r5, [sp]\n"
      "ldr r8, [sp, #16]\n"
      "add r0, r0, r8\n"
      "cmp r4, r5\n"
      "bne 1b\n"
      "add sp, sp, #20\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef PLACE

/* What a row of inputs adds to a window's sums, r6 ... r8: weights in r3 ... r5, words at r0. The first row begins the sums. */
#define BEGIN(sum, x, w) "mul " sum ", " x ", " w "\n"
#define ADD(sum, x, w) "mla " sum ", " x ", " w ", " sum "\n"
#define COLUMN(PRODUCT, w) \
  "ldm r0!, {r9, r10, r11}\n" PRODUCT("r6", "r9", w) PRODUCT("r7", "r10", w) PRODUCT("r8", "r11", w)
#define ROW(PRODUCT) "ldm r1!, {r3, r4, r5}\n" COLUMN(PRODUCT, "r3") COLUMN(ADD, "r4") COLUMN(ADD, "r5")
#define DOWN "add r0, r0, r2\n"
/* What is added to 2^12 times a sum, r3, and the sum, whose field is the lowest one of its word. */
#define WHOLE(sum) "lsl " sum ", " sum ", #13\n" "add " sum ", r3, " sum ", lsr #1\n"
#define ROUND(sum, to)                      \
  "smull r11, " sum ", " sum ", r4\n"       \
  "ssat " sum ", #8, " sum ", asr #12\n"    \
  "strb " sum ", " to "\n"

/* All windows of a channel: outputs at r12, the end of their row in lr. */
__attribute__((naked, noinline)) static void windows(const word *plane __attribute__((unused)),
                                                     outputs_of_bands *walk __attribute__((unused))) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "ldr r2, [r1, #72]\n"
      "ldrd r12, lr, [r1, #88]\n"
      "1:\n"
      ROW(BEGIN) DOWN ROW(ADD) DOWN ROW(ADD)
      "ldm r1, {r3, r4, r5}\n"
      "add r6, r6, #0x40000\n" "add r7, r7, #0x40000\n" "add r8, r8, r5\n"
      "lsr r9, r6, #19\n" "lsr r10, r7, #19\n"
      "sub r8, r8, r9, lsl #6\n" "sub r8, r8, r10, lsl #12\n"
      WHOLE("r6") WHOLE("r7")
      "add r9, r3, r9, lsl #12\n" "ubfx r11, r8, #19, #6\n" "add r9, r9, r11, lsl #25\n"
      "add r10, r3, r10, lsl #12\n" "lsr r11, r8, #25\n" "add r10, r10, r11, lsl #25\n"
      WHOLE("r8")
      "ldrd r3, r5, [r1, #12]\n"
      ROUND("r6", "[r12]") ROUND("r7", "[r12, r3]") ROUND("r8", "[r12, r5]")
      "ldrd r3, r5, [r1, #20]\n"
      ROUND("r9", "[r12, r3]") ROUND("r10", "[r12, r5]")
      "ldrd r3, r5, [r1, #28]\n"
      "sub r1, r1, #36\n"
      "add r12, r12, r3\n"
      "add r0, r0, r5\n"
      "cmp r12, lr\n"
      "bne.w 1b\n"
      "ldrd r3, r4, [r1, #76]\n"
      "ldr r5, [r1, #84]\n"
      "add r0, r0, r3\n"
      "add lr, lr, r4\n"
      "subs r5, r5, #1\n"
      "str r5, [r1, #84]\n"
      "bne.w 1b\n"
      "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#undef BEGIN
#undef ADD
#undef COLUMN
#undef ROW
#undef DOWN
#undef WHOLE
#undef ROUND
#else
static inline int32_t row_of(const packing *of, int32_t at) {
  (void)of;
  return at;
}

static void pack(word *to, const packing *of, int32_t channel) {
  for (const band_rows *row = of->rows; row != of->rows_end; row++) {
    const int8_t *from[BANDS];
    for (int32_t i = 0; i < BANDS; i++) {
      from[i] = ((*row)[i] < 0 ? of->padding : of->image + (*row)[i]) + channel;
    }
    for (int32_t at = 0; at < of->inputs; at += of->channels) {
      const uint32_t fourth = (uint32_t)from[3][at], fifth = (uint32_t)from[4][at];
      to[0] = (uint32_t)from[0][at] + (fourth << FIELD);
      to[1] = (uint32_t)from[1][at] + (fifth << FIELD);
      to[2] = (uint32_t)from[2][at] + (fourth << FOURTH) + (fifth << FIFTH);
      to += STEP;
    }
    to += of->gap / (int32_t)sizeof(word);
  }
}

static inline int8_t output_of(uint32_t sum, const outputs_of_bands *walk) {
  const uint32_t value = (sum << BEFORE) + (uint32_t)walk->start;
  return (int8_t)tinyet_one_product((int32_t)value, walk->multiplier, 0, 0, SHIFT);
}

static void windows(const word *plane, outputs_of_bands *walk) {
  const uint32_t mask = (UINT32_C(1) << FIELD) - 1u;
  const int32_t bytes = (int32_t)sizeof(word);
  const word *x = plane;
  int8_t *to = walk->output;
  for (const int8_t *end = walk->end; walk->rows > 0; walk->rows--, end += walk->line) {
    for (; to != end; to += walk->step) {
      uint32_t first = FIRST_SUM, second = FIRST_SUM, third = walk->third_sum;
      for (int32_t i = 0; i < 9; i++) {
        const uint32_t weight = (uint32_t)walk->weights[i];
        first += x[0] * weight;
        second += x[1] * weight;
        third += x[2] * weight;
        x += STEP + (i == 2 || i == 5 ? walk->down / bytes : 0);
      }
      const uint32_t fourth = first >> FIELD, fifth = second >> FIELD;
      third -= (fourth << FOURTH) + (fifth << FIFTH);
      to[0] = output_of(first & mask, walk);
      to[walk->places[0]] = output_of(second & mask, walk);
      to[walk->places[1]] = output_of(third & mask, walk);
      to[walk->places[2]] = output_of(fourth + (((third >> FIELD) & 63u) << (32 - FIELD)), walk);
      to[walk->places[3]] = output_of(fifth + ((third >> (FIELD + FOURTH)) << (32 - FIELD)), walk);
      x += walk->back / bytes;
    }
    x += walk->turn / bytes;
  }
}
#endif

void tinyet_depthwise_s8_chw_3x3_fives(const int8_t *input, int8_t *output, void *scratch,
                                       const tinyet_depthwise_s8_chw_3x3_fives_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const int32_t channels = s->in_c, line = s->out_w * channels, in_row = s->in_w * channels;
  const int32_t in_band = (s->out_h + BANDS - 1) / BANDS;
  const int32_t rows = (in_band - 1) * s->stride_h + 3, columns = (s->out_w - 1) * s->stride_w + 3;
  const int32_t place = STEP * (int32_t)sizeof(word), bytes = columns * place, width = tinyet_least(s->in_w, columns - s->pad_left);
  band_rows *const table = (band_rows *)scratch;
  word *const plane = (word *)(table + rows);
  int8_t *const padding = (int8_t *)(plane + STEP * rows * columns);
  packing of = {table, table + rows, channels, width * channels, bytes - width * place, input, padding};
  const uint32_t blank = (uint32_t)params->padding;
  for (int32_t i = 0; i < rows * columns; i++) {
    plane[STEP * i] = plane[STEP * i + 1] = blank + (blank << FIELD);
    plane[STEP * i + 2] = blank + (blank << FOURTH) + (blank << FIFTH);
  }
  memset(padding, (int)params->padding, (size_t)in_row);
  outputs_of_bands walk = {{0},
                           0,
                           0,
                           THIRD_SUM,
                           {0},
                           channels,
                           s->stride_w * place - 2 * bytes - 3 * place,
                           bytes - 3 * place,
                           s->stride_h * bytes - s->out_w * s->stride_w * place,
                           line,
                           0,
                           output,
                           output};
  for (int32_t i = 1; i < BANDS; i++) {
    walk.places[i - 1] = tinyet_least(i * in_band, s->out_h - in_band) * line;
  }
  for (int32_t n = 0; n < s->batch; n++) {
    const TINYET_ROM uint32_t *f = params->stream;
    const TINYET_ROM int8_t *weights = params->weights;
    for (int32_t i = 0; i < BANDS; i++) {
      int32_t y = tinyet_least(i * in_band, s->out_h - in_band) * s->stride_h - s->pad_top;
      for (int32_t row = 0; row < rows; row++, y++) {
        table[row][i] = row_of(&of, y >= 0 && y < s->in_h ? y * in_row : -1);
      }
    }
    for (int32_t c = 0; c < channels; c++) {
      pack(plane + STEP * s->pad_left, &of, c);
      for (int32_t i = 0; i < 9; i++) {
        walk.weights[i] = weights[i];
      }
      walk.start = (int32_t)f[0];
      walk.multiplier = (int32_t)f[1];
      walk.output = output + c;
      walk.end = output + c + line;
      walk.rows = in_band;
      windows(plane, &walk);
      f += 2;
      weights += 9;
    }
    tinyet_clamp_outputs(output, s->out_h * line, params->clamp_low, params->clamp_high);
    of.image += s->in_h * in_row;
    output += s->out_h * line;
  }
}
