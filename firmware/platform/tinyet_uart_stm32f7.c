/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F7 USART, polled: other registers than the STM32F4's, on the same clocks and pins. */
#include "tinyet_stm32_usart.h"

#define USART_CR1 TINYET_REGISTER(TINYET_UART_BASE + 0x00u)
#define USART_BRR TINYET_REGISTER(TINYET_UART_BASE + 0x0Cu)
#define USART_ISR TINYET_REGISTER(TINYET_UART_BASE + 0x1Cu)
#define USART_ICR TINYET_REGISTER(TINYET_UART_BASE + 0x20u)
#define USART_RDR TINYET_REGISTER(TINYET_UART_BASE + 0x24u)
#define USART_TDR TINYET_REGISTER(TINYET_UART_BASE + 0x28u)
#define ISR_OVERRUN (1u << 3)
#define ISR_RX_NOT_EMPTY (1u << 5)
#define ISR_TX_EMPTY (1u << 7)
#define ICR_CLEAR_OVERRUN (1u << 3)
#define CR1_ENABLE_TX_RX ((1u << 3) | (1u << 2) | (1u << 0))

void tinyet_uart_init(void) {
  tinyet_stm32_usart_connect();
  USART_BRR = USART_DIVIDER;
  USART_CR1 = CR1_ENABLE_TX_RX;
}

/* After an overrun the byte that came first is still there; the frame's CRC notices the lost one. */
uint8_t tinyet_uart_get(void) {
  uint32_t status;
  do {
    status = USART_ISR;
    if ((status & ISR_OVERRUN) != 0u) {
      USART_ICR = ICR_CLEAR_OVERRUN;
    }
  } while ((status & ISR_RX_NOT_EMPTY) == 0u);
  return (uint8_t)USART_RDR;
}

void tinyet_uart_put(uint8_t byte) {
  while ((USART_ISR & ISR_TX_EMPTY) == 0u) {
  }
  USART_TDR = byte;
}
