#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command with its temporary files in memory, and removes them. Tests write and remove whole projects, and on a
# disk the bookkeeping of the files is most of the system's time for them. Where TMPDIR says where, they are there, and
# stay, for who wants to look at them; where memory is scarce or forbids programs, they are where they always are.
# usage: scripts/in_memory.sh COMMAND [ARGUMENT...]
set -euo pipefail

memory=/dev/shm
# A session of all tests leaves about 1 GB.
needed_kb=$((4 * 1024 * 1024))

roomy() {
  local there available
  there=$(df -kP "$memory" 2>/dev/null | awk 'NR == 2 { print $4 }')
  available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null)
  [ "${there:-0}" -ge "$needed_kb" ] && [ "${available:-0}" -ge $((2 * needed_kb)) ]
}

# Containers often mount it without leave to run what lies there.
runs_programs() {
  local program=$1/program
  printf '#!/bin/sh\n' >"$program" && chmod +x "$program" && "$program" 2>/dev/null && rm "$program"
}

if [ -z "${TMPDIR:-}" ] && roomy && place=$(mktemp -d "$memory/tinyet-XXXXXX" 2>/dev/null); then
  trap 'rm -rf "$place"' EXIT
  if runs_programs "$place"; then
    export TMPDIR=$place
  fi
fi
"$@"
