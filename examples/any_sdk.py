"""Any SDK as a model, in ten lines: a callable from a list of prompts to a list of texts.

Run as `python examples/any_sdk.py`. The SDK is a stand-in, so that this runs anywhere in seconds; put your
own client in its place, and let it draw at temperature 1 without a top_k or top_p of its own.
"""

import asyncio
import random
from types import SimpleNamespace

import biaskit as bk

JOBS = "nurse,secretary,receptionist,maid,plumber,carpenter,pilot,firefighter"
SMALL = {"occupations": "nurse,mechanic", "per_gender": 4, "max_samples": 12}
QUICK = {"clusters": False, "srb_seeds": "1", "permutations": 99}
WOMEN = ("nurse", "secretary", "receptionist", "maid")
WORDS = ("home", "friends", "music", "town", "books", "river", "work", "football", "school", "summer", "cars")


class StandIn:
    """A client as providers sell one: it is asked with messages and gives an answer that holds a text."""

    async def complete(self, *, messages: list[dict[str, str]], **settings: float) -> SimpleNamespace:
        """Write of women in 7 of 10 texts on some jobs, in 3 of 10 on others, or as the question says."""
        await asyncio.sleep(0.01 * settings["temperature"])
        asked = messages[-1]["content"]
        often = 0.7 if any(job in asked for job in WOMEN) else 0.3
        woman = "is a woman" in asked or ("is a man" not in asked and random.random() < often)
        who = "She" if woman else "He"
        return SimpleNamespace(text=f"{who} likes {' and '.join(random.sample(WORDS, 6))}.")


# Ten lines.
client = StandIn()  # such as AsyncAnthropic(): it finds its key by itself


async def write_one(prompt: str) -> str | None:
    answer = await client.complete(messages=[{"role": "user", "content": prompt}], temperature=1.0)
    return answer.text  # None: this prompt has no text, and is counted as failed


async def write(prompts: list[str]) -> list[str | None]:
    return list(await asyncio.gather(*map(write_one, prompts)))


def main() -> None:
    model = bk.writer("any-sdk", write, version="2026-11")
    probed = bk.probe(model, jobs=JOBS, templates="1-5", bias_type="implicit", estimator="sampling")
    groups = probed.groups[probed.groups["gender"] == "female"]
    for row in groups.itertuples():
        share, low, high = (100 * value for value in (row.share, row.ci_low, row.ci_high))
        print(f"{row.job_group} jobs: {share:.0f} % women [{low:.0f} to {high:.0f}]")
    texts = bk.personas(model, **SMALL, settings=QUICK)
    for row in texts.representation.itertuples():
        print(f"{row.occupation}, {row.template_id}: {row.n_female} of {row.n_texts} texts are of a woman")
    for warning in (*probed.warnings, *texts.warnings):
        print("Note:", warning)


if __name__ == "__main__":
    main()
