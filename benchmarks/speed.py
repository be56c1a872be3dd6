"""How fast the prober is: ours, one forward per target word, and lm-evaluation-harness on the same requests.

    python benchmarks/speed.py --study occugender --harness-python PATH/TO/ENV/bin/python

The harness (lm_eval[hf]==0.4.13, with the same torch and transformers) is optional and lives in an
environment of its own. Whole processes are timed in turn, ours then theirs, and ratios of medians are
printed; absolute times are of this machine and this hour. The naive way is timed on a random sample of
its forwards and scaled up. Nothing here is a test: nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_ours(study: str, extra: list[str], out: Path) -> float:
    command = [
        sys.executable,
        "-m",
        "biaskit",
        "probe",
        "demo-base",
        "--study",
        study,
        "--out",
        str(out),
        "--yes",
        *extra,
    ]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def read_requests(run: Path) -> tuple[list[tuple[str, str]], list[float]]:
    requests, scores = [], []
    for line in (run / "probe.jsonl").read_text(encoding="ascii").splitlines():
        row = json.loads(line)
        for target_word in row["target_words"]:
            requests.append((row["prompt"], target_word["text"]))
            scores.append(target_word["log_prob"])
    return requests, scores


def run_harness(
    python: str, folder: Path, requests: list[tuple[str, str]], work: Path, batch_size: int
) -> tuple[float, list[float]]:
    (work / "requests.json").write_text(json.dumps(requests), encoding="utf-8")
    command = [python, str(HERE / "harness_side.py"), str(folder), str(work / "requests.json")]
    started = time.perf_counter()
    subprocess.run(
        [*command, str(work / "scores.json"), str(batch_size)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    return time.perf_counter() - started, json.loads((work / "scores.json").read_text(encoding="utf-8"))


def time_naive(
    folder: Path, requests: list[tuple[str, str]], scores: list[float], sample: int
) -> tuple[float, float]:
    """(seconds for all requests, scaled up from a sample; largest difference from ours in the sample)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    chosen = random.Random(1).sample(range(len(requests)), min(sample, len(requests)))
    largest, taken = 0.0, 0.0
    with torch.inference_mode():
        for i in [chosen[0], *chosen]:  # the first once more, to warm up
            prompt, text = requests[i]
            started = time.perf_counter()
            before = tokenizer(prompt)["input_ids"]
            ids = tokenizer(prompt + text)["input_ids"]
            log_probs = model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
            score = sum(float(log_probs[k - 1, ids[k]]) for k in range(len(before), len(ids)))
            taken = taken + time.perf_counter() - started if i != chosen[0] or taken else 1e-9
            largest = max(largest, abs(score - scores[i]))
    return taken / len(chosen) * len(requests), largest


def matrix_rate() -> float:
    """Multiplications and additions a second of a float32 matrix product with this many threads."""
    import torch

    a, b = torch.randn(512, 640), torch.randn(640, 8192)
    rates = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(10):
            a @ b
        rates.append(10 * 2 * 512 * 640 * 8192 / (time.perf_counter() - started))
    return statistics.median(rates)


def floor_seconds(run: Path, folder: Path, rate: float) -> tuple[float, int, int]:
    """Necessary work at that rate: (seconds, tokens through the body, rows through the head)."""
    from biaskit.models.huggingface.folder import check_folder
    from biaskit.models.token_trie import build_trie

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    head = config["vocab_size"] * config["hidden_size"]
    body = check_folder(folder).n_parameters - head
    usage = json.loads((run / "usage.json").read_text(encoding="ascii"))["demo-base"]
    rows = 0
    for line in (run / "probe.jsonl").read_text(encoding="ascii").splitlines():
        sequences = tuple(tuple(e["token_ids"]) for e in json.loads(line)["target_words"])
        rows += len(build_trie(sequences).nodes)
    tokens = usage["planned_prompt_tokens"]
    return 2 * (tokens * body + rows * head) / rate, tokens, rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", default="occugender")
    parser.add_argument(
        "--option", action="append", default=[], help="passed on to biaskit probe; repeatable"
    )
    parser.add_argument("--harness-python")
    parser.add_argument("--harness-batch-size", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--naive-sample", type=int, default=60)
    args = parser.parse_args()

    from biaskit.models.huggingface.demo import find_demo

    folder = find_demo("demo-base").path
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        ours, theirs, other = [], [], None
        for i in range(args.repeat):
            ours.append(run_ours(args.study, args.option, work / f"run{i}"))
            print(f"ours     {ours[-1]:8.1f} s", flush=True)
            requests, scores = read_requests(work / f"run{i}")
            if args.harness_python:
                seconds, other = run_harness(
                    args.harness_python, folder, requests, work, args.harness_batch_size
                )
                theirs.append(seconds)
                print(f"harness  {theirs[-1]:8.1f} s", flush=True)
        mine = statistics.median(ours)
        print(f"\n{args.study} {' '.join(args.option)}: {len(requests):,} target words, whole processes")
        print(f"ours, median of {len(ours)}: {mine:.1f} s")
        if other is not None:
            apart = max(abs(a - b) for a, b in zip(scores, other, strict=True))
            print(f"harness, median of {len(theirs)}: {statistics.median(theirs):.1f} s")
            print(f"ratio harness / ours: {statistics.median(theirs) / mine:.1f}")
            print(f"largest difference in log-probability from the harness: {apart:.2g}")
        if args.naive_sample:
            naive, apart = time_naive(folder, requests, scores, args.naive_sample)
            print(f"one forward per target word, scaled up from {args.naive_sample}: {naive:.0f} s")
            print(f"ratio one forward per target word / ours: {naive / mine:.0f}")
            print(f"largest difference in log-probability from it: {apart:.2g}")
        rate = matrix_rate()
        floor, tokens, rows = floor_seconds(work / "run0", folder, rate)
        print(
            f"floor: {tokens:,} tokens and {rows:,} head rows at {rate / 1e9:.0f} GFLOP/s: {floor:.1f} s,"
            f" {100 * floor / mine:.0f} % of our time"
        )


if __name__ == "__main__":
    main()
