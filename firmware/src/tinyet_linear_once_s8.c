/* SPDX-License-Identifier: Apache-2.0 */
#define KERNEL tinyet_linear_once_s8
#define ELEMENT int8_t
#include "tinyet_linear_once_body.h"
