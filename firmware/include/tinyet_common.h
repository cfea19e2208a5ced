/* SPDX-License-Identifier: Apache-2.0 */
/* What every kernel and every generated model shares: status codes, the trace hooks and the one rounding rule.
 * The reference of the arithmetic in Python is tinyet/numerics/rounding.py; both must give the same bits. */
#ifndef TINYET_COMMON_H
#define TINYET_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of constants are those of a core that is little-endian, and so are bytes of inputs and outputs. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "this code is for little-endian cores: its constants, and what it packs into words, have the lowest byte first"
#endif

/* An Arduino core compiles libraries with flags of its own: for size, and, where the FPU has an instruction for it, with a
 * product and a sum rounded once. The kernels' results are those of two roundings, and they are written for -O2; who wants
 * them as the core compiles, or as he has told it to, defines TINYET_KEEP_OPTIMIZATION. It holds for the C files that include
 * this, up to their ends; a sketch, which is C++, keeps its core's flags. */
#if defined(ARDUINO) && defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && !defined(__AVR__)
#if defined(__arm__) && !defined(TINYET_KEEP_OPTIMIZATION)
#pragma GCC optimize("O2")
#endif
#pragma GCC optimize("fp-contract=off")
#endif

/* With -fstack-protector-all GCC writes a guard in functions of assembly alone (naked), too: over their callers' frames, and over
 * an argument. Guards that no setting but that asks for are left out; functions with arrays keep theirs. */
#if defined(__SSP_ALL__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("stack-protector-strong")
#endif

/* Asks for so many copies of the body of the loop that follows. GCC knows it from version 8 on, and warned of it before. */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8)
#define TINYET_PRAGMA(text) _Pragma(#text)
#define TINYET_UNROLL(times) TINYET_PRAGMA(GCC unroll times)
#else
#define TINYET_UNROLL(times)
#endif

/* Changes when generated code and runtime must change together; generated code checks it when it is compiled. */
#define TINYET_ABI_VERSION 2

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* 0 is success, positive values are not errors, negative values are. */
typedef int32_t tinyet_status;
enum {
  TINYET_OK = 0,
  TINYET_STOPPED = 1,         /* the trace hook asked to stop after a layer */
  TINYET_MORE_ROWS = 2,       /* rows of the input are missing */
  TINYET_MORE_STEPS = 3,      /* of a run in slices, others are left */
  TINYET_DELEGATE_ERROR = -1, /* a delegate's own code failed */
  TINYET_TOO_MANY_ROWS = -2,  /* more rows than the image has left */
  TINYET_OTHER_STATE = -3,    /* bytes that are no states of this model, or damaged ones */
  TINYET_BUSY = -4,           /* another run of this instance has not returned */
  TINYET_BAD_ARENA = -5,      /* an instance that has no arena, or an address that none can have */
  TINYET_DAMAGED = -6,        /* constants, or a self-test's outputs, that are not the generated ones */
  TINYET_BAD_SIZE = -7,       /* a size that the model was not made for */
  TINYET_BAD_BUFFER = -8      /* an input or output at an address where none can be, or over another or the arena */
};

/* Generated code brackets each call with these, and a delegate's payload the parts that it can tell apart (their
 * numbers go on where those of the layers end). They cost nothing unless TINYET_TRACE is 1; then the harness counts,
 * remembers which layer runs (for its fault report) and may stop the run after a layer to read a tensor. */
#if defined(TINYET_TRACE) && TINYET_TRACE
void tinyet_trace_begin(uint32_t layer);
int tinyet_trace_end(uint32_t layer); /* non-zero: stop here */
void tinyet_trace_event_begin(uint32_t event);
void tinyet_trace_event_end(uint32_t event);
#define TINYET_LAYER_BEGIN(layer) tinyet_trace_begin(layer)
#define TINYET_LAYER_END(layer)         \
  do {                                  \
    if (tinyet_trace_end(layer) != 0) { \
      return TINYET_STOPPED;            \
    }                                   \
  } while (0)
