/* SPDX-License-Identifier: Apache-2.0 */
/* The UART of the PC, 16550A and what has its registers, TINYET_UART_SPACING bytes apart, run from the core's clock: 16
 * bytes of buffer each way. */
#include "tinyet_board.h"

#define UART(offset) (*(volatile uint8_t *)(uintptr_t)(TINYET_UART_BASE + TINYET_UART_SPACING * (offset)))
#define UART_DATA UART(0u)
#define UART_DIVISOR_LOW UART(0u) /* these two while LCR_DIVISOR is set */
#define UART_DIVISOR_HIGH UART(1u)
#define UART_INTERRUPTS UART(1u)
#define UART_FIFO UART(2u)
#define UART_LINE_CONTROL UART(3u)
#define UART_LINE_STATUS UART(5u)
#define FIFO_ENABLE_AND_CLEAR 0x07u
#define LCR_DIVISOR 0x80u
#define LCR_8_DATA_BITS 0x03u
#define LSR_RECEIVED 0x01u
#define LSR_HAS_ROOM 0x20u

void tinyet_uart_init(void) {
  const uint32_t divisor = (TINYET_CLOCK_HZ + 8u * TINYET_UART_BAUD) / (16u * TINYET_UART_BAUD);
  UART_INTERRUPTS = 0u;
  UART_LINE_CONTROL = LCR_DIVISOR;
  UART_DIVISOR_LOW = (uint8_t)divisor;
  UART_DIVISOR_HIGH = (uint8_t)(divisor >> 8);
  UART_LINE_CONTROL = LCR_8_DATA_BITS;
  UART_FIFO = FIFO_ENABLE_AND_CLEAR;
  (void)UART_DATA; /* what came before is gone; QEMU sends on only once it has been read */
}

uint8_t tinyet_uart_get(void) {
  while ((UART_LINE_STATUS & LSR_RECEIVED) == 0u) {
  }
  return UART_DATA;
}

void tinyet_uart_put(uint8_t byte) {
  while ((UART_LINE_STATUS & LSR_HAS_ROOM) == 0u) {
  }
  UART_DATA = byte;
}
