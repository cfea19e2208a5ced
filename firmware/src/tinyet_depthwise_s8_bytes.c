/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_byte_products.h"

/* What makes outputs of a plane, of which `columns` bytes are a row. right, down: bytes from a window to the next, and from a
 * row's last, where the next would be, to the first of the row below. turn: from behind a window's row to its next. */
typedef struct {
  const uint8_t *plane;
  int8_t *output;
  const TINYET_ROM uint32_t *stream;
  const TINYET_ROM int8_t *weights;
  tinyet_extent channels, columns, right, down, out_w, rows, left;
  uint8_t two_sided;
  int8_t low, high;
  uint8_t kernel_h, kernel_w;
  tinyet_extent turn;
} job;

#ifdef __AVR__
TINYET_STATIC_ASSERT(offsetof(job, two_sided) == 22 && offsetof(job, turn) == 27, "as the assembly has it");

/* Register 11 is zero, 12 and 13 are the window, 14 and 15 its output; 18 to 21 are a sum, 22 to 25 what it becomes. */
#define BEGIN                    \
  "push r28\n"                   \
  "push r29\n"                   \
  "movw r28, r30\n"              \
  "ldd r16, Y+22\n"              \
  "bst r16, 0\n" /* two-sided */ \
  "clr r11\n"                    \
  "ldd r12, Y+0\n"               \
  "ldd r13, Y+1\n"               \
  "ldd r14, Y+2\n"               \
  "ldd r15, Y+3\n"
/* A row of outputs, and one of them. */
#define WINDOW       \
  "1:\n"             \
  "ldd r24, Y+16\n"  \
  "ldd r25, Y+17\n"  \
  "2:\n"             \
  "std Y+20, r24\n"  \
  "std Y+21, r25\n"  \
  "movw r26, r12\n"  \
  "clr r18\n"        \
  "clr r19\n"        \
  "clr r20\n"
/* A product's sign is that of the weight: below zero, one is taken off the upper byte. */
#define TAP(w)                                                                             \
  "ld r16, X+\n" w "mulsu r17, r16\n" "add r18, r0\n" "adc r19, r1\n" "adc r20, r11\n"    \
  "sbrc r1, 7\n" "dec r20\n"
/* The output of a window's sum, and on to the next. */
#define OUTPUT                                                                                    \
  "clr r21\n"                                                                                     \
  "sbrc r20, 7\n"                                                                                 \
  "dec r21\n"                                                                                     \
  "ldd r30, Y+4\n"                                                                                \
  "ldd r31, Y+5\n"                                                                                \
  TINYET_LPM "r16, Z+\n" "add r18, r16\n"                                                         \
  TINYET_LPM "r16, Z+\n" "adc r19, r16\n"                                                         \
  TINYET_LPM "r16, Z+\n" "adc r20, r16\n"                                                         \
  TINYET_LPM "r16, Z+\n" "adc r21, r16\n"                                                         \
  TINYET_BYTES_OUTPUT("r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r16",              \
                      "ldd r25, Y+23", "ldd r25, Y+24")                                           \
  "movw r30, r14\n"                                                                               \
  "st Z, r25\n"                                                                                   \
  "ldd r16, Y+8\n" "add r14, r16\n"                                                               \
  "ldd r16, Y+9\n" "adc r15, r16\n"                                                               \
  "ldd r16, Y+12\n" "add r12, r16\n"                                                              \
  "ldd r16, Y+13\n" "adc r13, r16\n"                                                              \
  "ldd r24, Y+20\n"                                                                               \
  "ldd r25, Y+21\n"                                                                               \
  "sbiw r24, 1\n"                                                                                 \
  "breq 3f\n"                                                                                     \
  "rjmp 2b\n"                                                                                     \
  "3:\n"                                                                                          \
  "ldd r16, Y+14\n" "add r12, r16\n"                                                              \
  "ldd r16, Y+15\n" "adc r13, r16\n"                                                              \
  "ldd r24, Y+18\n"                                                                               \
  "ldd r25, Y+19\n"                                                                               \
  "sbiw r24, 1\n"                                                                                 \
  "std Y+18, r24\n"                                                                               \
  "std Y+19, r25\n"                                                                               \
  "breq 4f\n"                                                                                     \
  "rjmp 1b\n"                                                                                     \
  "4:\n"                                                                                          \
  "clr __zero_reg__\n"                                                                            \
  "pop r29\n"                                                                                     \
  "pop r28\n"

