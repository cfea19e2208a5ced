/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_packed_words.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
typedef struct {
  int32_t rows;
  int8_t *end;      /* of the first row of outputs */
  int32_t row;      /* bytes from row to row of outputs, or of windows behind the last one of a row */
  int32_t turn;
  int32_t columns;  /* bytes from row to row of inputs */
  int32_t back;     /* bytes from the last row of a window to the next window */
  int32_t channels; /* bytes from output to output */
  int32_t right;
  uint32_t bounds; /* of outputs: high, and low in the next byte */
} plane_walk;

#define TAP(w, i) "ldrb r6, [r0, #" #i "]\n" "muls r6, " w ", r6\n" "adds r3, r3, r6\n"

/* All outputs of a channel whose sums are rounded one way. Inputs at r0, outputs at r1, the stream at r2, a sum in r3; in
 * r8 ... r12 columns, back, channels, right and where a row of outputs ends. */
__attribute__((naked, noinline)) static void one_sided_channel(const uint8_t *plane __attribute__((unused)),
                                                               int8_t *output __attribute__((unused)),
                                                               const uint32_t *stream __attribute__((unused)),
                                                               plane_walk *walk __attribute__((unused))) {
  __asm__ volatile(
      TINYET_THUMB1_ENTRY("r3, ")
      "ldr r4, [r3, #4]\n"
      "mov r12, r4\n"
      "ldr r4, [r3, #16]\n"
      "mov r8, r4\n"
      "ldr r4, [r3, #20]\n"
      "mov r9, r4\n"
      "ldr r4, [r3, #24]\n"
      "mov r10, r4\n"
      "ldr r4, [r3, #28]\n"
      "mov r11, r4\n"
      "1:\n"
      "ldmia r2!, {r3, r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "add r0, r8\n"
      "ldmia r2!, {r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "add r0, r8\n"
      "ldmia r2!, {r4, r5, r7}\n"
      TAP("r4", 0) TAP("r5", 1) TAP("r7", 2)
      "ldmia r2!, {r4, r5, r6, r7}\n" /* limit, upper, lower, offset */
      "cmp r3, r4\n"
      "bhs 3f\n"
      "mov r4, r11\n"
      TINYET_THUMB1_SCALED("r3", "r5", "r6", "r7", "r4")
      "2:\n"
      "strb r3, [r1]\n"
      "add r1, r10\n"
      "add r0, r9\n"
      "subs r2, r2, #56\n"
      "cmp r1, r12\n"
      "bne 1b\n"
      "ldr r7, [sp]\n"
      "ldr r4, [r7, #8]\n"
      "add r12, r4\n"
      "ldr r4, [r7, #12]\n"
      "add r0, r4\n"
      "ldr r4, [r7]\n"
      "subs r4, r4, #1\n"
      "str r4, [r7]\n"
      "bne 1b\n"
      TINYET_THUMB1_RETURN("r3, ")
      "3:\n" /* outside the range: the sign says which bound it is */
      "ldr r7, [sp]\n"
      "ldr r4, [r7, #32]\n"
      TINYET_THUMB1_BOUND("r3", "r4")
      "mov r3, r4\n"
      "b 2b\n");
}
#undef TAP
#elif defined(__XTENSA__) && defined(__XTENSA_EL__)
/* Outputs column by column: what a row of inputs adds to the outputs of the three rows that see it is added while it is in
 * registers. An output is stored in the plane, where the first input of its last row was, which nothing reads any more. */
typedef struct {
  const uint32_t *stream;
  int32_t way;      /* 1 where two-sided, and 2 for a stride of 2 from row to row or a column of one output, 4 for a longer one */
  int32_t columns;  /* bytes from row to row of inputs */
  int32_t low, high; /* bounds of outputs */
  int32_t left;     /* columns of outputs */
  int32_t step;     /* bytes from window to window of a row */
  int32_t turn;     /* bytes from the last row of a window to the next window, where they share none */
  int32_t right;
  const uint8_t *plane;
  const uint8_t *end; /* where inputs of the first column are behind the outputs that a loop makes */
  int32_t count;      /* channels of the plane; they are counted down here, where stream, plane and end go on, too */
} plane_walk;

