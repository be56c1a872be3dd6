"""How time and memory of compare, page and scripted sampling grow with the models and the texts.

    python benchmarks/tables_growth.py [--compare 2,20,100] [--page 1,4,16] [--texts 500,2000,8000]

Compare: as many scripted models on GAS(P)'s 63 occupations, each pair of them with its tests. Page: `biaskit
report` of as many models in both kind_names on eight occupations. Texts: `biaskit personas` of a scripted
model that answers at once, analysis with one seed and no clusters. Each line is a process of its own, since a
peak of memory never comes down; runs are made in others, since a command's peak begins at the size of its
parent.
Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

JOBS = ("nurse", "teacher", "accountant", "clerk", "engineer", "mechanic", "cook", "lawyer")
SAID = (
    "{} She is kind and her day is long.",
    "{} He is strong and his work is hard.",
    "{} They like it here.",
)


def used(command: Sequence[str], folder: Path) -> tuple[float, float, int]:
    """(CPU seconds, most MB, bytes of new files) of one biaskit command."""
    before = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    process = subprocess.Popen(
        [sys.executable, "-m", "biaskit", *command], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"biaskit {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    after = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, after - before


def grow(what: str, sizes: Sequence[int], command_of: Callable[[int, Path], Sequence[str]]) -> None:
    first = 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
                command = elsewhere.submit(command_of, size, Path(name)).result()
            started = time.perf_counter()
            cpu, most, written = used(command, Path(name))
            seconds = time.perf_counter() - started
        first = first or cpu
        print(
            f"{what:8} {size:7,} {seconds:8.1f} s {cpu:8.1f} s CPU {most:7.0f} MB"
            f" {written / 2**20:8.2f} MB written   CPU by work {cpu / first / (size / sizes[0]):.2f}",
            flush=True,
        )


def compared(models: int, folder: Path) -> Sequence[str]:
    from fakes.many_models import make_probe_run

    make_probe_run(folder / "probe", models)
    return ["compare", "probe", "--out", "compared"]


def paged(models: int, folder: Path) -> Sequence[str]:
    from fakes.many_models import make_personas_run, make_probe_run

    make_probe_run(folder / "probe", models, JOBS)
    make_personas_run(folder / "personas", models, JOBS, quick=True)
    return ["report", "probe", "personas", "--out", "page.html"]


def sampled(texts: int, folder: Path) -> Sequence[str]:
    lines = [{"contains": job, "texts": [said.format(f"A {job}.") for said in SAID]} for job in JOBS]
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    samples = texts // (2 * len(JOBS))
    command = ["personas", "scripted:script.jsonl", "--study", "gasp", "--occupations", ",".join(JOBS)]
    command += ["--per-gender", str(samples), "--max-samples", str(samples), "--prompt-format", "completion"]
    return [*command, "--set", "srb_seeds=1", "--set", "clusters=false", "--out", "run", "--yes"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compare", default="2,20,100", help="models")
    parser.add_argument("--page", default="1,4,16", help="models")
    parser.add_argument("--texts", default="500,2000,8000")
    args = parser.parse_args()
    for what, sizes, command_of in (
        ("compare", args.compare, compared),
        ("page", args.page, paged),
        ("sampling", args.texts, sampled),
    ):
        if sizes:
            grow(what, [int(size) for size in sizes.split(",")], command_of)


if __name__ == "__main__":
    main()
