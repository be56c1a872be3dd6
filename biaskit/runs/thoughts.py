"""Answers that come after thoughts, and thoughts that left no room for an answer: counted, and said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from biaskit.study.keys import Study


@dataclass(slots=True)
class Thoughts:
    """Counts of a run's answers by model, taken while its rows are read."""

    answers: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)  # thoughts
    cut: Counter[str] = field(default_factory=Counter)  # inside a thought

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the answers in a row of either engine; a row of probabilities has none."""
        drawn = row.get("answers", [(row["text"], row["finish_reason"])] if "text" in row else [])
        raw = row.get("raw")
        for (text, finish), said in zip(drawn, raw if isinstance(raw, list) else repeat(raw), strict=False):
            self.answers[row["model"]] += 1
            self.after[row["model"]] += said is not None and bool(text)
            self.cut[row["model"]] += said is not None and finish == "length" and not text

    def counting(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the same rows, counted as they go by."""
        for row in rows:
            self.add(row)
            yield row

    def notes(self, models: Mapping[str, Mapping[str, Any]], study: Study) -> Iterator[str]:
        """Say what a reader must know of thoughts; `models` as in the manifest."""
        for label, n in self.answers.items():
            if after := self.after[label]:
                yield f"{label}: {after:,} of {n:,} answers come after thoughts, which are not read"
            if cut := self.cut[label]:
                entry = models.get(label, {})
                gets_room = entry.get("where") == "local" or (entry.get("found") or {}).get("reasoning")
                more = f"--set thought_tokens={2 * study.thought_tokens}" if gets_room else _longer(study)
                yield (
                    f"{label}: in {cut:,} of {n:,} answers thoughts took the whole limit, so there is no"
                    f" answer; how long they would be nobody knows: {more} doubles it, in another run"
                )


def _longer(study: Study) -> str:
    if study.engine == "personas":
        return f"--max-new-tokens {2 * study.max_new_tokens}"
    return f"--set continuation_tokens={2 * study.continuation_tokens}"
