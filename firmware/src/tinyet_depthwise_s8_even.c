/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_depthwise.h"
#include "tinyet_even.h"

#define REQUANTIZE tinyet_requantize_even
#define KERNEL tinyet_depthwise_s8_even
#include "tinyet_depthwise_s8_body.h"