#define TINYET_EVENT_BEGIN(event) tinyet_trace_event_begin(event)
#define TINYET_EVENT_END(event) tinyet_trace_event_end(event)
#else
#define TINYET_LAYER_BEGIN(layer) ((void)0)
#define TINYET_LAYER_END(layer) ((void)0)
#define TINYET_EVENT_BEGIN(event) ((void)(event))
#define TINYET_EVENT_END(event) ((void)(event))
#endif

/* Hands a status on that is not TINYET_OK. The layer, or the event, that has begun stays the one that failed. */
#define TINYET_TRY(call)                            \
  do {                                              \
    const tinyet_status tinyet_try_status = (call); \
    if (tinyet_try_status != TINYET_OK) {           \
      return tinyet_try_status;                     \
    }                                               \
  } while (0)

#if defined(__cplusplus)
#define TINYET_RESTRICT __restrict
#else
#define TINYET_RESTRICT restrict
#endif

#if defined(__cplusplus)
#define TINYET_STATIC_ASSERT static_assert
#else
#define TINYET_STATIC_ASSERT _Static_assert
#endif

/* A function of a generated model that several layers may call. GCC must not copy it: of a copy for arguments that are the
 * same addresses in every call, GCC 12 for Thumb-2 thinks that it writes nothing, and leaves the calls away. */
#if defined(__GNUC__) && !defined(__clang__)
#define TINYET_FUNCTION __attribute__((noclone)) static
#else
#define TINYET_FUNCTION static
#endif

/* Stands in the type of every constant that only kernels read: weights, tables. On AVR it keeps them in program memory, an
 * address space of its own; pointers into it are of another type there than pointers to RAM. It is nothing elsewhere, and in
 * C++, which has no such types. */
#if defined(__FLASH) && !defined(__cplusplus)
#define TINYET_ROM __flash
#elif defined(__AVR__) && !defined(__cplusplus)
#error "compile with -std=gnu11: strict C has no address space for constants, and they would fill the RAM"
#else
#define TINYET_ROM
#endif

/* Loads a byte of such a constant in assembly, by Z: from the program memory, or where the RAM has it. */
#ifdef __AVR__
#if defined(__cplusplus)
#define TINYET_LPM "ld "
#else
#define TINYET_LPM "lpm "
#endif
#endif

#define TINYET_INFINITY (__builtin_inff())
#define TINYET_NAN (__builtin_nanf(""))

#if defined(__AVR__) /* an 8-bit core reads from any address, and has no bytes to spare */
#define TINYET_ALIGNED(bytes)
#else
#define TINYET_ALIGNED(bytes) __attribute__((aligned(bytes)))
#endif

/* Where the arena and the weights go, as the name of a section: for linker scripts that want the one in a certain RAM (retained, or
 * near the core), and the other in a certain flash. It holds for C files that are compiled with it. Said here, it holds for link-time
 * optimization, too, and without -fdata-sections. Where neither is defined, they go where all variables and constants go. */
#if defined(TINYET_ARENA_SECTION)
#define TINYET_ARENA_PLACE __attribute__((section(TINYET_ARENA_SECTION)))
#else
#define TINYET_ARENA_PLACE
#endif
#if !defined(TINYET_WEIGHTS_SECTION)
#define TINYET_WEIGHTS_PLACE
#elif defined(__AVR__)
#error "TINYET_WEIGHTS_SECTION: on AVR weights are in program memory, which has no sections of one's own"
#else
#define TINYET_WEIGHTS_PLACE __attribute__((section(TINYET_WEIGHTS_SECTION)))
#endif

/* Behind a definition: it goes into a section of the linker script. Programs of an operating system have no such sections. */
#if defined(__linux__) || defined(__APPLE__) || defined(_WIN32)
#define TINYET_IN(section_name)
#else
#define TINYET_IN(section_name) __attribute__((section(section_name)))
#endif

