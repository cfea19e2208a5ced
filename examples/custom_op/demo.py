# SPDX-License-Identifier: Apache-2.0
"""The network of model.py on an emulated board, in float32 and in int8, bit for bit.

python examples/custom_op/demo.py [--board mps2_an386] [--on qemu] [--out build/custom_op]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from model import calibration, example_inputs, images, model

import tinyet


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--on", default="qemu")
    parser.add_argument("--out", default="build/custom_op")
    options = parser.parse_args()
    exact = True
    for name, batches in (("snake_float", None), ("snake_int8", calibration())):
        program = tinyet.compile(model(), example_inputs(), calibration=batches, name=name)
        project = tinyet.generate(program, options.board, Path(options.out) / name)
        if options.on != "host":
            project.build()
        result = project.validate(images(4, 2).numpy(), on=options.on)
        exact &= result.bit_exact
        print(f"{name}: bit-exact {result.bit_exact}, flash {result.flash_bytes}, arena {result.arena_bytes}")
        for layer in result.layers:
            print(f"  {layer.op:8} {layer.kernel:26} {layer.count or ''}")
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
