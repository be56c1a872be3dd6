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
    PersonasResult('written': texts, 80 texts, 6 warnings)
    """

    headline = "word_lists"

    representation = table_property(
        "representation",
        "Read the shares of women and non-binary people where the prompt names no gender.\n"
        ">>> written.representation[['n_texts', 'female_share']].values.tolist()[0]\n[40, 0.5]",
    )
    genders = table_property(
        "genders",
        "Read the gender requested for each text, and the gender inferred from it.\n"
        ">>> written.genders[['requested_gender', 'gender']].values.tolist()[0]\n['female', 'female']",
    )
    marked_words = table_property(
        "marked_words",
        "Read the words that mark a gender (z above 1.96), by two methods.\n"
        ">>> sorted(set(written.marked_words['word']))\n['gentle', 'he', 'she', 'strong']",
    )
    word_lists = table_property(
        "word_lists",
        "Read how many words mark a gender, and how many with shuffled genders (permutation baseline).\n"
        ">>> written.word_lists[['gender', 'n_marked', 'n_target']].values.tolist()[0]\n['female', 1, 20]",
    )
    srb = table_property(
        "srb",
        "Read SRB, from -2 to 2; negative = closer to the words of texts requested about women.\n"
        ">>> written.srb.set_index('gender')['srb'].round(1).to_dict()\n{'female': -1.0, 'male': 1.0}",
    )
    text_transfer = table_property(
        "text_transfer",
        "Read the held-out AUC of a classifier of women's and men's texts without gendered words.\n"
        ">>> written.text_transfer['auc'].round(1).unique().tolist()\n[1.0]",
    )
    group_lists = table_property(
        "group_lists",
        "Read how many words mark each group of the column `group_col`.\n"
        ">>> written.group_lists['n_marked'].tolist()[0]\n1",
    )
    group_words = table_property(
        "group_words",
        "Read the words that mark each group of the column `group_col`.\n"
        ">>> sorted(set(written.group_words['word']))\n['old', 'young']",
    )
    clusters = table_property(
        "clusters",
        "Read clusters of marked words, and in how many occupations they mark a gender.\n"
        ">>> written.clusters['reason'].unique().tolist()\n['2 words to cluster; at least 4 are needed']",
    )

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
