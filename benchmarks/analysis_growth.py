"""How time and memory of an analysis grow with the number of texts, and with that of occupations.

    python benchmarks/analysis_growth.py [--texts 400] [--occupations 1000] [--times 1,4,16]

Texts: biographies of 250 words by Zipf's law, 400 to an occupation, analysed with one seed of vectors and no
clusters. Occupations: a short text each, as a column that divides nothing would give them. Each is done for
1, 4 and 16 times the work as a process of its own, with a folder for kept vectors of its own; then the
largest is done once more, with the vectors that are kept. Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from personas_analysis import Biography, Used, biographies, made_up_sentences, rebuild_tables

OF_AN_OCCUPATION = 400  # texts, as `biographies` makes them
FEWER = ("--srb-seeds", "1", "--no-clusters")


def one_each(n: int) -> Iterator[Biography]:
    """A text of one sentence for each of n occupations, half with a gender in the prompt."""
    rng, pool = random.Random(1), made_up_sentences()
    for number in range(n):
        code = rng.choice("WM")
        yield f"occupation {number:06}", code if number % 2 else "", rng.choice(pool[code])


def written(path: Path, rows: Iterator[Biography]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["occupation", "gender", "text"])
        writer.writerows(rows)
    return path


def show(what: str, used: Used, first: Used | None, times: int) -> None:
    growth = f"{used.cpu_seconds / first.cpu_seconds / times:.2f}" if first else "1.00"
    print(
        f"{what:28} {times:>3} x {used.seconds:9.1f} s {used.cpu_seconds:9.1f} s CPU"
        f" {used.peak_mb:8.0f} MB   CPU by work {growth}",
        flush=True,
    )


def grow(what: str, sizes: Sequence[tuple[int, Iterator[Biography]]], folder: Path) -> None:
    """Analyse each size from the smallest on, and the last one again with its vectors kept."""
    first: Used | None = None
    for times, rows in sizes:
        own = folder / f"{what}-{times}"
        own.mkdir()
        texts = written(own / "texts.csv", rows)
        os.environ["XDG_CACHE_HOME"] = str(own / "cache")
        used = rebuild_tables(texts, own / "run", FEWER)
        show(what, used, first, times)
        first = first or used
    again = rebuild_tables(texts, own / "again", FEWER)
    show(f"{what}, vectors kept", again, first, times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=400, help="of the smallest size; 0: none")
    parser.add_argument("--occupations", type=int, default=1_000, help="of the smallest size; 0: none")
    parser.add_argument("--times", default="1,4,16", help="sizes as multiples of the smallest")
    args = parser.parse_args()
    times = [int(part) for part in args.times.split(",")]
    pool = made_up_sentences()
    with tempfile.TemporaryDirectory() as name:
        if args.texts:
            n = max(1, args.texts // OF_AN_OCCUPATION)
            print(f"{n * OF_AN_OCCUPATION:,} texts of 250 words and more", flush=True)
            grow("texts", [(k, biographies(pool, k * n)) for k in times], Path(name))
        if args.occupations:
            print(f"{args.occupations:,} occupations of one text and more", flush=True)
            grow("occupations", [(k, one_each(k * args.occupations)) for k in times], Path(name))


if __name__ == "__main__":
    main()
