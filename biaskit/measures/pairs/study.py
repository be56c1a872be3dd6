"""Every key of a study of sentence pairs, with its default and its meaning."""

from __future__ import annotations

from typing import ClassVar, Literal

from biaskit.stats.changes import TIE_ZONE
from biaskit.study.keys import MARGIN, OF_TIES, Margins, Study, key


class PairsStudy(Study):
    """Everything that can be set for a run of `pairs`."""

    analysis_keys: ClassVar[frozenset[str]] = frozenset(
        ("margin", "skip_bad_lines", "lock", "summary", "papers", "reference", "report", "conclusion")
    ) | {"tie_zone"}
    items_key: ClassVar[str] = ""
    lists: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ("pairs",)

    measurement: Literal["pairs"] = key("pairs", "which measurement runs it")
    system_prompt: None = key(None, "none: sentences are scored as they are")
    pairs: str = key(
        "corpus:pairs-en/pairs.csv",
        "pairs of sentences that differ in gender: .csv/.xlsx/.jsonl/.toml",
        flag="--pairs",
        takes="FILE",
    )
    estimator: Literal["auto", "exact", "selected-ids", "echo"] = key(
        "auto", "how probabilities are obtained; local models: exact", flag="--estimator"
    )
    margin: Margins = key({"share": 0.05, "group_gap": 0.1}, MARGIN)
    tie_zone: float = key(TIE_ZONE, OF_TIES, ge=0, le=1)


STUDY = PairsStudy
