"""Who answered: notices when another model answers under the same name, and says so beside the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat, takewhile
from typing import Any, TypeVar

from biaskit.errors import AskingStopped
from biaskit.models.entry import ModelEntry
from biaskit.records import ANSWERED_SEPARATOR, PROVIDER, ModelIdentity, Sample, Scored
from biaskit.study.keys import Study

A = TypeVar("A")


class Drift:
    """Notices when another model answers under the same name (reference/run-folder#drift).

    The names that may answer are those of the stored rows, or else the first that answers. `taken` are the
    runs whose answers are among those rows.
    """

    def __init__(
        self, identity: ModelIdentity, stored: Collection[str], *, accept: bool, taken: Sequence[str] = ()
    ) -> None:
        self._watches = identity.where == "api" and not accept
        self._label = identity.label
        self._taken = taken
        self._known = {model_of(by) for by in stored}

    def watch(self, groups: Iterable[Sequence[A]]) -> Iterator[Sequence[A]]:
        """Yield answers as they come, up to the first of a model that is not in the stored rows.

        Raises `AskingStopped` there; the answers before it in its group are handed on, to be stored.
        """
        for group in groups:
            n_known = sum(1 for _ in takewhile(self._is_known, group))
            if n_known:
                yield group[:n_known]
            self.check(group[n_known : n_known + 1])

    def check(self, answers: Sequence[object]) -> None:
        """Raise `AskingStopped` at the first answer of a model that is not in the stored rows."""
        for answer in answers:
            if not self._is_known(answer):
                sources = f", reused from {', '.join(self._taken)} (or use --no-reuse with another --out)"
                raise AskingStopped(
                    f"{self._label} now answers as {_name_of(answer)!r}; the stored rows are of"
                    f" {', '.join(sorted(self._known))}{sources if self._taken else ''}. They are kept."
                    " To mix both: --accept-model-change"
                )

    def _is_known(self, answer: object) -> bool:
        name = _name_of(answer)
        if not self._watches or name is None:
            return True
        self._known = self._known or {name}
        return name in self._known


def _name_of(answer: object) -> str | None:
    """Give the model's name in an answer; None where there is no answer."""
    return model_of(answer.answered.by) if isinstance(answer, Sample | Scored) else None


class Answerers:
    """Which models answered, from when to when, after which thoughts: for the notes beside the tables."""

    def __init__(self) -> None:
        self._thoughts: dict[str, Counter[str]] = {}  # model → its answers, those after or inside thoughts
        self._rows: dict[str, dict[str, Counter[str]]] = {}
        self._dates: dict[str, tuple[str, str]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        label, by, at = row.get("model"), row.get("answered_by"), row.get("answered_at")
        if not isinstance(label, str) or not isinstance(by, str) or not isinstance(at, str):
            return
        names = self._rows.setdefault(label, {})
        names.setdefault(model_of(by), Counter())[by] += 1
        first, last = self._dates.get(label, (at, at))
        self._dates[label] = min(first, at), max(last, at)

    def counting(self, rows: Iterable[dict[str, Any]], *, answers: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the same rows, counted as they go by; `answers`: theirs too."""
        for row in rows:
            self.add(row)
            if answers:
                self.add_answers(row)
            yield row

    def add_answers(self, row: Mapping[str, Any]) -> None:
        """Count the answers in a row of any measurement that was believed; one of probabilities has none."""
        drawn = row.get("answers", [(row["text"], row["finish_reason"])] if "text" in row else [])
        raw = row.get("raw")
        for (text, finish), said in zip(drawn, raw if isinstance(raw, list) else repeat(raw), strict=False):
            thinks = said is not None
            of_model = self._thoughts.setdefault(row["model"], Counter())
            cut = thinks and finish == "length" and not text
            of_model.update(n=1, thinks=thinks, cut=cut, filtered=finish == "filter")

    def record(self) -> dict[str, dict[str, Any]]:
        """Say by label who answered, and the days of the first and the last answer; for analysis.json."""
        return {
            label: {"by": sorted(self._rows[label]), "first": first[:10], "last": last[:10]}
            for label, (first, last) in self._dates.items()
        }

    def notes(self, models: Mapping[str, ModelEntry], study: Study) -> list[str]:
        """Write a sentence for each API model and each that thinks, and a warning for several models."""
        sentences = []
        for label, of_model in self._thoughts.items():
            n, cut, filtered = of_model["n"], of_model["cut"], of_model["filtered"]
            if filtered:
                sentences.append(f"{label}: a content filter took {filtered:,} of {n:,} answers")
            if thinks := of_model["thinks"]:
                sentences.append(f"{label}: {thinks:,} of {n:,} answers contain thoughts, left out here")
            if cut:
                entry, key = models.get(label), "thought_tokens"
                if entry and entry.where == "api" and not entry.abilities.get("reasoning"):
                    key = study.limit_key
                sentences.append(
                    f"{label}: in {cut:,} of {n:,} answers the thoughts reached the token limit:"
                    f" --set {key}={2 * getattr(study, key)} doubles it, in another run"
                )
        for label, entry in models.items():
            names = self._rows.get(label)
            if entry.where != "api" or not names:
                continue
            top_k = "top-k" if entry.prompt_format == "raw" else "top-k, chat"
            why = entry.abilities.get("problems", {}).get(top_k)
            if why and getattr(study, "estimator", "") == "auto" and entry.estimator_name[:8] == "sampling":
                sentences.append(f"{label}: counted in samples: its lists cannot be used ({why})")
            first, last = (at[:10] for at in self._dates[label])
            when = first if first == last else f"{first} to {last}"
            if len(names) > 1:
                listed = ", ".join(f"{name} ({sum(by.values())} rows)" for name, by in names.items())
                sentences.append(f"{label} is a mixture of models: its answers ({when}) are from {listed}")
                continue
            name, by = next(iter(names.items()))
            parts = {part for whole in by for part in whole.split(ANSWERED_SEPARATOR)[1:]}
            providers = sorted(part.removeprefix(PROVIDER) for part in parts if part.startswith(PROVIDER))
            several = f", {len(providers)} providers ({', '.join(providers)})" if len(providers) > 1 else ""
            if (n := len(parts) - len(providers)) > 1:
                several += f", {n} system fingerprints"
            sentences.append(f"{label}: answered as {name}, {when}{several}")
        return sentences


def model_of(answered_by: str) -> str:
    """Give the model's name in `answered_by`, without the server's fingerprint."""
    return answered_by.split(ANSWERED_SEPARATOR)[0]
