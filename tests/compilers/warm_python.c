/* SPDX-License-Identifier: Apache-2.0
   Stands for Python where a script of PlatformIO's is started: asks warm_python.py, which has imported what the script
   will, for a process of its own that runs it, with this one's arguments, environment, directory and streams, and ends as
   that ends. Where nobody answers, it becomes Python itself. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

static char *text;
static size_t length, room;

static void add(const char *word) {
  size_t more = strlen(word) + 1;
  while (length + more > room) {
    room = 2 * room + more;
    text = realloc(text, room);
    if (!text) {
      exit(1);
    }
  }
  memcpy(text + length, word, more);
  length += more;
}

static int connected(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char *place = getenv(PLACE);
  int with = place && strlen(place) < sizeof address.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (with >= 0) {
    strcpy(address.sun_path, place);
    if (connect(with, (struct sockaddr *)&address, sizeof address) == 0) {
      return with;
    }
  }
  return -1;
}

/* The streams, then how long the texts are, then the texts. */
static int asked(int with) {
  const int streams[] = {0, 1, 2};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof streams)];
  } control = {0};
  uint32_t size = (uint32_t)length;
  struct iovec head = {&size, sizeof size};
  struct msghdr message = {
      .msg_iov = &head, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof streams);
  memcpy(CMSG_DATA(rights), streams, sizeof streams);
  if (sendmsg(with, &message, 0) != (ssize_t)sizeof size) {
    return 0;
  }
  for (size_t at = 0; at < length;) {
    ssize_t sent = write(with, text + at, length - at);
    if (sent <= 0) {
      return 0;
    }
    at += (size_t)sent;
  }
  return 1;
}

int main(int count, char **words) {
  int with = connected();
  if (with < 0) {
    words[0] = (char *)PYTHON;
    execv(PYTHON, words);
    perror(PYTHON);
    return 127;
  }
  signal(SIGPIPE, SIG_IGN);
  char *here = getcwd(NULL, 0);
  char number[16];
  add(here ? here : "/");
  snprintf(number, sizeof number, "%d", count - 1);
  add(number);
  for (int i = 1; i < count; i++) {
    add(words[i]);
  }
  for (char **said = environ; *said; said++) {
    add(*said);
  }
  int32_t status = 1;
  if (!asked(with) || read(with, &status, sizeof status) != (ssize_t)sizeof status) {
    fprintf(stderr, "what imports for many has ended\n");
    return 1;
  }
  if (status < 0) {
    signal(-status, SIG_DFL);
    raise(-status);
  }
  return status;
}
