/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness's frames, as tinyet_harness.h describes them, over its stream. For tinyet_harness.c alone: what is here has state, of
 * the frame that is being read, and of the one that is being written.
 */
#ifndef TINYET_FRAMES_H
#define TINYET_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

#define END 0xC0u
#define ESCAPE 0xDBu
#define ESCAPED_END 0xDCu
#define ESCAPED_ESCAPE 0xDDu

enum { INFO = 1, RUN = 2, READ = 3, RESET = 4, IDENTITY = 5, SELFTEST = 6, STEP = 7, SELECT = 8, ERROR = 0x7E, FAULT = 0x7F };

enum {
  BAD_FRAME = 1,       /* detail 0: cut short, or the CRC differs */
  UNKNOWN_COMMAND = 2, /* detail: the command */
  BAD_LENGTH = 3,      /* detail: the length of payload that this command takes */
  OUT_OF_ARENA = 4,    /* detail: bytes of the arena */
  NO_TRACE_MEMORY = 5, /* detail: the number of counts that the free RAM has room for */
  NO_MODEL = 6,        /* detail: the number of models */
};

typedef struct {
  uint8_t command;
  uint8_t tag;
  uint32_t length;
} header;

/* Of the request that is being answered. */
static uint8_t request_tag;

/* ---- the stream ---- */

/* Where no file of the firmware carries the stream. */
__attribute__((weak)) size_t tinyet_harness_read(void *bytes, size_t n) { return tinyet_platform_read(bytes, n); }
__attribute__((weak)) void tinyet_harness_write(const void *bytes, size_t n) { tinyet_platform_write(bytes, n); }

/* ---- frames ---- */

static struct {
  uint32_t crc;
  uint32_t used;
  uint8_t bytes[128]; /* a system call a byte would be slow on a host */
} out;

static struct {
  uint32_t crc;
  bool at_end; /* the last byte was END */
  bool over;   /* the stream has ended */
} in;

static uint32_t crc_update(uint32_t crc, uint8_t byte) {
  static const uint32_t table[16] = {
      0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
      0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
  };
  crc ^= byte;
  crc = (crc >> 4) ^ table[crc & 15u];
  return (crc >> 4) ^ table[crc & 15u];
}

static void put_raw(uint32_t byte) {
  if (out.used == sizeof out.bytes) {
    tinyet_harness_write(out.bytes, out.used);
    out.used = 0u;
  }
  out.bytes[out.used] = (uint8_t)byte;
  out.used++;
}

/* Functions that many call are not inlined: speed is nothing here, and a harness is compiled with each model. */
__attribute__((noinline)) static void put_bytes(const void *bytes, uint32_t n) {
  const uint8_t *from = (const uint8_t *)bytes;
  for (uint32_t i = 0u; i < n; i++) {
    const uint8_t byte = from[i];
    out.crc = crc_update(out.crc, byte);
    if (byte == END || byte == ESCAPE) {
      put_raw(ESCAPE);
      put_raw(byte == END ? ESCAPED_END : ESCAPED_ESCAPE);
    } else {
      put_raw(byte);
    }
  }
}

static void put_u8(uint32_t value) {
  const uint8_t byte = (uint8_t)value;
  put_bytes(&byte, 1u);
}

__attribute__((noinline)) static void put_u32(uint32_t value) {
  const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
  put_bytes(bytes, 4u);
}

__attribute__((noinline)) static void put_u64(uint64_t value) {
  put_u32((uint32_t)value);
  put_u32((uint32_t)(value >> 32));
}

__attribute__((noinline)) static void begin_reply(uint32_t command, uint32_t length) {
  out.used = 0u;
  out.crc = 0xFFFFFFFFu;
  put_raw(END);
  put_u8(command);
  put_u8(request_tag);
  put_u32(length);
}

__attribute__((noinline)) static void end_reply(void) {
  put_u32(~out.crc);
  put_raw(END);
  tinyet_harness_write(out.bytes, out.used);
  out.used = 0u;
}

__attribute__((noinline)) static void reply_error(uint32_t reason, uint32_t detail) {
  begin_reply(ERROR, 8u);
  put_u32(reason);
  put_u32(detail);
  end_reply();
}

__attribute__((noinline)) static uint32_t raw_byte(void) {
  uint8_t byte = END;
  if (tinyet_harness_read(&byte, 1u) != 1u) {
    in.over = true;
  }
  return byte;
}

/* Reads n bytes of a frame's body; a NULL destination drops them. False: the frame ended or is damaged. */
__attribute__((noinline)) static bool get_bytes(uint8_t *to, uint32_t n) {
  for (uint32_t i = 0u; i < n; i++) {
    uint32_t byte = raw_byte();
    if (byte == ESCAPE) {
      byte = raw_byte();
      if (byte == ESCAPED_END) {
        byte = END;
      } else if (byte == ESCAPED_ESCAPE) {
        byte = ESCAPE;
      } else {
        in.at_end = byte == END;
        return false;
      }
    } else if (byte == END) {
      in.at_end = true;
      return false;
    }
    in.crc = crc_update(in.crc, (uint8_t)byte);
    if (to != NULL) {
      to[i] = (uint8_t)byte;
    }
  }
  return true;
}

static uint32_t decode_u32(const uint8_t bytes[4]) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

__attribute__((noinline)) static bool get_u32(uint32_t *value) {
  uint8_t bytes[4];
  if (!get_bytes(bytes, 4u)) {
    return false;
  }
  *value = decode_u32(bytes);
  return true;
}

static void skip_to_end(void) {
  while (!in.at_end) {
    in.at_end = raw_byte() == END;
  }
}

/* Checks the CRC and that the frame ends behind it. */
__attribute__((noinline)) static bool get_end(void) {
  const uint32_t crc = ~in.crc;
  uint32_t sent;
  if (!get_u32(&sent) || sent != crc) {
    return false;
  }
  in.at_end = raw_byte() == END;
  return in.at_end && !in.over;
}

/* Waits for a frame and reads its header. An END right after an END is the gap between two frames, not a frame. */
static bool get_header(header *request) {
  uint8_t bytes[6];
  do {
    in.at_end = false;
    in.crc = 0xFFFFFFFFu;
  } while (!get_bytes(bytes, 1u) && in.at_end && !in.over);
  request->command = 0u;
  request->tag = 0u;
  if (in.at_end || in.over || !get_bytes(bytes + 1, 5u)) {
    return false;
  }
  request->command = bytes[0];
  request->tag = bytes[1];
  request->length = decode_u32(bytes + 2);
  return true;
}

#endif