/* memcpy from a constant that has TINYET_ROM in its type. */
static inline void tinyet_copy_rom(void *to, const TINYET_ROM void *from, size_t bytes) {
#if defined(__FLASH) && !defined(__cplusplus)
  uint8_t *out = (uint8_t *)to;
  const TINYET_ROM uint8_t *in = (const TINYET_ROM uint8_t *)from;
  for (; bytes != 0u; bytes--) {
    *out++ = *in++;
  }
#else
  memcpy(to, from, bytes);
#endif
}

/* Zero bits above the highest one, of 32; x is not 0. */
static inline int32_t tinyet_leading_zeros(uint32_t x) {
#if __SIZEOF_INT__ >= 4
  return __builtin_clz(x);
#else
  return __builtin_clzl(x);
#endif
}

/* Most negative result of a left shift is well defined on unsigned numbers only. */
static inline int32_t tinyet_shift_left(int32_t x, int32_t bits) { return (int32_t)((uint32_t)x << (uint32_t)bits); }

/* Sizes and places of what lies in the arena: 32 bits are four registers of an AVR, whose memory 16 bits reach. What comes of
 * 32 bits fits there: kernels that take this refuse other layers. */
#ifdef __AVR__
typedef int16_t tinyet_extent;
#define TINYET_EXTENT(x) ((tinyet_extent)(x))
#else
typedef int32_t tinyet_extent;
#define TINYET_EXTENT(x) (x)
#endif

#ifdef __AVR__
/* The two functions below for a core that multiplies bytes and shifts by one bit, and whose compiler has no product of 64 bits but
 * by eight bytes times eight. */
#define TINYET_AVR_MUL(a, b, first, second) "mul %" a "[a], %" b "[b]\n" "add %" first ", r0\n" "adc %" second ", r1\n"
#define TINYET_AVR_CARRY(to) "adc %" to ", %A[low]\n"

static __attribute__((noinline, unused)) int32_t tinyet_high_mul(int32_t a, int32_t b) {
  uint32_t low, high; /* of the product, whose lowest byte is taken for zero, which no carry comes of */
  __asm__(
      "mul %A[a], %A[b]\n" "movw %A[low], r0\n"
      "mul %B[a], %B[b]\n" "movw %C[low], r0\n"
      "mul %C[a], %C[b]\n" "movw %A[high], r0\n"
      "mul %D[a], %D[b]\n" "movw %C[high], r0\n"
      "clr %A[low]\n"
#define TINYET_AVR_ONE(a, b)                                                                                     \
  TINYET_AVR_MUL(a, b, "B[low]", "C[low]") TINYET_AVR_CARRY("D[low]") TINYET_AVR_CARRY("A[high]")               \
      TINYET_AVR_CARRY("B[high]") TINYET_AVR_CARRY("C[high]") TINYET_AVR_CARRY("D[high]")
#define TINYET_AVR_TWO(a, b)                                                                                     \
  TINYET_AVR_MUL(a, b, "C[low]", "D[low]") TINYET_AVR_CARRY("A[high]") TINYET_AVR_CARRY("B[high]")              \
      TINYET_AVR_CARRY("C[high]") TINYET_AVR_CARRY("D[high]")
#define TINYET_AVR_THREE(a, b)                                                                                   \
  TINYET_AVR_MUL(a, b, "D[low]", "A[high]") TINYET_AVR_CARRY("B[high]") TINYET_AVR_CARRY("C[high]")             \
      TINYET_AVR_CARRY("D[high]")
#define TINYET_AVR_FOUR(a, b) TINYET_AVR_MUL(a, b, "A[high]", "B[high]") TINYET_AVR_CARRY("C[high]") TINYET_AVR_CARRY("D[high]")
#define TINYET_AVR_FIVE(a, b) TINYET_AVR_MUL(a, b, "B[high]", "C[high]") TINYET_AVR_CARRY("D[high]")
      TINYET_AVR_ONE("A", "B") TINYET_AVR_ONE("B", "A") TINYET_AVR_TWO("A", "C") TINYET_AVR_TWO("C", "A")
      TINYET_AVR_THREE("A", "D") TINYET_AVR_THREE("D", "A") TINYET_AVR_THREE("B", "C") TINYET_AVR_THREE("C", "B")
      TINYET_AVR_FOUR("B", "D") TINYET_AVR_FOUR("D", "B") TINYET_AVR_FIVE("C", "D") TINYET_AVR_FIVE("D", "C")
      "clr __zero_reg__\n"
      "sbrs %D[a], 7\n" /* without signs a negative number is 2^32 more */
      "rjmp 1f\n"
      "sub %A[high], %A[b]\n" "sbc %B[high], %B[b]\n" "sbc %C[high], %C[b]\n" "sbc %D[high], %D[b]\n"
      "1:\n"
      "sbrs %D[b], 7\n"
      "rjmp 2f\n"
      "sub %A[high], %A[a]\n" "sbc %B[high], %B[a]\n" "sbc %C[high], %C[a]\n" "sbc %D[high], %D[a]\n"
      "2:\n"
      "ldi %A[a], 0x40\n" /* half of what the shift drops */
      "add %D[low], %A[a]\n"
      TINYET_AVR_CARRY("A[high]") TINYET_AVR_CARRY("B[high]") TINYET_AVR_CARRY("C[high]") TINYET_AVR_CARRY("D[high]")
      "lsl %D[low]\n" "rol %A[high]\n" "rol %B[high]\n" "rol %C[high]\n" "rol %D[high]\n"
      : [low] "=&r"(low), [high] "=&r"(high), [a] "+&d"(a)
      : [b] "r"(b)
      : "r0");
  /* Of one pair of numbers alone. */
  return (int32_t)high == INT32_MIN ? INT32_MAX : (int32_t)high;
}

