"""What a study of sentence pairs asks: its list, the key of each pair, and how the manifest holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from biaskit.common.provenance import ROW_FORMAT, SCORING_VERSION, digest, key_of
from biaskit.common.sequences import Computed
from biaskit.corpora.pairs import load_pairs
from biaskit.corpora.sources import source_digest
from biaskit.measures.pairs.study import PairsStudy
from biaskit.models.entry import ModelEntry
from biaskit.records import Prompt, PromptFormat, ScoreRequest, SentencePair, TargetWord, as_record
from biaskit.runs.collection import StoredRun, differ
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import StoredDesign
from biaskit.runs.merge import united
from biaskit.runs.shards import WHOLE, Shard

FORMAT: PromptFormat = "sentence"
Pairs = Sequence[Mapping[str, object]]
"""Pairs as a program holds them: their columns by name."""


@dataclass(frozen=True, slots=True)
class PairsDesign:
    """A study with its pairs read: everything that each model is asked."""

    study: PairsStudy
    pairs: tuple[SentencePair, ...]
    sources: dict[str, str]  # the list → its SHA-256
    notes: tuple[str, ...] = ()  # what a careful reader must know of the list

    @property
    def groups(self) -> tuple[str, ...]:
        """The genders that have a sentence in some pair."""
        third = any(pair.diverse for pair in self.pairs)
        return ("female", "male", "diverse") if third else ("female", "male")

    @property
    def contrast(self) -> tuple[str, str]:
        """The two genders that are compared, the first minus the second."""
        return "female", "male"

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked, with all pairs in full."""
        pairs = [as_record(pair) for pair in self.pairs]
        described = describe_lists(self, pairs=pairs, groups=list(self.groups), contrast=list(self.contrast))
        return described | ({"notes": list(self.notes)} if self.notes else {})

    def question(self) -> dict[str, Any]:
        """List what must agree to share one folder: the sentences of a pair that both have."""
        texts = {}
        for pair in self.pairs:
            texts[f"pair {pair.item!r} {pair.language}".strip()] = [pair.prefix, pair.sentences]
        return {"study": self.study.name, "groups": list(self.groups), "texts": texts}

    def sign(self, models: Mapping[str, ModelEntry]) -> str:
        """Write the line that stands under every table: each choice that changes one of its numbers."""
        estimators = {entry.estimator_name for entry in models.values()}
        shown = {"estimator": ",".join(sorted(estimators)), "contrast": "female-male"}
        return sign_design(self.study, models, self.describe()["digest"], shown)

    def requests(self, fingerprint: str, estimator: object, shard: Shard = WHOLE) -> Sequence[ScoreRequest]:
        """Make the request of each pair, or of a shard's, when it is looked at; needs no model."""
        places = shard.places(len(self.pairs))
        asked = {
            "row_format": ROW_FORMAT,
            "scoring": SCORING_VERSION,
            "model": fingerprint,
            "estimator": estimator,
        }

        def request(place: int) -> ScoreRequest:
            pair = self.pairs[places[place]]
            key = key_of({**asked, "pair": [pair.item, pair.language, pair.prefix, pair.sentences]})
            sentences = tuple(TargetWord(*sentence) for sentence in pair.sentences.items())
            return ScoreRequest(key, Prompt(pair.prefix, FORMAT), sentences)

        return Computed(len(places), request)


def resolve(study: PairsStudy, given: Pairs | None = None) -> PairsDesign:
    """Read and check the list of a study; `given`: pairs that are in memory, in its place."""
    pairs, notes = load_pairs(study.pairs if given is None else given)
    stated = source_digest(study.pairs) if given is None else digest([as_record(pair) for pair in pairs])
    return PairsDesign(study, pairs, {study.pairs: stated}, notes)


# --- in the manifest of a run ----------------------------------------------------------------------


class Stored(StoredDesign):
    """A study of pairs, as its manifest holds it under `resolved`."""

    pairs: tuple[SentencePair, ...]
    groups: tuple[str, ...]
    contrast: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> PairsDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored, study = Stored.model_validate(resolved), read_study(resolved, overrides)
    return PairsDesign(cast("PairsStudy", study), stored.pairs, stored.sources, stored.notes)


def unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Make one design of two of the same study: what either asked, in the first's order."""
    merged = united(first, second, "pairs", "groups")
    return {**merged, "sources": {**second["sources"], **first["sources"]}}


def one_part(run: StoredRun, other: StoredRun) -> bool:
    """Tell whether two runs of one study ask the same sentences where both have a pair."""
    return not differ(run, other, "texts")
