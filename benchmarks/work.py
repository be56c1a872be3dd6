"""What this checkout saves of the work of an older one: both in turn, in user CPU seconds.

    python benchmarks/work.py [--old COMMIT] [--rows analyze-6400,lists] [--times 3]

The older commit is checked out beside this one (`git worktree`). Each piece of work runs in a process of its
own, old and new in turn, and the medians are compared: user CPU seconds, so that other work on the machine
weighs little, with one thread. Both have to give the same result, byte for byte. Fails where a ratio lies
below what its row promises. The rate of a float32 product of 256 × 640 by 640 × 2,048 says what the machine
is worth that hour.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from personas_analysis import N_WORDS, PERSONAS, Biography, biographies, biography, sentences

OLD = "83cf070c"  # before the work of 28 November 2026
OF_OCCUPATION = 200  # texts of women, and as many of men
ANALYSIS = ("--hold-out", "0.5", "--srb-seeds", "1", "--no-clusters")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process did: its seconds, what came of it, and the most memory it held."""

    seconds: float
    result: str  # equal for old and new
    peak_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A piece of work; in a process of its own `work` is given the folder of the inputs."""

    what: str
    work: Callable[[Path], Measured]
    least: float | None = None  # old / new
    most: float | None = None  # of the new: where it is no duration
    most_mb: float | None = None


# --- the pieces of work --------------------------------------------------------------------------------


def women_and_men(n_texts: int) -> Iterator[Biography]:
    """Biographies of 250 words, 200 of women and 200 of men for each occupation.

    A sentence has a pronoun and one of 30 words of its gender, then English words as often as in English,
    the same for both genders; three in ten are of 60 sentences of the occupation.
    """
    from biaskit.corpora.loaders import english_counts
    from biaskit.measures.personas.texts.names import is_gender_word

    english = {word: n for word, n in english_counts().items() if word.isalpha() and not is_gender_word(word)}
    rng, words, weights = random.Random(1), [*english], [*accumulate(english.values())]
    made_up = [" ".join(rng.choices(words, cum_weights=weights, k=14)) for _ in range(3_000)]
    pool: dict[str, list[str]] = {}
    for code, pronouns in (("W", ("she", "her")), ("M", ("he", "his"))):
        own = ["".join(rng.choices("aeioubcdfglmnprst", k=6)) for _ in range(30)]
        pool[code] = [f"{rng.choice(pronouns)} {rng.choice(own)} {said}." for said in made_up]
    for number in range(n_texts // (2 * OF_OCCUPATION)):
        shared = rng.sample(range(len(made_up)), 60)
        for code, said in pool.items():
            for _ in range(OF_OCCUPATION):
                text = biography(rng, said, [said[place] for place in shared])
                yield f"occupation {number + 1:02}", code, text


def analysis_of(n_texts: int) -> Callable[[Path], Measured]:
    """`analyze` of so many texts, half held out, with one seed and no clusters; the result: its tables."""

    def work(folder: Path) -> Measured:
        import csv

        texts = folder / "texts.csv"
        with texts.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("occupation", "gender", "text"), *women_and_men(n_texts)])
        command = [sys.executable, "-m", "biaskit", "analyze", "--texts", str(texts), "--text-col", "text"]
        command += ["--gender-col", "gender", "--occupation-col", "occupation", *ANALYSIS]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*command, "--out", str(folder / "run")], check=True, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        tables = sorted((folder / "run" / "tables").glob("*.csv"))
        content = b"".join(table.name.encode() + table.read_bytes() for table in tables)
        return Measured(used.ru_utime - before, digest(content), used.ru_maxrss / 1e3)

    return work


def lists(_: Path) -> Measured:
    """The lists of one comparison by both methods, with 199 and 1,800 shuffles; the result: every field."""
    import numpy as np

    from biaskit.corpora.loaders import english_counts
    from biaskit.measures.personas.texts.names import says_gender
    from biaskit.measures.personas.texts.tokens import TokenisedTexts
    from biaskit.measures.personas.words.lists import word_lists
    from biaskit.measures.personas.words.log_odds import counts_in

    texts = list(women_and_men(2 * OF_OCCUPATION))
    tokens = TokenisedTexts.build(text for _, _, text in texts)
    frequent = np.argsort(-tokens.counts.sum(axis=0).A1, kind="stable")[:3_000]
    words = [tokens.words[place] for place in sorted(frequent.tolist())]
    counts, english = tokens.counts[:, sorted(frequent.tolist())], counts_in(english_counts(), words)
    genders = ["female" if code == "W" else "male" for _, code, _ in texts]
    how: dict[str, Any] = {"words": words, "genders": genders, "english": english, "seed": 1}
    how |= {"strata": ["texts"] * len(texts), "left_out": says_gender(words, ()), "row_key": ["m", "o", "r"]}
    word_lists(counts, **how, n_shuffles=1)  # imports
    started = user_seconds()
    found = word_lists(counts, **how)
    return Measured(user_seconds() - started, digest(repr(found).encode()))


def of_real_sentences(n_texts: int) -> Iterator[Biography]:
    """Biographies of real personas' sentences, 400 for each occupation; without that file: an error."""
    if not PERSONAS.is_file():
        raise SystemExit(f"There is no {PERSONAS}: leave out the row `doubling`.")
    return biographies(sentences(PERSONAS), n_texts // 400)


def copies_of(n_texts: int) -> Callable[[Path], Measured]:
    """The units of so many texts."""
    return lambda _: _copies(women_and_men(n_texts))


def doubling(texts_of: Callable[[int], Iterator[Biography]]) -> Callable[[Path], Measured]:
    """How many times longer the units of 24,800 texts take than those of 12,400."""

    def work(_: Path) -> Measured:
        half, whole = (_copies(texts_of(n_texts)) for n_texts in (12_400, 24_800))
        return Measured(whole.seconds / half.seconds, whole.result)

    return work


def _copies(texts: Iterable[Biography]) -> Measured:
    """The units of some texts, the median of up to five times: what takes 0.2 seconds is soon disturbed."""
    from biaskit.measures.personas.texts.copies import shingles_of, units

    shingles = [shingles_of(text) for _, _, text in texts]
    found = units(shingles[:2], ["texts"] * 2)  # imports
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 5:
        started = user_seconds()
        found = units(shingles, ["texts"] * len(shingles))
        seconds.append(user_seconds() - started)
    return Measured(statistics.median(seconds), digest(repr(found).encode()))


ROWS: Mapping[str, Row] = {
    "analyze-6400": Row(
        f"analyze, 6,400 texts of {N_WORDS} words, 16 occupations", analysis_of(6_400), least=2.0
    ),
    "analyze-25200": Row(
        f"analyze, 25,200 texts of {N_WORDS} words, 63 occupations",
        analysis_of(25_200),
        least=2.5,
        most_mb=700,
    ),
    "lists": Row("lists of one comparison, 3,000 words, 199 + 1,800 shuffles", lists, least=2.5),
    "units": Row("units of 25,200 texts", copies_of(25_200)),
    "doubling": Row(
        "units of 24,800 texts, times those of 12,400: real sentences", doubling(of_real_sentences), most=2.3
    ),
    "doubling-generated": Row("the same, of generated sentences", doubling(women_and_men)),
}


# --- both checkouts in turn ----------------------------------------------------------------------------


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """Check a commit out beside this one, and take it away again."""
    here, there = Path(__file__).resolve().parents[1], folder / "old"
    git = ["git", "-C", str(here), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(there), commit], check=True)
    try:
        yield there
    finally:
        subprocess.run([*git, "remove", "--force", str(there)], check=True)


