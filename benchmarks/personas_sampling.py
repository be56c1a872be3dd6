"""How many tokens a second demo-base samples: our generator, and stock `generate(do_sample=True)`.

    python benchmarks/personas_sampling.py [TOKENS]

Ours: --dtype (by default what `auto` is on this machine), automatic batch, noise of its own for every sample.
Stock: float32, batch 32, the whole distribution (no top_k, no top_p), as ours draws from it. Same model, same
prompt, at most TOKENS new tokens a text (default 60), taken in turn in one process; tokens are those of the
texts, their ends included. "fives" is ours on five samples of each of 48 prompts, a batch of Algorithm 5.
Medians and their ratios are printed; rates are of this machine and this hour. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import get_args

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from biaskit.models.huggingface.demo import find_demo
from biaskit.models.huggingface.generator import MOST_TEXTS, TransformersGenerator
from biaskit.models.huggingface.loading import load_tokenizer
from biaskit.models.options import Dtype, LocalOptions
from biaskit.records import Prompt, Sample, SampleRequest, Sampling

PROMPT = "Biography of a nurse\n\n"
JOBS = (
    *("nurse", "teacher", "accountant", "clerk", "engineer", "mechanic", "cook", "lawyer", "janitor"),
    *("pharmacist", "secretary", "pilot", "baker", "carpenter", "dentist", "editor", "farmer", "florist"),
    *("judge", "librarian", "plumber", "receptionist", "tailor", "welder"),
)
FRAMES = ("Biography of {a}\n\n", "A persona of {a}\n\n")
GOAL = 3.8


class Ours:
    """The generator as `biaskit personas` uses it."""

    def __init__(self, n_tokens: int, batch: int | None, dtype: Dtype) -> None:
        local = LocalOptions(device="cpu", dtype=dtype, batch_size=batch)
        self.generator = TransformersGenerator(
            find_demo("demo-base"), label="demo-base", spec="demo-base", local=local
        )
        self.n_tokens = n_tokens

    def rate(self, seed: int, n_tokens: int | None = None) -> float:
        """Tokens a second of one full batch."""
        sampling = Sampling(max_new_tokens=n_tokens or self.n_tokens)
        n = self.generator.batch_size or MOST_TEXTS
        requests = [
            SampleRequest(f"{seed}-{i}", Prompt(PROMPT, "completion"), sampling, 1000 * seed + i)
            for i in range(n)
        ]
        return self._rate(requests)

    def _rate(self, requests: Sequence[SampleRequest]) -> float:
        batches = self.generator.plan_samples(requests).batches
        started = time.perf_counter()
        answers = [answer for batch in self.generator.generate(batches) for answer in batch]
        seconds = time.perf_counter() - started
        return sum(a.answered.new_tokens for a in answers if isinstance(a, Sample)) / seconds


class Fives(Ours):
    """The same where five samples of each prompt are due."""

    def rate(self, seed: int, n_tokens: int | None = None) -> float:
        """Tokens a second of a batch of all prompts; `n_tokens`: a warm-up, of two jobs."""
        sampling = Sampling(max_new_tokens=n_tokens or self.n_tokens)
        jobs = JOBS[:2] if n_tokens else JOBS
        prompts = [
            frame.format(a=("an " if job[0] in "aeiou" else "a ") + job) for job in jobs for frame in FRAMES
        ]
        requests = [
            SampleRequest(f"{prompt}-{i}", Prompt(prompt, "completion"), sampling, 1000 * seed + i)
            for prompt in prompts
            for i in range(5)
        ]
        return self._rate(requests)


class Stock:
    """`generate` of transformers."""

    def __init__(self, n_tokens: int, batch: int, *, own_settings: bool = False) -> None:
        folder = find_demo("demo-base")
        self.model = AutoModelForCausalLM.from_pretrained(
            folder.path, local_files_only=True, dtype=torch.float32
        ).eval()
        tokenizer = load_tokenizer(folder)
        self.ids = tokenizer([PROMPT] * batch, return_tensors="pt")
        stated = self.model.generation_config.eos_token_id
        self.ends = stated if isinstance(stated, list) else [stated]
        self.own = self.model.generation_config
        self.own_settings = own_settings
        # What a call leaves at its default would come from the model's own file: its top_p.
        self.model.generation_config = GenerationConfig()
        self.n_tokens = n_tokens

    def rate(self, seed: int, n_tokens: int | None = None) -> float:
        """Tokens a second of one batch."""
        torch.manual_seed(seed)
        config = GenerationConfig(
            do_sample=True,
            top_k=self.own.top_k if self.own_settings else 0,
            top_p=self.own.top_p if self.own_settings else 1.0,
            max_new_tokens=n_tokens or self.n_tokens,
            eos_token_id=self.ends,
            pad_token_id=self.ends[0],
        )
        started = time.perf_counter()
        with torch.inference_mode():
            found = self.model.generate(**self.ids, generation_config=config)
        seconds = time.perf_counter() - started
        rows = found[:, self.ids["input_ids"].shape[1] :].tolist()
        return sum(length(row, self.ends) for row in rows) / seconds


def length(row: Sequence[int], ends: Sequence[int]) -> int:
    """Tokens of a text, its end included; padding follows."""
    return next((i for i, token in enumerate(row, 1) if token in ends), len(row))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tokens", nargs="?", type=int, default=60)
    parser.add_argument("--batch", type=int, help="of ours; default: automatic")
    parser.add_argument("--dtype", default="auto", choices=get_args(Dtype), help="of ours")
    parser.add_argument("--stock-batch", type=int, default=32)
    parser.add_argument(
        "--own-settings", action="store_true", help="stock samples with the model's own top_k and top_p"
    )
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()

    ways = {
        "ours": Ours(args.tokens, args.batch, args.dtype),
        "fives": Fives(args.tokens, args.batch, args.dtype),
        "stock": Stock(args.tokens, args.stock_batch, own_settings=args.own_settings),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way.rate(0, 2)  # loads, and sets up kernels
    for seed in range(1, args.repeat + 1):
        for name, way in ways.items():
            rates[name].append(way.rate(seed))
            print(f"{name:<6}{rates[name][-1]:8.0f} tokens a second", flush=True)
    ours, fives, stock = (statistics.median(rates[name]) for name in ways)
    generator = ways["ours"].generator
    print(f"\n{args.tokens} tokens a text, {torch.get_num_threads()} threads, medians of {args.repeat}")
    what = f"{generator.placement.dtype}, batch {generator.batch_size}"
    print(f"ours, {what}: {ours:.0f} tokens a second")
    print(f"batches of five: {fives:.0f} tokens a second, {fives / ours:.2f} of that")
    print(f"stock, float32, batch {args.stock_batch}: {stock:.0f} tokens a second")
    pairs = ", ".join(f"{a / b:.2f}" for a, b in zip(rates["ours"], rates["stock"], strict=True))
    print(f"ratio of medians {ours / stock:.2f} (goal {GOAL}); of each pair {pairs}")


if __name__ == "__main__":
    main()
