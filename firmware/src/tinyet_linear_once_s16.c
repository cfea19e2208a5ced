/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_linear_once_s16
#define ELEMENT int16_t
#include "tinyet_linear_once_body.h"
