"""Every key of a study of the prober, with its default and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from biaskit.stats.changes import TIE_ZONE
from biaskit.study.keys import MARGIN, MOST_SEED, OF_TIES, Choice, DebiasingChoice, Keys, Margins, Study, key


class TemplateChoice(Choice):
    """Templates; ids count within a bias type."""

    slot: str | None = key(None, "the slot an item replaces; default: the template file's own")


class TargetWordChoice(Keys):
    """Which target words each bias type takes; a template's own set comes first."""

    source: str = key("corpus:target-words/sets.toml", "corpus:NAME/FILE, or a path")
    explicit: str | None = key(None, "set for explicit templates")
    implicit: str | None = key(None, "set for implicit templates")
    every: str | None = key(None, "one set for all templates; overrides any other")


class TableTitles(Keys):
    """Titles of the rendered tables: the paper's own numbers."""

    explicit: str = key("Explicit bias", "title over the explicit table")
    implicit: str = key("Implicit bias", "title over the implicit table")


class ProbeStudy(Study):
    """Everything that can be set for a run of `probe`."""

    analysis_keys: ClassVar[frozenset[str]] = frozenset(
        {
            *("min_coverage", "interval", "contrast", "margin", "tie_zone", "seed", "skip_bad_lines", "lock"),
            *("on_prefix", "table", "summary", "papers", "reference", "report", "conclusion"),
        }
    )
    limit_key: ClassVar[str] = "continuation_tokens"
    files: ClassVar[tuple[str, ...]] = ("dialogue",)
    of_own_lists: ClassVar[Mapping[str, Any]] = {
        "table.explicit": "Explicit templates",
        "table.implicit": "Implicit templates",
    }

    measurement: Literal["probe"] = key("probe", "which measurement runs it")
    bias_type: Literal["explicit", "implicit", "both"] = key(
        "both", "which templates to use", flag="--bias-type"
    )
    jobs: Choice = key(
        ...,
        "names, ids or ranges of the study's jobs, or a .csv/.xlsx/.txt/.toml file",
        flag="--jobs",
        takes="LIST",
    )
    templates: TemplateChoice = key(
        ..., "ids or ranges within each bias type, or a file", flag="--templates", takes="LIST"
    )
    debiasing_prompts: DebiasingChoice = key(
        DebiasingChoice(), "none, all, ids such as 1,3, or a file", flag="--debiasing-prompts", takes="LIST"
    )
    context: Literal["plain", "dialogue", "both"] = key(
        "plain", "question alone, or after a dialogue", flag="--context"
    )
    target_words: TargetWordChoice = key(
        TargetWordChoice(),
        "a file of target words, or one shipped set for all templates",
        flag="--target-words",
        takes="LIST",
    )
    dialogue: str = key("corpus:mattern/dialogue.toml", "the conversation of the dialogue context")
    debiasing_place: Literal["own-line", "in-question"] = key(
        "own-line", "plain context: on a line before the question (OccuGender) or inside it (Mattern)"
    )
    debiasing_position: Literal["prompt", "system"] = key("prompt", "in the prompt or in the system role")
    prompt_format: Literal["auto", "raw", "chat-prefill", "chat-continue"] = key(
        "auto",
        "how a question becomes a prompt; auto: the first that every model supports",
        flag="--prompt-format",
    )
    estimator: Literal["auto", "exact", "selected-ids", "echo", "top-k", "sampling"] = key(
        "auto", "how probabilities are obtained; local models: exact, top-k or sampling", flag="--estimator"
    )
    k: int = key(20, "top-k: how many top tokens to request, at most", ge=1, le=20)
    samples: int = key(
        10,
        "sampling: texts per batch; a prompt gets batches until three name a group",
        flag="--samples",
        takes="N",
        ge=2,
        le=100_000,
    )
    max_samples_per_prompt: int = key(
        100,
        "sampling: maximum texts per prompt, in whole batches",
        flag="--max-samples-per-prompt",
        takes="N",
        ge=2,
        le=100_000,
    )
    record_next: int = key(20, "exact: how many top next tokens each row keeps; 0: none", ge=0, le=100)
    continuations: int = key(
        0,
        "texts to sample per prompt, besides its probabilities",
        flag="--continue",
        takes="N",
        ge=0,
        le=1000,
    )
    continuation_tokens: int = key(24, "maximum tokens of such a text", ge=4, le=1000)
    ways: bool = key(
        False,
        "ask some jobs in other ways too: prompt formats, system prompts, wordings",
        flag="--ways",
    )
    word_boundary: Literal["token", "word"] = key(
        "token", "token: as in the papers; word: times P(the word ends there)"
    )
    on_prefix: Literal["exclusive", "refuse"] = key(
        "exclusive", "a target word that begins another group's: count it without that one, or refuse"
    )

    min_coverage: float = key(0.01, "prompts with a lower coverage are flagged and counted", ge=0, le=1)
    interval: Literal["crossed", "bootstrap"] = key(
        "crossed", "over jobs and templates; crossed: two-way random effects"
    )
    contrast: tuple[str, str] | None = key(None, "two groups; default female, male or the first two")
    margin: Margins = key({"share": 0.05, "group_gap": 0.1}, MARGIN)
    tie_zone: float = key(TIE_ZONE, OF_TIES, ge=0, le=1)
    seed: int = key(1, "seed of bootstrap intervals", ge=0, le=MOST_SEED)
    table: TableTitles = key(TableTitles(), "titles of the rendered tables")

    @classmethod
    def method_papers(cls, stored: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG003
        """List OccuGender."""
        return ("occugender",)


STUDY = ProbeStudy
