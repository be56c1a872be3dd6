"""How large the page of many models is, and how long it takes to make.

    python benchmarks/report_page.py [--models 10] [--keep FOLDER]

Scripted models with different numbers answer both measurements over GAS(P)'s 63 occupations, with sentences
of the recorded corpus and made-up word vectors (`tests/fakes/many_models.py`); `biaskit report` runs as a
process of its own. Seconds are of this machine and this hour. Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fakes.many_models import make_personas_run, make_probe_run


def report(folder: Path) -> float:
    """Seconds that the command takes."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "biaskit", "report", "probe", "personas", "--out", "page.html"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(folder: Path, n_models: int) -> None:
    """Print size, time and first contentful paint."""
    if not (folder / "probe").exists():
        make_probe_run(folder / "probe", n_models)
        make_personas_run(folder / "personas", n_models, quick=True)
    seconds = sorted(report(folder) for _ in range(3))
    page = folder / "page.html"
    print(f"{n_models} models, 63 occupations, both measurements")
    print(f"size: {page.stat().st_size / 1e6:.2f} MB")
    span = f"{median(seconds):.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f})"
    print(f"biaskit report, with figures and LaTeX: {span}")


def main() -> None:
    """Measure in a folder of its own, or in one that is kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        measure(given.keep, given.models)
        return
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), given.models)


if __name__ == "__main__":
    main()
