/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the USARTs of STM32F4 and STM32F7 have in common: clocks and pins. The chip stays on the 16 MHz internal oscillator it
 * starts with: no crystal has to be known, flash needs no wait states, and every bus runs at TINYET_CLOCK_HZ.
 */
#ifndef TINYET_STM32_USART_H
#define TINYET_STM32_USART_H

#include "tinyet_board.h"

#define RCC_AHB1ENR TINYET_REGISTER(0x40023830u)
#define RCC_APB1ENR TINYET_REGISTER(0x40023840u)
#define RCC_APB2ENR TINYET_REGISTER(0x40023844u)
#define GPIO_BASE(pin) (0x40020000u + 0x400u * ((pin) / 16u))
#define GPIO_MODER(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x00u)
#define GPIO_PUPDR(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x0Cu)
#define GPIO_AFR(pin) TINYET_REGISTER(GPIO_BASE(pin) + 0x20u + 4u * ((pin) % 16u / 8u))

/* The enable bit of each USART, and its alternate function on the pins of the STM32F405/407 and STM32F745/746. */
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

/* Oversampling by 16. */
#define USART_DIVIDER ((TINYET_CLOCK_HZ + TINYET_UART_BAUD / 2u) / TINYET_UART_BAUD)

static inline void tinyet_stm32_usart_select_function(uint32_t pin) {
  const uint32_t mode_shift = 2u * (pin % 16u);
  const uint32_t function_shift = 4u * (pin % 8u);
  RCC_AHB1ENR |= 1u << (pin / 16u);
  (void)RCC_AHB1ENR; /* the port answers two bus cycles after its clock is on: the read back is the wait */
  GPIO_AFR(pin) = (GPIO_AFR(pin) & ~(0xFu << function_shift)) | (USART_FUNCTION << function_shift);
  GPIO_PUPDR(pin) = (GPIO_PUPDR(pin) & ~(3u << mode_shift)) | (1u << mode_shift); /* up: an open line is idle */
  GPIO_MODER(pin) = (GPIO_MODER(pin) & ~(3u << mode_shift)) | (2u << mode_shift);
}

/* Clocks and pins; the USART itself is left to its driver. */
static inline void tinyet_stm32_usart_connect(void) {
  USART_CLOCK |= 1u << USART_CLOCK_BIT;
  (void)USART_CLOCK;
  tinyet_stm32_usart_select_function(TINYET_UART_TX_PIN);
  tinyet_stm32_usart_select_function(TINYET_UART_RX_PIN);
}

#endif
