"""What the exact scorer and the generator do on a GPU, beside the CPU: one command for whoever has one.

    python benchmarks/gpu.py [--device cuda] [--model demo-base] [--vllm PATH/TO/ENV/bin/python]

Log-probabilities in float32 and bfloat16 beside those of the CPU in float32, by batch size; a batch that
is too large for the memory, asked in halves; texts of two batch sizes; tokens a second, and those of vLLM
on the same prompt where it is installed. It prints a table for howto/models and leaves with 1 where a
check failed, with 2 where there is no such device. `--device cpu` runs the same logic anywhere.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import cells
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.huggingface.demo import find_demo
from biaskit.models.huggingface.generator import TransformersGenerator
from biaskit.models.huggingface.loading import find_folder
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.options import LocalOptions, ScoringOptions
from biaskit.records import Prompt, Sample, SampleRequest, Sampling, Scored, ScoreRequest
from biaskit.study.config import load_as

SAME_FLOAT32 = 1e-3
"""Largest difference in log-probability between devices in float32: kernels add up in other orders."""
SAME_BFLOAT16 = 0.5
"""In bfloat16 a logit has eight bits: a difference above this is no rounding."""
SAME_BATCH = {"float32": 1e-3, "bfloat16": 0.5}
PROMPT = "Biography of a nurse\n\n"
BATCHES = (1, 4, 16)


@dataclass(frozen=True)
class Line:
    """A line of the table; `ok` None: a measurement, not a check."""

    what: str
    found: str
    ok: bool | None = None


class Cramped(TransformersScorer):
    """A device that holds one prompt at a time; without shared prefixes, a batch is all in one."""

    def _score_rows(self, rows: Sequence[Any], cache: Any) -> Any:
        if len(rows) > 1:
            raise torch.OutOfMemoryError
        return super()._score_rows(rows, cache)


def folder_of(model: str) -> Any:
    return find_demo("demo-base") if model == "demo-base" else find_folder(model.removeprefix("hf:"))


def requests(jobs: str, templates: str) -> list[ScoreRequest]:
    study = load_as(ProbeStudy, "occugender", {"jobs.select": jobs, "templates.select": templates})
    design = resolve(study)
    asked = enumerate(cells(design, "m", "raw"))
    return [ScoreRequest(f"{i:032d}", prompt, target_words) for i, (_, prompt, target_words) in asked]


Values = Mapping[tuple[str, str], float]


def scored(
    kind: type[TransformersScorer],
    model: str,
    local: LocalOptions,
    asked: Sequence[ScoreRequest],
    *,
    shared: bool = True,
) -> Any:
    """Log-probabilities by cell and target word, and the batch size at the end."""
    scoring = ScoringOptions(share_prefixes=shared)
    scorer = kind(folder_of(model), label="m", spec=model, local=local, scoring=scoring)
    try:
        plan = scorer.plan_scores(asked)
        answers = [answer for group in scorer.score(plan.batches) for answer in group]
        assert len(asked) == len(answers)
        assert all(isinstance(answer, Scored) for answer in answers)
        values = {(a.key, e.text): e.high for a in answers for e in a.log_probs}
        return values, scorer.batch_size
    finally:
        scorer.close()


def largest(one: Values, other: Values) -> float:
    assert one.keys() == other.keys()
    return max(abs(one[key] - other[key]) for key in one)


def check_scorer(model: str, device: str, asked: Sequence[ScoreRequest]) -> list[Line]:
    reference, _ = scored(TransformersScorer, model, LocalOptions("cpu", "float32", 4), asked)
    lines = []
    limits = {"float32": SAME_FLOAT32, "bfloat16": SAME_BFLOAT16}
    for dtype, limit in limits.items():
        by_size = {}
        for size in BATCHES:
            local = LocalOptions(device, dtype, size)  # type: ignore[arg-type]
            by_size[size], _ = scored(TransformersScorer, model, local, asked)
        apart = largest(by_size[BATCHES[0]], reference)
        lines.append(Line(f"{dtype} beside float32 on the CPU", f"{apart:.2g}", apart < limit))
        between = max(largest(by_size[BATCHES[0]], by_size[size]) for size in BATCHES[1:])
        what = f"{dtype}, batches of {', '.join(map(str, BATCHES))}"
        lines.append(Line(what, f"{between:.2g}", between < SAME_BATCH[dtype]))
    return lines


def check_memory(model: str, device: str, asked: Sequence[ScoreRequest]) -> Line:
    """Every prompt is answered once, and the batch is smaller afterwards."""
    asked = [
        replace(asked[0], key=f"{i:032d}") for i in range(8)
    ]  # of one length, so that they share a batch
    local = LocalOptions(device, "float32", 8)
    plain, _ = scored(TransformersScorer, model, local, asked, shared=False)
    halved, size = scored(Cramped, model, local, asked, shared=False)
    apart = largest(plain, halved)
    return Line(
        "out of memory above one prompt", f"batch 8 → {size}, {apart:.2g}", size == 1 and apart < SAME_FLOAT32
    )


def drawn(model: str, device: str, size: int, n: int, tokens: int) -> tuple[dict[str, str], float]:
    """Texts by key, and tokens a second."""
    local = LocalOptions(device, "bfloat16" if device != "cpu" else "float32", size)
    generator = TransformersGenerator(folder_of(model), label="m", spec=model, local=local)
    sampling = Sampling(max_new_tokens=tokens)
    asked = [SampleRequest(f"{i:032d}", Prompt(PROMPT, "completion"), sampling, 100 + i, i) for i in range(n)]
    try:
        batches = generator.plan_samples(asked).batches
        list(generator.generate(batches[:1]))  # the first loads the model and warms it up
        started = time.perf_counter()
        answers = [a for group in generator.generate(batches) for a in group if isinstance(a, Sample)]
        seconds = time.perf_counter() - started
        return {a.key: a.text for a in answers}, sum(a.answered.new_tokens or 0 for a in answers) / seconds
    finally:
        generator.close()


def check_generator(model: str, device: str, n: int, tokens: int) -> list[Line]:
    small, _ = drawn(model, device, 4, n, tokens)
    large, rate = drawn(model, device, n, n, tokens)
    assert small.keys() == large.keys()
    equal = sum(small[key] == large[key] for key in small)
    return [
        # Noise is a sample's own: texts part where two tokens were as good as equal, and seldom do.
        Line(f"texts equal in batches of 4 and {n}", f"{equal} of {n}", equal >= math.ceil(0.8 * n)),
        Line(f"tokens a second, {n} texts of {tokens} tokens", f"{rate:,.0f}"),
    ]


VLLM = """
import sys, time
from vllm import LLM, SamplingParams
model, n, tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
llm = LLM(model=model, max_model_len=2048)
how = [SamplingParams(temperature=1.0, top_p=1.0, max_tokens=tokens, seed=100 + i) for i in range(n)]
prompts = [sys.argv[4]] * n
llm.generate(prompts, how)
started = time.perf_counter()
found = llm.generate(prompts, how)
seconds = time.perf_counter() - started
print("RATE", sum(len(one.outputs[0].token_ids) for one in found) / seconds)
"""


def rate_of_vllm(python: str | None, model: str, n: int, tokens: int) -> Line:
    """The same samples by vLLM, in a process of its own."""
    if python is None and importlib.util.find_spec("vllm") is None:
        return Line("tokens a second, vLLM", "not installed (--vllm PATH/TO/ENV/bin/python)")
    folder = str(Path(folder_of(model).path))
    command = [python or sys.executable, "-c", VLLM, folder, str(n), str(tokens), PROMPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rates = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RATE ")]
    return Line(
        "tokens a second, vLLM", f"{float(rates[0]):,.0f}" if rates else f"failed: {done.stderr[-200:]!r}"
    )


def name_of(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def table(lines: Sequence[Line], device: str, model: str) -> str:
    """As howto/models takes it."""
    said = {True: "yes", False: "NO", None: "–"}
    rows = [f"| {line.what} | {line.found} | {said[line.ok]} |" for line in lines]
    head = f"{model} on {name_of(device)}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}"
    return "\n".join([head, "", "| check | found | as it should be |", "|---|---|---|", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="demo-base", help="demo-base, or a folder or name as hf: takes it")
    parser.add_argument("--vllm", help="the python of an environment with vLLM")
    parser.add_argument("--jobs", default="nurse,plumber,carpenter,secretary")
    parser.add_argument("--templates", default="1-3")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=60)
    given = parser.parse_args(arguments)
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print("There is no CUDA device that torch sees: nothing was checked.")
        return 2
    if given.device == "mps" and not torch.backends.mps.is_available():
        print("There is no MPS device that torch sees: nothing was checked.")
        return 2
    asked = requests(given.jobs, given.templates)
    lines = [
        *check_scorer(given.model, given.device, asked),
        check_memory(given.model, given.device, asked),
        *check_generator(given.model, given.device, given.texts, given.tokens),
        rate_of_vllm(given.vllm, given.model, given.texts, given.tokens),
    ]
    print(table(lines, given.device, given.model))
    return int(any(line.ok is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
