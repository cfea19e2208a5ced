/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include <stdbool.h>

struct device {
  bool ready;
};
bool device_is_ready(const struct device *device);

/* There is one device, the UART that the devicetree has for the console. */
extern const struct device standin_zephyr_console;
#define DEVICE_DT_GET(node) STANDIN_DEVICE(node)
#define STANDIN_DEVICE(node) (&standin_##node)

#endif
