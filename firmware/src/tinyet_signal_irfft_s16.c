/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fft_s16.h"

#define KERNEL tinyet_signal_irfft_s16
typedef tinyet_signal_irfft_s16_params kernel_params;
#include "tinyet_signal_irfft_body.h"
