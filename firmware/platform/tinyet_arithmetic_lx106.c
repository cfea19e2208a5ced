/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GCC calls for arithmetic that the LX106 has no instructions for, and that its libgcc leaves out because the ESP8266 has
 * it in its ROM: products of 64 bits, division, and float32 by IEEE 754, rounded to nearest, ties to even. Not float64.
 */
#include <stdbool.h>
#include <stdint.h>

uint64_t __umulsidi3(uint32_t a, uint32_t b);
uint64_t __muldi3(uint64_t a, uint64_t b);
uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);
int32_t __divsi3(int32_t a, int32_t b);
uint64_t __udivdi3(uint64_t a, uint64_t b);
uint64_t __umoddi3(uint64_t a, uint64_t b);
int64_t __divdi3(int64_t a, int64_t b);
/* Floats are in integer registers: these have the bits for arguments and results. */
uint32_t __addsf3(uint32_t a, uint32_t b);
uint32_t __subsf3(uint32_t a, uint32_t b);
uint32_t __mulsf3(uint32_t a, uint32_t b);
uint32_t __floatsisf(int32_t x);
uint32_t __floatunsisf(uint32_t x);
uint32_t __fixunssfsi(uint32_t a);

/* libgcc's own */
extern uint64_t __udivmoddi4(uint64_t a, uint64_t b, uint64_t *rest);

#define SIGN 0x80000000u
#define INFINITE 0x7F800000u
#define NOT_A_NUMBER 0x7FC00000u
#define HIDDEN 0x00800000u

/* ---- integers ---- */

uint64_t __umulsidi3(uint32_t a, uint32_t b) {
  const uint32_t a0 = a & 0xFFFFu, a1 = a >> 16, b0 = b & 0xFFFFu, b1 = b >> 16;
  const uint32_t low = a0 * b0;
  const uint32_t middle = a1 * b0 + (low >> 16); /* at most 2^32 - 2^16 */
  const uint32_t other = a0 * b1 + (middle & 0xFFFFu);
  const uint32_t high = a1 * b1 + (middle >> 16) + (other >> 16);
  return (uint64_t)high << 32 | (other << 16 | (low & 0xFFFFu));
}

uint64_t __muldi3(uint64_t a, uint64_t b) {
  const uint32_t a0 = (uint32_t)a, b0 = (uint32_t)b;
  const uint32_t crossed = a0 * (uint32_t)(b >> 32) + (uint32_t)(a >> 32) * b0;
  return __umulsidi3(a0, b0) + ((uint64_t)crossed << 32);
}

/* Bit by bit, from the first one that the quotient can have. */
uint32_t __udivsi3(uint32_t a, uint32_t b) {
  uint32_t quotient = 0u;
  if (b != 0u && a >= b) {
    for (int32_t bit = __builtin_clz(b) - __builtin_clz(a); bit >= 0; bit--) {
      if (a >= b << bit) {
        a -= b << bit;
        quotient |= 1u << bit;
      }
    }
  }
  return quotient;
}

uint32_t __umodsi3(uint32_t a, uint32_t b) { return a - __udivsi3(a, b) * b; }

int32_t __divsi3(int32_t a, int32_t b) {
  const uint32_t quotient = __udivsi3(a < 0 ? 0u - (uint32_t)a : (uint32_t)a, b < 0 ? 0u - (uint32_t)b : (uint32_t)b);
  return (int32_t)((a < 0) != (b < 0) ? 0u - quotient : quotient);
}

uint64_t __udivdi3(uint64_t a, uint64_t b) { return __udivmoddi4(a, b, 0); }

uint64_t __umoddi3(uint64_t a, uint64_t b) {
  uint64_t rest;
  (void)__udivmoddi4(a, b, &rest);
  return rest;
}

int64_t __divdi3(int64_t a, int64_t b) {
  const uint64_t quotient = __udivdi3(a < 0 ? 0u - (uint64_t)a : (uint64_t)a, b < 0 ? 0u - (uint64_t)b : (uint64_t)b);
  return (int64_t)((a < 0) != (b < 0) ? 0u - quotient : quotient);
}

/* ---- floats ---- */

static bool is_nan(uint32_t a) { return (a & ~SIGN) > INFINITE; }

/* x / 2^bits; the last bit is 1 if anything that was cut off was not 0. */
static uint32_t shift_and_note(uint32_t x, int32_t bits) {
  if (bits == 0) {
    return x;
  }
  return bits < 32 ? (x >> bits) | ((x << (32 - bits)) != 0u ? 1u : 0u) : (x != 0u ? 1u : 0u);
}