#undef TINYET_AVR_MUL
#undef TINYET_AVR_CARRY
#undef TINYET_AVR_ONE
#undef TINYET_AVR_TWO
#undef TINYET_AVR_THREE
#undef TINYET_AVR_FOUR
#undef TINYET_AVR_FIVE

static __attribute__((noinline, unused)) int32_t tinyet_round_shift(int32_t x, int32_t bits) {
  uint8_t turns = (uint8_t)bits;
  if (turns != 0u) { /* of the magnitude: to one bit more than is wanted, and then by one with a half added */
#define TINYET_AVR_NEGATE                                                                            \
  "com %D[x]\n" "com %C[x]\n" "com %B[x]\n" "neg %A[x]\n" "sbci %B[x], 0xff\n" "sbci %C[x], 0xff\n" \
  "sbci %D[x], 0xff\n"
    __asm__(
        "bst %D[x], 7\n"
        "brtc 1f\n" TINYET_AVR_NEGATE
        "1:\n"
        "dec %[turns]\n"
        "2:\n"
        "cpi %[turns], 8\n"
        "brlo 3f\n"
        "mov %A[x], %B[x]\n" "mov %B[x], %C[x]\n" "mov %C[x], %D[x]\n" "clr %D[x]\n"
        "subi %[turns], 8\n"
        "rjmp 2b\n"
        "3:\n"
        "tst %[turns]\n"
        "breq 5f\n"
        "4:\n"
        "lsr %D[x]\n" "ror %C[x]\n" "ror %B[x]\n" "ror %A[x]\n"
        "dec %[turns]\n"
        "brne 4b\n"
        "5:\n"
        "subi %A[x], 0xff\n" "sbci %B[x], 0xff\n" "sbci %C[x], 0xff\n" "sbci %D[x], 0xff\n"
        "lsr %D[x]\n" "ror %C[x]\n" "ror %B[x]\n" "ror %A[x]\n"
        "brtc 6f\n" TINYET_AVR_NEGATE
        "6:\n"
        : [x] "+&d"(x), [turns] "+&d"(turns));
#undef TINYET_AVR_NEGATE
  }
  return x;
}
#else
/* a * b / 2^31, rounded to nearest with ties upward, saturating the single case INT32_MIN * INT32_MIN. gemmlowp writes
 * this as a division that truncates after adding a nudge of the product's sign; that is the same number. */
