# SPDX-License-Identifier: Apache-2.0
"""Pages of reports, made by one command, and opened in a headless Chromium: their size, and how long it takes.

    python benchmarks/pages.py [NETWORK …] [--out build/reports] [--screenshots] [--results NAME]

Reports of examples and of networks of benchmarks/nets.py, which have random weights and data, each validated in QEMU;
and one of a thousand layers, which has the layers of the first repeated. Times
are those of this machine, in milliseconds, of scripts, styles and layout, without painting: from the page's JSON until
all of it is there; of sorting all layers; of opening one; and the slowest of 60 steps through the graph with the
keyboard. --screenshots writes the pictures of the documents. Needs chromium, and Pillow for those.
"""

import argparse
import html
import io
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.nets import NETWORKS
from benchmarks.programs import program_of, show
from benchmarks.record import ROOT, add_option, write
from tinyet.analysis import analyze
from tinyet.data import Data
from tinyet.opening import ModelOptions, read
from tinyet.pages.page import page_of, unpacked
from tinyet.program import Program

BOARD = "mps2_an386"
BY_DEFAULT = ("digits", "keyword_spotting", "mobilenet_v2")
LAYERS = 1000
SAMPLES = {"mobilenet_v2": 4}
"""In the emulator, where it is not 40."""
PICTURES = {
    "digits": ("phone", 500, 0, 2900, False),
    "keyword_spotting": ("light", 1200, 0, 2900, False),
    "mobilenet_v2": ("dark", 1200, 2190, 4400, True),
}
"""Of a page: what the file is called, width of the window, first and last line of the picture in pixels, whether it
prefers dark."""
_CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
_TIMED = """
const timed = (work) => {
  const from = performance.now();
  work();
  document.body.getBoundingClientRect();
  return performance.now() - from;
};
const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: name}));
timed(() => {});
const times = { drawn: performance.now() - window.begun };
const sort = [...document.querySelectorAll("th button")].find((b) => b.textContent === "MACs");
times.sorted = timed(() => sort.click());
document.querySelector("g.node").focus();
times.opened = timed(() => key("Enter"));
document.querySelector("dialog").close();
document.querySelector("g.node").focus();
times.step = Math.max(...Array.from({length: 60}, () => timed(() => key("ArrowDown"))));
const out = document.createElement("pre");
out.id = "times";
out.textContent = JSON.stringify(times);
document.body.append(out);
"""


def given(name: str) -> tuple[Program, Data | None]:
    """A network and its data: labelled those of examples, random those of benchmarks/nets.py."""
    if name in NETWORKS:
        program, samples = program_of(name, SAMPLES.get(name, 40))
        return program, Data((samples.numpy(),))
    opened = read(str(ROOT / "examples" / name / "model.py"), ModelOptions())
    return opened.program, opened.evaluation


def page_of_network(name: str, folder: Path) -> str:
    """Of a project of it, validated in QEMU."""
    program, evaluation = given(name)
    project = tinyet.generate(program, BOARD, folder, kind="cmake", evaluation=evaluation)
    project.build()
    result = project.validate(on="qemu", max_samples=SAMPLES.get(name, 40))
    if not result.bit_exact:
        raise SystemExit(f"{name} differs")
    title = f"{project.name} on {BOARD}"
    return page_of(title, validation=result.to_json(), analysis=analyze(project).to_json())


def large(page: str) -> str:
    """The same report with LAYERS layers."""
    found = re.search(r'id="report">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    report = unpacked(json.loads(found[1]))
    analysis, validation = report["analysis"], report["validation"]
    layers, blocks, ran = analysis["layers"], analysis["arena"], validation["layers"]
    analysis["layers"] = [
        {**layers[i % len(layers)], "index": i, "name": f"stage.{i}", "reads": [i - 1]} for i in range(LAYERS)
    ]
    analysis["arena"] = [{**blocks[i % len(blocks)], "first": i, "last": i + 2} for i in range(LAYERS)]
    validation["layers"] = [{**ran[i % len(ran)], "name": f"stage.{i}"} for i in range(LAYERS)]
    return page_of("a thousand layers", validation=validation, analysis=analysis)


def opened(page: str, where: Path) -> dict[str, float]:
    """Times of a page in the browser."""
    file = where / "timed.html"
    mark = '<script type="application/json"'
    begun = page.replace(mark, f"<script>window.begun = performance.now();</script>{mark}", 1)
    file.write_text(begun.replace("</body>", f"<script>{_TIMED}</script></body>"), encoding="utf-8")
    words = [*_CHROMIUM, f"--user-data-dir={where / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    found = re.search(r'<pre id="times">(.*?)</pre>', done.stdout)
    if found is None:
        raise SystemExit("the page was not drawn")
    return {name: round(time, 1) for name, time in json.loads(html.unescape(found[1])).items()}


def picture(page: Path, name: str, where: Path) -> None:
    """A part of a page as a WebP file, as it looks in a window of a width."""
    from PIL import Image

    called, width, top, bottom, dark = PICTURES[name]
    shot = where / "shot.png"
    words = [
        *_CHROMIUM,
        f"--user-data-dir={where / 'profile'}",
        f"--window-size={width},{bottom}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--screenshot={shot}",
        page.as_uri(),
    ]
    subprocess.run(words, capture_output=True, check=True, timeout=300)
    made = io.BytesIO()
    part = Image.open(shot).convert("RGB").crop((0, top, width, bottom))
    part.save(made, "WEBP", quality=60, method=6)
    (ROOT / "docs" / "images" / f"report_{called}.webp").write_bytes(made.getvalue())


def main() -> int:
    """Make the pages, open them, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=BY_DEFAULT, metavar="NETWORK")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "reports", metavar="DIR")
    parser.add_argument("--screenshots", action="store_true")
    add_option(parser)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        pages = {name: page_of_network(name, where / name) for name in options.networks}
        pages["thousand_layers"] = large(next(iter(pages.values())))
        figures: list[dict[str, Any]] = []
        for name, page in pages.items():
            file = options.out / f"{name}.html"
            file.write_text(page, encoding="utf-8")
            figures.append({"page": name, "bytes": len(page.encode()), **opened(page, where)})
            if options.screenshots and name in PICTURES:
                picture(file.resolve(), name, where)
        heads = ("page", "bytes", "drawn", "sorted", "layer opened", "slowest step")
        rows = [
            [
                str(row["page"]),
                f"{row['bytes']:,}",
                *(f"{row[k]:.0f}" for k in ("drawn", "sorted", "opened", "step")),
            ]
            for row in figures
        ]
        show(Console(), "pages, ms", heads, rows, 1)
    write(options.results, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