/* All outputs of a plane's channels. In assembly of its own, for GCC has no functions without a frame on Xtensa; the same for
 * both of its calling conventions, of which one has register windows. */
#ifdef __cplusplus
extern "C"
#endif
    void
    tinyet_depthwise_3x3_xtensa(plane_walk *walk);

#ifdef __XTENSA_WINDOWED_ABI__
#define ENTER "entry a1, 128\n" "s32i a0, a1, 84\n"
#define LEAVE "l32i a0, a1, 84\n" "retw\n"
#else
#define ENTER                \
  "addi a1, a1, -112\n"      \
  "s32i a0, a1, 84\n"        \
  "s32i a12, a1, 88\n"       \
  "s32i a13, a1, 92\n"       \
  "s32i a14, a1, 96\n"       \
  "s32i a15, a1, 100\n"
#define LEAVE                \
  "l32i a0, a1, 84\n"        \
  "l32i a12, a1, 88\n"       \
  "l32i a13, a1, 92\n"       \
  "l32i a14, a1, 96\n"       \
  "l32i a15, a1, 100\n"      \
  "addi a1, a1, 112\n"       \
  "ret\n"
#endif

#define INPUT(i) "l8ui a2, a0, 4*" #i "\n" /* planes have four channels */
#define DOWN "l32i a3, a1, 28\n" "add a0, a0, a3\n"
/* sum = before + w times the input in a2. */
#define PRODUCT(sum, before, w) "mull a3, a2, " w "\n" "add " sum ", " before ", a3\n"
/* What the next input of a row adds to the outputs whose last row of inputs it is, whose middle one, whose first one. The first
 * input of a window takes the sums one row further. */
#define LAST_0 PRODUCT("a15", "a14", "a10")
#define LAST_1 PRODUCT("a15", "a15", "a11")
#define LAST_2 PRODUCT("a15", "a15", "a12")
#define MIDDLE_0 PRODUCT("a14", "a13", "a7")
#define MIDDLE_1 PRODUCT("a14", "a14", "a8")
#define MIDDLE_2 PRODUCT("a14", "a14", "a9")
#define FIRST_0 "mull a13, a2, a4\n"
#define FIRST_1 PRODUCT("a13", "a13", "a5")
#define FIRST_2 PRODUCT("a13", "a13", "a6")
#define NONE_0
#define NONE_1
#define NONE_2
#define LAST_ROW(l, m, n) INPUT(0) l##_0 m##_0 n##_0 INPUT(1) l##_1 m##_1 n##_1 INPUT(2) l##_2 m##_2 n##_2
#define ROW(l, m, n) LAST_ROW(l, m, n) DOWN
#define ONE_SIDED(n)                  \
  "l32i a3, a1, 12\n"                 \
  "l32i a2, a1, 8\n"                  \
  "mull a3, a15, a3\n"                \
  "mull a15, a15, a2\n"               \
  "l32i a2, a1, 16\n"                 \
  "srl a3, a3\n"                      \
  "add a15, a15, a3\n"                \
  "add a15, a15, a2\n"
/* The offset is another one below the split. */
#define TWO_SIDED(n)                  \
  "l32i a3, a1, 20\n"                 \
  "l32i a2, a1, 16\n"                 \
  "bgeu a15, a3, 5" #n "f\n"          \
  "l32i a2, a1, 24\n"                 \
  "5" #n ":\n"                        \
  "l32i a3, a1, 12\n"                 \
  "mull a3, a15, a3\n"                \
  "srl a3, a3\n"                      \
  "add a2, a2, a3\n"                  \
  "l32i a3, a1, 8\n"                  \
  "mull a15, a15, a3\n"               \
  "add a15, a15, a2\n"
/* On to the next output of the column, or to the next column; what follows is not reached so. */
#define NEXT_OR(n, end) \
  DOWN                  \
  "l32i a2, a1, 36\n"   \
  "bne a0, a2, 2" #n "b\n" "j " end "\n"
