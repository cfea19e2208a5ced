/* SPDX-License-Identifier: Apache-2.0 */
/* Products of int16 matrices for cores with Helium: see tinyet_mve.h. VMLALDAVA adds eight products to a sum of 64
 * bits. */
#ifndef TINYET_MATMUL_S16_MVE_H
#define TINYET_MATMUL_S16_MVE_H

#include "tinyet_matmul.h"
#include "tinyet_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tinyet_matmul_s16. depth: up to 4680. scratch: columns of b one after another, each of depth rounded up to eights. */
void tinyet_matmul_s16_mve(const int16_t *a, const int16_t *b, int16_t *output, void *scratch,
                           const tinyet_matmul_s16_params *params);

#ifdef __cplusplus
}
#endif

#endif
