/* SPDX-License-Identifier: Apache-2.0 */
/* What AVR's program memory is called, on a core where it is memory like any other. */
#ifndef PGMSPACE_H
#define PGMSPACE_H

#define PROGMEM
#define memcpy_P(to, from, n) memcpy((to), (from), (n))
#define pgm_read_byte(address) (*(const uint8_t *)(address))

#endif
