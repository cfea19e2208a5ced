/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F4 USART, polled. */
#include "tinyet_stm32_usart.h"

#define USART_SR TINYET_REGISTER(TINYET_UART_BASE + 0x00u)
#define USART_DR TINYET_REGISTER(TINYET_UART_BASE + 0x04u)
#define USART_BRR TINYET_REGISTER(TINYET_UART_BASE + 0x08u)
#define USART_CR1 TINYET_REGISTER(TINYET_UART_BASE + 0x0Cu)
#define SR_RX_NOT_EMPTY (1u << 5)
#define SR_TX_EMPTY (1u << 7)
#define CR1_ENABLE_TX_RX ((1u << 13) | (1u << 3) | (1u << 2))

void tinyet_uart_init(void) {
  tinyet_stm32_usart_connect();
  USART_BRR = USART_DIVIDER;
  USART_CR1 = CR1_ENABLE_TX_RX;
}

/* Reading the status and then the data also clears an overrun; the frame's CRC notices the lost byte. */
uint8_t tinyet_uart_get(void) {
  while ((USART_SR & SR_RX_NOT_EMPTY) == 0u) {
  }
  return (uint8_t)USART_DR;
}

void tinyet_uart_put(uint8_t byte) {
  while ((USART_SR & SR_TX_EMPTY) == 0u) {
  }
  USART_DR = byte;
}
