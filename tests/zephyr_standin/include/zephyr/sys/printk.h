/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_PRINTK_H
#define STANDIN_PRINTK_H

__attribute__((format(printf, 1, 2))) void printk(const char *format, ...);

#endif
