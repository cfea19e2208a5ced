/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"
#include "tinyet_even.h"

#define REQUANTIZE tinyet_requantize_even
#define KERNEL tinyet_linear_s8_even
#include "tinyet_linear_s8_body.h"
