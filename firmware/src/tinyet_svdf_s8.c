/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_svdf_s8
#define PARAMS tinyet_svdf_s8_params
#define STATE int8_t
#define LOW INT8_MIN
#define HIGH INT8_MAX
#include "tinyet_svdf_s8_body.h"
