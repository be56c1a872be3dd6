"""What a comparison of two months of letters says, in worlds whose change is known.

    python benchmarks/month_worlds.py [WORLDS]

Each world has two files of letters by department, of which some name no gender, and counts and compares them
as `biaskit analyze --texts` and `biaskit compare` do. Copies: one letter in five is there two to five times.
`named`: how often a direction is named, false where the change is 0; `wrong`: in the wrong direction;
`covered`: how often the 95 % interval holds the change in these departments, weighted as in the later month.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from biaskit.compare.pairs import Side
from biaskit.measures.personas.compare import Texts, pair_rows_of_texts, texts_of
from biaskit.measures.personas.representation import representation_rows
from biaskit.stats.contrasts import adjust

N_WORLDS = 1_000
CHANGES = (0.0, -0.12)
MARGINS = {"represented_share": 0.05}
LETTER = {"template_id": "text", "debiasing_id": None, "context": None, "sample": 0, "finish": None}
LETTER |= {"refused": False, "empty": False, "read": True, "requested_gender": None, "person_gender": None}


@dataclass(frozen=True, slots=True)
class World:
    """How many letters each department writes in two months, its share of women, and what names no gender."""

    name: str
    earlier: tuple[int, ...]
    later: tuple[int, ...]
    women: tuple[float, ...]
    silent: tuple[float, ...]


FOUR, SHARES, SILENT = (90, 60, 35, 15), (0.7, 0.3, 0.5, 0.85), (0.3, 0.2, 0.25, 0.35)
WORLDS = (
    World("four departments", FOUR, FOUR, SHARES, SILENT),
    World("another mix in the later month", FOUR, (35, 90, 15, 60), SHARES, SILENT),
    World("nearly all of one gender", FOUR, FOUR, (0.95, 0.15, 0.5, 0.85), SILENT),
    World("sixty departments", (4,) * 60, (4,) * 60, tuple(np.linspace(0.15, 0.85, 60)), (0.25,) * 60),
    World("ten times as many letters", *[tuple(10 * n for n in FOUR)] * 2, SHARES, SILENT),
)


def analysed(
    rng: np.random.Generator, month: str, world: World, sizes: Sequence[int], women: Any, copies: float
) -> tuple[Texts, Any]:
    """Write a month's letters as the analysis sees them; with how many of each department name a gender."""
    texts, n = list[Any](), np.zeros(len(sizes))
    for i, size in enumerate(sizes):
        of_department = list[Any]()
        while len(of_department) < size:
            woman, silent = rng.random() < women[i], rng.random() < world.silent[i]
            scope = {"model": month, "occupation": f"{i:02}", "unit": f"{i} {len(of_department)}"}
            letter = SimpleNamespace(
                **LETTER, **scope, gender=None if silent else ("male", "female")[int(woman)]
            )
            of_department += [letter] * int(rng.integers(2, 6) if rng.random() < copies else 1)
        texts += of_department[:size]
        n[i] = sum(letter.gender is not None for letter in of_department[:size])
    names = [f"{i:02}" for i in range(len(sizes))]
    documents: Any = {"texts": texts, "models": [month], "occupations": names, "template_ids": ["text"]}
    documents |= {"imported": True, "person_column": None, "languages": {}, "lacking": lambda _: {}}
    design: Any = SimpleNamespace(study=SimpleNamespace(batch=1), occupations=(), templates=())
    rows = representation_rows(SimpleNamespace(**documents), design)
    return texts_of({"representation": rows}, {month: ""}, run=month, seed=1)[month], n


def run(world: World, change: float, copies: float, n_worlds: int) -> str:
    """Compare the two months of many worlds; return the line of the table."""
    numbers = []
    before = np.array(world.women)
    after = np.clip(before + change, 0.0, 1.0)
    for seed in range(n_worlds):
        rng = np.random.default_rng([seed, int(100 * copies), int(-100 * change)])
        may, n_may = analysed(rng, "may", world, world.earlier, before, copies)
        june, n_june = analysed(rng, "june", world, world.later, after, copies)
        pair = Side("june", ("june",)), Side("may", ("may",))
        (row,) = adjust(pair_rows_of_texts(pair, {"may": may, "june": june}, MARGINS)[0])
        weights = n_june * (n_may > 0)
        truth = float(weights @ (after - before) / weights.sum())
        named = row.verdict in ("higher", "lower")
        wrong = named and (row.verdict == "higher") == (change < 0)
        numbers.append(
            [named, wrong, row.ci_low <= truth <= row.ci_high, row.ci_high - row.ci_low, row.estimate - truth]
        )
    shown = "".join(f"{100 * value:9.1f}" for value in np.mean(numbers, axis=0))
    return f"{100 * change:7.0f}{'some' if copies else 'none':>8}{shown}"


def main() -> None:
    """Print a table for each kind of world."""
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS
    for world in WORLDS:
        print(f"\n{world.name}: {sum(world.later):,} letters a month")
        heads = ("named", "wrong", "covered", "width", "bias")
        print(f" change  copies{''.join(f'{head:>9}' for head in heads)}")
        for change in CHANGES:
            for copies in (0.0, 0.2):
                print(run(world, change, copies, n_worlds), flush=True)


if __name__ == "__main__":
    main()
