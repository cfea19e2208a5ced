# SPDX-License-Identifier: Apache-2.0
"""Pages of reports, made by one command, and opened in a headless Chromium: their size, and how long it takes.

    python benchmarks/pages.py [EXAMPLE …] [--out build/reports] [--screenshots] [--results NAME]

Reports of examples, validated in QEMU, and one of a thousand layers, which has the layers of the first repeated. Times
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
from benchmarks.programs import show
from benchmarks.record import ROOT, add_option, write
from tinyet.analysis import analyze
from tinyet.opening import ModelOptions, read
from tinyet.pages.page import page_of, unpacked

BOARD = "mps2_an386"
EXAMPLES = ("digits", "keyword_spotting", "image")
LAYERS = 1000
SIZE = (1200, 2600)
"""Of a picture, in pixels."""
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


def page_of_example(model: str, folder: Path) -> str:
    """Of a project of an example, validated in QEMU."""
    opened = read(str(ROOT / "examples" / model / "model.py"), ModelOptions())
    project = tinyet.generate(opened.program, BOARD, folder, kind="cmake", evaluation=opened.evaluation)
    project.build()
    result = project.validate(on="qemu", max_samples=40)
    if not result.bit_exact:
        raise SystemExit(f"{model} differs")
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


def picture(page: Path, out: Path, size: tuple[int, int], where: Path) -> None:
    """A page as a WebP file, as it looks in a window of a size."""
    from PIL import Image

    shot = where / "shot.png"
    window = f"--window-size={size[0]},{size[1]}"
    words = [
        *_CHROMIUM,
        f"--user-data-dir={where / 'profile'}",
        window,
        f"--screenshot={shot}",
        page.as_uri(),
    ]
    subprocess.run(words, capture_output=True, check=True, timeout=300)
    made = io.BytesIO()
    Image.open(shot).convert("RGB").save(made, "WEBP", quality=60, method=6)
    out.write_bytes(made.getvalue())


def main() -> int:
    """Make the pages, open them, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("examples", nargs="*", default=EXAMPLES, metavar="EXAMPLE")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "reports", metavar="DIR")
    parser.add_argument("--screenshots", action="store_true")
    add_option(parser)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        pages = {name: page_of_example(name, where / name) for name in options.examples}
        pages["thousand_layers"] = large(next(iter(pages.values())))
        figures: list[dict[str, Any]] = []
        for name, page in pages.items():
            file = options.out / f"{name}.html"
            file.write_text(page, encoding="utf-8")
            figures.append({"page": name, "bytes": len(page.encode()), **opened(page, where)})
            if options.screenshots and name != "thousand_layers":
                picture(file.resolve(), ROOT / "docs" / "images" / f"report_{name}.webp", SIZE, where)
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
