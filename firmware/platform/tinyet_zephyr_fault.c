/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the host about a fatal error, in the form of tinyet_fault.c. Zephyr has read the fault status registers and
 * cleared them by then, so these words are 0.
 */
#include <zephyr/fatal.h>
#include <zephyr/kernel.h>

#include "tinyet_harness.h"
#include "tinyet_platform.h"

enum {
  FAULT_LAYER,       /* the layer that ran, or TINYET_NO_LAYER */
  FAULT_STACK_STATE, /* STACK_... */
  FAULT_SP,          /* where the core has put the registers */
  FAULT_R0 = 8,      /* from here on r0, r1, r2, r3, r12, lr, pc, xpsr; 0 unless STACK_GOOD */
  FAULT_WORDS = FAULT_R0 + 8,
};

enum { STACK_GOOD = 0, STACK_OVERFLOW = 1 };

void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *esf) {
  uint32_t words[FAULT_WORDS] = {0};
  words[FAULT_LAYER] = tinyet_harness_layer();
  words[FAULT_STACK_STATE] = reason == K_ERR_STACK_CHK_FAIL ? STACK_OVERFLOW : STACK_GOOD;
#if defined(CONFIG_CPU_CORTEX_M)
  if (esf != NULL) {
    words[FAULT_SP] = (uint32_t)(uintptr_t)esf;
    words[FAULT_R0 + 0] = esf->basic.a1;
    words[FAULT_R0 + 1] = esf->basic.a2;
    words[FAULT_R0 + 2] = esf->basic.a3;
    words[FAULT_R0 + 3] = esf->basic.a4;
    words[FAULT_R0 + 4] = esf->basic.ip;
    words[FAULT_R0 + 5] = esf->basic.lr;
    words[FAULT_R0 + 6] = esf->basic.pc;
    words[FAULT_R0 + 7] = esf->basic.xpsr;
  }
#else
  ARG_UNUSED(esf);
#endif
  tinyet_harness_send_fault(words, FAULT_WORDS);
  tinyet_platform_abort();
}
