# SPDX-License-Identifier: Apache-2.0
"""What a sample takes on this machine: the host reference in numpy, the same program as compiled C, the float model in
torch.

    python benchmarks/evaluation.py [resnet8 ...] [--results NAME]

Milliseconds of one core's time (user and system), each library on one thread. resnet8 is the trained network of
MLPerf Tiny with its test images (TINYET_MLPERF_DIR, as benchmarks/mlperf_tiny.py needs it); the others have random
weights. Compiling is measured in an empty cache.
"""

from __future__ import annotations

import os

# Before numpy is loaded: threads that wait for each other would count as work.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import platform
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import nets, record
from benchmarks.mlperf_tiny import data_of, load_models
from tinyet.build import process

REPEATS = 3


def spent() -> float:
    """Seconds of processor time, of this process and of those that it has started."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least of some attempts: what others do on the machine only adds."""
    found = []
    for _ in range(repeats):
        before = spent()
        work()
        found.append(spent() - before)
    return min(found)


def mobilenet_v2(size: int, count: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """(network of width 1.0 for 1000 classes, calibration, images)"""
    torch.manual_seed(0)
    model = nets.mobilenet_v2(1.0, 1000).eval()
    return model, torch.randn(4, 3, size, size), torch.randn(count, 3, size, size)


def resnet8(count: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    models = load_models()
    calibration, x, *_ = data_of(models, "resnet8")
    return models.resnet8(), calibration, x[torch.arange(count) % len(x)]


NETWORKS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor, torch.Tensor]]] = {
    "mobilenet_v2_224": lambda: mobilenet_v2(224, 16),
    "mobilenet_v2_96": lambda: mobilenet_v2(96, 64),
    "resnet8": lambda: resnet8(10_000),
}


def row(name: str) -> dict[str, Any]:
    model, calibration, x = NETWORKS[name]()
    program = tinyet.compile(model, (x[:1],), calibration=calibration.split(1), name=name)
    images = x.numpy()
    few = images[: min(len(images), 256)]
    model.eval()
    with torch.no_grad():
        exact = seconds(lambda: [model(sample[None]) for sample in x[: len(few)]]) / len(few)
    numpy = seconds(lambda: [program.run(image) for image in few]) / len(few)
    with tempfile.TemporaryDirectory(prefix="tinyet-bench-") as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        first = seconds(lambda: program.evaluate(images[:1], by="native"), 1)
        native = seconds(lambda: program.evaluate(images, by="native"))
        one = seconds(lambda: program.evaluate(images[:1], by="native"))
        found = program.evaluate(images, by="native")
    wanted = [np.asarray(program.run(image)) for image in few]
    if not np.array_equal(found.outputs[0][: len(few)], np.stack(wanted)):
        sys.exit(f"{name}: compiled C differs from the host reference")
    return {
        "network": name,
        "samples": len(images),
        "judged": found.judged,
        "torch_ms": round(exact * 1e3, 2),
        "numpy_ms": round(numpy * 1e3, 2),
        "native_ms": round((native - one) / (len(images) - 1) * 1e3, 2),
        "prepare_s": round(one, 2),
        "compile_s": round(first - one, 2),
        "all_numpy_s": round(numpy * len(images), 1),
        "all_native_s": round(native, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", choices=[*NETWORKS, []], default=[])
    record.add_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.networks or list(NETWORKS):
        found = row(name)
        rows.append(found)
        print(
            f"{name:18} torch {found['torch_ms']:8.2f} ms, numpy {found['numpy_ms']:8.2f} "
            f"({found['numpy_ms'] / found['torch_ms']:.1f}x), compiled {found['native_ms']:8.2f} "
            f"({found['native_ms'] / found['torch_ms']:.1f}x); {found['samples']} images: numpy "
            f"{found['all_numpy_s']} s, compiled {found['all_native_s']} s, {found['judged']} judged; to prepare "
            f"{found['prepare_s']} s, to compile {found['compile_s']} s",
            flush=True,
        )
    compiler = process.run(["gcc", "--version"], timeout=30.0, what="the benchmark").stdout.splitlines()[0]
    machine = {"processor": processor(), "gcc": compiler, "numpy": np.__version__}
    record.write(options.results, {"machine": machine, "networks": rows})
    return 0


def processor() -> str:
    """As the system calls it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if sys.platform == "linux" else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    sys.exit(main())
