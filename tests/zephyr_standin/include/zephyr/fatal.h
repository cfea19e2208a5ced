/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_FATAL_H
#define STANDIN_FATAL_H

#include <stdint.h>

enum k_fatal_error_reason {
  K_ERR_CPU_EXCEPTION,
  K_ERR_SPURIOUS_IRQ,
  K_ERR_STACK_CHK_FAIL,
  K_ERR_KERNEL_OOPS,
  K_ERR_KERNEL_PANIC,
};

struct arch_esf {
  struct {
    uint32_t a1, a2, a3, a4, ip, lr, pc, xpsr;
  } basic;
};

void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *esf);

#endif
