/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_fft_f32.h"

#define KERNEL tinyet_signal_irfft_f32
typedef tinyet_signal_irfft_f32_params kernel_params;
#include "tinyet_signal_irfft_body.h"