#define NEXT(n) NEXT_OR(n, ".Ltinyet_depthwise_3x3_next")
#define NEXT_BUT_ONE(n) NEXT_OR(n, "6" #n "f")
#define END(n) "j .Ltinyet_depthwise_3x3_next\n"
/* The output of a sum. n: names labels. */
#define OUTPUT(n, scaled, ONWARD)     \
  "l32i a3, a1, 0\n"                  \
  "l32i a2, a1, 4\n"                  \
  "add a15, a15, a3\n"                \
  "bgeu a15, a2, 1" #n "f\n"          \
  scaled(n)                           \
  "extui a15, a15, 24, 8\n"           \
  "3" #n ":\n"                        \
  "s8i a15, a0, 0\n"                  \
  ONWARD(n)                           \
  "1" #n ":\n" /* beyond the limit: the sign says which bound it is */ \
  "l32i a3, a1, 32\n"                 \
  "bltz a15, 4" #n "f\n"              \
  "l32i a3, a1, 40\n"                 \
  "4" #n ":\n"                        \
  "mov a15, a3\n"                     \
  "j 3" #n "b\n"
/* The last output of a column takes no more of its row than it needs. */
#define ALONG(n, scaled)                            \
  ROW(NONE, NONE, FIRST) ROW(NONE, MIDDLE, FIRST)   \
  "2" #n ":\n" LAST_ROW(LAST, MIDDLE, FIRST) OUTPUT(n, scaled, NEXT_BUT_ONE) \
  "6" #n ":\n" LAST_ROW(LAST, NONE, NONE) OUTPUT(9##n, scaled, END)
#define BY_TWOS(n, scaled)                          \
  ROW(NONE, NONE, FIRST)                            \
  "2" #n ":\n" ROW(NONE, MIDDLE, NONE) LAST_ROW(LAST, NONE, FIRST) OUTPUT(n, scaled, NEXT)
#define APART(n, scaled)                            \
  "l32i a3, a1, 48\n" "sub a0, a0, a3\n"            \
  "2" #n ":\n" "l32i a3, a1, 48\n" "add a0, a0, a3\n" \
  ROW(NONE, NONE, FIRST) ROW(NONE, MIDDLE, NONE) LAST_ROW(LAST, NONE, NONE) OUTPUT(n, scaled, NEXT)
/* From the walk to the stack. */
#define COPIED(from, to) "l32i a4, a2, " #from "\n" "s32i a4, a1, " #to "\n"
/* Loads of bytes have no sign. */
#define WEIGHT(w, at) "l8ui " w ", a0, " #at "\n" "slli " w ", " w ", 24\n" "srai " w ", " w ", 24\n"
#define ADVANCED(at, by) "l32i a3, a2, " #at "\n" "addi a3, a3, " #by "\n" "s32i a3, a2, " #at "\n"

/* On the stack what rounds: start, limit, upper, lower, offset, split, and the offset below it; from 28 on columns, low, the end
 * of the column's loop, high, step, turn, where the column begins, columns that are left, its code, and the walk; from 84 on
 * registers of the caller's. Weights in a4 ... a12; sums of the rows of outputs that go on in a13 (begun), a14, a15 (done);
 * inputs at a0. */
