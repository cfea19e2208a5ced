/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an AVR firmware in libsimavr: what it sends on its first UART goes to stdout, stdin goes to that UART.
 *
 *   tinyet_simavr ELF MCU HZ SECONDS [RAM_END COUNT [UNTIL]]
 *
 * SECONDS are of the simulated clock. RAM_END is the last address of the RAM, 0 for the chip's own: a program that was
 * linked for more than the chip has finds it there. It ends when the firmware sleeps with interrupts off (status 0), has
 * sent the text UNTIL (status 0), crashes (3) or takes longer (4). The last line on stderr is the number of cycles.
 *
 * A firmware reads the simulation's own count of COUNT, "cycles" or "instructions", in two registers that a chip has for
 * general purposes, and that nothing here uses otherwise: writing 1 to GPIOR0 begins the count anew, writing 0 holds it,
 * and then reading GPIOR1 gives one byte after the other of what was held, the lowest first.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_io.h>

enum { STATUS_USAGE = 2, STATUS_CRASH = 3, STATUS_TIMEOUT = 4, STEPS_A_POLL = 2000, UNTIL_MAX = 256 };
enum { GPIOR0 = 0x3E, GPIOR1 = 0x4A }; /* addresses of data, of all chips that have them where the ATmega328P has */
enum { HOLD = 0, RESTART = 1 };

static avr_irq_t *uart_input;
static int ready; /* the UART's queue takes another byte */
static const char *until;
static char last[UNTIL_MAX]; /* as many bytes of the output as `until` has */
static int seen;

static uint64_t instructions;
static int counts_instructions;
static uint64_t began, held;

static uint64_t count(const avr_t *avr) { return counts_instructions ? instructions : (uint64_t)avr->cycle; }

static void on_count(avr_t *avr, avr_io_addr_t address, uint8_t value, void *param) {
  (void)param;
  avr->data[address] = value;
  if (value == RESTART) {
    began = count(avr);
  } else if (value == HOLD) {
    held = count(avr) - began;
  }
}

static uint8_t on_held(avr_t *avr, avr_io_addr_t address, void *param) {
  (void)param;
  const uint8_t byte = (uint8_t)held;
  held >>= 8;
  avr->data[address] = byte;
  return byte;
}

static void on_output(avr_irq_t *irq, uint32_t value, void *param) {
  (void)irq;
  (void)param;
  putchar((int)(value & 0xffu));
  const size_t length = strlen(until);
  if (length > 0u) {
    memmove(last, last + 1, length - 1u);
    last[length - 1u] = (char)value;
    seen |= memcmp(last, until, length) == 0;
  }
}

static void on_xon(avr_irq_t *irq, uint32_t value, void *param) {
  (void)irq;
  (void)value;
  (void)param;
  ready = 1;
}

static void on_xoff(avr_irq_t *irq, uint32_t value, void *param) {
  (void)irq;
  (void)value;
  (void)param;
  ready = 0;
}

/* Time passes in the simulation only. */
static void no_sleep(avr_t *avr, avr_cycle_count_t cycles) {
  (void)avr;
  (void)cycles;
}

static void no_log(avr_t *avr, const int level, const char *format, va_list arguments) {
  (void)avr;
  if (level <= LOG_ERROR) {
    vfprintf(stderr, format, arguments);
  }
}

static void feed(void) {
  unsigned char byte;
  while (ready && read(STDIN_FILENO, &byte, 1) == 1) {
    avr_raise_irq(uart_input, byte);
  }
}

int main(int argc, char **argv) {
  const int counted = argc > 6;
  if (argc < 5 || argc == 6 || argc > 8 || (argc > 7 && strlen(argv[7]) > UNTIL_MAX) ||
      (counted && strcmp(argv[6], "cycles") != 0 && strcmp(argv[6], "instructions") != 0)) {
    fprintf(stderr, "usage: tinyet_simavr ELF MCU HZ SECONDS [RAM_END cycles|instructions [UNTIL]]\n");
    return STATUS_USAGE;
  }
  counts_instructions = counted && strcmp(argv[6], "instructions") == 0;
  until = argc > 7 ? argv[7] : "";
  avr_global_logger_set(no_log);
  elf_firmware_t firmware;
  memset(&firmware, 0, sizeof firmware);
  if (elf_read_firmware(argv[1], &firmware) != 0) {
    fprintf(stderr, "%s: not an AVR firmware\n", argv[1]);
    return STATUS_USAGE;
  }
  avr_t *const avr = avr_make_mcu_by_name(argv[2]);
  if (avr == NULL) {
    fprintf(stderr, "%s: simavr does not know this chip\n", argv[2]);
    return STATUS_USAGE;
  }
  const unsigned long ram_end = counted ? strtoul(argv[5], NULL, 0) : 0u;
  if (ram_end > avr->ramend && ram_end <= UINT16_MAX) {
    avr->ramend = (uint16_t)ram_end; /* avr_init makes the memory */
  }
  avr_init(avr);
  firmware.frequency = (uint32_t)strtoul(argv[3], NULL, 10);
  avr_load_firmware(avr, &firmware);
  avr->sleep = no_sleep;
  avr->log = LOG_ERROR;
  avr_register_io_write(avr, GPIOR0, on_count, NULL);
  avr_register_io_read(avr, GPIOR1, on_held, NULL);

  uint32_t flags = 0; /* neither lines on the console nor host time spent on polling */
  avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
  avr_irq_t *const uart = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), 0);
  uart_input = uart + UART_IRQ_INPUT;
  avr_irq_register_notify(uart + UART_IRQ_OUTPUT, on_output, NULL);
  avr_irq_register_notify(uart + UART_IRQ_OUT_XON, on_xon, NULL);
  avr_irq_register_notify(uart + UART_IRQ_OUT_XOFF, on_xoff, NULL);
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);

  const uint64_t limit = (uint64_t)(strtod(argv[4], NULL) * firmware.frequency);
  int state = cpu_Running;
  while (state != cpu_Done && state != cpu_Crashed && !seen && avr->cycle < limit) {
    for (int i = 0; i < STEPS_A_POLL && state != cpu_Done && state != cpu_Crashed && !seen; i++) {
      state = avr_run(avr);
      instructions++;
    }
    feed();
    fflush(stdout);
  }
  fflush(stdout);
  fprintf(stderr, "%" PRIu64 "\n", (uint64_t)avr->cycle);
  if (state == cpu_Done || seen) {
    return 0;
  }
  return state == cpu_Crashed ? STATUS_CRASH : STATUS_TIMEOUT;
}
