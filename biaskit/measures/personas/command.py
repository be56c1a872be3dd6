"""What `biaskit personas` and `bk.personas` do: sample texts, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from biaskit.arguments import checked
from biaskit.measures.personas.design import resolve
from biaskit.measures.personas.printing.document import personas_document
from biaskit.measures.personas.study import PersonasStudy
from biaskit.report.render.document import Document
from biaskit.report.result import RunResult, table_property
from biaskit.runs.claims import GASP, claims_of
from biaskit.runs.manifest import read_manifest
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, RunArguments, overrides_of, run_study
from biaskit.study.config import load_as
from biaskit.tables.sets import read_set


@dataclass(frozen=True, repr=False)
class PersonasResult(RunResult):
    """Read a run of texts: who is represented in them, and in which words.

    >>> written
    PersonasResult('written': texts, 80 texts, 7 warnings)
    """

    headline = "word_lists"

    representation = table_property("representation")
    validity = table_property("validity")
    genders = table_property("genders")
    marked_words = table_property("marked_words")
    word_lists = table_property("word_lists")
    srb = table_property("srb")
    text_transfer = table_property("text_transfer")
    group_lists = table_property("group_lists")
    group_words = table_property("group_words")
    clusters = table_property("clusters")

    def document(self) -> Document:
        """Make what the command prints: tables, notes and the signature.

        >>> len(written.document().tables)
        8
        """
        claim = claims_of(read_manifest(self.path).resolved)[GASP]
        return personas_document(read_set(self.path).rows(), self.analysis(), self.warnings, claim)


class PersonasArguments(RunArguments, total=False):
    """What is sampled, beside the study, its occupations and how many texts.

    What is sampled:
        max_samples: the most samples of one occupation and prompt; by default 20 times per_gender.
        max_new_tokens: the most tokens of a text.
        system_prompt: text for the system role.
    """

    max_samples: int | None
    max_new_tokens: int | None
    system_prompt: str | None


@lending
@checked(PersonasArguments, *OF_RUNS)
def personas(
    *models: Any,
    study: str = "gasp-pilot",
    occupations: str | Sequence[str] | None = None,
    per_gender: int | None = None,
    prompt_format: str | None = None,
    out: str | Path | None = None,
    **options: Unpack[PersonasArguments],
) -> PersonasResult:
    """Sample personas and biographies, infer the gender of each, and see who is represented and how.

    >>> write = bk.writer("mine", lambda prompts: ["She is a kind nurse."] * len(prompts))
    >>> few = {"occupations": "nurse", "per_gender": 2, "max_samples": 4, "watcher": bk.Silent()}
    >>> sampled = bk.personas(write, **few, out="sampled", settings={"vectors": "marked-lists"})
    >>> sampled.representation[["template_id", "n_texts", "n_female", "female_share"]].values.tolist()
    [['persona', 2, 2, 1.0], ['biography', 2, 2, 1.0], ['all', 4, 4, 1.0]]

    Args:
        models: as `bk.probe` takes them.
        study: a shipped study (gasp-pilot, gasp, mattern-generation) or a path to a TOML file.
        occupations: names, ids or ranges of the study's list, or a path to a list of your own.
        per_gender: texts wanted of women and of men for each occupation and prompt.
        prompt_format: auto, chat, completion or raw: how a question becomes a prompt.
        out: the run's folder; by default one named after the question. The same call continues a run.

    Returns a `PersonasResult`, whose tables are DataFrames and files of the run's folder. Raises
    `BiaskitError` where a model, a study or an argument does not exist or fit; its message says what to do.
    """
    given: dict[str, Any] = {
        "occupations": occupations,
        "per_gender": per_gender,
        "prompt_format": prompt_format,
    }
    given |= {name: options.get(name) for name in ("max_samples", "max_new_tokens", "system_prompt")}
    overrides = {**overrides_of(PersonasStudy, study, given), **(options.get("settings") or {})}
    design = resolve(load_as(PersonasStudy, study, overrides))
    result: PersonasResult = run_study(design, models, out, options)
    return result


RESULT = PersonasResult
