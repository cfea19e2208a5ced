# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of real values by size, beside CMSIS-DSP's: instructions on an emulated Cortex-M4, and the error.

    python benchmarks/cmsis_dsp.py --dsp FOLDER --core FOLDER [--results NAME]

--dsp: the sources of CMSIS-DSP (`Source` and `Include`; the sdist of cmsisdsp has them). --core: the folder of
cmsis_compiler.h. Both sides are compiled by GCC with -O2 and run in QEMU on the same noise, of which integers have 15
bits. An error is that of a side's own scale, against float64. The fixed-point transform is the one within
tinyet_log_bands_s16, window and all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gallery

from benchmarks import record
from benchmarks.linked import roomy
from tinyet import assets
from tinyet.boards import Board, load_board
from tinyet.boards.linker import linker_script
from tinyet.delegates import kernel_sources
from tinyet.device import qemu
from tinyet.device.links import LinkClosed
from tinyet.ops.shared import fft, fixed_fft

SIZES = (64, 128, 256, 512, 1024)
OURS = ("tinyet_fft_f32.c", "tinyet_signal_rfft_f32.c")
THEIRS = (
    "TransformFunctions/arm_rfft_fast_f32.c",
    "TransformFunctions/arm_rfft_fast_init_f32.c",
    "TransformFunctions/arm_rfft_q15.c",
    "TransformFunctions/arm_rfft_q31.c",
    "TransformFunctions/arm_rfft_init_q15.c",
    "TransformFunctions/arm_rfft_init_q31.c",
    "TransformFunctions/arm_cfft_f32.c",
    "TransformFunctions/arm_cfft_q15.c",
    "TransformFunctions/arm_cfft_q31.c",
    "TransformFunctions/arm_cfft_init_f32.c",
    "TransformFunctions/arm_cfft_init_q15.c",
    "TransformFunctions/arm_cfft_init_q31.c",
    "TransformFunctions/arm_cfft_radix8_f32.c",
    "TransformFunctions/arm_cfft_radix4_q15.c",
    "TransformFunctions/arm_cfft_radix4_q31.c",
    "TransformFunctions/arm_bitreversal2.c",
    "BasicMathFunctions/arm_shift_q15.c",
    "BasicMathFunctions/arm_shift_q31.c",
    "CommonTables/CommonTables.c",
)