static inline int32_t tinyet_high_mul(int32_t a, int32_t b) {
  if (a == INT32_MIN && b == INT32_MIN) {
    return INT32_MAX;
  }
  return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

/* x / 2^bits, ties away from zero; bits in 0 ... 31. */
static inline int32_t tinyet_round_shift(int32_t x, int32_t bits) {
  const int32_t mask = (int32_t)((UINT32_C(1) << (uint32_t)bits) - 1u);
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> bits) + ((x & mask) > threshold ? 1 : 0);
}
#endif

/* acc * multiplier * 2^(shift - 31), rounded twice as TFLM and CMSIS-NN do. */
static inline int32_t tinyet_requantize(int32_t acc, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0;
  const int32_t right = shift > 0 ? 0 : -shift;
  return tinyet_round_shift(tinyet_high_mul(tinyet_shift_left(acc, left), multiplier), right);
}

/* acc * multiplier / 2^shift, rounded once, ties upward: the rule for sums of more than 32 bits (int16 layers), as LiteRT
 * and CMSIS-NN have it. |acc| < 2^47; multiplier of 15 bits; shift in 8 ... 46; the result below 2^30. Shifting in words
 * takes half as long as a shift of 64 bits, and halving last rounds as adding a half first does. */
static inline int32_t tinyet_requantize_s64(int64_t acc, int32_t multiplier, int32_t shift) {
  const int64_t product = acc * (int64_t)(uint32_t)multiplier;
  const int32_t high = (int32_t)(product >> 32), bits = shift - 1;
  const int32_t twice =
      bits < 32 ? (int32_t)(((uint32_t)product >> bits) | ((uint32_t)high << (32 - bits))) : high >> (bits - 32);
  return (twice + 1) >> 1;
}

static inline int32_t tinyet_least(int32_t a, int32_t b) { return a < b ? a : b; }

static inline int32_t tinyet_clamp(int32_t x, int32_t low, int32_t high) {
  return x < low ? low : (x > high ? high : x);
}

static inline float tinyet_clamp_f32(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }

/* A real number as an integer of [low, high]: zero_point + x / scale to nearest, ties away from zero. NaN gives the zero
 * point. Truncation and the remainder are exact in float; adding 0.5 first would not be. */
static inline int32_t tinyet_quantize_value(float x, float scale, int32_t zero_point, int32_t low, int32_t high) {
  const float limit = 16777216.0f; /* beyond it every int8 and int16 is saturated */
  const float scaled = x / scale;
  if (scaled != scaled) {
    return tinyet_clamp(zero_point, low, high);
  }
  const float bounded = scaled < -limit ? -limit : (scaled > limit ? limit : scaled);
  int32_t nearest = (int32_t)bounded;
  const float rest = bounded - (float)nearest;
  if (rest >= 0.5f) {
    nearest++;
  } else if (rest <= -0.5f) {
    nearest--;
  }
  return tinyet_clamp(nearest + zero_point, low, high);
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* Entry and end of a naked function: registers above r7 are pushed from lower ones, behind `more`, as in "r3, ". */
#define TINYET_THUMB1_ENTRY(more)        \
  ".syntax unified\n"                    \
  "push {r4, r5, r6, r7, lr}\n"          \
  "mov r4, r8\n"                         \
  "mov r5, r9\n"                         \
  "mov r6, r10\n"                        \
  "mov r7, r11\n"                        \
  "push {" more "r4, r5, r6, r7}\n"
#define TINYET_THUMB1_RETURN(more)       \
  "pop {" more "r4, r5, r6, r7}\n"       \
  "mov r8, r4\n"                         \
  "mov r9, r5\n"                         \
  "mov r10, r6\n"                        \
  "mov r11, r7\n"                        \
  "pop {r4, r5, r6, r7, pc}\n"
#endif

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
