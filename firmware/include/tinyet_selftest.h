/* SPDX-License-Identifier: Apache-2.0 */
/* For models that test themselves: who they are, and the sum of their constants. */
#ifndef TINYET_SELFTEST_H
#define TINYET_SELFTEST_H

#include "tinyet_common.h"

#if defined(__cplusplus) && defined(__GNUC__) /* casts are written as C writes them */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

/* Of the build as a whole, at most 31 characters: -DTINYET_BUILD_ID='"1.4.2+8f3c2a1"'. Where nothing is said, it is that of the C files,
 * which their generator writes. */
#if defined(TINYET_BUILD_ID)
#define TINYET_BUILD(own) TINYET_BUILD_ID
#else
#define TINYET_BUILD(own) own
#endif

/* Who a model is, as its bytes lie in flash: 128, wherever the linker puts them. Texts end with a zero. */
#define TINYET_IDENTITY_MAGIC {'T', 'I', 'N', 'Y', 'E', 'T', 0xB5u, 1u}
typedef struct {
  uint8_t magic[8];
  uint32_t constant_bytes; /* of weights and tables */
  uint32_t constant_crc;   /* CRC-32 of them, in the order of the C file */
  uint8_t model_hash[32];  /* SHA-256 of the program */
  char version[16];        /* of the tinyet that generated the code */
  char name[32];           /* of the model, as far as there is room */
  char build[32];          /* TINYET_BUILD_ID */
} tinyet_identity;

/* Lets what is in a section of its own be there whenever this function is, though nobody reads it: a relocation without an
 * instruction. On AVR, and on hosts, it depends on who asks for it. */
#if defined(__arm__) && !defined(__PIC__)
#define TINYET_KEEP(object) __asm__ volatile(".reloc ., BFD_RELOC_NONE, %c0" : : "i"(&(object)))
#elif (defined(__riscv) || defined(__XTENSA__)) && !defined(__PIC__)
#define TINYET_KEEP(object) __asm__ volatile(".reloc ., BFD_RELOC_NONE, %0" : : "i"(&(object)))
#else
#define TINYET_KEEP(object) ((void)(object))
#endif
#if defined(__GNUC__)
#define TINYET_USED __attribute__((used))
#else
#define TINYET_USED
#endif

/* One byte more of a CRC-32 (IEEE 802.3, as zlib), which begins and ends inverted. */
static inline uint32_t tinyet_crc32_byte(uint32_t crc, uint8_t byte) {
  static const uint32_t table[16] = {
      0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
      0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
  };
  crc ^= byte;
  crc = (crc >> 4) ^ table[crc & 15u];
  return (crc >> 4) ^ table[crc & 15u];
}

/* The bytes are read as volatile: what a compiler knows of a constant is not what lies in flash. */
static inline uint32_t tinyet_crc32(uint32_t crc, const void *bytes, uint32_t count) {
  const volatile uint8_t *from = (const volatile uint8_t *)bytes;
  for (uint32_t i = 0u; i < count; i++) {
    crc = tinyet_crc32_byte(crc, from[i]);
  }
  return crc;
}

/* Of a constant that has TINYET_ROM in its type. */
static inline uint32_t tinyet_crc32_rom(uint32_t crc, const TINYET_ROM void *bytes, uint32_t count) {
#if defined(__FLASH) && !defined(__cplusplus)
  const volatile TINYET_ROM uint8_t *from = (const volatile TINYET_ROM uint8_t *)bytes;
  for (uint32_t i = 0u; i < count; i++) {
    crc = tinyet_crc32_byte(crc, from[i]);
  }
  return crc;
#else
  return tinyet_crc32(crc, bytes, count);
#endif
}

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
