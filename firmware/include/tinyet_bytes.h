/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, as a camera gives them, as what a model computes with. An output of bytes may be the input. */
#ifndef TINYET_BYTES_H
#define TINYET_BYTES_H

#include "tinyet_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t count;
} tinyet_bytes_params;

/* byte - 128. */
void tinyet_flip_u8_s8(const uint8_t *input, int8_t *output, const tinyet_bytes_params *params);

/* [outer][channels][inner], and a table for each channel. */
typedef struct {
  const TINYET_ROM int8_t *table; /* [channels][256] */
  int32_t outer, channels, inner;
} tinyet_lut_u8_s8_params;

void tinyet_lut_u8_s8(const uint8_t *input, int8_t *output, const tinyet_lut_u8_s8_params *params);

typedef struct {
  const TINYET_ROM int16_t *table; /* [channels][256] */
  int32_t outer, channels, inner;
} tinyet_lut_u8_s16_params;

void tinyet_lut_u8_s16(const uint8_t *input, int16_t *output, const tinyet_lut_u8_s16_params *params);

typedef struct {
  const TINYET_ROM int16_t *table; /* [channels][256] */
  int32_t outer, channels, inner;
} tinyet_lut_s8_s16_params;

void tinyet_lut_s8_s16(const int8_t *input, int16_t *output, const tinyet_lut_s8_s16_params *params);

typedef struct {
  const TINYET_ROM uint8_t *table; /* [channels][256] */
  int32_t outer, channels, inner;
} tinyet_lut_s8_u8_params;

void tinyet_lut_s8_u8(const int8_t *input, uint8_t *output, const tinyet_lut_s8_u8_params *params);

typedef struct {
  const TINYET_ROM uint8_t *table; /* [channels][256] */
  int32_t outer, channels, inner;
} tinyet_lut_u8_params;

void tinyet_lut_u8(const uint8_t *input, uint8_t *output, const tinyet_lut_u8_params *params);

#ifdef __cplusplus
}
#endif

#endif
