/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_UART_H
#define STANDIN_UART_H

#include <zephyr/device.h>

int uart_poll_in(const struct device *device, unsigned char *byte); /* -1: there is none */
void uart_poll_out(const struct device *device, unsigned char byte);

#endif