/* One channel of 3x3. Registers 2 to 10 are its weights. */
static TINYET_BYTES_APART void depthwise_bytes_outputs_3x3(job *of) {
/* From the third column to the first of the next row. */
#define TURN "ldd r16, Y+10\n" "add r26, r16\n" "ldd r16, Y+11\n" "adc r27, r16\n" "sbiw r26, 3\n"
#define HELD(w) TAP("mov r17, " w "\n")
  __asm__ volatile(
      BEGIN
      "ldd r30, Y+6\n"
      "ldd r31, Y+7\n"
      TINYET_LPM "r2, Z+\n" TINYET_LPM "r3, Z+\n" TINYET_LPM "r4, Z+\n"
      TINYET_LPM "r5, Z+\n" TINYET_LPM "r6, Z+\n" TINYET_LPM "r7, Z+\n"
      TINYET_LPM "r8, Z+\n" TINYET_LPM "r9, Z+\n" TINYET_LPM "r10, Z+\n"
      WINDOW
      HELD("r2") HELD("r3") HELD("r4") TURN
      HELD("r5") HELD("r6") HELD("r7") TURN
      HELD("r8") HELD("r9") HELD("r10")
      OUTPUT
      : "+z"(of)
      :
      : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
        "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
#undef HELD
#undef TURN
}

/* One channel of any window. Registers 5 and 7 are its rows and columns, 8 and 9 the turn between rows. */
static TINYET_BYTES_APART void depthwise_bytes_outputs(job *of) {
  __asm__ volatile(
      BEGIN
      "ldd r5, Y+25\n"
      "ldd r7, Y+26\n"
      "ldd r8, Y+27\n"
      "ldd r9, Y+28\n"
      WINDOW
      "ldd r30, Y+6\n"
      "ldd r31, Y+7\n"
      "mov r6, r5\n"
      "5:\n"
      "mov r21, r7\n"
      "6:\n" TAP(TINYET_LPM "r17, Z+\n")
      "dec r21\n"
      "brne 6b\n"
      "add r26, r8\n"
      "adc r27, r9\n"
      "dec r6\n"
      "brne 5b\n"
      OUTPUT
      : "+z"(of)
      :
      : "r0", "r5", "r6", "r7", "r8", "r9", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21",
        "r22", "r23", "r24", "r25", "r26", "r27", "memory");
}
#undef BEGIN
#undef WINDOW
#undef TAP
#undef OUTPUT
#else
static void depthwise_bytes_outputs(job *of) {
  const uint32_t start = of->stream[0];
  const uint8_t *window = of->plane;
  int8_t *output = of->output;
  for (; of->rows > 0; of->rows--, window += of->down) {
    for (of->left = of->out_w; of->left > 0; of->left--, window += of->right, output += of->channels) {
      const TINYET_ROM int8_t *w = of->weights;
      const uint8_t *x = window;
      int32_t sum = 0;
      for (tinyet_extent i = of->kernel_h; i > 0; i--, x += of->turn) {
        for (tinyet_extent j = of->kernel_w; j > 0; j--) {
          sum += *x++ * *w++;
        }
      }
      *output = tinyet_bytes_output(start + (uint32_t)sum, of->stream + 1, of->two_sided, of->low, of->high);
    }
  }
}
#endif

/* How a channel's plane is made, as many rows and columns as windows reach: the border's bytes before the image, between two of its
 * `rows` and behind the last, and how many bytes a row and all channels of it have. */
typedef struct {
  tinyet_extent before, between, behind, rows, width, channels, row;
  uint8_t padding;
} border;

static inline border border_of(tinyet_extent rows, tinyet_extent columns, const tinyet_conv2d_shape *s, uint8_t padding) {
  const tinyet_extent in_w = TINYET_EXTENT(s->in_w), in_h = TINYET_EXTENT(s->in_h);
  const tinyet_extent before = TINYET_EXTENT(s->pad_left), above = TINYET_EXTENT(s->pad_top);
  const tinyet_extent right = columns - before, bottom = rows - above, all = rows * columns;
  border b;
  b.channels = TINYET_EXTENT(s->in_c);
  b.row = in_w * b.channels;
  b.width = in_w < right ? in_w : right;
  b.rows = in_h < bottom ? in_h : bottom;
  b.rows = b.width > 0 && b.rows > 0 ? b.rows : 0;
  b.between = columns - b.width;
  b.before = b.rows > 0 ? above * columns + before : all;
  b.behind = all - b.before - (b.rows - 1) * columns - b.width;
  b.padding = padding;
  return b;
}

static inline uint8_t *fill(uint8_t *to, uint8_t value, tinyet_extent count) {
#ifdef __AVR__
  if (count > 0) {
    __asm__ volatile(
        "1:\n"
        "st Z+, %[value]\n"
        "sbiw %[count], 1\n"
        "brne 1b\n"
        : "+z"(to), [count] "+&w"(count)
        : [value] "r"(value)
        : "memory");
  }
#else
  for (; count > 0; count--) {
    *to++ = value;
  }
#endif
  return to;
}

/* A channel's image with its borders, plus 128. */
static TINYET_BYTES_APART void depthwise_bytes_plane(uint8_t *to, const int8_t *image, const border *b) {
  to = fill(to, b->padding, b->before);
  for (tinyet_extent y = b->rows; y > 0; y--) {
    const int8_t *from = image;
    tinyet_extent count = b->width;
#ifdef __AVR__
    uint8_t value;
    __asm__ volatile(
        "1:\n"
        "ld %[value], X\n"
        "subi %[value], 0x80\n"
        "st Z+, %[value]\n"
        "add r26, %A[channels]\n"
        "adc r27, %B[channels]\n"
        "sbiw %[count], 1\n"
        "brne 1b\n"
        : "+x"(from), "+z"(to), [count] "+&w"(count), [value] "=&d"(value)
        : [channels] "r"(b->channels)
        : "memory");
#else
    for (; count > 0; count--, from += b->channels) {
      *to++ = (uint8_t)((uint8_t)*from ^ 0x80u);
    }
#endif
    to = fill(to, b->padding, y > 1 ? b->between : b->behind);
    image += b->row;
  }
}

/* Inlined, so that each kernel calls what makes its outputs by its name. */
static inline __attribute__((always_inline)) void depthwise_bytes(const int8_t *input, int8_t *output, void *scratch,
                                                                  const tinyet_depthwise_s8_bytes_params *params,
                                                                  void (*outputs)(job *of)) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_packed_words *const words = &params->words;
  const tinyet_extent out_h = TINYET_EXTENT(s->out_h), stride_w = TINYET_EXTENT(s->stride_w);
  const tinyet_extent stride_h = TINYET_EXTENT(s->stride_h);
  const tinyet_extent kernel_h = TINYET_EXTENT(s->kernel_h), kernel_w = TINYET_EXTENT(s->kernel_w);
  const tinyet_extent rows = (out_h - 1) * stride_h + kernel_h, taps = kernel_h * kernel_w;
  const uint8_t step = words->two_sided != 0 ? 7u : 5u;
  job of;
  of.channels = TINYET_EXTENT(s->in_c);
  of.out_w = TINYET_EXTENT(s->out_w);
  of.columns = (of.out_w - 1) * stride_w + kernel_w;
  of.right = stride_w;
  of.down = stride_h * of.columns - of.out_w * stride_w;
  of.turn = of.columns - kernel_w;
  of.kernel_h = (uint8_t)kernel_h;
  of.kernel_w = (uint8_t)kernel_w;
  if (of.turn == 0) { /* a window is as wide as the plane: its rows are one */
    of.kernel_h = 1u;
    of.kernel_w = (uint8_t)taps;
  }
  of.two_sided = words->two_sided != 0;
  of.low = (int8_t)words->clamp_low;
  of.high = (int8_t)words->clamp_high;
  const border around = border_of(rows, of.columns, s, (uint8_t)words->padding);
  of.plane = (const uint8_t *)scratch;
  for (tinyet_extent n = TINYET_EXTENT(s->batch); n > 0; n--) {
    of.output = output;
    of.stream = words->stream;
    of.weights = params->weights;
    const int8_t *image = input;
    for (tinyet_extent c = of.channels; c > 0; c--) {
      depthwise_bytes_plane((uint8_t *)scratch, image++, &around);
      of.rows = out_h;
      outputs(&of);
      of.output++;
      of.stream += step;
      of.weights += taps;
    }
    input += TINYET_EXTENT(s->in_h) * around.row;
    output += out_h * of.out_w * of.channels;
  }
}

void tinyet_depthwise_s8_bytes(const int8_t *input, int8_t *output, void *scratch,
                               const tinyet_depthwise_s8_bytes_params *params) {
  depthwise_bytes(input, output, scratch, params, depthwise_bytes_outputs);
}

void tinyet_depthwise_s8_bytes_3x3(const int8_t *input, int8_t *output, void *scratch,
                                   const tinyet_depthwise_s8_bytes_params *params) {
#ifdef __AVR__
  depthwise_bytes(input, output, scratch, params, depthwise_bytes_outputs_3x3);
#else
  depthwise_bytes(input, output, scratch, params, depthwise_bytes_outputs);
#endif
}
