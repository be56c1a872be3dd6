"""Marked words by an implementation of its own, with nothing but dictionaries (Algorithms 2 to 4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

Counts = Mapping[str, float]

FIXED = {
    "the", "of", "and", "to", "a", "in", "for", "is", "on", "that", "by", "this", "with", "i", "you", "it",
    "not", "or", "be", "are", "from", "at", "as", "your", "am", "an", "my",
}  # fmt: skip
SPEAKER = {"i", "you", "your", "am", "my"}


@dataclass(frozen=True)
class Plain:
    """See methods/words#marked-words; `printed`: n_U in both denominators, as Algorithms 2 and 4 print it."""

    alpha: float = 0.15
    c: float = 0.15 * 0.45 + 0.85 * 0.225
    released: bool = False
    printed: bool = False

    def prior(self, target: Counts, unmarked: Counts, english: Counts) -> dict[str, float]:
        topic = Counter(target) + Counter(unmarked)
        blend = {w: self.alpha * n + (1 - self.alpha) * english.get(w, 0) for w, n in topic.items()}
        if self.released:
            return {w: int(p) or 1 for w, p in blend.items()}
        smallest = min(p for p in blend.values() if p > 0)
        return {w: p or smallest for w, p in blend.items()}

    def common_words(self, prior: Counts, target: Counts, unmarked: Counts) -> set[str]:
        def frequent(counts: Counts) -> set[str]:
            ordered = sorted((w for w in counts if counts[w] > 0), key=lambda w: (counts[w], w), reverse=True)
            return set(ordered[:20])

        of_all = frequent(prior) & frequent(target) & frequent(unmarked)
        return of_all | (FIXED & set(prior))

    def calibrated(self, target: Counts, unmarked: Counts, english: Counts) -> dict[str, float]:
        prior = self.prior(target, unmarked, english)
        common = self.common_words(prior, target, unmarked)
        mass = sum(prior[w] for w in common)
        r_target, r_unmarked = (self.c * mass / sum(g.get(w, 0) for w in common) for g in (target, unmarked))
        return self.z(
            target,
            unmarked,
            {w: p / r_target for w, p in prior.items()},
            {w: p / r_unmarked for w, p in prior.items()},
        )

    def marked_personas(self, target: Counts, unmarked: Counts) -> dict[str, float]:
        topic = Counter(target) + Counter(unmarked)
        return self.z(target, unmarked, topic, topic)

    def z(self, target: Counts, unmarked: Counts, a_target: Counts, a_unmarked: Counts) -> dict[str, float]:
        n_target, n_unmarked = sum(target.values()), sum(unmarked.values())
        all_target = (n_unmarked if self.printed else n_target) + sum(a_target.values())
        all_unmarked = n_unmarked + sum(a_unmarked.values())
        z = {}
        for w in a_target:
            one, other = target.get(w, 0) + a_target[w], unmarked.get(w, 0) + a_unmarked[w]
            log_odds = math.log(one / (all_target - one)) - math.log(other / (all_unmarked - other))
            z[w] = log_odds / math.sqrt(1 / one + 1 / other)
        return z

    def marked(self, target: Counts, unmarked: Counts, english: Counts) -> tuple[set[str], set[str]]:
        """The marked words of the calibrated method, and W."""
        z = self.calibrated(target, unmarked, english)
        common = self.common_words(self.prior(target, unmarked, english), target, unmarked)
        return {w for w in target if z[w] > 1.96}, common
