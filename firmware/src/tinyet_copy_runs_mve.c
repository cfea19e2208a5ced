/* SPDX-License-Identifier: Apache-2.0 */
#include "tinyet_copy_runs_mve.h"

/* `count` runs of `bytes`, which a vector holds or not. */
static void runs_of(const int8_t *from, int8_t *to, int32_t count, const tinyet_copy_runs_mve_params *p) {
  const int32_t in_step = p->in_stride[TINYET_COPY_RUNS_LOOPS - 1], out_step = p->out_stride[TINYET_COPY_RUNS_LOOPS - 1];
#if TINYET_MVE_ASM
  if (p->bytes <= 16) {
    __asm__ volatile(
        "vctp.8 %[bytes]\n"
        "dls lr, %[count]\n"
        "1:\n"
        "vpst\n"
        "vldrbt.u8 q0, [%[from]]\n"
        "add.w %[from], %[from], %[in_step]\n"
        "vpst\n"
        "vstrbt.8 q0, [%[to]]\n"
        "add.w %[to], %[to], %[out_step]\n"
        "le lr, 1b\n"
        : [from] "+l"(from), [to] "+l"(to)
        : [count] "r"(count), [bytes] "r"(p->bytes), [in_step] "r"(in_step), [out_step] "r"(out_step)
        : "lr", "d0", "d1", "memory");
    return;
  }
#endif
  for (; count != 0; count--, from += in_step, to += out_step) {
    tinyet_copy_mve(to, from, p->bytes);
  }
}

void tinyet_copy_runs_mve(const void *input, void *output, const tinyet_copy_runs_mve_params *params) {
  const tinyet_copy_runs_mve_params *const p = params;
  const int8_t *from = (const int8_t *)input + p->in_offset;
  int8_t *to = (int8_t *)output;
  for (int32_t a = p->size[0]; a != 0; a--, from += p->in_stride[0], to += p->out_stride[0]) {
    const int8_t *from_a = from;
    int8_t *to_a = to;
    for (int32_t b = p->size[1]; b != 0; b--, from_a += p->in_stride[1], to_a += p->out_stride[1]) {
      const int8_t *from_b = from_a;
      int8_t *to_b = to_a;
      for (int32_t c = p->size[2]; c != 0; c--, from_b += p->in_stride[2], to_b += p->out_stride[2]) {
        runs_of(from_b, to_b, p->size[3], p);
      }
    }
  }
}
