"""The keys that studies of every kind have, and what their own keys are made of."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from biaskit.common.wording import points
from biaskit.records import TEMPLATE_DATE, THOUGHT_TOKENS

MOST_SEED = 2**32 - 1  # the largest seed that every generator of random numbers takes
SELECT_DOC = "all, none, names, or 1-based ids and ranges such as 1,3-5"


def key(default: Any, description: str, *, flag: str = "", takes: str = "", **bounds: Any) -> Any:
    """Declare a key; `flag`: its option of the command and what that `takes`; `...`: it must be stated."""
    option: Any = {"flag": flag, "takes": takes} if flag else None
    return Field(default=default, description=description, json_schema_extra=option, **bounds)


def _is_date(text: str) -> str:
    with contextlib.suppress(ValueError):
        if str(date.fromisoformat(text)) == text:
            return text
    raise ValueError("write a date such as 2024-07-26")


class Keys(BaseModel):
    """A table of keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class Choice(Keys):
    """A list (a shipped one, or a file) and which of its entries are used."""

    source: str = Field(description="corpus:NAME/FILE, or a path (relative to the study file)")
    select: str | tuple[str, ...] = key("all", SELECT_DOC)


class DebiasingChoice(Keys):
    """Debiasing prompts; 0 means none."""

    source: str | None = key(None, "corpus:NAME/FILE, or a path; none: no debiasing prompts")
    select: str | tuple[str, ...] = key("none", f"{SELECT_DOC}; 0 (none) is always included")


class ReportKeys(Keys):
    """How the page and its figures are made; no number depends on it."""

    pdf: bool = key(False, "figures as PDF too")


class ConclusionKeys(Keys):
    """When a conclusion names a direction (methods/tests#verdicts)."""

    rule: Literal["tree", "strict"] = key(
        "tree", "strict: at most 5 % false conclusions whatever is true, with less power"
    )
    share: Literal["of-two", "of-all"] = key(
        "of-two", "the share that leads: of-two, she of she and he; of-all, of all target words (OccuGender)"
    )


Reference = Literal["none", "parity", "workforce", "both"]
OF_TIES = "compare: two groups at most this far apart are nearly a tie, and no answer that flips"
MARGIN = "margin.QUANTITY: equivalence margin, a fraction: 0.05 is 5 points"
WIDE_MARGIN = 0.2


def is_fraction(quantity: str) -> bool:
    """Tell a share, or a difference of shares, from a score, a slope or a correlation."""
    fractions = ("share", "gap", "asymmetry")
    return "~" not in quantity and not quantity.startswith("log_ratio") and quantity.endswith(fractions)


def in_fractions(margins: dict[str, float]) -> dict[str, float]:
    """Return margins by quantity; ValueError for points of a share: a margin of 5 would pass anything."""
    for quantity, margin in margins.items():
        if is_fraction(quantity) and margin >= 1:
            raise ValueError(f"margin.{quantity} is a fraction: 0.05 is 5 points")
    return margins


def notes_on_margins(margins: Mapping[str, float]) -> list[str]:
    """Note each margin within which shares that differ a lot are equivalent."""
    notes = []
    for quantity, margin in margins.items():
        if is_fraction(quantity) and margin > WIDE_MARGIN:
            notes.append(f"margin.{quantity} is {margin:g}: up to {points(margin)} count as no difference")
    return notes


Margins = Annotated[dict[str, Annotated[float, Field(ge=0, le=1e6)]], AfterValidator(in_fractions)]
_REFERENCE = "what the page compares shares with: parity, the workforce share (workforce), both or none"


class Study(Keys):
    """Everything that can be set for a run; each kind's class adds its own keys and these facts."""

    analysis_keys: ClassVar[frozenset[str]]
    """Keys that change what is made of the rows, not the rows."""
    items_key: ClassVar[str] = "jobs"  # the list of what a model is asked about
    limit_key: ClassVar[str] = "max_new_tokens"  # the most tokens of an answer
    lists: ClassVar[tuple[str, ...]] = ("jobs", "templates", "debiasing_prompts", "target_words")
    """Tables whose `source` names a list."""
    files: ClassVar[tuple[str, ...]] = ()  # keys that name a file
    of_own_lists: ClassVar[Mapping[str, Any]] = {}
    """Dotted keys that change with a list of one's own: a table is no longer the paper's."""
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """What the key `variant` switches; each key can be set back alone."""

    name: str = Field(description="part of the default run folder's name")
    measurement: Any  # each kind's own
    summary: str = key("", "one line: what it measures")
    papers: tuple[str, ...] = key((), "corpora whose papers `biaskit cite` prints")
    models: dict[str, str] = key({}, "LABEL = SPEC, used when the command names no model")
    system_prompt: str | None = key(
        None,
        "text of the system prompt; the option takes a file with it",
        flag="--system-prompt",
        takes="FILE",
    )
    template_date: Annotated[str, AfterValidator(_is_date)] = key(
        TEMPLATE_DATE, "date given to chat templates that print today's date, YYYY-MM-DD"
    )
    thinking: Literal["auto", "on", "off"] = key(
        "auto", "whether a reasoning model thinks before it answers; auto: its own default"
    )
    thought_tokens: int = key(
        THOUGHT_TOKENS, "maximum tokens of a thought, in addition to the answer's", ge=1, le=1_000_000
    )
    articles: Literal["as-published", "grammatical"] = key(
        "as-published", "'a electrician' as the papers print it, or 'an electrician'"
    )
    reference: Reference = key("both", _REFERENCE)
    conclusion: ConclusionKeys = key(ConclusionKeys(), "the rule of conclusions")
    report: ReportKeys = key(ReportKeys(), "the page")
    skip_bad_lines: bool = key(False, "skip unreadable rows and count them")
    lock: Literal["os", "none"] = key("os", "none: for file systems without locks")

    @property
    def strict(self) -> bool:
        """Whether conclusions follow the strict rule (methods/tests#strict)."""
        return self.conclusion.rule == "strict"

    @property
    def binary(self) -> bool:
        """Whether the share of two groups leads (methods/tests#binary)."""
        return self.conclusion.share == "of-two"

    @property
    def sent_as(self) -> str:
        """The prompt format that a batch service must support."""
        return str(getattr(self, "prompt_format", "auto"))

    @classmethod
    def flags(cls) -> dict[str, str]:
        """Map each key that has an option of the command to that option."""
        flags = {}
        for name, field in cls.model_fields.items():
            if isinstance(field.json_schema_extra, dict):
                flags[name] = str(field.json_schema_extra["flag"])
        return flags

    @classmethod
    def method_papers(cls, stored: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG003
        """List the corpora whose papers define what is measured; `stored`: a study's keys in a manifest."""
        return ()


DISPLAY_KEYS = frozenset({"summary", "papers", "table", "reference", "report", "lock"})
"""Analysis keys on which no number of a table depends: titles, the page, how the folder is locked."""

LATER_KEYS = frozenset({"template_date", "thinking", "thought_tokens"})
"""Keys that are younger than the first runs, and change nothing at their default."""
