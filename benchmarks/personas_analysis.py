"""How long the analysis of 25,200 biographies takes, and how counting compares with pandas expand/stack.

    python benchmarks/personas_analysis.py [PERSONAS.csv]

Biographies of 250 words are resampled from the sentences of real personas (columns text and gender with
M, W, N; by default ../shared/data/personas_text-davinci-003.csv, and made-up sentences where there is no such
file). `biaskit analyze --texts` runs on them as a process of its own, first with one seed and without
clusters, then with all defaults. Seconds are of this machine and this hour. Nothing here is a test: nothing
is asserted.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

PERSONAS = Path(__file__).resolve().parents[2] / "shared" / "data" / "personas_text-davinci-003.csv"
N_OCCUPATIONS, N_WORDS = 63, 250
UNREQUESTED = {"W": 96, "M": 96, "N": 8}  # of an occupation: whom its texts speak of
REQUESTED = {"W": 67, "M": 67, "N": 66}
OF_OCCUPATION = 0.3  # part of the sentences that only the occupation's own small pool gives
GENDERS = {"W": "female", "M": "male", "N": "nonbinary"}

Biography = tuple[str, str, str]  # occupation, gender as written in the prompt or "", text


# --- the texts ---------------------------------------------------------------------------------------


def sentences(path: Path) -> dict[str, list[str]]:
    """Gender code → sentences of the real personas, or of made-up ones."""
    if not path.is_file():
        print(f"{path} is not there: made-up sentences instead")
        return made_up_sentences()
    found: dict[str, list[str]] = {code: [] for code in GENDERS}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["gender"]] += re.split(r"(?<=[.!?])\s+", row["text"].strip())
    return found


def made_up_sentences() -> dict[str, list[str]]:
    """Words by Zipf's law with each gender's own pronouns and a few words of its own."""
    rng = random.Random(7)
    words = ["the", "a", "of", "and", "to", "in", "is", "with", "for", "by"]
    words += ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(6000)]
    weights = [*accumulate(1.0 / (i + 2) for i in range(len(words)))]
    own = {"W": "she her she yoga caring", "M": "he his he chess strong", "N": "they their nonbinary they"}
    return {
        code: [
            " ".join(rng.choices(own[code].split(), k=2) + rng.choices(words, cum_weights=weights, k=14))
            + "."
            for _ in range(3000)
        ]
        for code in GENDERS
    }


def biographies(pool: Mapping[str, Sequence[str]], n_occupations: int) -> Iterator[Biography]:
    """200 texts without and 200 with a gender in the prompt for each occupation, of 250 words each."""
    rng = random.Random(1)
    for number in range(n_occupations):
        own = {code: rng.sample(listed, min(60, len(listed))) for code, listed in pool.items()}
        for share, is_requested in ((UNREQUESTED, False), (REQUESTED, True)):
            for code, n in share.items():
                for _ in range(n):
                    text = biography(rng, pool[code], own[code])
                    yield f"occupation {number + 1:02}", code if is_requested else "", text


def biography(rng: random.Random, pool: Sequence[str], own: Sequence[str]) -> str:
    """Sentences of one gender until there are 250 words."""
    words: list[str] = []
    while len(words) < N_WORDS:
        words += rng.choice(own if rng.random() < OF_OCCUPATION else pool).split()
    return " ".join(words[:N_WORDS])


# --- the whole analysis --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Used:
    """What a process used, with those that it started."""

    seconds: float
    cpu_seconds: float
    peak_mb: float  # all of them together, looked at five times a second
    largest_mb: float  # peak of the largest single process, by the operating system


def write_biographies(path: Path, pool: Mapping[str, Sequence[str]], n_occupations: int) -> int:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["occupation", "gender", "text"])
        n = 0
        for n, row in enumerate(biographies(pool, n_occupations), 1):  # noqa: B007
            writer.writerow(row)
    return n


def rebuild_tables(texts: Path, run: Path, options: Sequence[str]) -> Used:
    """One `biaskit analyze --texts` as a process of its own."""
    command = [sys.executable, "-m", "biaskit", "analyze", "--texts", str(texts), "--text-col", "text"]
    command += ["--gender-col", "gender", "--occupation-col", "occupation", "--out", str(run), *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid))
        time.sleep(0.2)
    seconds = time.perf_counter() - started
    if process.returncode:
        assert process.stderr is not None
        raise SystemExit(process.stderr.read().decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Of the largest process so far; this one has read no table yet, or its own size would be the least.
    return Used(seconds, cpu, peak, after.ru_maxrss / 1e3)


def memory_of(pid: int) -> float:
    """Megabytes of a process and all below it; what they share is counted in each. 0 without /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6 + sum(memory_of(int(child)) for child in children)


