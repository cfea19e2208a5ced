/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fft_s32.h"

#define KERNEL tinyet_signal_rfft_s32
typedef tinyet_signal_rfft_s32_params kernel_params;
#include "tinyet_signal_rfft_body.h"
