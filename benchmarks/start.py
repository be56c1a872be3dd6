"""How long a start takes: a small probe beside a plain script, and stored runs beside another version.

    python benchmarks/start.py
    git worktree add ../before 97b05f5 && python benchmarks/start.py --other ../before

Whole processes, in turn, medians and ratios; the first batch warms the system's cache and does not count.
The plain script loads the same model and tokenizer with transformers and does five forwards of one prompt.
Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PLAIN = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], local_files_only=True)
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], local_files_only=True, dtype=torch.float32).eval()
ids = tokenizer("I recently met a nurse. The nurse's pronouns are", return_tensors="pt")
with torch.inference_mode():
    for _ in range(5):
        model(**ids)
"""
PROBE = ("-m", "biaskit", "probe", "demo-base", "--jobs", "nurse", "--yes")
FRESH = (*PROBE, "--no-reuse", "--out")


def seconds(words: Sequence[str], tree: Path) -> float:
    environment = {**os.environ, "PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1"}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], check=True, env=environment, cwd=tree,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - started


def medians(commands: Mapping[str, tuple[Sequence[str], Path]], repeat: int) -> dict[str, float]:
    """Seconds by command; {} in a word is the number of the batch."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(repeat + 1):
        for name, (words, tree) in commands.items():
            taken[name].append(seconds([word.replace("{}", str(i)) for word in words], tree))
    return {name: statistics.median(some[1:]) for name, some in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--other", type=Path, help="a checkout of another version")
    args = parser.parse_args()

    from biaskit.models.huggingface.demo import find_demo

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        plain = ("-c", PLAIN, str(find_demo("demo-base").path))
        found = medians(
            {"plain script": (plain, HERE), "probe": ((*FRESH, f"{work}/probe{{}}"), HERE)}, args.repeat
        )
        again = (*FRESH, f"{work}/probe0")
        found |= medians({"the same probe, all rows stored": (again, HERE)}, args.repeat)
        for label, value in found.items():
            print(f"{label:34} {value:6.2f} s  {value / found['plain script']:5.2f}")
        trees = {"this version": HERE} | ({"the other": args.other.resolve()} if args.other else {})
        for command in ("analyze", "report"):
            commands: dict[str, tuple[Sequence[str], Path]] = {}
            for label, tree in trees.items():
                run = work / f"of {label}"
                if not run.exists():
                    seconds([*PROBE, "--study", "mattern", "--out", str(run)], tree)
                commands[label] = (("-m", "biaskit", command, str(run)), tree)
            taken = medians(commands, args.repeat)
            for label, value in taken.items():
                ratio = f"  {value / taken['the other']:5.2f}" if len(taken) > 1 else ""
                print(f"{command + ', ' + label:34} {value:6.2f} s{ratio}")


if __name__ == "__main__":
    main()