/* 2^(exponent - 127) * significand / 2^30, rounded. The significand is below 2^31, and at least 2^30 or exact; its last bit
 * stands for all that was cut off. */
static uint32_t rounded(uint32_t sign, int32_t exponent, uint32_t significand) {
  if (exponent >= 255) {
    return sign | INFINITE;
  }
  if (exponent <= 0) {
    significand = shift_and_note(significand, 1 - exponent);
    exponent = 1;
  }
  /* The hidden bit is added to the exponent, and so is a carry of rounding. */
  const uint32_t fraction = (significand + 0x3Fu + (significand >> 7 & 1u)) >> 7;
  return sign | (((uint32_t)(exponent - 1) << 23) + fraction);
}

/* The same for a significand of any size but 0. */
static uint32_t normalized(uint32_t sign, int32_t exponent, uint32_t significand) {
  const int32_t shift = __builtin_clz(significand) - 1;
  return rounded(sign, exponent - shift, shift < 0 ? shift_and_note(significand, 1) : significand << shift);
}

/* Of a number that is neither infinite nor NaN: the exponent, and 2^23 times what it is multiplied by. */
static int32_t exponent_of(uint32_t a) { return (a & INFINITE) != 0u ? (int32_t)(a >> 23 & 0xFFu) : 1; }

static uint32_t significand_of(uint32_t a) { return (a & (HIDDEN - 1u)) | ((a & INFINITE) != 0u ? HIDDEN : 0u); }

uint32_t __addsf3(uint32_t a, uint32_t b) {
  if ((a & ~SIGN) < (b & ~SIGN)) {
    const uint32_t smaller = a;
    a = b;
    b = smaller;
  }
  const bool differ = ((a ^ b) & SIGN) != 0u;
  if (is_nan(a) || ((b & ~SIGN) == INFINITE && differ)) {
    return NOT_A_NUMBER;
  }
  if ((a & ~SIGN) == INFINITE) {
    return a;
  }
  const int32_t exponent = exponent_of(a);
  const uint32_t first = significand_of(a) << 6;
  const uint32_t second = shift_and_note(significand_of(b) << 6, exponent - exponent_of(b));
  const uint32_t sum = differ ? first - second : first + second;
  if (sum == 0u) {
    return differ ? 0u : a & SIGN;
  }
  return normalized(a & SIGN, exponent + 1, sum);
}

uint32_t __subsf3(uint32_t a, uint32_t b) { return __addsf3(a, b ^ SIGN); }

uint32_t __mulsf3(uint32_t a, uint32_t b) {
  const uint32_t sign = (a ^ b) & SIGN;
  a &= ~SIGN;
  b &= ~SIGN;
  if (is_nan(a) || is_nan(b) || (a == INFINITE && b == 0u) || (a == 0u && b == INFINITE)) {
    return NOT_A_NUMBER;
  }
  if (a == INFINITE || b == INFINITE) {
    return sign | INFINITE;
  }
  if (a == 0u || b == 0u) {
    return sign;
  }
  const uint32_t first = significand_of(a), second = significand_of(b);
  const int32_t first_shift = __builtin_clz(first), second_shift = __builtin_clz(second);
  /* Both from 2^31 on, so the upper word of their product is from 2^30 on. */
  const uint64_t product = __umulsidi3(first << first_shift, second << second_shift);
  const uint32_t upper = (uint32_t)(product >> 32) | ((uint32_t)product != 0u ? 1u : 0u);
  /* The hidden bits have moved by their shifts less 8. */
  return normalized(sign, exponent_of(a) + exponent_of(b) - 127 - (first_shift - 8) - (second_shift - 8), upper);
}

uint32_t __floatunsisf(uint32_t x) { return x == 0u ? 0u : normalized(0u, 127 + 30, x); }

uint32_t __floatsisf(int32_t x) {
  const uint32_t sign = x < 0 ? SIGN : 0u;
  return x == 0 ? 0u : normalized(sign, 127 + 30, sign != 0u ? 0u - (uint32_t)x : (uint32_t)x);
}

uint32_t __fixunssfsi(uint32_t a) {
  const int32_t exponent = (int32_t)(a >> 23) - 127; /* a sign makes it large */
  if (exponent < 0 || exponent > 31) {
    return exponent < 0 || (a & SIGN) != 0u ? 0u : UINT32_MAX;
  }
  return exponent >= 23 ? significand_of(a) << (exponent - 23) : significand_of(a) >> (23 - exponent);
}