MAIN = r"""
#include "arm_math.h"
#include "tinyet_fft.h"
#include "tinyet_log_bands_s16.c"
#include "tinyet_platform.h"
#include "data.h"

static float in_f32[2 * MOST], out_f32[2 * MOST];
static int32_t in_q31[2 * MOST], out_q31[2 * MOST + 2];
static int16_t in_q15[2 * MOST], out_q15[2 * MOST + 2];

static void integer(int32_t value) {
  char digits[12];
  size_t at = sizeof digits;
  uint32_t rest = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
  digits[--at] = ' ';
  do {
    digits[--at] = (char)('0' + (char)(rest % 10u));
    rest /= 10u;
  } while (rest != 0u);
  if (value < 0) {
    digits[--at] = '-';
  }
  tinyet_platform_write(digits + at, sizeof digits - at);
}

static void report(uint64_t ticks, const void *values, int32_t width, int32_t count) {
  integer((int32_t)ticks);
  for (int32_t i = 0; i < count; i++) {
    int32_t value = 0;
    memcpy(&value, (const uint8_t *)values + i * width, (size_t)width);
    integer(width == 2 ? (int16_t)value : value);
  }
  tinyet_platform_write("\n", 1);
}

static void size_of(int32_t n, const tinyet_signal_rfft_f32_params *reals, const tinyet_log_bands_s16_params *fixed) {
  uint64_t ticks;
  arm_rfft_fast_instance_f32 f32;
  arm_rfft_instance_q31 q31;
  arm_rfft_instance_q15 q15;
  arm_rfft_fast_init_f32(&f32, (uint16_t)n);
  arm_rfft_init_q31(&q31, (uint32_t)n, 0, 1);
  arm_rfft_init_q15(&q15, (uint32_t)n, 0, 1);
  for (int32_t i = 0; i < n; i++) {
    in_f32[i] = (float)noise[i];
    in_q31[i] = (int32_t)noise[i] * 65536;
    in_q15[i] = noise[i];
  }
  tinyet_platform_counter_restart();
  tinyet_signal_rfft_f32(in_f32, out_f32, reals);
  ticks = tinyet_platform_counter();
  report(ticks, out_f32, 4, n + 2);
  tinyet_platform_counter_restart();
  arm_rfft_fast_f32(&f32, in_f32, out_f32, 0);
  ticks = tinyet_platform_counter();
  report(ticks, out_f32, 4, n);
  tinyet_number *const z = (tinyet_number *)out_f32;
  tinyet_platform_counter_restart();
  tinyet_windowed(noise, z, fixed);
  tinyet_first_stage(z, z + fixed->count, fixed->radix[0]);
  int32_t size = fixed->radix[0];
  for (int32_t stage = 1; stage < fixed->stages; stage++) {
    tinyet_stage(z, fixed->count, fixed->radix[stage], size, fixed->twiddles);
    size *= fixed->radix[stage];
  }
  tinyet_to_real(z, fixed->count, fixed->split);
  ticks = tinyet_platform_counter();
  report(ticks, z, 4, n + 2);
  tinyet_platform_counter_restart();
  arm_rfft_q31(&q31, in_q31, out_q31);
  ticks = tinyet_platform_counter();
  report(ticks, out_q31, 4, n + 2);
  tinyet_platform_counter_restart();
  arm_rfft_q15(&q15, in_q15, out_q15);
  ticks = tinyet_platform_counter();
  report(ticks, out_q15, 2, n + 2);
}

int main(void) {
  EACH
  tinyet_platform_write("done\n", 5);
  return 0;
}
"""
WAYS = ("float32", "CMSIS-DSP f32", "fixed point", "CMSIS-DSP q31", "CMSIS-DSP q15")


def array(name: str, values: np.ndarray) -> str:
    kind = "float" if values.dtype == np.float32 else f"{values.dtype.name}_t"
    words = (
        [float(v).hex() + "f" for v in values.reshape(-1)] if kind == "float" else list(values.reshape(-1))
    )
    return f"static const {kind} {name}[] = {{{', '.join(map(str, words))}}};\n"


