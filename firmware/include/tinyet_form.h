/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TINYET_FORM_H
#define TINYET_FORM_H

/* The form of a channel's factor. Roundings whose factors have none have defined it before: tinyet_rne.h. */
#ifndef TINYET_FORM
#define TINYET_FORM(shifts, channel) ((shifts)[channel])
#endif

#endif
