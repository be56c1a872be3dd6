"""Several models in one sentence: what the clearest of them come to, and how many come to what else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from biaskit.report.findings.finding import Outcome, agreeing
from biaskit.report.findings.in_brief.sentence import Piece, sentence

AFTER: Mapping[Outcome, str] = {
    "higher": "more often",
    "lower": "less often",
    "equivalent": "about equal",
    "no-clear-difference": "unclear",
    "not-identified": "not identified",
    "no-verdict": "without verdict",
    "shown": "without verdict",
    "not-measured": "not measured",
}
"""What models come to after a clause about others."""
ORDER: tuple[Outcome, ...] = tuple(AFTER)
NONE: Mapping[str, Piece] = MappingProxyType({})
SAYING: tuple[Outcome, ...] = ("higher", "lower", "equivalent")


def counted(
    verdicts: Sequence[Outcome],
    *clauses: Mapping[Outcome, str],
    before: str = "",
    after: Mapping[Outcome, str] = AFTER,
    n_weak: int = 0,
    things: str = "models",
    pieces: Mapping[str, Piece] = NONE,
) -> str:
    """'All 4 models say …', '3 of 4 models say …; 1 unclear'.

    `verdicts`: without those of the `n_weak` models whose evidence is weak, which are counted by themselves.
    `clauses`: what each verdict says of several models, from its verb on; a shorter set for sentences that
    are too long. `after`: the same in two words, where another verdict leads. One with a direction leads,
    else the most frequent. Where there is no room, whatever says nothing is counted as unclear.
    """
    counts = Counter(verdicts)
    directed: list[Outcome] = [verdict for verdict in ("higher", "lower") if counts[verdict]]
    lead = max(directed or ORDER, key=lambda verdict: counts[verdict])
    rest = {verdict: counts[verdict] for verdict in ORDER if counts[verdict] and verdict != lead}
    each = {verdict: f"{n} {after.get(verdict, AFTER[verdict])}" for verdict, n in rest.items()}
    weak = [f"{n_weak} with weak evidence"] * bool(n_weak)
    tails = [[*each.values(), *weak]]
    for kept, other in ((SAYING, "unclear"), (SAYING[:2], "neither")):
        n_other = n_weak + sum(n for verdict, n in rest.items() if verdict not in kept)
        said = [text for verdict, text in each.items() if verdict in kept]
        tails.append([*said, *[f"{n_other} {other}"] * bool(n_other)])
    n, n_all = counts[lead], len(verdicts) + n_weak
    ends = [f"; {', '.join(tail)}." if tail else "." for tail in tails]
    templates = [_head(n, n_all, things, own[lead]) + end for own in clauses for end in ends]
    if not before:
        return sentence(*(text[:1].upper() + text[1:] for text in templates), **pieces)
    return sentence(*(before + text for text in templates), **pieces)


def _head(n: int, n_all: int, things: str, clause: str) -> str:
    if n < n_all or n == 1:
        return f"{n} of {n_all} {things} {agreeing(n, clause)}"
    return f"{'both' if n == 2 else f'all {n}'} {things} {clause}"
