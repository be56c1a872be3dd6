"""What near copies do to intervals and nulls, in worlds of a model that has few texts to say.

    python benchmarks/copy_worlds.py [WORLDS]

Each world makes a model that draws from K texts, all as probable (entropy: log K), some with *she*, the
others with *he*, and draws 120 texts without a gender in the prompt; with a gender in the prompt it draws 60
for women and 60 for men from K other texts, the same for both. Copies count once, or each. `share`: how often
the interval of the share of women contains that of the model; `lists`, `area`: how often p ≤ 5 % where none
differs, of word lists without gendered words and of the held-out AUC.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import biaskit as bk

N_WORLDS, N_TEXTS = 300, 120
KINDS = (3, 10, 100)
WORDS = [f"{a}{b}{c}" for a in ("ba", "do", "ke", "mi", "su") for b in "lmnrst" for c in ("ta", "lo", "ni")]
FAST: dict[str, Any] = {"permutations": 99, "clusters": False, "vectors": "marked-lists"}


def world(k: int, seed: int) -> tuple[list[dict[str, str]], float]:
    """Draw the rows of one world, and find the model's own share of women."""
    rng = np.random.default_rng([seed, k])
    probable = 1.0 / np.arange(5, 5 + len(WORDS))

    def some_texts() -> list[str]:
        drawn = rng.choice(WORDS, (k, 40), p=probable / probable.sum())
        return [" and the ".join(" ".join(words[i : i + 8]) for i in range(0, 40, 8)) for words in drawn]

    who = rng.permutation(np.arange(k) % 2 if k > 3 else [0, 1, 1])
    told = [f"{('He', 'She')[who[i]]} is {text}" for i, text in enumerate(some_texts())]
    rows = [{"text": told[i], "asked": ""} for i in rng.integers(k, size=N_TEXTS)]
    same = some_texts()
    for i, place in enumerate(rng.integers(k, size=N_TEXTS).tolist()):
        rows.append({"text": f"This person is {same[place]}", "asked": "FM"[i % 2]})
    return rows, float(who.mean())


def found(rows: list[dict[str, str]], copies: str, folder: Path) -> tuple[tuple[float, float], list[float]]:
    """Analyse one world: the interval of the share, and which lists and areas stand out."""
    how: Any = {"gender": "asked", "settings": FAST | {"copies": copies}, "watcher": bk.Silent()}
    run = bk.analyze_texts(rows, out=folder, **how)
    share = run.representation.iloc[-1]
    lists = run.table("word_lists").query("origin == 'requested' and method == 'calibrated'")
    areas = run.text_transfer.query("trained_on == tested_on == 'requested'")
    # A list or an area without a p-value names nothing.
    longer = [(lists["p_value_beyond"] <= 0.05).mean(), (areas["p_value"] <= 0.05).mean()]
    return (share["ci_low"], share["ci_high"]), longer


def main() -> None:
    """Print a line for each number of texts and way of counting."""
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS
    print(f"{'texts':>6}{'copies':>8}{'share':>8}{'width':>8}{'lists':>8}{'area':>8}   (%)")
    for k in KINDS:
        for copies in ("once", "all"):
            rows = []
            for seed in range(n_worlds):
                texts, truth = world(k, seed)
                with tempfile.TemporaryDirectory() as folder:
                    (low, high), longer = found(texts, copies, Path(folder) / "run")
                rows.append([low <= truth <= high, high - low, *longer])
            shown = "".join(f"{100 * value:8.1f}" for value in np.mean(rows, axis=0))
            print(f"{k:6}{copies:>8}{shown}", flush=True)


if __name__ == "__main__":
    main()
