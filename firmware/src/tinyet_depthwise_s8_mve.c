/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_mve.h"

/* Of the channels of a band, all or every other one: the next of them. tiles: addresses of the patches, as many as make eight
 * outputs, one tile behind the other; in plain C, where pointers may have more bits, as offsets in the plane. places: where the
 * outputs of a tile go: of lane i the sum i / 2, and 4 more where i is odd. The fields are in the order in which assembly loads
 * them. */
typedef struct {
  const int8_t *weights, *vectors;
  const uint32_t *tiles, *end;
  int32_t *sums;
  int8_t *output;
  int32_t count; /* of tiles */
  const uint16_t *places;
  int32_t zero_point, low, high;
  int32_t weights_step, output_step; /* to the channel after this one */
  const int8_t *plane;
  const tinyet_rounding_mve *rounding;
} job;

#if TINYET_MVE_ASM
/* A function of assembly alone. GCC would take registers that the text does not tell it of as not written to. */
#if defined(__clang__)
#define TINYET_MVE_NAKED __attribute__((naked, noinline))
#else
#define TINYET_MVE_NAKED __attribute__((naked, noinline, noipa))
#endif

/* clang-format off */
/* r5: tiles, r7: their end, r9: sums. VMLADAV is for even registers. */
#define TINYET_MVE_BEGIN \
  "push {r3-r11, lr}\n" \
  "vpush {d8-d15}\n" \
  "ldm.w r0, {r1, r3, r5, r7, r9}\n"
#define TINYET_MVE_WEIGHTS(Q) \
  "vldrb.u8 q7, [r3], #16\n" \
  "vldrb.u8 " Q ", [r1, q7]\n"
#define TINYET_MVE_OFFSETS(Q) "vldrb.u8 " Q ", [r3], #16\n"
#define TINYET_MVE_AGAIN \
  "stm.w r9!, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
  "cmp.w r5, r7\n" \
  "bne.w 1b\n" \
  "vpop {d8-d15}\n" \
  "pop.w {r3-r11, pc}\n"

TINYET_MVE_NAKED static void four_outputs(TINYET_MVE_UNUSED job *j) {
  __asm__ volatile(
      TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_WEIGHTS("q2") TINYET_MVE_WEIGHTS("q3")
      TINYET_MVE_OFFSETS("q5")
      "1:\n"
      "ldrd r1, r3, [r5], #8\n"
      "vldrb.u8 q4, [r1, q5]\n"
      "vldrb.u8 q6, [r3, q5]\n"
      "vmladav.s8 r0, q4, q0\n"
      "vmladav.s8 r2, q4, q1\n"
      "vmladav.s8 r4, q4, q2\n"
      "vmladav.s8 r6, q4, q3\n"
      "vmladav.s8 r8, q6, q0\n"
      "vmladav.s8 r10, q6, q1\n"
      "vmladav.s8 r12, q6, q2\n"
      "vmladav.s8 lr, q6, q3\n" TINYET_MVE_AGAIN);
}

TINYET_MVE_NAKED static void two_outputs(TINYET_MVE_UNUSED job *j) {
  __asm__ volatile(
      TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_OFFSETS("q5")
      "1:\n"
      "ldm.w r5!, {r1, r3, r11, lr}\n"
      "vldrb.u8 q2, [r1, q5]\n"
      "vldrb.u8 q3, [r3, q5]\n"
      "vldrb.u8 q4, [r11, q5]\n"
      "vldrb.u8 q6, [lr, q5]\n"
      "vmladav.s8 r0, q2, q0\n"
      "vmladav.s8 r2, q2, q1\n"
      "vmladav.s8 r4, q3, q0\n"
      "vmladav.s8 r6, q3, q1\n"
      "vmladav.s8 r8, q4, q0\n"
      "vmladav.s8 r10, q4, q1\n"
      "vmladav.s8 r12, q6, q0\n"
      "vmladav.s8 lr, q6, q1\n" TINYET_MVE_AGAIN);
}