__asm__(
    ".section .text.tinyet_depthwise_3x3_xtensa, \"ax\"\n"
    ".align 4\n"
    ".literal_position\n"
    ".literal .Ltinyet_depthwise_3x3_ways_at, tinyet_depthwise_3x3_ways\n"
    ".align 4\n"
    ".global tinyet_depthwise_3x3_xtensa\n"
    ".type tinyet_depthwise_3x3_xtensa, @function\n"
    "tinyet_depthwise_3x3_xtensa:\n" ENTER
    COPIED(8, 28) COPIED(12, 32) COPIED(16, 40) COPIED(24, 44) COPIED(28, 48)
    "s32i a2, a1, 64\n"
    "l32i a3, a2, 4\n"
    "l32i a4, a2, 32\n"
    "ssr a4\n"
    "l32r a5, .Ltinyet_depthwise_3x3_ways_at\n"
    "addx4 a5, a3, a5\n"
    "l32i a5, a5, 0\n"
    "s32i a5, a1, 60\n"
    ".Ltinyet_depthwise_3x3_channel:\n" /* the walk in a2 */
    COPIED(20, 56) COPIED(36, 52) COPIED(40, 36)
    "l32i a0, a2, 0\n"
    "l32i a3, a2, 4\n"
    "l32i a2, a0, 0\n"
    "s32i a2, a1, 0\n"
    WEIGHT("a4", 4) WEIGHT("a5", 5) WEIGHT("a6", 6) WEIGHT("a7", 7) WEIGHT("a8", 8)
    WEIGHT("a9", 9) WEIGHT("a10", 10) WEIGHT("a11", 11) WEIGHT("a12", 12)
    "bbci a3, 0, 1f\n"
    "l32i a2, a0, 16\n"
    "l32i a14, a0, 20\n"
    "s32i a2, a1, 20\n"
    "addi a0, a0, 8\n"
    "1:\n"
    "l32i a2, a0, 16\n" "l32i a3, a0, 20\n" "s32i a2, a1, 4\n" "s32i a3, a1, 8\n"
    "l32i a2, a0, 24\n" "l32i a3, a0, 28\n" "s32i a2, a1, 12\n" "s32i a3, a1, 16\n"
    "sub a14, a3, a14\n"
    "s32i a14, a1, 24\n"
    "l32i a2, a1, 64\n"
    "addi a0, a0, 32\n"
    "s32i a0, a2, 0\n"
    ".Ltinyet_depthwise_3x3_column:\n"
    "l32i a2, a1, 60\n"
    "l32i a0, a1, 52\n"
    "jx a2\n"
    ".Ltinyet_depthwise_3x3_next:\n"
    "l32i a3, a1, 44\n"
    "l32i a14, a1, 52\n"
    "l32i a15, a1, 36\n"
    "l32i a0, a1, 56\n"
    "add a14, a14, a3\n"
    "add a15, a15, a3\n"
    "addi a0, a0, -1\n"
    "s32i a14, a1, 52\n"
    "s32i a15, a1, 36\n"
    "s32i a0, a1, 56\n"
    "bnez a0, .Ltinyet_depthwise_3x3_column\n"
    "l32i a2, a1, 64\n"
    ADVANCED(36, 1) ADVANCED(40, 1) ADVANCED(44, -1)
    "bnez a3, .Ltinyet_depthwise_3x3_channel\n" LEAVE
    ".Ltinyet_depthwise_3x3_0:\n" ALONG(10, ONE_SIDED)
    ".Ltinyet_depthwise_3x3_1:\n" ALONG(11, TWO_SIDED)
    ".Ltinyet_depthwise_3x3_2:\n" BY_TWOS(12, ONE_SIDED)
    ".Ltinyet_depthwise_3x3_3:\n" BY_TWOS(13, TWO_SIDED)
    ".Ltinyet_depthwise_3x3_4:\n" APART(14, ONE_SIDED)
    ".Ltinyet_depthwise_3x3_5:\n" APART(15, TWO_SIDED)
    ".size tinyet_depthwise_3x3_xtensa, . - tinyet_depthwise_3x3_xtensa\n"
    ".section .rodata.tinyet_depthwise_3x3_xtensa, \"a\"\n"
    ".align 4\n"
    ".type tinyet_depthwise_3x3_ways, @object\n"
    "tinyet_depthwise_3x3_ways:\n"
    ".word .Ltinyet_depthwise_3x3_0, .Ltinyet_depthwise_3x3_1, .Ltinyet_depthwise_3x3_2\n"
    ".word .Ltinyet_depthwise_3x3_3, .Ltinyet_depthwise_3x3_4, .Ltinyet_depthwise_3x3_5\n"
    ".size tinyet_depthwise_3x3_ways, . - tinyet_depthwise_3x3_ways\n"
    ".text\n");
