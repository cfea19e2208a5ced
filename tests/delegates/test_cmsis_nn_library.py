# SPDX-License-Identifier: Apache-2.0
"""The library itself: scratch sizes against its own functions, which of its files a kernel needs, how they compile."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyet import assets
from tinyet.delegates import CMSIS_NN
from tinyet.delegates.cmsis_nn import buffer_sizes, sources
from tinyet.delegates.cmsis_nn.buffer_sizes import Code
from tinyet.delegates.cmsis_nn.library import FOLDER, HEADER, Library, files
from tinyet.errors import InternalError

pytestmark = pytest.mark.skipif(
    assets.cmsis_nn_dir() is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror")


def write(folder: Path, names: list[str]) -> list[Path]:
    """The files that kernels with these sources need, below `folder`; returns the C sources."""
    for path, text in files([HEADER], names).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return sorted((folder / FOLDER).glob("*.c"))


# ---------------------------------------------------------------- scratch sizes


class Dims(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in "nhwc"]


class Params(ctypes.Structure):
    """cmsis_nn_conv_params, and the beginning of cmsis_nn_transpose_conv_params, up to the padding."""

    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            *("input_offset", "output_offset", "stride_w", "stride_h", "pad_w", "pad_h"),
            *("dilation_w", "dilation_h", "low", "high", "more_0", "more_1", "more_2"),
        )
    ]


class DepthwiseParams(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            *("input_offset", "output_offset", "multiplier", "stride_w", "stride_h", "pad_w", "pad_h"),
            *("dilation_w", "dilation_h", "low", "high"),
        )
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The library's own functions for sizes, compiled for this machine."""
    folder = tmp_path_factory.mktemp("sizes")
    names = [n for n in Library.load(sources.directory()).texts if "get_buffer_sizes_s8" in n]
    shared = folder / "sizes.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", *map(str, write(folder, names)), "-o", str(shared)]
    subprocess.run(command, check=True, timeout=120)
    return ctypes.CDLL(str(shared))


sizes = st.integers(1, 40)
few = st.integers(1, 7)
quick = settings(max_examples=60, deadline=None)


@quick
@given(sizes, few, few, few)
def test_convolve(library: ctypes.CDLL, channels: int, kernel_h: int, kernel_w: int, height: int) -> None:
    """Two rows and more, so that it is no convolution of one row; the wrapper's sizes are those of each function."""
    image, kernel, params = Dims(1, height + 1, 9, channels), Dims(4, kernel_h, kernel_w, channels), Params()
    params.stride_w = params.stride_h = 2
    params.dilation_w = params.dilation_h = 1
    whole = 0 if (kernel_h, kernel_w) == (1, 1) else kernel_h * kernel_w * channels
    arguments = [ctypes.byref(x) for x in (params, image, kernel, image)]
    for code, suffix in ((Code.SCALAR, ""), (Code.DSP, "_dsp"), (Code.MVE, "_mve")):
        wanted = getattr(library, f"arm_convolve_wrapper_s8_get_buffer_size{suffix}")(*arguments)
        assert wanted == (buffer_sizes.convolve_s8(code, whole) if whole else 0)


@quick
@given(st.integers(1, 10), few, few, st.integers(0, 4), st.integers(0, 4))
def test_convolve_one_row(
    library: ctypes.CDLL, quads: int, kernel_w: int, stride: int, pad: int, after: int
) -> None:
    channels, in_w = 4 * quads, kernel_w + 5
    out_w = (in_w + pad + after - kernel_w) // stride + 1
    params = Params(stride_w=stride, stride_h=1, pad_w=pad, dilation_w=1, dilation_h=1)
    image, out, kernel = Dims(1, 1, in_w, channels), Dims(1, 1, out_w, 8), Dims(8, 1, kernel_w, channels)
    if (kernel_w, pad) == (1, 0):
        return  # a 1x1 convolution to the wrapper
    arguments = [ctypes.byref(x) for x in (params, image, kernel, out)]
    for code, suffix in ((Code.SCALAR, ""), (Code.DSP, "_dsp"), (Code.MVE, "_mve")):
        wanted = getattr(library, f"arm_convolve_wrapper_s8_get_buffer_size{suffix}")(*arguments)
        assert wanted == buffer_sizes.convolve_1_x_n_s8(code, channels, in_w, out_w, kernel_w, stride, pad)


