/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fft_s16.h"

#define KERNEL tinyet_fft_s16
#include "tinyet_fft_body.h"