#undef ENTER
#undef LEAVE
#undef INPUT
#undef DOWN
#undef PRODUCT
#undef LAST_0
#undef LAST_1
#undef LAST_2
#undef MIDDLE_0
#undef MIDDLE_1
#undef MIDDLE_2
#undef FIRST_0
#undef FIRST_1
#undef FIRST_2
#undef NONE_0
#undef NONE_1
#undef NONE_2
#undef LAST_ROW
#undef ROW
#undef NEXT_OR
#undef NEXT
#undef NEXT_BUT_ONE
#undef END
#undef ONE_SIDED
#undef TWO_SIDED
#undef OUTPUT
#undef ALONG
#undef BY_TWOS
#undef APART
#undef COPIED
#undef WEIGHT
#undef ADVANCED

#define SIGNS UINT32_C(0x80808080)
#include "tinyet_plane_copies_body.h"

enum { PLANE_CHANNELS = TOGETHER };

/* Outputs of a plane to where they belong, and what is outside the image to where they were. words: whether they are four
 * channels that can be written so. */
static void take_outputs(word *plane, int8_t *output, int32_t count, int32_t words, int32_t columns, uint32_t padding,
                         const tinyet_conv2d_shape *s) {
  const int32_t channels = s->in_c, step = s->stride_w, turn = s->stride_h * columns - s->out_w * step;
  for (int32_t y = s->out_h; y > 0; y--) {
    if (words != 0) {
      for (int32_t x = s->out_w; x > 0; x--) {
        *(word *)(void *)output = *plane;
        *plane = padding;
        output += channels;
        plane += step;
      }
    } else {
      for (int32_t x = s->out_w; x > 0; x--) {
        for (int32_t i = 0; i < count; i++) {
          output[i] = ((const int8_t *)plane)[i];
        }
        *plane = padding;
        output += channels;
        plane += step;
      }
    }
    plane += turn;
  }
}

static void depthwise_layer(const int8_t *input, int8_t *output, uint8_t *planes, int32_t rows, int32_t columns,
                            const tinyet_conv2d_shape *s, const tinyet_packed_words *of) {
  const int32_t channels = s->in_c, stride = s->stride_h, right = columns - s->pad_left, bottom = rows - s->pad_top;
  const int32_t words_in = by_words(input, channels), words_out = by_words(output, channels);
  const int32_t way = stride > 2 ? 4 : stride > 1 || s->out_h == 1 ? 2 : 0, looped = way == 0 ? rows - 1 : rows;
  const uint32_t padding = UINT32_C(0x01010101) * (uint8_t)of->padding;
  const inside part = {seen(s->in_h, bottom), seen(s->in_w, right), columns, s->in_w * channels, channels};
  int8_t *const first = (int8_t *)planes + TOGETHER * (s->pad_top * columns + s->pad_left);
  plane_walk walk = {of->stream,
                     of->two_sided != 0 ? way + 1 : way,
                     TOGETHER * columns,
                     of->clamp_low,
                     of->clamp_high,
                     s->out_w,
                     TOGETHER * s->stride_w,
                     TOGETHER * (stride - 3) * columns,
                     of->right,
                     NULL,
                     NULL,
                     0};
  for (int32_t c = 0; c < channels; c += TOGETHER) {
    const int32_t count = channels - c < TOGETHER ? channels - c : (int32_t)TOGETHER;
    copy_together(first, input + c, count, words_in, &part);
    walk.count = count;
    walk.plane = planes;
    walk.end = planes + TOGETHER * looped * columns;
    tinyet_depthwise_3x3_xtensa(&walk);
    take_outputs((word *)(void *)planes + 2 * columns, output + c, count, words_out, columns, padding, s);
  }
}
#endif

#if !(defined(__XTENSA__) && defined(__XTENSA_EL__))
enum { PLANE_CHANNELS = 1 };