#define TINYET_MVE_ALL(OUTPUT) OUTPUT("r0") OUTPUT("r2") OUTPUT("r4") OUTPUT("r6") OUTPUT("r8") OUTPUT("r10") OUTPUT("r12") OUTPUT("lr")
#define TINYET_MVE_POINTERS "ldm.w r5!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
#define TINYET_MVE_ONE(R) \
  "vldrb.u8 q6, [" R ", q3]\n" \
  "vmladav.s8 " R ", q6, q0\n"
#define TINYET_MVE_TWO(R) \
  "vldrb.u8 q6, [" R ", q3]\n" \
  "vldrb.u8 q7, [" R ", q4]\n" \
  "vmladav.s8 " R ", q6, q0\n" \
  "vmladava.s8 " R ", q7, q1\n"
#define TINYET_MVE_THREE(R) \
  "vldrb.u8 q6, [" R ", q3]\n" \
  "vldrb.u8 q7, [" R ", q4]\n" \
  "mov.w r11, " R "\n" \
  "vmladav.s8 " R ", q6, q0\n" \
  "vldrb.u8 q6, [r11, q5]\n" \
  "vmladava.s8 " R ", q7, q1\n" \
  "vmladava.s8 " R ", q6, q2\n"

TINYET_MVE_NAKED static void one_output(TINYET_MVE_UNUSED job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_OFFSETS("q3")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_ONE) TINYET_MVE_AGAIN);
}

TINYET_MVE_NAKED static void output_of_two(TINYET_MVE_UNUSED job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_OFFSETS("q3")
                   TINYET_MVE_OFFSETS("q4")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_TWO) TINYET_MVE_AGAIN);
}

TINYET_MVE_NAKED static void output_of_three(TINYET_MVE_UNUSED job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_WEIGHTS("q2")
                   TINYET_MVE_OFFSETS("q3") TINYET_MVE_OFFSETS("q4") TINYET_MVE_OFFSETS("q5")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_THREE) TINYET_MVE_AGAIN);
}

/* Outputs of a channel's sums, and on to the next channel. ROUND leaves the outputs in A and B, and PLACES unused.
 * r4: multiplier, r5: shift, r6: bias, r7: sums, r8: output, r10: places, r11: zero point. */
#define TINYET_MVE_TILES(BEGIN, ROUND, A, B, PLACES, CLAMP, END) \
  __asm__ volatile( \
      "push {r4-r11, lr}\n" BEGIN \
      "ldr.w r1, [r0]\n" \
      "ldmdb.w r1, {r4, r5, r6}\n" \
      "add.w r2, r0, #16\n" \
      "ldm.w r2, {r7, r8, r9, r10, r11}\n" \
      "dls lr, r9\n" \
      "1:\n" \
      "vldrw.32 q0, [r7], #16\n" \
      "vldrw.32 q1, [r7], #16\n" \
      "vadd.i32 q0, q0, r6\n" \
      "vadd.i32 q1, q1, r6\n" ROUND \
      "vldrh.u16 " PLACES ", [r10], #16\n" \
      "vrshl.s32 " A ", r5\n" \
      "vrshl.s32 " B ", r5\n" \
      "vqmovnb.s32 " A ", " A "\n" \
      "vqmovnt.s32 " A ", " B "\n" \
      "vqadd.s16 " A ", " A ", r11\n" CLAMP(A) \
      "vstrb.16 " A ", [r8, " PLACES "]\n" \
      "le lr, 1b\n" \
      "ldrd r2, r3, [r0, #44]\n" \
      "add.w r1, r1, r2\n" \
      "add.w r8, r8, r3\n" \
      "str.w r1, [r0]\n" \
      "str.w r8, [r0, #20]\n" END \
      "pop.w {r4-r11, pc}\n")
#define TINYET_MVE_ROUND_ONE \
  "vqrdmulh.s32 q0, q0, r4\n" \
  "vqrdmulh.s32 q1, q1, r4\n"
#define TINYET_MVE_ROUND_TWO \
  "vshr.s32 q2, q0, #31\n" \
  "vshr.s32 q3, q1, #31\n" \
  "vqrdmlah.s32 q2, q0, r4\n" \
  "vqrdmlah.s32 q3, q1, r4\n"
