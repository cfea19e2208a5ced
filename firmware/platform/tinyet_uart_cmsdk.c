/* SPDX-License-Identifier: Apache-2.0 */
/* CMSDK APB UART, as on the FPGA images of the MPS2 and MPS3 boards: one byte of buffer each way. */
#include "tinyet_board.h"

#define UART_DATA TINYET_REGISTER(TINYET_UART_BASE + 0x00u)
#define UART_STATE TINYET_REGISTER(TINYET_UART_BASE + 0x04u)
#define UART_CTRL TINYET_REGISTER(TINYET_UART_BASE + 0x08u)
#define UART_BAUDDIV TINYET_REGISTER(TINYET_UART_BASE + 0x10u)
#define STATE_TX_FULL (1u << 0)
#define STATE_RX_FULL (1u << 1)
#define CTRL_TX_RX_ENABLE 3u

void tinyet_uart_init(void) {
  UART_BAUDDIV = (TINYET_CLOCK_HZ + TINYET_UART_BAUD / 2u) / TINYET_UART_BAUD;
  UART_CTRL = CTRL_TX_RX_ENABLE;
}

uint8_t tinyet_uart_get(void) {
  while ((UART_STATE & STATE_RX_FULL) == 0u) {
  }
  return (uint8_t)UART_DATA;
}

void tinyet_uart_put(uint8_t byte) {
  while ((UART_STATE & STATE_TX_FULL) != 0u) {
  }
  UART_DATA = byte;
}
