/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_DEVICETREE_H
#define STANDIN_DEVICETREE_H

/* configure.py refuses a devicetree without a console. */
#define DT_HAS_CHOSEN(property) DT_HAS_CHOSEN_##property
#define DT_HAS_CHOSEN_zephyr_console 1
#define DT_CHOSEN(property) property

#endif