#define TINYET_MVE_BYTES(A) "vqmovnb.s16 " A ", " A "\n"
#define TINYET_MVE_BOUNDS(A) \
  "vmax.s16 " A ", " A ", q4\n" \
  "vmin.s16 " A ", " A ", q5\n"
#define TINYET_MVE_BOUNDS_BEGIN \
  "vpush {d8-d11}\n" \
  "ldrd r2, r3, [r0, #36]\n" \
  "vdup.16 q4, r2\n" \
  "vdup.16 q5, r3\n"
#define TINYET_MVE_BOUNDS_END "vpop {d8-d11}\n"

TINYET_MVE_NAKED static void round_one(TINYET_MVE_UNUSED job *j) {
  TINYET_MVE_TILES("", TINYET_MVE_ROUND_ONE, "q0", "q1", "q2", TINYET_MVE_BYTES, "");
}
TINYET_MVE_NAKED static void round_two(TINYET_MVE_UNUSED job *j) {
  TINYET_MVE_TILES("", TINYET_MVE_ROUND_TWO, "q2", "q3", "q0", TINYET_MVE_BYTES, "");
}
TINYET_MVE_NAKED static void round_one_clamped(TINYET_MVE_UNUSED job *j) {
  TINYET_MVE_TILES(TINYET_MVE_BOUNDS_BEGIN, TINYET_MVE_ROUND_ONE, "q0", "q1", "q2", TINYET_MVE_BOUNDS, TINYET_MVE_BOUNDS_END);
}
TINYET_MVE_NAKED static void round_two_clamped(TINYET_MVE_UNUSED job *j) {
  TINYET_MVE_TILES(TINYET_MVE_BOUNDS_BEGIN, TINYET_MVE_ROUND_TWO, "q2", "q3", "q0", TINYET_MVE_BOUNDS, TINYET_MVE_BOUNDS_END);
}
/* clang-format on */
#else
/* outputs: of a patch; groups: gathers of an output. One of the two is 1. */
static void patches(const job *j, int32_t outputs, int32_t groups) {
  const int8_t *const offsets = j->vectors + 16 * outputs * groups;
  int32_t *sums = j->sums;
  for (const uint32_t *at = j->tiles; at != j->end; at++) {
    for (int32_t i = 0; i < outputs; i++) {
      int32_t sum = 0;
      for (int32_t k = 0; k < 16 * groups; k++) {
        sum += j->plane[*at + (uint8_t)offsets[k]] * j->weights[(uint8_t)j->vectors[16 * i + k]];
      }
      *sums++ = sum;
    }
  }
}
static void four_outputs(job *j) { patches(j, 4, 1); }
static void two_outputs(job *j) { patches(j, 2, 1); }
static void one_output(job *j) { patches(j, 1, 1); }
static void output_of_two(job *j) { patches(j, 1, 2); }
static void output_of_three(job *j) { patches(j, 1, 3); }
static void round_tiles(job *j) {
  const int32_t *const channel = (const int32_t *)(const void *)(j->weights - 12), *sums = j->sums;
  const uint16_t *places = j->places;
  for (int32_t t = 0; t < j->count; t++, sums += 8, places += 8) {
    for (int32_t i = 0; i < 8; i++) {
      const int32_t sum = sums[i / 2 + i % 2 * 4] + channel[2];
      j->output[places[i]] = tinyet_round_mve(sum, channel[0], channel[1], j->rounding);
    }
  }
  j->weights += j->weights_step;
  j->output += j->output_step;
}
#endif

static void sum_channel(job *j, int32_t outputs, int32_t groups) {
  if (outputs == 4) {
    four_outputs(j);
  } else if (outputs == 2) {
    two_outputs(j);
  } else if (groups == 1) {
    one_output(j);
  } else if (groups == 2) {
    output_of_two(j);
  } else {
    output_of_three(j);
  }
}

/* form: 1 two-sided, 2 clamped. */
static void round_channel(job *j, int32_t form) {
#if TINYET_MVE_ASM
  if (form == 0) {
    round_one(j);
  } else if (form == 1) {
    round_two(j);
  } else if (form == 2) {
    round_one_clamped(j);
  } else {
    round_two_clamped(j);
  }
#else
  (void)form;
  round_tiles(j);
#endif
}

