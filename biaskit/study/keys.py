"""Every key of a study, with its default and its meaning."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from biaskit.records import TEMPLATE_DATE, THOUGHT_TOKENS

MOST_SEED = 2**32 - 1  # the largest seed that every generator of random numbers takes
MOST_C = 1e6  # the greatest strength of a prior; above it every word is as in the prior
MOST_ENTRIES = 10_000_000
MOST_SEEDS = 100
SELECT_DOC = "all, none, names, or 1-based ids and ranges such as 1,3-5"


def key(default: Any, description: str, **bounds: Any) -> Any:
    """Declare a key that need not be stated."""
    return Field(default=default, description=description, **bounds)


def _is_date(text: str) -> str:
    with contextlib.suppress(ValueError):
        if str(date.fromisoformat(text)) == text:
            return text
    raise ValueError("write a date such as 2024-07-26")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class Choice(_Strict):
    """A list (a shipped one, or a file) and which of its entries are used."""

    source: str = Field(description="corpus:NAME/FILE, or a path (relative to the study file)")
    select: str | tuple[str, ...] = key("all", SELECT_DOC)


class TemplateChoice(Choice):
    """Templates; ids count within a bias type."""

    slot: str | None = key(None, "the slot an item replaces; default: the template file's own")


class DebiasingChoice(_Strict):
    """Debiasing prompts; 0 means none."""

    source: str | None = key(None, "corpus:NAME/FILE, or a path; none: no debiasing prompts")
    select: str | tuple[str, ...] = key("none", f"{SELECT_DOC}; 0 (none) is always included")


class TargetWordChoice(_Strict):
    """Which target words each bias type takes; a template's own set comes first."""

    source: str = key("corpus:expressions/sets.toml", "corpus:NAME/FILE, or a path")
    explicit: str | None = key(None, "set for explicit templates")
    implicit: str | None = key(None, "set for implicit templates")
    every: str | None = key(None, "one set for all templates; overrides any other")


class TableTitles(_Strict):
    """Titles of the rendered tables: the paper's own numbers."""

    explicit: str = key("Explicit bias", "title over the explicit table")
    implicit: str = key("Implicit bias", "title over the implicit table")


class ReportKeys(_Strict):
    """How the page and its figures are made; no number depends on it."""

    pdf: bool = key(False, "figures as PDF too")


class ConclusionKeys(_Strict):
    """When a conclusion names a direction (methods/tests#verdicts)."""

    rule: Literal["tree", "strict"] = key(
        "tree", "strict: at most 5 % false conclusions whatever is true, with less power"
    )


Reference = Literal["none", "parity", "labour", "both"]
Margin = Annotated[float, Field(ge=0, le=1e6)]
_MARGIN = "margin.QUANTITY: equivalence margin"
_REFERENCE = "what the page compares shares with: parity, the workforce share (labour), both or none"


class _Study(_Strict):
    name: str = Field(description="part of the default run folder's name")
    engine: Any  # each engine's own
    summary: str = key("", "one line: what it measures")
    papers: tuple[str, ...] = key((), "corpora whose papers `biaskit cite` prints")
    models: dict[str, str] = key({}, "LABEL = SPEC, used when the command names no model")
    system_prompt: str | None = key(None, "text of the system prompt (--system-prompt FILE)")
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


class ProbeStudy(_Study):
    """Everything that can be set for a run of `probe`."""

    engine: Literal["probe"] = key("probe", "which engine runs it")
    bias_type: Literal["explicit", "implicit", "both"] = key("both", "which templates")
    pairs: str = key("", "pairs of sentences, in place of templates and jobs: corpus:NAME/FILE, or a path")
    jobs: Choice = Field(description="items that fill the slot")
    templates: TemplateChoice = Field(description="questions, and openings of answers")
    debiasing_prompts: DebiasingChoice = key(DebiasingChoice(), "debiasing prompts")
    target_words: TargetWordChoice = key(TargetWordChoice(), "the words that count as naming a group")
    context: Literal["plain", "dialogue", "both"] = key("plain", "question alone, or after a dialogue")
    dialogue: str = key("corpus:mattern/dialogue.toml", "the conversation of the dialogue context")
    debiasing_place: Literal["own-line", "in-question"] = key(
        "own-line", "plain context: on a line before the question (OccuGender) or inside it (Mattern)"
    )
    debiasing_position: Literal["prompt", "system"] = key("prompt", "in the prompt or in the system role")
    prompt_format: Literal["auto", "raw", "chat-prefill", "chat-continue"] = key(
        "auto", "auto: the first that every model supports"
    )
    estimator: Literal["auto", "exact", "selected-ids", "echo", "top-k", "sampling"] = key(
        "auto", "how probabilities are obtained; local models: exact, top-k or sampling"
    )
    k: int = key(20, "top-k: how many top tokens to request, at most", ge=1, le=20)
    samples: int = key(
        10, "sampling: texts per batch; a prompt gets batches until three name a group", ge=2, le=100_000
    )
    max_samples_per_prompt: int = key(
        100, "sampling: maximum texts per prompt, in whole batches", ge=2, le=100_000
    )
    record_next: int = key(20, "exact: how many top next tokens each row keeps; 0: none", ge=0, le=100)
    continuations: int = key(0, "texts to sample per prompt, besides its probabilities", ge=0, le=1000)
    continuation_tokens: int = key(24, "maximum tokens of such a text", ge=4, le=1000)
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
    margin: dict[str, Margin] = key({"share": 0.05}, _MARGIN)
    seed: int = key(1, "seed of bootstrap intervals", ge=0, le=MOST_SEED)
    table: TableTitles = key(TableTitles(), "titles of the rendered tables")


