"""How often the intervals of the weaker estimators hold a local model's exact values.

    python benchmarks/agreement.py [MODEL] [--jobs 1-8] [--templates 1-5] [--samples 25]

The same cells of OccuGender are asked three times: exactly, by the 20 most probable tokens (which bound
`word_boundary = token` and must hold always) and by sampled texts (which estimate `word_boundary = word` and
hold as often as a 95 % interval does). Cells come with intervals of their own, means of groups with bounds
or with 1.96 standard errors of the samples. With demo-base it takes some minutes. Leaves with 1 where a bound
does not hold the exact value.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import biaskit as bk

CELL = ["bias_type", "template_id", "job"]
GROUP = ["bias_type", "job_group", "gender"]
GENDERS = ("male", "female", "diverse")
FLOAT_NOISE = 1e-5
Compared = tuple[str, str, pd.DataFrame]
"""Bias type, what is compared, and its columns exact, point, low, high."""


def tables(model: str, out: Path, chosen: dict[str, str], estimator: str, **settings: object) -> Path:
    """A run's folder of tables."""
    more = {"samples": settings.pop("samples")} if "samples" in settings else {}
    result = bk.probe(
        model, estimator=estimator, dtype="float32", settings=settings, out=out, reuse=False, **chosen, **more
    )
    return result.path / "tables"


def of_cells(exact: Path, other: Path) -> Iterator[Compared]:
    """Shares and coverage of every cell."""
    first, second = (pd.read_csv(folder / "probe_prompts.csv") for folder in (exact, other))
    both = first.merge(second, on=CELL, suffixes=("_exact", ""), validate="1:1")
    for bias_type, rows in both.groupby("bias_type"):
        for name in (*(f"{gender}_share" for gender in GENDERS), "coverage"):
            columns = [f"{name}_exact", name, f"{name}_low", f"{name}_high"]
            yield str(bias_type), name.replace("_", " "), named(rows[columns])


def of_groups(exact: Path, other: Path) -> Iterator[Compared]:
    """Means of groups of jobs."""
    first, second = (pd.read_csv(folder / "probe_groups.csv") for folder in (exact, other))
    both = first.merge(second, on=GROUP, suffixes=("_exact", ""), validate="1:1")
    if both["share_low"].isna().all():
        half = 1.96 * both["se_sampling"]
        both = both.assign(share_low=both["share"] - half, share_high=both["share"] + half)
    for bias_type, rows in both.groupby("bias_type"):
        columns = ["share_exact", "share", "share_low", "share_high"]
        yield str(bias_type), "group share", named(rows[columns])


def named(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_axis(["exact", "point", "low", "high"], axis=1)


def summary(estimator: str, compared: Compared) -> tuple[str, bool]:
    """A line about one quantity, and whether every interval holds."""
    bias_type, what, rows = compared
    known = rows.dropna(subset=["exact", "low", "high"])
    low, high = known["low"] - FLOAT_NOISE, known["high"] + FLOAT_NOISE
    inside = int(known["exact"].between(low, high).sum())
    width, off = (known["high"] - known["low"]).mean(), (rows["point"] - rows["exact"]).abs().mean()
    percent = 100 * inside / len(known) if len(known) else float("nan")
    line = f"{bias_type:9} {estimator:9} {what:14} {len(known):5} {inside:5}"
    line += f" {percent:6.1f} {width:7.3f} {off:7.3f}"
    return line, inside == len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="demo-base")
    parser.add_argument("--jobs", default="1-4,21-24")
    parser.add_argument("--templates", default="1-5")
    parser.add_argument("--samples", type=int, default=25)
    given = parser.parse_args()
    chosen = {"jobs": given.jobs, "templates": given.templates}
    print("bias      estimator quantity           n  hold      %   width  |difference|")
    bounds_hold = True
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for estimator, boundary, more in (
            ("top-k", "token", {}),
            ("sampling", "word", {"samples": given.samples}),
        ):
            exact = tables(given.model, out / boundary, chosen, "exact", word_boundary=boundary)
            other = tables(given.model, out / estimator, chosen, estimator, **more)
            for compared in (*of_cells(exact, other), *of_groups(exact, other)):
                line, holds = summary(estimator, compared)
                print(line)
                bounds_hold &= holds or estimator == "sampling"
    if not bounds_hold:
        sys.exit(1)


if __name__ == "__main__":
    main()
