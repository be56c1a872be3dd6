"""Tokens a second through biaskit against a bare loop of the same requests to the same server.

    python benchmarks/generation_speed.py api:NAME@http://127.0.0.1:8000/v1 [--samples 96] [--tokens 32]

Biaskit draws as `personas` does and writes each row with its fsync; the bare loop sends the very same bodies
with the plain openai client, all of them at once, and writes nothing. They take turns on one server, with
prompts that neither had before. Goal: at least 0.90 of the bare loop. Ratios are of one run on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from biaskit.models.api.generator import ApiGenerator
from biaskit.models.spec import open_generator
from biaskit.records import Prompt, Sample, SampleRequest, Sampling
from biaskit.runs.store import RowWriter

GOAL = 0.90


def requests_of(n: int, tokens: int, prompts: int = 4) -> list[SampleRequest]:
    """Samples of a few prompts that no cache holds."""
    tag = secrets.token_hex(4)
    found = []
    for i in range(n):
        prompt = Prompt(f"{tag}. Biography of nurse number {i % prompts}\n\n", "completion")
        found.append(
            SampleRequest(f"{tag}-{i}", prompt, Sampling(max_new_tokens=tokens), 1000 + i, i // prompts)
        )
    return found


def ours(generator: ApiGenerator, asked: list[SampleRequest]) -> tuple[float, int]:
    """Seconds and new tokens, rows on disk."""
    before = generator.used()["new_tokens"] or 0
    with tempfile.TemporaryDirectory() as folder, RowWriter(Path(folder), "personas") as writer:
        started = time.perf_counter()
        for group in generator.generate(generator.plan_samples(asked).batches):
            writer.append([{"key": a.key, "text": a.text} for a in group if isinstance(a, Sample)])
        seconds = time.perf_counter() - started
        assert len(writer.keys) == len(asked)
    return seconds, int((generator.used()["new_tokens"] or 0) - before)


def bare(url: str, bodies: list[Any]) -> tuple[float, int]:
    """The client alone."""
    import openai

    async def run() -> int:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600)
        answers = await asyncio.gather(*(client.post("/completions", cast_to=object, body=b) for b in bodies))
        await client.close()
        return sum(answer["usage"]["completion_tokens"] for answer in answers)  # type: ignore[index]

    started = time.perf_counter()
    tokens = asyncio.run(run())
    return time.perf_counter() - started, tokens


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--samples", type=int, default=96)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    opened = open_generator(args.model, label="model") if args.model.startswith("api:") else None
    if not isinstance(opened, ApiGenerator):
        parser.error("the model must be api:NAME@URL: the bare loop asks its server")
    url = args.model.partition("@")[2]
    ratios = []
    for number in range(args.repeat + 1):
        asked = requests_of(args.samples, args.tokens)
        same = [
            opened._question(batch).body
            for batch in opened.plan_samples(requests_of(args.samples, args.tokens)).batches
        ]
        first, second = ours(opened, asked), bare(url, same)
        if number:  # the first warms the server up, and finds how many requests it bears
            rates = [tokens / seconds for seconds, tokens in (first, second)]
            ratios.append(rates[0] / rates[1])
            shown = f"biaskit {rates[0]:.1f} tokens/s, bare loop {rates[1]:.1f}"
            print(
                f"{len(same)} requests of {len(asked)} samples: {shown}; ratio {ratios[-1]:.2f}", flush=True
            )
    opened.close()
    print(f"median {statistics.median(ratios):.2f} of the bare loop (goal {GOAL})")


if __name__ == "__main__":
    main()
