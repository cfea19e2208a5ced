/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STM32F4 USART. The chip stays on the 16 MHz internal oscillator it starts with: no crystal has to be known, flash
 * needs no wait states, and every bus runs at TINYET_CLOCK_HZ.
 */
#include "tinyet_board.h"

#define RCC_AHB1ENR TINYET_REGISTER(0x40023830u)
#define RCC_APB1ENR TINYET_REGISTER(0x40023840u)
#define RCC_APB2ENR TINYET_REGISTER(0x40023844u)
#define GPIO_BASE(pin) (0x40020000u + 0x400u * ((pin) / 16u))
#define GPIO_MODER(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x00u)
#define GPIO_PUPDR(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x0Cu)
#define GPIO_AFR(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x20u + 4u * ((pin) % 16u / 8u))

#define USART_SR TINYET_REGISTER(TINYET_UART_BASE + 0x00u)
#define USART_DR TINYET_REGISTER(TINYET_UART_BASE + 0x04u)
#define USART_BRR TINYET_REGISTER(TINYET_UART_BASE + 0x08u)
#define USART_CR1 TINYET_REGISTER(TINYET_UART_BASE + 0x0Cu)
#define SR_RX_NOT_EMPTY (1u << 5)
#define SR_TX_EMPTY (1u << 7)
#define CR1_ENABLE_TX_RX ((1u << 13) | (1u << 3) | (1u << 2))

/* The enable bit of each USART, and its alternate function on the pins of the STM32F405/407. */
#if TINYET_UART_BASE == 0x40011000 /* USART1 */
#define USART_CLOCK RCC_APB2ENR
#define USART_CLOCK_BIT 4u
#define USART_FUNCTION 7u
#elif TINYET_UART_BASE == 0x40004400 /* USART2 */
#define USART_CLOCK RCC_APB1ENR
#define USART_CLOCK_BIT 17u
#define USART_FUNCTION 7u
#elif TINYET_UART_BASE == 0x40004800 /* USART3 */
#define USART_CLOCK RCC_APB1ENR
#define USART_CLOCK_BIT 18u
#define USART_FUNCTION 7u
#elif TINYET_UART_BASE == 0x40011400 /* USART6 */
#define USART_CLOCK RCC_APB2ENR
#define USART_CLOCK_BIT 5u
#define USART_FUNCTION 8u
#else
#error "TINYET_UART_BASE is none of USART1, USART2, USART3, USART6"
#endif

static void select_function(uint32_t pin) {
  const uint32_t mode_shift = 2u * (pin % 16u);
  const uint32_t function_shift = 4u * (pin % 8u);
  RCC_AHB1ENR |= 1u << (pin / 16u);
  (void)RCC_AHB1ENR; /* the port answers two bus cycles after its clock is on: the read back is the wait */
  GPIO_AFR(pin) = (GPIO_AFR(pin) & ~(0xFu << function_shift)) | (USART_FUNCTION << function_shift);
  GPIO_PUPDR(pin) = (GPIO_PUPDR(pin) & ~(3u << mode_shift)) | (1u << mode_shift); /* up: an open line is idle */
  GPIO_MODER(pin) = (GPIO_MODER(pin) & ~(3u << mode_shift)) | (2u << mode_shift);
}

void tinyet_uart_init(void) {
  USART_CLOCK |= 1u << USART_CLOCK_BIT;
  (void)USART_CLOCK;
  select_function(TINYET_UART_TX_PIN);
  select_function(TINYET_UART_RX_PIN);
  USART_BRR = (TINYET_CLOCK_HZ + TINYET_UART_BAUD / 2u) / TINYET_UART_BAUD; /* oversampling by 16 */
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
