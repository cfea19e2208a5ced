/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_linear.h"
#include "tinyet_pairs.h"

#define REQUANTIZE tinyet_requantize_form
#define KERNEL tinyet_linear_s8
#include "tinyet_linear_s8_body.h"
