/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise_mve.h"

/* A channel of a band. tiles: addresses of the patches, as many as make eight outputs, one tile behind the other; in plain C,
 * where pointers may have more bits, as offsets in the plane. */
typedef struct {
  const int8_t *weights, *vectors;
  const uint32_t *tiles, *end;
  int32_t *sums;
  const int8_t *plane;
} job;

#if TINYET_MVE_ASM
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

__attribute__((naked)) static void four_outputs(TINYET_MVE_UNUSED const job *j) {
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

__attribute__((naked)) static void two_outputs(TINYET_MVE_UNUSED const job *j) {
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

__attribute__((naked)) static void one_output(TINYET_MVE_UNUSED const job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_OFFSETS("q3")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_ONE) TINYET_MVE_AGAIN);
}

__attribute__((naked)) static void output_of_two(TINYET_MVE_UNUSED const job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_OFFSETS("q3")
                   TINYET_MVE_OFFSETS("q4")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_TWO) TINYET_MVE_AGAIN);
}

__attribute__((naked)) static void output_of_three(TINYET_MVE_UNUSED const job *j) {
  __asm__ volatile(TINYET_MVE_BEGIN TINYET_MVE_WEIGHTS("q0") TINYET_MVE_WEIGHTS("q1") TINYET_MVE_WEIGHTS("q2")
                   TINYET_MVE_OFFSETS("q3") TINYET_MVE_OFFSETS("q4") TINYET_MVE_OFFSETS("q5")
                   "1:\n" TINYET_MVE_POINTERS TINYET_MVE_ALL(TINYET_MVE_THREE) TINYET_MVE_AGAIN);
}

/* A and B: what ROUND leaves the outputs in. */
#define TINYET_MVE_TILES(ROUND, A, B, CLAMP) \
  __asm__ volatile( \
      "ldm.w %[state], {r4, r5, r6, r8, r9, r10, r11, r12}\n" \
      "vdup.16 q5, r4\n" \
      "vdup.16 q6, r5\n" \
      "dls lr, r12\n" \
      "1:\n" \
      "vldrw.32 q0, [%[sums]], #16\n" \
      "vldrw.32 q1, [%[sums]], #16\n" \
      "vldrh.u16 q7, [%[places]], #16\n" \
      "vadd.i32 q0, q0, r6\n" \
      "vadd.i32 q1, q1, r6\n" ROUND \
      "vrshl.s32 " A ", r9\n" \
      "vrshl.s32 " B ", r9\n" \
      "vqmovnb.s32 " A ", " A "\n" \
      "vqmovnt.s32 " A ", " B "\n" \
      "vqadd.s16 " A ", " A ", r10\n" CLAMP(A) \
      "vstrb.16 " A ", [r11, q7]\n" \
      "le lr, 1b\n" \
      : [sums] "+r"(sums), [places] "+r"(places) \
      : [state] "r"(state) \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", \
        "d9", "d10", "d11", "d12", "d13", "d14", "d15", "memory", "cc")
#define TINYET_MVE_ROUND_ONE \
  "vqrdmulh.s32 q0, q0, r8\n" \
  "vqrdmulh.s32 q1, q1, r8\n"
#define TINYET_MVE_ROUND_TWO \
  "vshr.s32 q2, q0, #31\n" \
  "vshr.s32 q3, q1, #31\n" \
  "vqrdmlah.s32 q2, q0, r8\n" \
  "vqrdmlah.s32 q3, q1, r8\n"
#define TINYET_MVE_BYTES(A) "vqmovnb.s16 " A ", " A "\n"
#define TINYET_MVE_BOUNDS(A) \
  "vmax.s16 " A ", " A ", q5\n" \
  "vmin.s16 " A ", " A ", q6\n"
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
static void four_outputs(const job *j) { patches(j, 4, 1); }
static void two_outputs(const job *j) { patches(j, 2, 1); }
static void one_output(const job *j) { patches(j, 1, 1); }
static void output_of_two(const job *j) { patches(j, 1, 2); }
static void output_of_three(const job *j) { patches(j, 1, 3); }
#endif

static void sum_patches(const job *j, int32_t outputs, int32_t groups) {
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

/* Of the sums of all tiles the outputs, in the order in which assembly loads it. */
typedef struct {
  int32_t low, high, bias, multiplier, shift, zero_point;
  int8_t *output;
  int32_t tiles;
} rounding;

/* places: where those of a tile go: of lane i the sum i / 2, and 4 more where i is odd. form: 1 two-sided, 2 clamped. */
static void round_tiles(const int32_t *sums, const uint16_t *places, const rounding *state, int32_t form,
                        const tinyet_rounding_mve *r) {
#if TINYET_MVE_ASM
  (void)r;
  if (form == 0) {
    TINYET_MVE_TILES(TINYET_MVE_ROUND_ONE, "q0", "q1", TINYET_MVE_BYTES);
  } else if (form == 1) {
    TINYET_MVE_TILES(TINYET_MVE_ROUND_TWO, "q2", "q3", TINYET_MVE_BYTES);
  } else if (form == 2) {
    TINYET_MVE_TILES(TINYET_MVE_ROUND_ONE, "q0", "q1", TINYET_MVE_BOUNDS);
  } else {
    TINYET_MVE_TILES(TINYET_MVE_ROUND_TWO, "q2", "q3", TINYET_MVE_BOUNDS);
  }
#else
  (void)form;
  for (int32_t t = 0; t < state->tiles; t++, sums += 8, places += 8) {
    for (int32_t i = 0; i < 8; i++) {
      const int32_t sum = sums[i / 2 + i % 2 * 4] + state->bias;
      state->output[places[i]] = tinyet_round_mve(sum, state->multiplier, state->shift, r);
    }
  }
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
  const int32_t form = (r->one_sided ? 0 : 1) + (r->clamped ? 2 : 0);
  job j = {weights, vectors, tiles, tiles, sums, plane};
  rounding state = {r->low, r->high, 0, 0, 0, r->zero_point, output, s->tiles};
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
      j.weights = weights + 12;
      state.output = to;
      for (int32_t c = 0; c < s->in_c; c++, state.output++, j.weights += s->stream) {
        const int32_t *const channel = (const int32_t *)(const void *)(j.weights - 12);
        const int32_t second = in_pairs ? c & 1 : 0;
        if (count != 0 && !in_pairs) {
          take_channel(from + c, inside, pixels, count, s->in_c);
        } else if (count != 0 && !second) {
          take_channels(from + c, inside, inside + plane_bytes, pixels, count, s->in_c);
        }
        j.tiles = tiles + second * patch_count;
        j.end = j.tiles + patch_count;
        sum_patches(&j, outputs, s->groups);
        state.multiplier = channel[0], state.shift = channel[1], state.bias = channel[2];
        round_tiles(sums, places, &state, form, r);
      }
    }
    input += s->in_h * s->in_w * s->in_c;
    output += s->out_h * s->out_w * s->out_pixel;
  }
}