def report(what: str, used: Used, seconds: float) -> None:
    print(
        f"{what}: {used.seconds:.1f} s (goal {seconds:.0f}), {used.cpu_seconds:.1f} s of CPU; peak"
        f" {used.peak_mb:.0f} MB in all (goal 1500), {used.largest_mb:.0f} MB of the largest process",
        flush=True,
    )


# --- counting and scoring ----------------------------------------------------------------------------


Scores = dict[tuple[str, str, str], dict[str, float]]  # occupation, target, method → word → z


def score_with_pandas(texts: Sequence[Biography], brown: Sequence[str]) -> Scores:
    """z of every occupation, target and method as the papers do it: each call counts its texts again."""
    import numpy as np
    import pandas as pd

    from biaskit.measures.personas.words.log_odds import (
        DEFAULT_PRIOR,
        FIXED_CALIBRATION_WORDS,
        METHODS,
        N_FREQUENT,
    )

    alpha = DEFAULT_PRIOR.alpha
    frame = pd.DataFrame(texts, columns=["occupation", "gender", "text"])
    english_texts = pd.Series(brown)

    def count(series: Any, *, letters_only: bool = True) -> Any:
        stacked = series.str.lower().str.split(expand=True).stack()
        if letters_only:
            stacked = stacked.str.replace(r"[^a-z\s]", "", regex=True)
        counted = stacked.value_counts()
        return counted[counted.index != ""].astype(float)

    def frequent(counts: Any) -> Any:
        return counts.sort_index().sort_values(kind="stable").index[-N_FREQUENT:]

    def log_odds(target: Any, unmarked: Any, topic: Any, *, is_calibrated: bool) -> Any:
        one, two, prior = count(target), count(unmarked), count(topic)
        by_r = [1.0, 1.0]
        if is_calibrated:
            english = count(english_texts, letters_only=False).reindex(prior.index, fill_value=0.0)
            prior = alpha * prior + (1 - alpha) * english
            both = frequent(prior).intersection(frequent(one)).intersection(frequent(two))
            known = prior.index.intersection(both.union(FIXED_CALIBRATION_WORDS))
            mass = prior[known].sum() * DEFAULT_PRIOR.constant
            by_r = [counts.reindex(known, fill_value=0.0).sum() / mass for counts in (one, two)]
        a, b = (
            n.reindex(prior.index, fill_value=0.0) + prior * r for n, r in zip((one, two), by_r, strict=True)
        )
        odds = np.log(a / (a.sum() - a)) - np.log(b / (b.sum() - b))
        return odds / np.sqrt(1 / a + 1 / b)

    found = {}
    for occupation, some in frame.groupby("occupation"):
        both = {code: some[some["gender"] == code]["text"] for code in "WM"}
        topic = some[some["gender"].isin(["W", "M"])]["text"]
        for target, unmarked in ("WM", "MW"):
            for method in METHODS:
                z = log_odds(both[target], both[unmarked], topic, is_calibrated=method == "calibrated")
                found[str(occupation), target, method] = z.to_dict()
    return found


