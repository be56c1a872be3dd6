"""Every key of a study of decisions, with its default and its meaning."""

from __future__ import annotations

from typing import ClassVar, Literal

from biaskit.study.keys import MARGIN, MOST_SEED, Margins, Study, key


class DecisionsStudy(Study):
    """Everything that can be set for a run of `decisions`."""

    analysis_keys: ClassVar[frozenset[str]] = frozenset(
        {
            *("reference_race", "min_category", "margin", "skip_bad_lines", "lock"),
            *("summary", "papers", "reference", "report", "conclusion"),
        }
    )
    items_key: ClassVar[str] = ""
    lists: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ("cases", "people", "questions")

    measurement: Literal["decisions"] = key("decisions", "which measurement runs it")
    system_prompt: None = key(None, "none: the prompt is the case, the person and the question")
    cases: str = key(
        "corpus:hiring/cvs.csv", "a file of case, text, job; or discrim-eval", flag="--cases", takes="FILE"
    )
    people: str = key(
        "corpus:hiring/names.csv", "a file of sex, race, name (or stated)", flag="--people", takes="FILE"
    )
    questions: str = key(
        "corpus:hiring/questions.toml", "a .toml file of wordings", flag="--questions", takes="FILE"
    )
    jobs: str = key("all", "jobs of the cases, separated by commas", flag="--jobs", takes="LIST")
    n_cases: int | None = key(
        None, "cases per job, the first of the list", flag="--n-cases", takes="N", ge=1, le=100_000
    )
    n_people: int | None = key(
        None, "people in all, as many of each group", flag="--n-people", takes="N", ge=1, le=100_000
    )
    seed: int = key(1, "seed by which people are drawn", ge=0, le=MOST_SEED)
    prompt_format: Literal["auto", "raw", "chat-prefill", "chat-continue"] = key(
        "auto", "how a question becomes a prompt; auto: the first that every model supports"
    )
    estimator: Literal["auto", "exact", "selected-ids", "echo", "top-k", "sampling"] = key(
        "auto", "how probabilities are obtained; local models: exact, top-k or sampling", flag="--estimator"
    )
    k: int = key(20, "top-k: how many top tokens to request, at most", ge=1, le=20)
    samples: int = key(10, "sampling: texts per batch, until three of a prompt answer", ge=2, le=100_000)
    max_samples_per_prompt: int = key(100, "sampling: maximum texts per prompt", ge=2, le=100_000)
    reference_race: str = key("White", "the race that the others are compared with")
    min_category: float = key(0.02, "a category with a lower part of the rows gets no ratio", ge=0, le=0.99)
    margin: Margins = key({"gap": 0.05}, MARGIN)


STUDY = DecisionsStudy