/* Where each pixel of some rows lies in the plane. */
static void number_pixels(uint16_t *to, int32_t rows, const tinyet_depthwise_shape_mve *s) {
  int32_t begin = 0;
  for (; rows != 0; rows--, begin += s->row, to += s->in_w) {
#if TINYET_MVE_ASM
    uint16_t *at = to;
    __asm__ volatile(
        "mov.w r4, %[begin]\n"
        "dlstp.16 lr, %[count]\n"
        "1:\n"
        "vidup.u16 q0, r4, #1\n"
        "vstrh.16 q0, [%[at]], #16\n"
        "letp lr, 1b\n"
        : [at] "+l"(at)
        : [begin] "r"(begin), [count] "r"(s->in_w)
        : "r4", "lr", "d0", "d1", "memory");
#else
    for (int32_t x = 0; x < s->in_w; x++) {
      to[x] = (uint16_t)(begin + x);
    }
#endif
  }
}

/* The values of a channel of so many pixels, one or more, to the plane. */
static void take_channel(const int8_t *from, int8_t *plane, const uint16_t *places, int32_t pixels, int32_t channels) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "mov.w r4, #0\n"
      "vidup.u16 q6, r4, #1\n"
      "vmul.i16 q6, q6, %[channels]\n"
      "lsl.w r4, %[channels], #3\n"
      "dlstp.16 lr, %[pixels]\n"
      "1:\n"
      "vldrb.u16 q0, [%[from], q6]\n"
      "vldrh.u16 q7, [%[places]], #16\n"
      "add.w %[from], %[from], r4\n"
      "vstrb.16 q0, [%[plane], q7]\n"
      "letp lr, 1b\n"
      : [from] "+r"(from), [places] "+l"(places)
      : [plane] "r"(plane), [pixels] "r"(pixels), [channels] "r"(channels)
      : "r4", "lr", "d0", "d1", "d12", "d13", "d14", "d15", "memory");
#else
  for (int32_t i = 0; i < pixels; i++) {
    plane[places[i]] = from[i * channels];
  }
#endif
}

/* The same of two channels at an even address, to a plane each. */
static void take_channels(const int8_t *from, int8_t *plane, int8_t *next, const uint16_t *places, int32_t pixels,
                          int32_t channels) {
#if TINYET_MVE_ASM
  __asm__ volatile(
      "mov.w r4, #0\n"
      "vidup.u16 q6, r4, #1\n"
      "vmul.i16 q6, q6, %[channels]\n"
      "lsl.w r4, %[channels], #3\n"
      "dlstp.16 lr, %[pixels]\n"
      "1:\n"
      "vldrh.u16 q0, [%[from], q6]\n"
      "vldrh.u16 q7, [%[places]], #16\n"
      "add.w %[from], %[from], r4\n"
      "vstrb.16 q0, [%[plane], q7]\n"
      "vshr.u16 q0, q0, #8\n"
      "vstrb.16 q0, [%[next], q7]\n"
      "letp lr, 1b\n"
      : [from] "+r"(from), [places] "+l"(places)
      : [plane] "r"(plane), [next] "r"(next), [pixels] "r"(pixels), [channels] "r"(channels)
      : "r4", "lr", "d0", "d1", "d12", "d13", "d14", "d15", "memory");
#else
  take_channel(from, plane, places, pixels, channels);
  take_channel(from + 1, next, places, pixels, channels);
#endif
}

/* Addresses of the patches of a band, as many as make whole tiles, the last one several times, and of the same in the second
 * plane; and where their outputs go. */
