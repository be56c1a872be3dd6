"""Every key of a study: what can be asked otherwise, with its default and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SELECT_DOC = "all, none, names, or 1-based ids and ranges such as 1,3-5"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Choice(_Strict):
    """A list (a shipped one, or a file) and which of its entries are used."""

    source: str = Field(description="corpus:NAME/FILE, or a path (relative to the study file)")
    select: str | tuple[str, ...] = Field(default="all", description=SELECT_DOC)


class TemplateChoice(Choice):
    """Templates; ids count within a bias type."""

    slot: str | None = Field(
        default=None, description="the slot an item replaces; default: the template file's own"
    )


class InstructionChoice(_Strict):
    """Debiasing instructions; 0 means no instruction."""

    source: str | None = Field(default=None, description="corpus:NAME/FILE, or a path; none: no instructions")
    select: str | tuple[str, ...] = Field(
        default="none", description=f"{SELECT_DOC}; 0 (none) is always among several"
    )


class ExpressionChoice(_Strict):
    """Which expression set each bias type takes; a template's own set goes before it."""

    source: str = Field(default="corpus:expressions/sets.toml", description="corpus:NAME/FILE, or a path")
    explicit: str | None = Field(default=None, description="set for explicit templates")
    implicit: str | None = Field(default=None, description="set for implicit templates")
    every: str | None = Field(default=None, description="one set for all templates, before any other")


class TableTitles(_Strict):
    """What the rendered tables are called: the paper's own numbers."""

    explicit: str = Field(default="Explicit bias", description="title over the explicit table")
    implicit: str = Field(default="Implicit bias", description="title over the implicit table")


class ReportKeys(_Strict):
    """How the page and its figures are made; no number depends on it."""

    max_mb: float = Field(default=3.0, gt=0, description="size above which the page is shortened")
    pdf: bool = Field(default=False, description="figures as PDF too")


Reference = Literal["none", "parity", "labour", "both"]
_REFERENCE = "what shares are held against on the page: parity, labour statistics, both or none"


class Pair(_Strict):
    """One (template, item) pair of an explicit listing."""

    bias_type: Literal["explicit", "implicit"]
    template: int
    job: str


class ProbeStudy(_Strict):
    """Everything the prober can be asked to do otherwise."""

    name: str = Field(description="names the default run folder")
    engine: Literal["probe"] = Field(default="probe", description="which engine runs it")
    summary: str = Field(default="", description="one line: whose tables it lays out")
    papers: tuple[str, ...] = Field(default=(), description="corpora whose papers `biaskit cite` prints")
    models: dict[str, str] = Field(
        default={}, description="LABEL = SPEC, used when the command names no model"
    )

    bias_type: Literal["explicit", "implicit", "both"] = Field(default="both", description="which templates")
    jobs: Choice = Field(description="items that fill the slot")
    templates: TemplateChoice = Field(description="questions, and openings of answers")
    instructions: InstructionChoice = Field(default=InstructionChoice(), description="debiasing instructions")
    expressions: ExpressionChoice = Field(
        default=ExpressionChoice(), description="what counts as naming a group"
    )
    pairs: tuple[Pair, ...] = Field(
        default=(), description="an explicit list of pairs; refused unless it is the full product"
    )
    setting: Literal["plain", "dialogue", "both"] = Field(
        default="plain", description="question alone, or after a conversation"
    )
    dialogue: str = Field(
        default="corpus:mattern/dialogue.toml", description="the conversation of the dialogue setting"
    )
    instruction_place: Literal["own-line", "in-question"] = Field(
        default="own-line",
        description="plain setting: before the question's line (OccuGender) or inside it (Mattern)",
    )
    instruction_position: Literal["prompt", "system"] = Field(
        default="prompt", description="in the prompt or the system role"
    )
    system_prompt: str | None = Field(
        default=None, description="a system prompt's text (--system-prompt FILE)"
    )
    articles: Literal["as-published", "grammatical"] = Field(
        default="as-published", description="'a electrician' as the papers print it, or 'an electrician'"
    )
    prompt_form: Literal["auto", "raw", "chat-prefill", "chat-continue"] = Field(
        default="auto", description="auto: the first that every model can take"
    )
    estimator: Literal["auto", "exact", "selected-ids", "echo", "top-k", "sampling"] = Field(
        default="auto", description="how probabilities are obtained; local models: exact, top-k or sampling"
    )
    k: int = Field(default=20, ge=1, le=20, description="top-k: listed tokens asked for, at most")
    draws: int = Field(default=10, ge=2, description="sampling: texts drawn for each cell")
    word_boundary: Literal["token", "word"] = Field(
        default="token", description="token: as the papers; word: times P(the word ends there)"
    )
    on_prefix: Literal["exclusive", "refuse"] = Field(
        default="exclusive",
        description="an expression that begins another group's: count without it, or stop",
    )

    coverage_floor: float = Field(
        default=0.01, ge=0, le=1, description="cells below it are flagged and counted"
    )
    interval: Literal["crossed", "bootstrap"] = Field(
        default="crossed", description="over jobs and templates"
    )
    contrast: tuple[str, str] | None = Field(
        default=None, description="two groups; default female, male or the first two"
    )
    margin: dict[str, float] = Field(
        default={"share": 0.05}, description="margin.QUANTITY for 'equivalent within'"
    )
    seed: int = Field(default=1, ge=0, description="of bootstrap intervals")
    table: TableTitles = Field(default=TableTitles(), description="titles of the rendered tables")
    reference: Reference = Field(default="both", description=_REFERENCE)
    report: ReportKeys = Field(default=ReportKeys(), description="the page")

    skip_bad_lines: bool = Field(default=False, description="leave out unreadable rows and count them")
    lock: Literal["os", "none"] = Field(default="os", description="none: for file systems without locks")


