"""How often the interval of a corrected share contains the truth, in worlds whose rules miss one gender more.

    python benchmarks/label_worlds.py [WORLDS]

Each world draws texts and their true genders anew, lets the rules be silent or wrong, draws texts for a
person as `biaskit label` does, labels them with the truth, and corrects as `biaskit analyze --labels` does.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from biaskit.compare.pairs import Side
from biaskit.measures.personas.compare import pair_rows_of_texts, texts_of
from biaskit.measures.personas.labels.correction import Labels, corrected
from biaskit.measures.personas.labels.drawing import draw

N_WORLDS = 1_000
N_TEXTS, N_JOBS = 800, 10
LABELLED = {1: (25, 50, 100, 200, 400), 2: (16, 64, 200)}  # by the number of prompts
CELL = ("m", "nurse")
PLAIN = {"read": True, "requested_gender": None, "refused": False, "empty": False}
STUDY: Any = SimpleNamespace(batch=None, per_gender=0)
READ: Any = {"imported": True, "lacking": lambda _: {}}  # texts that are not of a study, in English
ROW = {"model": CELL[0], "occupation": CELL[1], "template_id": "all", "reason": None}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What texts of a prompt are like; shares are of the texts named before."""

    silent: float  # texts in which the rules find no gender
    women_of_silent: float  # of silent texts that are about anybody
    nobody: float  # silent texts that are about nobody
    women_of_others: float
    wrong: float  # texts in which the rules find the other gender

    @property
    def truth(self) -> float:
        """The share of women among all texts about anybody."""
        of_silent = self.silent * (1 - self.nobody)
        women = of_silent * self.women_of_silent + (1 - self.silent) * self.women_of_others
        return women / (of_silent + 1 - self.silent)

    def texts(self, rng: np.random.Generator, template: str, n: int) -> tuple[list[Any], dict[str, str]]:
        """Draw n texts as the analysis sees them, and what each is about."""
        silent = rng.random(n) < self.silent
        women = rng.random(n) < np.where(silent, self.women_of_silent, self.women_of_others)
        nobody = silent & (rng.random(n) < self.nobody)
        said = women ^ (rng.random(n) < self.wrong)
        texts, truth = [], {}
        for i in range(n):
            gender, key = None if silent[i] else ("male", "female")[int(said[i])], f"{template} {i}"
            truth[key] = "none" if nobody[i] else ("male", "female")[int(women[i])]
            of_text = {"template_id": template, "key": key, "unit": key, "gender": gender}
            of_text |= {"inferred_gender": gender, "person_gender": None}
            texts.append(SimpleNamespace(model=CELL[0], occupation=CELL[1], **of_text, **PLAIN))
        return texts, truth