def tables(n: int) -> str:
    """What tinyet's transforms of n values read."""
    radices, count = fixed_fft.radices(n // 2), n // 2
    struct = fft.fft_struct(n)
    lists = {k: v for k, v in struct.fields.items() if isinstance(v, tuple)}
    shape = ", ".join("{" + ", ".join(map(str, v)) + "}" for v in lists.values())
    float_tables = (fft.twiddles, fft.super_twiddles)
    constants = {
        f"turns_{n}": float_tables[0](n, fft.DType.FLOAT32, False),
        f"super_{n}": float_tables[1](n, fft.DType.FLOAT32, False),
        f"window_{n}": np.full(n, 32767, np.int16),
        f"order_{n}": fixed_fft.order(count).astype(np.uint16),
        f"fixed_turns_{n}": fixed_fft.twiddles(n).astype(np.int16),
        f"split_{n}": fixed_fft.split_twiddles(n).astype(np.int16),
    }
    text = "".join(array(name, values) for name, values in constants.items())
    text += (
        f"static const tinyet_signal_rfft_f32_params real_{n} = {{turns_{n}, super_{n}, "
        f"{{{struct.fields['count']}, {struct.fields['stages']}, {shape}}}, 1, {n}}};\n"
    )
    fields = {
        "window": f"window_{n}",
        "order": f"order_{n}",
        "twiddles": f"fixed_turns_{n}",
        "split": f"split_{n}",
        "radix": "{" + ", ".join(map(str, radices)) + "}",
        "stages": len(radices),
        "count": count,
        "frames": 1,
        "given": n,
        "right": 15 - fixed_fft.left_shift(n),
    }
    given = ", ".join(f".{k} = {v}" for k, v in fields.items())
    return text + f"static const tinyet_log_bands_s16_params fixed_{n} = {{{given}}};\n"


def build(board: Board, dsp: Path, core: Path, noise: np.ndarray, folder: Path) -> Path:
    firmware = assets.path("firmware")
    kernels = kernel_sources.write(folder / "src", [*OURS, "tinyet_log_bands_s16.c"])
    ours = [path for path in kernels if path.suffix == ".c" and path.name != "tinyet_log_bands_s16.c"]
    each = "\n  ".join(f"size_of({n}, &real_{n}, &fixed_{n});" for n in SIZES)
    (folder / "main.c").write_text(MAIN.replace("EACH", each), encoding="utf-8")
    data = f"#define MOST {max(SIZES)}\n" + array("noise", noise) + "".join(map(tables, SIZES))
    (folder / "data.h").write_text(data, encoding="utf-8")
    script, elf = folder / "linker.ld", folder / "firmware.elf"
    script.write_text(linker_script(roomy(board)), encoding="utf-8")
    includes = [firmware / "include", firmware / "platform", folder, folder / "src"]
    includes += [dsp / "Include", dsp / "PrivateInclude", core]
    command: Sequence[object] = [
        *(board.toolchain.compiler, *board.machine_flags, *board.toolchain.library_flags),
        *("-std=gnu11", "-O2", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off", "-w"),
        *(f"-D{name}={value}" for name, value in board.defines),
        *(f"-I{path}" for path in includes),
        *(firmware / name for name in board.support_sources),
        *ours,
        *(dsp / "Source" / name for name in THEIRS),
        folder / "main.c",
        *("-nostartfiles", "-Wl,--gc-sections", f"-T{script}", "-o", elf, "-lm"),
    ]
    subprocess.run([str(word) for word in command], check=True)
    return elf


def run(board: Board, elf: Path) -> list[list[int]]:
    """The lines of numbers that the firmware prints."""
    link, text = qemu.start(board, elf), ""
    try:
        while "done\n" not in text:
            text += link.read(gallery.time.monotonic() + 60).decode()
    except LinkClosed as error:
        raise SystemExit(f"the firmware ended early: {text[-200:]}") from error
    finally:
        link.close()
    return [[int(word) for word in line.split()] for line in text.splitlines()[:-1]]


def noise_of(found: Sequence[int], way: str, n: int, signal: np.ndarray) -> float:
    """dB, of the numbers scaled to fit best."""
    words = np.array(found, np.int64)
    values = (
        words.astype(np.int32).view(np.float32).astype(np.float64) if "32" in way else words.astype(float)
    )
    if (
        way == "CMSIS-DSP f32"
    ):  # the last number's real part stands where the first one's imaginary part would
        values = np.concatenate([values, [values[1], 0.0]])
        values[1] = 0.0
    spectrum = values[0::2] + 1j * values[1::2]
    exact = np.fft.rfft(signal[:n])
    scale = np.vdot(spectrum, exact).real / np.vdot(spectrum, spectrum).real
    share = np.sum(np.abs(spectrum * scale - exact) ** 2) / np.sum(np.abs(exact) ** 2)
    return round(float(10 * np.log10(share)), 1)


def rows(dsp: Path, core: Path) -> Iterable[dict[str, Any]]:
    board = load_board("mps2_an386")
    noise = np.random.default_rng(0).integers(-16384, 16384, max(SIZES)).astype(np.int16)
    with tempfile.TemporaryDirectory(prefix="tinyet-dsp-") as where:
        lines = run(board, build(board, dsp, core, noise, Path(where)))
    tick = qemu.ticks_per_instruction(board)
    for index, n in enumerate(SIZES):
        for way, (ticks, *found) in zip(WAYS, lines[index * len(WAYS) :], strict=False):
            error = noise_of(found, way, n, noise.astype(np.float64))
            yield {"size": n, "way": way, "instructions": round(ticks / tick), "error_db": error}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dsp", type=Path, required=True)
    parser.add_argument("--core", type=Path, required=True)
    record.add_option(parser)
    options = parser.parse_args()
    found = list(rows(options.dsp, options.core))
    for row in found:
        sys.stdout.write(f"{row}\n")
    record.write(options.results, {"transforms": found})


if __name__ == "__main__":
    main()
