/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_svdf_s8_s16
#define PARAMS tinyet_svdf_s8_s16_params
#define STATE int16_t
#define LOW INT16_MIN
#define HIGH INT16_MAX
#include "tinyet_svdf_s8_body.h"
