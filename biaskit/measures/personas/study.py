"""Every key of a study of personas, with its default and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from biaskit.corpora.languages import AUTO, ENGLISH, Language, language
from biaskit.study.keys import MARGIN, MOST_SEED, Choice, DebiasingChoice, Margins, Study, key

MOST_C = 1e6  # the greatest strength of a prior; above it every word is as in the prior
MOST_SEEDS = 100
_RELEASED: Mapping[str, Any] = {
    **dict.fromkeys(("prior", "names", "pronouns", "keep_rule"), "released"),
    "vectors": "marked-lists",
    "srb_seeds": "1",
    "balance": "sample",
    "copies": "all",
}
"""What `variant = released` switches (methods/index#released-variant)."""


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
        kind, colon, path = text.partition(":")
        if kind + colon not in kinds or bool(colon) != bool(path):
            shown = ", ".join(f"{kind}PATH" if kind.endswith(":") else kind for kind in kinds if kind)
            raise ValueError(f"write {shown}" + (" or nothing" if "" in kinds else ""))
        return text

    return AfterValidator(check)


def _of_language(name: str) -> str:
    if name != AUTO:
        language(name)
    return name


class PromptChoice(Choice):
    """Prompts of personas, by name; for continuations task prompts, by id."""

    source: str = key("corpus:gasp/prompts.toml", "corpus:NAME/FILE, or a path (relative to the study)")


class PersonasStudy(Study):
    """Everything that can be set for a run of `personas`."""

    items_key: ClassVar[str] = "occupations"
    lists: ClassVar[tuple[str, ...]] = ("occupations", "templates", "debiasing_prompts")
    files: ClassVar[tuple[str, ...]] = ("drop_words", "categories")

    measurement: Literal["personas"] = Field(description="which measurement runs it")
    task: Literal["persona", "continuation"] = key(
        "persona", "persona: GAS(P)'s prompts; continuation: Mattern's task prompts"
    )
    occupations: Choice = key(
        Choice(source="corpus:gasp/occupations.csv"),
        "names, ids or ranges of the study's list, or a .csv/.xlsx/.txt/.toml",
        flag="--occupations",
        takes="LIST",
    )
    templates: PromptChoice = key(PromptChoice(), "the prompts")
    wording: Literal["paper", "released"] = key(
        "paper", "the prompts as printed in the paper, or as in its scripts"
    )
    requested: tuple[Literal["female", "male", "nonbinary"], ...] = key(
        ("female", "male", "nonbinary"), "genders to request by name"
    )
    debiasing_prompts: DebiasingChoice = key(DebiasingChoice(), "debiasing prompts (task = continuation)")
    per_gender: int = key(
        100,
        "texts wanted about women and about men per prompt",
        flag="--per-gender",
        takes="N",
        ge=1,
        le=1_000_000,
    )
    batch: int | None = key(None, "texts per batch; default: per_gender", ge=1, le=1_000_000)
    max_samples: int | None = key(
        None,
        "maximum texts per occupation and prompt; default: 20 x per_gender",
        flag="--max-samples",
        takes="N",
        ge=1,
        le=100_000_000,
    )
    fill: bool = key(True, "sample until both genders have enough texts; false: one batch only")
    max_new_tokens: int = key(
        750, "maximum tokens of a text", flag="--max-new-tokens", takes="N", ge=1, le=1_000_000
    )
    temperature: float = key(1.0, "sampling temperature", gt=0, le=100)
    top_p: float = key(1.0, "nucleus sampling", gt=0, le=1)
    seed: int = key(1, "seed of sampling, shuffles and halves", ge=0, le=MOST_SEED)
    prompt_format: Literal["auto", "chat", "completion", "raw"] = key(
        "auto",
        "how a question becomes a prompt; auto: chat for instruct models, completion for base ones",
        flag="--prompt-format",
    )

    variant: Literal["exact", "released"] = key(
        "exact", "released: all definitions of GAS(P)'s scripts at once"
    )
    honorifics: Literal["paper", "titles"] = key(
        "paper", "titles: Ms, Mrs, Miss, Mr only as words before a capitalised word"
    )
    language: Annotated[str, AfterValidator(_of_language)] = key(
        "auto", "language whose rules read the texts: en, de, fr, pt, ru, a folder of your own, or auto"
    )
    tokenizer: Literal["papers", "words"] = key(
        "papers", "papers: letters a-z only; words: Unicode words with hyphens"
    )
    balance: Literal["first", "sample"] = key(
        "first", "texts to compare: the first n, or a random sample of n"
    )
    copies: Literal["auto", "once", "all"] = key(
        "auto", "equal and nearly equal texts count once, or all; auto: once in files, all of a model's draws"
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
    clusters: bool = key(True, "cluster the marked words (k-means); own texts: if a gender is requested")
    cluster_vectors: Annotated[str, _source_of("", "pretrained:")] = key(
        "", "default: vectors; pretrained:PATH"
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
    margin: Margins = key({"represented_share": 0.05}, MARGIN)

    @property
    def own_language(self) -> Language | None:
        """The language that `language` names; None where it is found by the texts' words."""
        return None if self.language == AUTO else language(self.language)

    @property
    def reading(self) -> dict[str, Any]:
        """How a text is read before its model's language is known: the arguments of `associate_answer`."""
        return {"honorifics": self.honorifics, "language": self.own_language or ENGLISH}

    @property
    def sent_as(self) -> str:
        """The prompt format that a batch service must support."""
        return "raw" if self.task == "continuation" else self.prompt_format

    @classmethod
    def method_papers(cls, stored: Mapping[str, Any]) -> tuple[str, ...]:
        """List GAS(P); of continuations Mattern et al. too."""
        return ("mattern", "gasp") if stored.get("task") == "continuation" else ("gasp",)


_ASKED = {
    *("name", "measurement", "models", "task", "occupations", "templates", "wording", "articles"),
    *("requested", "debiasing_prompts", "per_gender", "batch", "max_samples", "fill", "max_new_tokens"),
    *("temperature", "top_p", "prompt_format", "system_prompt", "template_date", "thinking"),
    *("thought_tokens", "seed"),
}
"""Keys that change the rows; the seed changes samples, so it stays the run's."""
PersonasStudy.analysis_keys = frozenset(PersonasStudy.model_fields) - _ASKED
PersonasStudy.variants = {
    "exact": {name: PersonasStudy.model_fields[name].default for name in _RELEASED},
    "released": _RELEASED,
}
STUDY = PersonasStudy
