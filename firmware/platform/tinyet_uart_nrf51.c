/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UART of nRF51, and of nRF52, which still has it at the address of the UARTE: six bytes of receive buffer, one of transmit.
 * The UARTE has no register to poll for a byte, its DMA hands over whole buffers.
 */
#include "tinyet_board.h"

#define CLOCK_HFCLKSTART TINYET_REGISTER(0x40000000u)
#define CLOCK_HFCLKSTARTED TINYET_REGISTER(0x40000100u)
/* The larger chips have a second port. */
#define GPIO_BASE(pin) (0x50000000u + 0x300u * ((pin) / 32u))
#define GPIO_OUTSET(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x508u)
#define GPIO_DIRSET(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x518u)
#define GPIO_PIN_CNF(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x700u + 4u * ((pin) % 32u))
#define PIN_CNF_INPUT 0u /* input, buffer connected, no pull */

#define UART_STARTRX TINYET_REGISTER(TINYET_UART_BASE + 0x000u)
#define UART_STARTTX TINYET_REGISTER(TINYET_UART_BASE + 0x008u)
#define UART_RXDRDY TINYET_REGISTER(TINYET_UART_BASE + 0x108u)
#define UART_TXDRDY TINYET_REGISTER(TINYET_UART_BASE + 0x11Cu)
#define UART_ENABLE TINYET_REGISTER(TINYET_UART_BASE + 0x500u)
#define UART_PSELTXD TINYET_REGISTER(TINYET_UART_BASE + 0x50Cu)
#define UART_PSELRXD TINYET_REGISTER(TINYET_UART_BASE + 0x514u)
#define UART_RXD TINYET_REGISTER(TINYET_UART_BASE + 0x518u)
#define UART_TXD TINYET_REGISTER(TINYET_UART_BASE + 0x51Cu)
#define UART_BAUDRATE TINYET_REGISTER(TINYET_UART_BASE + 0x524u)
#define ENABLE_UART 4u

void tinyet_uart_init(void) {
  CLOCK_HFCLKSTARTED = 0u;
  CLOCK_HFCLKSTART = 1u; /* the crystal: the internal oscillator may be too far off for a UART */
  while (CLOCK_HFCLKSTARTED == 0u) {
  }
  GPIO_OUTSET(TINYET_UART_TX_PIN) = 1u << TINYET_UART_TX_PIN % 32u; /* idle level before the pin drives */
  GPIO_DIRSET(TINYET_UART_TX_PIN) = 1u << TINYET_UART_TX_PIN % 32u;
  GPIO_PIN_CNF(TINYET_UART_RX_PIN) = PIN_CNF_INPUT;
  UART_PSELTXD = TINYET_UART_TX_PIN;
  UART_PSELRXD = TINYET_UART_RX_PIN;
  /* baud * 2^32 / 16 MHz, to a multiple of 2^12 as the reference manual's table has it */
  UART_BAUDRATE = (uint32_t)((((uint64_t)TINYET_UART_BAUD << 32) / 16000000u + 0x800u) & 0xFFFFF000u);
  UART_ENABLE = ENABLE_UART;
  UART_RXDRDY = 0u;
  UART_STARTTX = 1u;
  UART_STARTRX = 1u;
}

uint8_t tinyet_uart_get(void) {
  while (UART_RXDRDY == 0u) {
  }
  UART_RXDRDY = 0u; /* before the read: reading lets the next byte of the buffer raise the event again */
  return (uint8_t)UART_RXD;
}

void tinyet_uart_put(uint8_t byte) {
  UART_TXDRDY = 0u;
  UART_TXD = byte;
  while (UART_TXDRDY == 0u) {
  }
}
