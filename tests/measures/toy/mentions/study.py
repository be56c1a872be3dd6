"""Every key of a study of mentions."""

from __future__ import annotations

from typing import ClassVar, Literal

from biaskit.study.keys import MARGIN, Margins, Study, key


class MentionsStudy(Study):
    """Everything that can be set for a run of `mentions`."""

    analysis_keys: ClassVar[frozenset[str]] = frozenset(
        {"word", "margin", "skip_bad_lines", "lock", "summary", "papers", "reference", "report", "conclusion"}
    )
    items_key: ClassVar[str] = ""
    lists: ClassVar[tuple[str, ...]] = ()

    measurement: Literal["mentions"] = key("mentions", "which kind it is")
    jobs: str = key("nurse,pilot,cook,judge", "jobs, separated by commas", flag="--jobs", takes="LIST")
    word: str = key("kind", "the word that is counted", flag="--word", takes="WORD")
    texts: int = key(4, "texts of each job", flag="--texts", takes="N", ge=1, le=1000)
    margin: Margins = key({"mentions": 0.1}, MARGIN)


STUDY = MentionsStudy