/* A channel's image within its borders, plus 128: as many rows and columns as windows reach. */
static void plane_of(uint8_t *plane, const int8_t *image, int32_t rows, int32_t columns, const tinyet_conv2d_shape *s) {
  const int32_t right = columns - s->pad_left, bottom = rows - s->pad_top, channels = s->in_c;
  const int32_t width = s->in_w < right ? s->in_w : right, height = s->in_h < bottom ? s->in_h : bottom;
  plane += s->pad_top * columns + s->pad_left;
  uint32_t sign = 0x80u;
  __asm__("" : "+r"(sign)); /* in a register: GCC would make it anew for each value */
  for (int32_t y = 0; y < height; y++) {
    const int8_t *from = image;
    uint8_t *to = plane;
    int32_t left = width;
    for (; left >= 4; left -= 4) {
      to[0] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[1] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[2] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to[3] = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
      to += 4;
    }
    for (; left > 0; left--) {
      *to++ = (uint8_t)((uint8_t)*from ^ sign);
      from += channels;
    }
    plane += columns;
    image += s->in_w * channels;
  }
}

TINYET_TWO_PRODUCTS(rounded, const uint32_t *)

static inline __attribute__((always_inline)) void channel(const uint8_t *plane, int8_t *output, int32_t columns,
                                                          const tinyet_conv2d_shape *s, const TINYET_ROM uint32_t *w,
                                                          const tinyet_packed_words *words, int32_t two_sided) {
  const int32_t right = words->right, channels = s->in_c, stride = s->stride_w;
  const int8_t low = (int8_t)words->clamp_low, high = (int8_t)words->clamp_high;
  const int32_t turn = s->stride_h * columns - s->out_w * stride, out_w = s->out_w;
  /* Copies, because a store of an output could change what is read, as far as the compiler knows. */
  const uint32_t start = w[0], a = w[1], b = w[2], c = w[3], d = w[4], e = w[5], f = w[6], g = w[7], h = w[8], i = w[9];
  uint32_t rounding[6];
  tinyet_copy_rom(rounding, w + 10, two_sided != 0 ? 24u : 16u);
  for (int32_t y = s->out_h; y > 0; y--) {
    for (int32_t x = out_w; x > 0; x--) {
      const uint8_t *in = plane;
      uint32_t sum = start + in[0] * a + in[1] * b + in[2] * c;
      in += columns;
      sum += in[0] * d + in[1] * e + in[2] * f;
      in += columns;
      sum += in[0] * g + in[1] * h + in[2] * i;
      *output = rounded(sum, rounding, right, two_sided, low, high);
      output += channels;
      plane += stride;
    }
    plane += turn;
  }
}

static void depthwise_layer(const int8_t *input, int8_t *output, uint8_t *plane, int32_t rows, int32_t columns,
                            const tinyet_conv2d_shape *s, const tinyet_packed_words *words) {
  const TINYET_ROM uint32_t *w = words->stream;
  for (int32_t c = 0; c < s->in_c; c++) {
    plane_of(plane, input + c, rows, columns, s);
    if (words->two_sided != 0) {
      channel(plane, output + c, columns, s, w, words, 1);
      w += 16;
    } else {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
      const int32_t row = s->out_w * s->in_c;
      plane_walk walk = {s->out_h,
                         output + c + row,
                         row,
                         s->stride_h * columns - s->out_w * s->stride_w,
                         columns,
                         s->stride_w - 2 * columns,
                         s->in_c,
                         words->right,
                         ((uint32_t)words->clamp_high & 255u) | ((uint32_t)words->clamp_low & 255u) << 8};
      one_sided_channel(plane, output + c, w, &walk);
#else
      channel(plane, output + c, columns, s, w, words, 0);
#endif
      w += 14;
    }
  }
}
#endif

void tinyet_depthwise_s8_chw_3x3(const int8_t *input, int8_t *output, void *scratch,
                                 const tinyet_depthwise_s8_chw_3x3_params *params) {
  const tinyet_conv2d_shape *const s = &params->shape;
  const tinyet_packed_words *const words = &params->words;
  const int32_t rows = (s->out_h - 1) * s->stride_h + 3, columns = (s->out_w - 1) * s->stride_w + 3;
  uint8_t *const planes = (uint8_t *)scratch;
  memset(planes, (uint8_t)words->padding, (size_t)(PLANE_CHANNELS * rows * columns));
  for (int32_t n = 0; n < s->batch; n++) {
    depthwise_layer(input, output, planes, rows, columns, s, words);
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->in_c;
  }
}