PROBE_ANALYSIS_KEYS = frozenset(
    {
        *("min_coverage", "interval", "contrast", "margin", "seed", "skip_bad_lines", "lock", "on_prefix"),
        *("table", "summary", "papers", "reference", "report", "conclusion"),
    }
)

# --- the generation engine ------------------------------------------------------------------------


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read `1-5`, `1,7` or `3` as distinct seeds in order; anything else is a `ValueError`."""
    seeds: list[int] = []
    for part in text.replace(" ", "").split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or (dash and int(high) < int(low)):
            raise ValueError("write seeds such as 1-5 or 1,7")
        seeds += range(int(low), min(int(high or low), int(low) + MOST_SEEDS) + 1)  # one too many is enough
    if len(seeds) > MOST_SEEDS:
        raise ValueError(f"at most {MOST_SEEDS} seeds")
    return tuple(dict.fromkeys(seeds))


def _source_of(*kinds: str) -> AfterValidator:
    """Check that a text is one of the kinds; a kind that ends in a colon takes a path."""

    def check(text: str) -> str:
        named = any(
            text.startswith(kind) and len(text) > len(kind) if kind.endswith(":") else text == kind
            for kind in kinds
        )
        if not named:
            shown = ", ".join(f"{kind}PATH" if kind.endswith(":") else kind for kind in kinds if kind)
            raise ValueError(f"write {shown}" + (" or nothing" if "" in kinds else ""))
        return text

    return AfterValidator(check)


class PromptChoice(Choice):
    """Prompts of the generation engine, by name; for continuations task prompts, by id."""

    source: str = key("corpus:gasp/prompts.toml", "corpus:NAME/FILE, or a path (relative to the study)")


class PersonasStudy(_Study):
    """Everything that can be set for a run of `personas`."""

    engine: Literal["personas"] = Field(description="which engine runs it")
    task: Literal["persona", "continuation"] = key(
        "persona", "persona: GAS(P)'s prompts; continuation: Mattern's task prompts"
    )
    occupations: Choice = key(Choice(source="corpus:gasp/occupations.csv"), "items that fill the slot")
    templates: PromptChoice = key(PromptChoice(), "the prompts")
    wording: Literal["paper", "released"] = key(
        "paper", "the prompts as printed in the paper, or as in its scripts"
    )
    specified: tuple[Literal["female", "male", "nonbinary"], ...] = key(
        ("female", "male", "nonbinary"), "genders to request by name"
    )
    debiasing_prompts: DebiasingChoice = key(DebiasingChoice(), "debiasing prompts (task = continuation)")
    per_gender: int = key(100, "texts wanted about women and about men per prompt", ge=1, le=1_000_000)
    batch: int | None = key(None, "texts per batch; default: per_gender", ge=1, le=1_000_000)
    max_samples: int | None = key(
        None, "maximum texts per occupation and prompt; default: 20 x per_gender", ge=1, le=100_000_000
    )
    fill: bool = key(True, "sample until both genders have enough texts; false: one batch only")
    max_new_tokens: int = key(750, "maximum tokens of a text", ge=1, le=1_000_000)
    temperature: float = key(1.0, "sampling temperature", gt=0, le=100)
    top_p: float = key(1.0, "nucleus sampling", gt=0, le=1)
    seed: int = key(1, "seed of sampling, shuffles and halves", ge=0, le=MOST_SEED)
    prompt_format: Literal["auto", "chat", "completion", "raw"] = key(
        "auto", "auto: chat for instruct models, completion for base models"
    )

    variant: Literal["exact", "released"] = key(
        "exact", "released: all definitions of GAS(P)'s scripts at once"
    )
    honorifics: Literal["paper", "titles"] = key(
        "paper", "titles: Ms, Mrs, Miss, Mr only as words before a capitalised word"
    )
    tokenizer: Literal["papers", "words"] = key(
        "papers", "papers: letters a-z only; words: Unicode words with hyphens"
    )
    balance: Literal["first", "sample"] = key(
        "first", "texts to compare: the first n, or a random sample of n"
    )
    alpha: float = key(0.15, "weight of the topic in the hybrid prior", ge=0, le=1)
    c: float | None = key(None, "strength of the prior; overrides c_topic, c_english", gt=0, le=MOST_C)
    c_topic: float = key(0.45, "strength of the topic prior", gt=0, le=MOST_C)
    c_english: float = key(0.225, "strength of the English prior", gt=0, le=MOST_C)
    prior: Literal["exact", "released"] = key(
        "exact", "the hybrid prior as defined, or cut to integers as released"
    )
    prior_scale: Literal["counts", "rates"] = key(
        "counts", "rates: English counts scaled to the size of the topic's"
    )
    prior_scope: Literal["occupation", "all"] = key(
        "occupation", "topic counts of the occupation, or of all occupations"
    )
    english_prior: Literal["table", "nltk"] = key(
        "table", "Brown counts as shipped, or of the corpus installed by NLTK"
    )
    permutations: int = key(199, "shuffles of every permutation baseline", ge=19, le=1_000_000)
    names: Literal["capitalised-list", "released", "keep"] = key(
        "capitalised-list", "which words count as names and are left out of scores and clusters"
    )
    pronouns: Literal["all", "released"] = key(
        "all", "pronouns left out of SRB; released: eight, from the candidates only"
    )
    vectors: Annotated[str, _source_of("corpus", "marked-lists", "pretrained:")] = key(
        "corpus", "corpus, pretrained:PATH or marked-lists (released)"
    )
    srb_seeds: Annotated[str, AfterValidator(lambda text: parse_seeds(text) and text)] = key(
        "1-5", "seeds of the word vectors, such as 1-5 or 1,7"
    )
    clusters: bool = key(True, "cluster the marked words (k-means)")
    cluster_vectors: Annotated[str, _source_of("", "pretrained:")] = key(
        "", "default: vectors; or pretrained:PATH"
    )
    k: int | None = key(None, "number of clusters; default: by k_rule", ge=2, le=10_000)
    k_rule: Literal["max", "largest-gain"] = key("max", "largest silhouette, or its largest rise (paper)")
    keep_rule: Literal["two-sided", "released"] = key(
        "two-sided", "released: the difference is divided by the men's count"
    )
    drop_words: str | None = key(None, "a file of words to leave out of the clusters")
    categories: str | None = key(None, "a CSV file word,category for the clusters")
    hold_out: float | None = key(
        None, "treat this fraction of texts with a requested gender as if it had none", gt=0, lt=1
    )
    gender_codes: dict[str, str] = key(
        {}, "gender_codes.CODE = female, male, nonbinary or none (imported texts)"
    )
    unmarked: tuple[str, ...] = key((), "reference groups of --group-col; default: all other groups")
    c_rule: Literal["per-alpha", "interpolated"] = key(
        "per-alpha", "calibrate: search C at every alpha, or interpolate (papers)"
    )
    margin: dict[str, Margin] = key({"represented_share": 0.05}, _MARGIN)


PERSONAS_ANALYSIS_KEYS = frozenset(PersonasStudy.model_fields) - frozenset(
    {
        *("name", "engine", "models", "task", "occupations", "templates", "wording", "articles", "specified"),
        *("debiasing_prompts", "per_gender", "batch", "max_samples", "fill", "max_new_tokens", "temperature"),
        *("top_p", "prompt_format", "system_prompt", "template_date", "thinking", "thought_tokens", "seed"),
    }
)
"""What `analyze` takes; the seed changes draws, so it stays the run's."""

ANALYSIS_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"probe": PROBE_ANALYSIS_KEYS, "personas": PERSONAS_ANALYSIS_KEYS}
)
"""Engine → keys that change what is made of the rows, not the rows."""

DISPLAY_KEYS = frozenset({"summary", "papers", "table", "reference", "report", "lock"})
"""Analysis keys on which no number of a table depends: titles, the page, how the folder is locked."""

LATER_KEYS = frozenset({"template_date", "thinking", "thought_tokens"})
"""Keys that are younger than the first runs, and change nothing at their default."""

_RELEASED: Mapping[str, Any] = {
    **dict.fromkeys(("prior", "names", "pronouns", "keep_rule"), "released"),
    "vectors": "marked-lists",
    "srb_seeds": "1",
    "balance": "sample",
}
_EXACT = {name: PersonasStudy.model_fields[name].default for name in _RELEASED}
VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType({"exact": _EXACT, "released": _RELEASED})
"""What `variant` switches (methods/index#released-variant); each key can be set back alone."""

Study = ProbeStudy | PersonasStudy
STUDIES: Mapping[str, type[BaseModel]] = MappingProxyType({"probe": ProbeStudy, "personas": PersonasStudy})