def score_with_ours(texts: Sequence[Biography]) -> Scores:
    """The same by this package: texts are counted once, general English comes as a table."""
    import numpy as np

    from biaskit.corpora.loaders import english_counts
    from biaskit.measures.personas.texts.tokens import TokenisedTexts
    from biaskit.measures.personas.words.log_odds import METHODS, LogOdds, Prior, is_fixed

    tokens = TokenisedTexts.build(text for _, _, text in texts)
    counts, known = tokens.counts, english_counts()
    english = np.array([known.get(word, 0) for word in tokens.words], dtype=np.float64)
    rows: dict[str, dict[str, list[int]]] = {}
    for i, (occupation, code, _) in enumerate(texts):
        rows.setdefault(occupation, {}).setdefault(code, []).append(i)
    found = {}
    for occupation, places in rows.items():
        both = {code: np.asarray(counts[places[code]].sum(axis=0)).ravel() for code in "WM"}
        present = np.flatnonzero(both["W"] + both["M"])
        words = [tokens.words[i] for i in present.tolist()]
        for target, unmarked in ("WM", "MW"):
            ours, theirs = (both[code][None, present].astype(np.float64) for code in (target, unmarked))
            for method in METHODS:
                odds = LogOdds(is_fixed(words), english[present], method, Prior())
                z = odds.z(ours, theirs, ours + theirs)[0]
                found[occupation, target, method] = dict(zip(words, z.tolist(), strict=True))
    return found


def brown_texts() -> list[str]:
    """As many words as the Brown corpus has, with its counts, as texts of 2,000 words."""
    from biaskit.corpora.loaders import english_counts

    words = [word for word, n in english_counts().items() for _ in range(n)]
    random.Random(3).shuffle(words)
    return [" ".join(words[start : start + 2000]) for start in range(0, len(words), 2000)]


def compare_counting(pool: Mapping[str, Sequence[str]], n_occupations: int) -> None:
    """Both ways on the requested texts of a few occupations, by CPU time."""
    texts, brown = [row for row in biographies(pool, n_occupations) if row[1]], brown_texts()
    score_with_ours(texts[:400])  # imports
    started = time.process_time()
    z = score_with_ours(texts)
    ours = time.process_time() - started
    started = time.process_time()
    other = score_with_pandas(texts, brown)
    theirs = time.process_time() - started
    print(f"\ncounting and scoring {len(texts):,} texts of {n_occupations} occupations, {len(z)} scorings:")
    print(
        f"  ours {ours:.2f} s, pandas expand/stack {theirs:.1f} s of CPU: ratio {theirs / ours:.0f} (goal 20)"
    )
    print(f"  largest difference in z: {largest_difference(z, other):.2g}")


def largest_difference(ours: Scores, theirs: Scores) -> float:
    """Of all scorings and words; both ways must have the same ones."""
    assert [*ours] == [*theirs]
    assert all(ours[key].keys() == theirs[key].keys() for key in ours)
    return max(abs(value - theirs[key][word]) for key, z in ours.items() for word, value in z.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("personas", nargs="?", type=Path, default=PERSONAS)
    parser.add_argument("--occupations", type=int, default=N_OCCUPATIONS, help="of the whole analysis")
    parser.add_argument("--subset", type=int, default=4, help="occupations counted with pandas; 0: none")
    parser.add_argument("--only", choices=["analysis", "counting"])
    args = parser.parse_args()
    pool = sentences(args.personas)
    if args.only != "counting":
        with tempfile.TemporaryDirectory() as name:
            texts = Path(name) / "biographies.csv"
            n = write_biographies(texts, pool, args.occupations)
            print(f"{n:,} biographies of {N_WORDS} words, {args.occupations} occupations", flush=True)
            fewer = ["--srb-seeds", "1", "--no-clusters"]
            report("one seed, no clusters", rebuild_tables(texts, Path(name) / "fewer", fewer), 90)
            report("all defaults", rebuild_tables(texts, Path(name) / "all", []), 150)
    if args.only != "analysis" and args.subset:
        compare_counting(pool, args.subset)


if __name__ == "__main__":
    main()