static void lay_patches(uint32_t *tiles, uint16_t *places, const int8_t *plane, const tinyet_depthwise_shape_mve *s) {
  uint32_t *second = tiles + 8 * s->tiles / (s->patch_h * s->patch_w);
  const uint32_t bytes = (uint32_t)(s->band_in * s->row);
  const uint32_t base = TINYET_MVE_ASM ? (uint32_t)(uintptr_t)plane : 0u;
  const int32_t outputs = s->patch_h * s->patch_w;
  int32_t y = 0, x = 0, sum = 0;
  for (int32_t i = 8 * s->tiles / outputs; i != 0; i--) {
    *second++ = base + bytes + (uint32_t)(y * s->stride_h * s->row + x * s->stride_w);
    *tiles++ = base + (uint32_t)(y * s->stride_h * s->row + x * s->stride_w);
    for (int32_t j = 0; j < outputs; j++) {
      const int32_t pixel = (y + j / s->patch_w) * s->out_w + x + j % s->patch_w;
      places[2 * (sum & 3) + (sum >> 2)] = (uint16_t)(pixel * s->out_pixel);
      sum = (sum + 1) & 7;
      places += sum == 0 ? 8 : 0;
    }
    const int32_t last_x = s->out_w - s->patch_w, last_y = s->band - s->patch_h;
    if (x < last_x) {
      x = x + s->patch_w < last_x ? x + s->patch_w : last_x;
    } else if (y < last_y) {
      x = 0;
      y = y + s->patch_h < last_y ? y + s->patch_h : last_y;
    }
  }
}

void tinyet_depthwise_s8_mve(const int8_t *input, int8_t *output, void *scratch, const int8_t *weights, const int8_t *vectors,
                             const tinyet_depthwise_shape_mve *s) {
  const int32_t outputs = s->patch_h * s->patch_w, patch_count = 8 * s->tiles / outputs;
  const int32_t plane_bytes = s->band_in * s->row;
  const int32_t in_pairs = s->in_c % 2 == 0 && ((uintptr_t)input & 1u) == 0u;
  uint32_t *const tiles = (uint32_t *)scratch;
  int32_t *const sums = (int32_t *)(void *)(tiles + 2 * patch_count);
  uint16_t *const places = (uint16_t *)(void *)(sums + 8 * s->tiles), *const pixels = places + 8 * s->tiles;
  int8_t *const plane = (int8_t *)(pixels + s->band_in * s->in_w);
  const tinyet_rounding_mve *const r = &s->rounding;
  const int32_t groups = s->groups, form = (r->one_sided ? 0 : 1) + (r->clamped ? 2 : 0);
  const int32_t step = in_pairs ? 2 : 1, to_weights = step * s->stream;
  job even = {weights,       vectors, tiles,   tiles + patch_count, sums, output, s->tiles, places,
              r->zero_point, r->low,  r->high, to_weights,          step, plane,  r};
  job odd = even;
  odd.tiles = even.end, odd.end = even.end + patch_count;
  lay_patches(tiles, places, plane, s);
  number_pixels(pixels, s->band_in, s);
  for (int32_t b = 0; b < s->batch; b++) {
    for (int32_t next = 0; next < s->out_h; next += s->band) {
      const int32_t first = next + s->band < s->out_h ? next : s->out_h - s->band; /* the last band overlaps others */
      const int32_t top = first * s->stride_h - s->pad_top;
      const int32_t begin = top > 0 ? top : 0;
      const int32_t end = top + s->band_in < s->in_h ? top + s->band_in : s->in_h;
      const int32_t count = end > begin ? (end - begin) * s->in_w : 0;
      const int8_t *const from = input + begin * s->in_w * s->in_c;
      int8_t *const inside = plane + (begin - top) * s->row + s->pad_left;
      int8_t *const to = output + first * s->out_w * s->out_pixel;
      memset(plane, s->zero_point, (size_t)(2 * plane_bytes));
      even.weights = weights + 12, even.output = to;
      odd.weights = even.weights + s->stream, odd.output = to + 1;
      for (int32_t c = 0; c < s->in_c; c += step) {
        if (count != 0 && in_pairs) {
          take_channels(from + c, inside, inside + plane_bytes, pixels, count, s->in_c);
        } else if (count != 0) {
          take_channel(from + c, inside, pixels, count, s->in_c);
        }
        sum_channel(&even, outputs, groups);
        round_channel(&even, form);
        if (in_pairs) {
          sum_channel(&odd, outputs, groups);
          round_channel(&odd, form);
        }
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->out_pixel;
  }
}
