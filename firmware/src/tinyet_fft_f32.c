/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fft_f32.h"

#define KERNEL tinyet_fft_f32
#include "tinyet_fft_body.h"
