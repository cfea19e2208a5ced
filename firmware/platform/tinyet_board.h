/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the startup code, the UART drivers and the counters of bare-metal boards.
 *
 * The build defines, from the board's description:
 *   TINYET_CLOCK_HZ      what the core runs at after reset, and with it the buses of the UART
 *   TINYET_UART_BASE     address of the UART's registers
 *   TINYET_UART_BAUD     bits per second; 8 data bits, no parity, 1 stop bit, no flow control
 *   TINYET_UART_TX_PIN   port * 16 + pin (STM32), port * 32 + pin (nRF); only for UARTs that share pins
 *   TINYET_UART_RX_PIN   likewise
 *   TINYET_UART_SPACING  bytes from one register to the next; only for UARTs whose makers differ in it
 */
#ifndef TINYET_BOARD_H
#define TINYET_BOARD_H

#include "tinyet_platform.h"

#define TINYET_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

void tinyet_uart_init(void);
uint8_t tinyet_uart_get(void);      /* waits for a byte */
void tinyet_uart_put(uint8_t byte); /* waits until there is room for the byte */

#endif