def measured(checkout: Path, name: str) -> Measured:
    """Do a row's work with a checkout's package, in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        environment["XDG_CACHE_HOME"] = folder  # no vectors are kept from one run to the next
        command = [sys.executable, __file__, "--inside", name, folder]
        answer = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, env={**os.environ, **environment}, cwd=folder
        )
    return Measured(**json.loads(answer.stdout.splitlines()[-1]))


def matrix_rate() -> float:
    """GFLOP/s of a float32 product of 256 × 640 by 640 × 2,048."""
    import torch

    a, b = torch.randn(256, 640), torch.randn(640, 2_048)
    rates = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(20):
            a @ b
        rates.append(20 * 2 * 256 * 640 * 2_048 / (time.perf_counter() - started) / 1e9)
    return statistics.median(rates)


def compared(row: Row, old: Sequence[Measured], new: Sequence[Measured]) -> bool:
    """Print a row, and say whether it keeps its promises."""
    before, after = (statistics.median(one.seconds for one in each) for each in (old, new))
    peak = max(one.peak_mb for one in new)
    promises = [(before / after, row.least, "at least"), (-after, row.most and -row.most, "at most")]
    promises.append((-peak, row.most_mb and -row.most_mb, "at most MB"))
    wanted = [f"{said} {abs(limit):g}" for _, limit, said in promises if limit is not None]
    same = len({one.result for one in (*old, *new)}) == 1
    kept = same and all(value >= limit for value, limit, _ in promises if limit is not None)
    of_memory = f"{peak:6.0f} MB" if peak else " " * 9
    print(
        f"{row.what:58} {before:9.2f} {after:9.2f}   ÷ {before / after:5.2f} {of_memory}"
        f"   {', '.join(wanted):24} {'' if same else 'NOT THE SAME RESULT '}{'ok' if kept else 'FAILS'}",
        flush=True,
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", default=OLD)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--inside", nargs=2, metavar=("ROW", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        found: dict[str, Any] = asdict(ROWS[args.inside[0]].work(Path(args.inside[1])))
        print(json.dumps(found))
        return
    print(f"float32, 256 × 640 by 640 × 2,048: {matrix_rate():.0f} GFLOP/s")
    print(f"{'work, in user CPU seconds':58} {'old':>9} {'new':>9}")
    new, kept = Path(__file__).resolve().parents[1], True
    with tempfile.TemporaryDirectory() as folder, checked_out(args.old, Path(folder)) as old:
        for name in args.rows.split(","):
            of_old, of_new = [], []
            for _ in range(args.times):
                of_old.append(measured(old, name))
                of_new.append(measured(new, name))
            kept = compared(ROWS[name], of_old, of_new) and kept
    sys.exit(not kept)


if __name__ == "__main__":
    main()
