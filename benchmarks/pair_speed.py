"""How fast pairs of sentences are scored: ours, and lm-evaluation-harness on the same sentences.

    python benchmarks/pair_speed.py [--pairs 10000] [--harness-pairs 500] [--harness-batch-size 1]

Pairs are the product of days, jobs and what is said, as lists for such tests are made. The harness
(lm_eval[hf]==0.4.13) scores each sentence as a continuation of nothing; a random sample of the pairs, scaled
up. Whole processes are timed in turn. Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import csv
import random
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from speed import run_harness

DAYS = (
    "On Monday",
    "On Tuesday",
    "Last week",
    "Yesterday",
    "In the evening",
    "This morning",
    "Today",
    "Later",
)
DAYS += ("After lunch", "At noon")
SAID = [
    f"{verb} that {{}} {clause}"
    for verb, clause in product(
        ("said", "wrote", "thought", "hoped", "knew"),
        ("would be late.", "had lost the key.", "was very tired.", "needed more time.", "could help them."),
    )
]


def sentence_pairs(n: int) -> list[tuple[str, str]]:
    """Make `n` different pairs."""
    with (Path(__file__).parents[1] / "corpora" / "occugender" / "jobs.csv").open(encoding="ascii") as file:
        jobs = [row["item"] for row in csv.DictReader(file)]
    every = product(DAYS, jobs, SAID)
    texts = [f"{day}, the {job} {said}" for day, job, said in every][:n]
    return [(text.format("she"), text.format("he")) for text in texts]


def main() -> None:
    """Time both, and compare the pairs' log-ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--harness-pairs", type=int, default=500)
    parser.add_argument("--harness-batch-size", type=int, default=1)
    parser.add_argument("--harness-python", default=sys.executable)
    args = parser.parse_args()

    from biaskit.models.huggingface.demo import find_demo

    pairs = sentence_pairs(args.pairs)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        with (work / "pairs.csv").open("w", encoding="ascii", newline="") as file:
            csv.writer(file).writerows([("female", "male"), *pairs])
        command = [sys.executable, "-m", "biaskit", "pairs", "demo-base", "--pairs", str(work / "pairs.csv")]
        started = time.perf_counter()
        subprocess.run([*command, "--out", str(work / "run"), "--yes"], check=True, stdout=subprocess.DEVNULL)
        ours = time.perf_counter() - started
        with (work / "run" / "tables" / "pair_scores.csv").open(encoding="ascii") as file:
            ratios = [float(row["log_ratio"]) for row in csv.DictReader(file)]
        chosen = random.Random(1).sample(range(len(pairs)), min(args.harness_pairs, len(pairs)))
        requests = [("", sentence) for i in chosen for sentence in pairs[i]]
        # Loading takes as long for few as for many.
        few, _ = run_harness(args.harness_python, find_demo("demo-base").path, requests[:2], work, 1)
        seconds, scores = run_harness(
            args.harness_python, find_demo("demo-base").path, requests, work, args.harness_batch_size
        )
        theirs = few + (seconds - few) * len(pairs) / len(chosen)
        apart = max(abs(scores[2 * k] - scores[2 * k + 1] - ratios[i]) for k, i in enumerate(chosen))
    print(f"ours: {ours:.0f} s for {len(pairs):,} pairs")
    print(
        f"harness, batches of {args.harness_batch_size}: {theirs:.0f} s, scaled up from {len(chosen)} pairs"
    )
    print(f"ratio harness / ours: {theirs / ours:.1f}")
    print(f"largest difference between the pairs' log-ratios: {apart:.2g}")


if __name__ == "__main__":
    main()
