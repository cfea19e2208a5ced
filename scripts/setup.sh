#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up a machine for `make demo` and `make test`: Debian packages for what is missing, and a virtual environment.
# usage: [PYTHON=...] scripts/setup.sh VENV_DIR
set -euo pipefail

venv=$1
# The system's own Python before another that PATH has (of pyenv, say): distributions optimize theirs by profiles and at
# link time, which pyenv does not, and compiling models and writing projects take a tenth less time with it.
python=${PYTHON:-}
if [ -z "$python" ]; then
  python=python3
  ! /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    python=/usr/bin/python3
fi

packages=()
have() { command -v "$1" >/dev/null 2>&1; }
have gcc || packages+=(gcc libc6-dev)
have g++ || packages+=(g++)
have arm-none-eabi-gcc || packages+=(gcc-arm-none-eabi)
have arm-none-eabi-gcc && [ -f "$(arm-none-eabi-gcc -print-file-name=libc_nano.a)" ] || packages+=(libnewlib-arm-none-eabi)
have qemu-system-arm || packages+=(qemu-system-arm)
have riscv64-unknown-elf-gcc || packages+=(gcc-riscv64-unknown-elf)
[ -d /usr/lib/picolibc/riscv64-unknown-elf ] || packages+=(picolibc-riscv64-unknown-elf)
have qemu-system-riscv32 || packages+=(qemu-system-misc)
have xtensa-lx106-elf-gcc || packages+=(gcc-xtensa-lx106)
[ -f /usr/lib/xtensa-lx106-elf/lib/libc.a ] || packages+=(picolibc-xtensa-lx106-elf)
have qemu-system-xtensa || packages+=(qemu-system-misc)
have clang || packages+=(clang)
have cppcheck || packages+=(cppcheck)
have avr-gcc || packages+=(gcc-avr)
[ -d /usr/lib/avr/include ] || packages+=(avr-libc)
[ -d /usr/share/arduino/hardware/arduino/avr ] || packages+=(arduino-core-avr)
have simavr || packages+=(simavr)
[ -f /usr/include/simavr/sim_avr.h ] || packages+=(libsimavr-dev)
have cmake || packages+=(cmake)
have chromium || packages+=(chromium)
have git || packages+=(git)
"$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)

install_packages() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  if ! have apt-get; then
    echo "please install with your system's package manager: ${packages[*]}" >&2
    return 1
  fi
  echo "installing ${packages[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}"
}

# Beside the environment, which needs nothing of them but the modules that make it.
beside=
if [ ${#packages[@]} -gt 0 ]; then
  if [[ " ${packages[*]} " == *" python3-venv "* ]]; then
    install_packages
  else
    # Whoever must type a password types it before other things are said.
    [ "$(id -u)" = 0 ] || ! have sudo || sudo -v
    install_packages &
    beside=$!
  fi
fi

"$python" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tinyet needs Python 3.11 or newer")'
# The environment has no pip before one comes with the tests' packages: to install the bundled one takes as long as uv
# takes for all of them. The Python's own serves, where it has one.
[ -x "$venv/bin/python" ] || "$python" -m venv --without-pip "$venv"
pip=("$python" -m pip --python "$venv/bin/python")
settings=$("$python" -m pip config list 2>/dev/null) || {
  "$venv/bin/python" -m ensurepip >/dev/null
  pip=("$venv/bin/python" -m pip)
  settings=$("${pip[@]}" config list)
}
# Two of three files of these packages nobody imports: those that somebody does are compiled then.
pip+=(install --quiet --disable-pip-version-check --no-compile)
needed=(-e '.[test]')
"$venv/bin/python" -c 'import torch' 2>/dev/null || needed+=(torch==2.13.0)
needs_torch() { [[ " ${needed[*]} " == *" torch=="* ]]; }

# The CPU build of torch, where its index can be reached; PyPI's own brings gigabytes of CUDA on Linux.
with_uv() {
  "${pip[@]}" uv 2>/dev/null || return
  local uv=("$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --index-strategy unsafe-best-match)
  local name values value
  # It reads no settings of pip's, which may say where packages are, but has options of these names. The environment's
  # come before those of files.
  while read -r name values; do
    for value in $values; do uv+=("--$name" "$value"); done
  done < <(sed -nE "s/\\\\n/ /g; s/^[^.]*\.((extra-)?index-url|find-links|constraint|cert)='(.*)'$/\1 \3/p" <<<"$settings" |
    awk '!seen[$1]++')
  if needs_torch && UV_HTTP_RETRIES=0 "${uv[@]}" --dry-run --no-deps --torch-backend cpu torch==2.13.0 2>/dev/null; then
    "${uv[@]}" --torch-backend cpu torch==2.13.0 || return
  fi
  "${uv[@]}" "${needed[@]}"
}

with_pip() {
  ! needs_torch || "${pip[@]}" --retries 0 --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0
  "${pip[@]}" "${needed[@]}"
}

# uv takes a fifth of pip's time.
with_uv || with_pip
[ -z "$beside" ] || wait "$beside"
