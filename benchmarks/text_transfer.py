"""What areas under the curve say of simulated texts: chance where nothing differs, how often intervals hold.

    python benchmarks/text_transfer.py --occupations 1000

For each world and each pair of origins: mean area over all occupations with its standard error, part of
occupations with p at most 0.05 (39 shuffles: 5 % exactly where nothing differs and nothing ties), and of
groups of 10 occupations how many intervals hold the mean over all, and how many exclude 0.5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fakes.told_apart import Found, World, occupation

from biaskit.stats.classification import CHANCE, area_interval
from biaskit.stats.proportions import wilson

WORLDS = {
    "nothing differs": World(),
    "..., women's texts twice as long": World(length_female=160),
    "..., 15 texts of women and 45 of men a prompt": World(n_female=15, n_male=45),
    "..., both": World(length_female=160, n_female=15, n_male=45),
    "..., long bursts": World(concentration=30.0),
    "only texts about women and men on request differ": World(requested=0.6),
    "only unprompted texts differ": World(inferred=0.6),
    "both differ, in other words": World(inferred=0.6, requested=0.6, same_words=False),
    "both differ alike": World(inferred=0.15, requested=0.25, varies=0.3),
    "both differ much": World(inferred=0.3, requested=0.5, varies=0.3),
}
GROUP = 10


def main() -> None:
    """Print a line per world and pair of origins."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--occupations", type=int, default=400)
    parser.add_argument("--shuffles", type=int, default=39)
    chosen = parser.parse_args()
    for number, (name, world) in enumerate(WORLDS.items()):
        print(name, flush=True)
        rng = np.random.default_rng([1, number])
        made = [occupation(world, rng, chosen.shuffles) for _ in range(chosen.occupations)]
        for cell in made[0]:
            print(f"  {cell[0]:>10} -> {cell[1]:<10} {_said([one[cell] for one in made])}", flush=True)


def _said(found: Sequence[Found]) -> str:
    areas = np.array([one.area for one in found])
    groups = areas[: len(areas) // GROUP * GROUP].reshape(-1, GROUP)
    ends = np.array([area_interval(own) or (own[0], own[0]) for own in groups])
    mean, n = areas.mean(), len(groups)
    numbers = (
        ("p <= .05", sum(one.p_value <= 0.05 for one in found), len(found)),
        ("covers", int(((ends[:, 0] <= mean) & (mean <= ends[:, 1])).sum()), n),
        ("excludes .5", int(((ends[:, 0] > CHANCE) | (ends[:, 1] < CHANCE)).sum()), n),
    )
    text = f"area {mean:.4f} (SE {areas.std(ddof=1) / len(areas) ** 0.5:.4f})"
    for what, k, of in numbers:
        low, high = wilson(k, of) or (0.0, 1.0)
        text += f"  {what} {100 * k / of:5.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    return text


if __name__ == "__main__":
    main()