@quick
@given(st.integers(2, 200), few, few)
def test_depthwise(library: ctypes.CDLL, channels: int, kernel_h: int, kernel_w: int) -> None:
    """With two rows of padding, so that it is never the function for 3x3 kernels, which takes nothing."""
    params = DepthwiseParams(
        multiplier=1, stride_w=1, stride_h=1, pad_w=2, pad_h=2, dilation_w=1, dilation_h=1
    )
    image, kernel = Dims(1, 9, 9, channels), Dims(1, kernel_h, kernel_w, channels)
    arguments = [ctypes.byref(x) for x in (params, image, kernel, image)]
    for code, suffix in ((Code.SCALAR, ""), (Code.DSP, "_dsp"), (Code.MVE, "_mve")):
        wanted = getattr(library, f"arm_depthwise_conv_wrapper_s8_get_buffer_size{suffix}")(*arguments)
        assert wanted == buffer_sizes.depthwise_s8_opt(code, channels, kernel_h * kernel_w)


@quick
@given(sizes, few, few, few, st.integers(3, 6))
def test_transpose_conv(
    library: ctypes.CDLL, out_c: int, in_w: int, kernel_h: int, kernel_w: int, stride: int
) -> None:
    """With one stride for both directions: the library takes one for the other."""
    params = Params(stride_w=stride, stride_h=stride)
    image, kernel, out = Dims(1, 3, in_w, 8), Dims(out_c, kernel_h, kernel_w, 8), Dims(1, 9, 9, out_c)
    arguments = [ctypes.byref(x) for x in (params, image, kernel, out)]
    ours = buffer_sizes.transpose_conv_s8(out_c, in_w, kernel_h, kernel_w, stride, stride)
    assert library.arm_transpose_conv_s8_get_buffer_size(*arguments) == ours


@quick
@given(sizes, sizes)
def test_others(library: ctypes.CDLL, width: int, channels: int) -> None:
    """Pools; and matrix products, whose sums are those of a fully connected layer."""
    kernel = Dims(8, 1, 1, channels)
    for code, suffix in ((Code.SCALAR, ""), (Code.DSP, "_dsp"), (Code.MVE, "_mve")):
        pool = getattr(library, f"arm_avgpool_s8_get_buffer_size{suffix}")(width, channels)
        assert pool == buffer_sizes.avgpool(code, channels)
        full = getattr(library, f"arm_fully_connected_s8_get_buffer_size{suffix}")(ctypes.byref(kernel))
        assert full == buffer_sizes.batch_matmul_s8(code, channels)


# ---------------------------------------------------------------- files


def entry_files() -> list[str]:
    return sorted({s for kernels in CMSIS_NN.kernels.values() for k in kernels for s in k.sources})


@pytest.mark.parametrize("name", entry_files())
def test_each_entry_links_alone(name: str, tmp_path: Path) -> None:
    """With the files that it is said to need, and not with all of the library."""
    chosen = write(tmp_path, [name])
    command = ["gcc", "-shared", "-fPIC", "-Wl,--no-undefined", *WARNINGS, *map(str, chosen)]
    subprocess.run([*command, "-o", str(tmp_path / "all.so")], check=True, timeout=120)
    assert len(chosen) < 20
    assert (tmp_path / FOLDER / "LICENSE").is_file()


def test_an_unknown_file_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match=r"no file arm_magic_s8\.c"):
        files([HEADER], ["arm_magic_s8.c"])
    with pytest.raises(InternalError, match=r"no headers magic\.h"):
        files(["magic.h"], [])


@pytest.mark.parametrize("name", ["cmsis_nn.h", "build_options.h"])
def test_single_rounding_is_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path, ["arm_pad_s8.c"])
    command = ["gcc", "-fsyntax-only", "-x", "c", str(tmp_path / FOLDER / name)]
    subprocess.run(command, check=True, timeout=60)
    done = subprocess.run(
        [*command, "-DCMSIS_NN_USE_SINGLE_ROUNDING"], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "CMSIS_NN_USE_SINGLE_ROUNDING changes results" in done.stderr


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_compiles_under_the_warnings_of_a_project(cpu: str, tmp_path: Path) -> None:
    """The files of a width in one run, nine tenths of which would be the library's headers: only functions of two
    widths have one name. That each file stands alone is tested above."""
    sources = write(tmp_path, entry_files())
    command = ["arm-none-eabi-gcc", "-mthumb", f"-mcpu={cpu}", "-std=c11", "-O1", "-fsyntax-only"]
    if cpu == "cortex-m55":
        command.append("-mfloat-abi=hard")
    for wide in (False, True):
        own = [f'#include "{source}"\n' for source in sources if ("s16" in source.name) == wide]
        assert own
        unit = tmp_path / f"{'s16' if wide else 'others'}.c"
        unit.write_text("".join(own), encoding="utf-8")
        subprocess.run([*command, *WARNINGS, str(unit)], check=True, timeout=60)
