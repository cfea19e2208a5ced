/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAM_H
#define STREAM_H

#include "Print.h"

class Stream : public Print {
public:
  virtual int available() = 0;
  virtual int read() = 0;
  virtual int peek() = 0;
};

#endif