PROBE_ANALYSIS_KEYS = frozenset(
    {
        *("coverage_floor", "interval", "contrast", "margin", "seed", "skip_bad_lines", "lock", "on_prefix"),
        *("table", "summary", "papers", "reference", "report"),
    }
)

# --- the generation engine ------------------------------------------------------------------------


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1-5`, `1,7` or `3` as distinct seeds in order; anything else is a `ValueError`."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or (dash and int(high) < int(low)):
            raise ValueError("write seeds such as 1-5 or 1,7")
        if dash and int(high) - int(low) >= MOST_SEEDS:
            raise ValueError(f"at most {MOST_SEEDS} seeds")
        found += range(int(low), int(high or low) + 1)
    if len(found) > MOST_SEEDS:
        raise ValueError(f"at most {MOST_SEEDS} seeds")
    return tuple(dict.fromkeys(found))


MOST_SEEDS = 100


def _is_seeds(text: str) -> str:
    parse_seeds(text)
    return text


def _source_of(*kinds: str) -> AfterValidator:
    """A check that a text is one of the kinds; a kind that ends in a colon takes a path."""

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

    source: str = Field(
        default="corpus:gasp/prompts.toml", description="corpus:NAME/FILE, or a path (relative to the study)"
    )


class PersonasStudy(_Strict):
    """Everything the generation engine can be asked to do otherwise."""

    name: str = Field(description="names the default run folder")
    engine: Literal["personas"] = Field(description="which engine runs it")
    summary: str = Field(default="", description="one line: whose tables it lays out")
    papers: tuple[str, ...] = Field(default=(), description="corpora whose papers `biaskit cite` prints")
    models: dict[str, str] = Field(
        default={}, description="LABEL = SPEC, used when the command names no model"
    )

    task: Literal["persona", "continuation"] = Field(
        default="persona", description="persona: GAS(P)'s prompts; continuation: Mattern's task prompts"
    )
    occupations: Choice = Field(
        default=Choice(source="corpus:gasp/occupations.csv"), description="items that fill the slot"
    )
    templates: PromptChoice = Field(default=PromptChoice(), description="what is asked for")
    wording: Literal["paper", "released"] = Field(
        default="paper", description="the prompts as the paper prints them, or as its scripts ask them"
    )
    articles: Literal["as-published", "grammatical"] = Field(
        default="as-published", description="'a engineer' as the papers print it, or 'an engineer'"
    )
    specified: tuple[Literal["female", "male", "nonbinary"], ...] = Field(
        default=("female", "male", "nonbinary"), description="genders that prompts of the second kind name"
    )
    instructions: InstructionChoice = Field(
        default=InstructionChoice(), description="debiasing instructions (task = continuation)"
    )
    per_gender: int = Field(default=100, ge=1, description="texts wanted of women and of men per prompt (n)")
    batch: int | None = Field(default=None, ge=1, description="draws of a round; default: per_gender")
    max_draws: int | None = Field(
        default=None, ge=1, description="most draws of one occupation and prompt; default: 20 x per_gender"
    )
    fill: bool = Field(default=True, description="go on until both genders are full; no: one round only")
    max_new_tokens: int = Field(default=750, ge=1, description="most tokens of a text")
    temperature: float = Field(default=1.0, gt=0, description="of sampling")
    top_p: float = Field(default=1.0, gt=0, le=1, description="of sampling")
    seed: int = Field(default=1, ge=0, description="of draws, shuffles and halves")
    prompt_form: Literal["auto", "chat", "completion", "raw"] = Field(
        default="auto", description="auto: chat for instruct models, completion for base models"
    )
    system_prompt: str | None = Field(
        default=None, description="a system prompt's text (--system-prompt FILE)"
    )

    variant: Literal["exact", "released"] = Field(
        default="exact", description="released: the definitions of GAS(P)'s scripts, all at once"
    )
    honorifics: Literal["paper", "titles"] = Field(
        default="paper", description="titles: Ms, Mrs, Miss, Mr only as words before a capitalised word"
    )
    tokenizer: Literal["papers", "words"] = Field(
        default="papers", description="letters a-z alone, or Unicode words with their hyphens"
    )
    balance: Literal["first", "sample"] = Field(
        default="first", description="which texts are compared: the first n, or n drawn with the seed"
    )
    alpha: float = Field(default=0.15, ge=0, le=1, description="weight of the topic in the hybrid prior")
    c: float | None = Field(
        default=None, gt=0, description="strength of the prior; before c_topic, c_english"
    )
    c_topic: float = Field(default=0.45, gt=0, description="strength of the topic prior")
    c_english: float = Field(default=0.225, gt=0, description="strength of the English prior")
    prior: Literal["exact", "released"] = Field(
        default="exact", description="the hybrid prior as it is, or cut to integers as released"
    )
    prior_scale: Literal["counts", "rates"] = Field(
        default="counts", description="rates: English counts brought to the size of the topic's"
    )
    prior_scope: Literal["occupation", "all"] = Field(
        default="occupation", description="topic counts of the occupation, or of all occupations"
    )
    english_prior: Literal["table", "nltk"] = Field(
        default="table", description="Brown counts as shipped, or of the corpus that NLTK has installed"
    )
    permutations: int = Field(default=199, ge=19, description="shuffles of every null")
    names: Literal["capitalised-list", "released", "keep"] = Field(
        default="capitalised-list", description="which words are names and leave scores and clusters"
    )
    pronouns: Literal["all", "released"] = Field(
        default="all", description="released: eight of them, and from the candidates alone"
    )
    vectors: Annotated[str, _source_of("corpus", "marked-lists", "pretrained:")] = Field(
        default="corpus", description="corpus, pretrained:PATH or marked-lists (released)"
    )
    srb_seeds: Annotated[str, AfterValidator(_is_seeds)] = Field(
        default="1-5", description="seeds of the word vectors, such as 1-5 or 1,7"
    )
    clusters: bool = Field(default=True, description="k-means of the marked words")
    cluster_vectors: Annotated[str, _source_of("", "pretrained:", "sentence:")] = Field(
        default="", description="default: vectors; pretrained:PATH or sentence:PATH (an encoder's folder)"
    )
    k: int | None = Field(default=None, ge=2, description="number of clusters; default: by k_rule")
    k_rule: Literal["max", "largest-gain"] = Field(
        default="max", description="largest silhouette, or its largest rise (paper)"
    )
    keep_rule: Literal["two-sided", "released"] = Field(
        default="two-sided", description="released: the difference is divided by the men's count"
    )
    drop_words: str | None = Field(default=None, description="a file of words that no cluster holds")
    categories: str | None = Field(default=None, description="a file word,category for the clusters")
    hold_out: float | None = Field(
        default=None, gt=0, lt=1, description="this part of specified texts is treated as unspecified"
    )
    gender_codes: dict[str, str] = Field(
        default={}, description="gender_codes.CODE = female, male, nonbinary or none (imported texts)"
    )
    c_rule: Literal["per-alpha", "interpolated"] = Field(
        default="per-alpha", description="calibrate: C searched at every alpha, or interpolated (papers)"
    )
    margin: dict[str, float] = Field(
        default={"represented_share": 0.05}, description="margin.QUANTITY for 'equivalent within'"
    )
    reference: Reference = Field(default="both", description=_REFERENCE)
    report: ReportKeys = Field(default=ReportKeys(), description="the page")

    skip_bad_lines: bool = Field(default=False, description="leave out unreadable rows and count them")
    lock: Literal["os", "none"] = Field(default="os", description="none: for file systems without locks")


PERSONAS_ANALYSIS_KEYS = frozenset(PersonasStudy.model_fields) - frozenset(
    {
        *("name", "engine", "models", "task", "occupations", "templates", "wording", "articles", "specified"),
        *("instructions", "per_gender", "batch", "max_draws", "fill", "max_new_tokens", "temperature"),
        *("top_p", "prompt_form", "system_prompt", "seed"),
    }
)
"""What `analyze` takes; the seed changes draws, so it stays the run's."""

ANALYSIS_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"probe": PROBE_ANALYSIS_KEYS, "personas": PERSONAS_ANALYSIS_KEYS}
)
"""Engine → keys that change what is made of the rows, not the rows."""

DISPLAY_KEYS = frozenset({"summary", "papers", "table", "reference", "report", "lock"})
"""Analysis keys on which no number of a table depends: titles, the page, how the folder is locked."""

WORD_FILES = frozenset({"drop_words", "categories"})
"""Analysis keys that name a list."""

VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "exact": {
            "prior": "exact",
            "names": "capitalised-list",
            "pronouns": "all",
            "vectors": "corpus",
            "srb_seeds": "1-5",
            "balance": "first",
            "keep_rule": "two-sided",
        },
        "released": {
            "prior": "released",
            "names": "released",
            "pronouns": "released",
            "vectors": "marked-lists",
            "srb_seeds": "1",
            "balance": "sample",
            "keep_rule": "released",
        },
    }
)
"""What `variant` switches (docs/methods.md#released-variant); each key can be set back by itself."""

Study = ProbeStudy | PersonasStudy
STUDIES: Mapping[str, type[BaseModel]] = MappingProxyType({"probe": ProbeStudy, "personas": PersonasStudy})