@dataclass(frozen=True, slots=True)
class World:
    """Prompts whose shares weigh the same, however many of their texts name a gender."""

    name: str
    prompts: tuple[Prompt, ...]

    @property
    def truth(self) -> float:
        """The mean of the prompts' shares of women."""
        return float(np.mean([prompt.truth for prompt in self.prompts]))

    def texts(self, rng: np.random.Generator) -> tuple[list[Any], dict[str, str]]:
        """Draw as many texts of each prompt, and what each is about."""
        texts, truth = list[Any](), dict[str, str]()
        for i, prompt in enumerate(self.prompts):
            of_prompt = prompt.texts(rng, f"prompt {i}", N_TEXTS // len(self.prompts))
            texts += of_prompt[0]
            truth |= of_prompt[1]
        return texts, truth


WORLDS = (
    World("silent texts 70 % women, others 50 %", (Prompt(0.4, 0.7, 0.0, 0.5, 0.04),)),
    World("the same, half of the silent about nobody", (Prompt(0.4, 0.7, 0.5, 0.5, 0.04),)),
    World("silent texts 70 % women, others 10 %", (Prompt(0.4, 0.7, 0.5, 0.1, 0.04),)),
    World("few women: silent 10 %, others 5 %", (Prompt(0.4, 0.1, 0.5, 0.05, 0.01),)),
    World("rules wrong in every fifth text", (Prompt(0.4, 0.7, 0.5, 0.5, 0.2),)),
    World(
        "two prompts that name people in 95 and 40 %",
        (Prompt(0.15, 0.7, 1 / 3, 0.6, 0.04), Prompt(0.7, 0.3, 6 / 7, 0.2, 0.04)),
    ),
    World(
        "the same, rules silent in 40 % more",
        (Prompt(0.45, 0.7, 1 / 9, 0.6, 0.04), Prompt(0.8, 0.3, 3 / 4, 0.2, 0.04)),
    ),
    World(
        "the same two, rules wrong in 15 %",
        (Prompt(0.15, 0.7, 1 / 3, 0.6, 0.15), Prompt(0.7, 0.3, 6 / 7, 0.2, 0.15)),
    ),
)


def run(world: World, n: int, n_worlds: int, folder: Path) -> str:
    """Simulate one line of the table."""
    covered, alone, widths, widths_alone, of_rules, errors = [], [], [], [], [], []
    for seed in range(n_worlds):
        texts, truth = world.texts(np.random.default_rng([seed, n]))
        drawn = draw(texts, n, seed)
        drawn.store(folder)
        labels = Labels(readers=({key: truth[key] for key in drawn.probability},))
        templates = tuple(dict.fromkeys(text.template_id for text in texts))
        documents: Any = SimpleNamespace(texts=texts, template_ids=templates, **READ)
        row = corrected(folder, labels, documents, STUDY, [ROW])[0][0]
        of_prompts = []
        for template in templates:
            said = [text.gender for text in texts if text.gender and text.template_id == template]
            of_prompts.append(said.count("female") / len(said))
        of_rules.append(np.mean(of_prompts) - world.truth)
        errors.append(row["share_corrected"] - world.truth)
        covered.append(row["corrected_low"] <= world.truth <= row["corrected_high"])
        alone.append(row["labelled_low"] <= world.truth <= row["labelled_high"])
        widths.append(row["corrected_high"] - row["corrected_low"])
        widths_alone.append(row["labelled_high"] - row["labelled_low"])
    shown = [np.mean(covered), np.mean(widths), np.mean(alone), np.mean(widths_alone)]
    numbers = "".join(f"{100 * value:11.1f}" for value in (*shown, np.mean(errors), np.mean(of_rules)))
    return f"{n:4}{numbers}"


def false_directions(labelled: tuple[bool, bool], n_worlds: int, folder: Path) -> float:
    """Compare two equal models whose texts a person labels or not: how often a direction is named.

    Ten jobs, 400 texts of each; nine of ten are about women, the rules wrong in 6 %; ten labels a job.
    """
    prompt, n_false = Prompt(0.0, 0.0, 0.0, 0.9, 0.06), 0
    for seed in range(n_worlds):
        rng, tables = np.random.default_rng(seed), list[Any]()
        for is_labelled in labelled:
            texts, rows, truth = list[Any](), list[dict[str, Any]](), dict[str, str]()
            for job in map(str, range(N_JOBS)):
                of_job, truth_of_job = prompt.texts(rng, job, 400)
                for text in of_job:
                    text.occupation, text.template_id = job, "texts"
                n = sum(text.gender == "female" for text in of_job)
                counts = {"n_texts": 400, "n_female": n, "n_male": 400 - n, "n_nonbinary": 0}
                counts |= {"n_not_inferred": 0, "n_refused": 0, "n_empty": 0}
                for template in ("texts", "all"):
                    scope = {"occupation": job, "template_id": template, "female_share": n / 400}
                    rows.append({**ROW, **counts, **scope})
                texts, truth = texts + of_job, truth | truth_of_job
            if is_labelled:
                drawn = draw(texts, 10 * N_JOBS, seed)
                drawn.store(folder)
                labels = Labels(readers=({key: truth[key] for key in drawn.probability},))
                documents: Any = SimpleNamespace(texts=texts, template_ids=("texts",), **READ)
                rows = corrected(folder, labels, documents, STUDY, rows)[0]
            tables.append(rows)
        of_model = {}
        for name, rows in zip("ab", tables, strict=True):
            renamed = {"representation": [{**row, "model": name} for row in rows]}
            of_model |= texts_of(renamed, {name: "chat"}, run="", seed=1)
        found = pair_rows_of_texts((Side("b", ("b",)), Side("a", ("a",))), of_model, {})[0]
        paired = next(row for row in found if row.kind == "paired")
        n_false += paired.ci_low > 0 or paired.ci_high < 0
    return n_false / n_worlds


def main() -> None:
    """Print a table for each world."""
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS
    heads = ("coverage", "width", "labels", "width", "bias", "of rules")
    with tempfile.TemporaryDirectory() as folder:
        for world in WORLDS:
            print(f"\n{world.name}: truth {100 * world.truth:.1f} %, {N_TEXTS} texts")
            print(f"   n{''.join(f'{head:>11}' for head in heads)}")
            for n in LABELLED[len(world.prompts)]:
                print(run(world, n, n_worlds, Path(folder)), flush=True)
        print("\ntwo equal models, rules wrong in 6 %: a direction is named in")
        for labelled in ((False, False), (True, False), (True, True)):
            named = 100 * false_directions(labelled, n_worlds, Path(folder))
            print(f"{named:6.1f} % with labels of {sum(labelled)} of them")


if __name__ == "__main__":
    main()
