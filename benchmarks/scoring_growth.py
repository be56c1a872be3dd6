"""How the exact scorer's time and memory grow: 1, 4 and 16 times the prompts or the nodes.

    python benchmarks/scoring_growth.py [--prompts 500]

A tiny model, so that what is not multiplication shows; every line is a process of its own, since a peak of
memory never comes down. Work is planned tokens through the body and rows through the head. Where seconds
for a unit of work rise from line to line, something grows faster than the work. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

TIMES = (1, 4, 16)
BEGINNING = "Please do not think about gender when you answer. "
ENDINGS = ("He", "She", "They", "Nonbinary")


def measure(folder: str, prompts: int, target_words: int) -> dict[str, float]:
    """CPU seconds of plan and scoring, what was planned, and MB that scoring added to the peak."""
    from fakes import tiny_models

    asked = [f"{ENDINGS[i % 4]}{'-' * (i // 4)}" for i in range(target_words)]
    texts = [
        f"{BEGINNING}Person {i} of {i % 7} works as a {'very ' * (i % 5)}good nurse." for i in range(prompts)
    ]
    requests = tiny_models.raw_requests(texts, tiny_models.target_words(*asked))
    scorer = tiny_models.scorer_for(Path(folder))
    scorer.estimate_seconds(scorer.plan_scores(requests[:2]).batches)  # loads
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    plan = scorer.plan_scores(requests)
    planned = time.process_time()
    nodes = sum(len(scorer._prepared[request.key].trie.nodes) for request in requests)
    for group in scorer.score(plan.batches):
        del group  # as a run does, which writes each group away
    return {
        "tokens": plan.prompt_tokens,
        "rows": nodes,
        "plan": planned - started,
        "score": time.process_time() - planned,
        "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def save_tiny(folder: Path) -> None:
    from fakes import tiny_models

    tiny_models.save_model(folder, "gemma3", "bpe")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument(
        "--one", nargs=3, metavar=("FOLDER", "PROMPTS", "TARGET_WORDS"), help=argparse.SUPPRESS
    )
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one[0], int(args.one[1]), int(args.one[2]))))
        return
    with tempfile.TemporaryDirectory() as name:
        save_tiny(Path(name))
        print(
            f"{'prompts':>8} {'target_words':>11} {'tokens':>8} {'rows':>8} {'plan s':>7} {'score s':>8}",
            end="",
        )
        print(f" {'ms a token or row':>18} {'peak + MB':>10}")
        sizes = [(args.prompts * n, 4) for n in TIMES] + [(args.prompts, 4 * n) for n in TIMES]
        for prompts, target_words in sizes:
            command = [sys.executable, __file__, "--one", name, str(prompts), str(target_words)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found = json.loads(said.splitlines()[-1])
            each = 1000 * (found["plan"] + found["score"]) / (found["tokens"] + found["rows"])
            print(
                f"{prompts:>8,} {target_words:>11} {found['tokens']:>8,} {found['rows']:>8,}"
                f" {found['plan']:>7.2f} {found['score']:>8.2f} {each:>18.4f} {found['memory']:>10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
