"""What `biaskit probe` and `bk.probe` do: resolve a study, score its cells, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from biaskit.arguments import TEXT, checked
from biaskit.common.wording import short
from biaskit.errors import UsageError
from biaskit.measures.probe.design import read, resolve
from biaskit.measures.probe.papers import frame_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.report.render.document import Document
from biaskit.report.render.pairs import pair_document
from biaskit.report.render.probe import probe_document
from biaskit.report.result import RunResult, table_property
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.manifest import read_manifest
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, RunArguments, list_override, run_study, stated
from biaskit.study.config import is_path, load_as
from biaskit.tables.sets import read_set

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_STUDY, PAIRS = "occugender", "pairs"
_PRINTED = ("pair_groups", "probe_groups", "probe_levels", "probe_next", "probe_outcomes", "tests")
OWN_TITLES = {"table.explicit": "Explicit templates", "table.implicit": "Implicit templates"}


@dataclass(frozen=True, repr=False)
class ProbeResult(RunResult):
    """Read a run of `probe`: probabilities of words for each gender group.

    A share is a group's part of the probability on the target words, `coverage` is that probability.

    >>> probed
    ProbeResult('probed': mine, 8 prompts, 1 warning)
    """

    headline = "probe_groups"

    cells = table_property(
        "probe_cells",
        "Read probability (mass) and share of each gender group, and coverage, of each prompt.\n"
        ">>> probed.cells.groupby('job')['female_share'].mean().to_dict()\n{'nurse': 1.0, 'plumber': 0.0}",
    )
    jobs = table_property(
        "probe_jobs",
        "Read mean shares over templates of each job, and their difference, from -1 to 1.\n"
        ">>> probed.jobs[['job', 'female_minus_male']].values.tolist()[0]\n['nurse', 1.0]",
    )
    groups = table_property(
        "probe_groups",
        "Read mean share, standard error, interval and coverage of each group of jobs and gender.\n"
        ">>> probed.groups[['gender', 'share', 'n_jobs']].values.tolist()[1]\n['female', 1.0, 1]",
    )
    templates = table_property(
        "probe_templates",
        "Read mean shares over the jobs of a group, of each template.\n"
        ">>> probed.templates[['template_id', 'gender', 'share']].values.tolist()[1]\n[1, 'female', 1.0]",
    )
    variance = table_property(
        "probe_variance",
        "Read the variance of shares that is due to jobs, to templates and to neither.\n"
        ">>> probed.variance['reason'].unique().tolist()\n['one job: no components']",
    )
    next = table_property(
        "probe_next",
        "Read the most probable next tokens; of local models, with the study's key `record_next`.\n"
        ">>> probed.next.empty\nTrue",
    )
    pair_scores = table_property(
        "pair_scores",
        "Read share of women, log-ratio and expected side of each pair of sentences.\n"
        ">>> probed.pair_scores.empty\nTrue",
    )
    pair_groups = table_property(
        "pair_groups",
        "Read mean shares and expected rate, with intervals, of each language and stereotype.\n"
        ">>> probed.pair_groups.empty\nTrue",
    )
    outcomes = table_property(
        "probe_outcomes",
        "Read which fraction of the sampled answers names a gender, declines, …\n"
        ">>> probed.outcomes[['outcome', 'share', 'n']].values.tolist()[0]\n['listed', 1.0, 40]",
    )
    levels = table_property(
        "probe_levels",
        "Read mean shares over the debiasing prompts of each level of abstraction, if any.\n"
        ">>> probed.levels.empty\nTrue",
    )

    def document(self) -> Document:
        """Make what the command prints: the paper's tables, notes and the signature.

        >>> len(probed.document().tables)
        4
        """
        analysis = self.analysis()
        design = read(read_manifest(self.path)["resolved"], analysis["choices"])
        tables = read_set(self.path, _PRINTED).rows()
        if design.pairs:
            return pair_document(tables, self.warnings, analysis["signature"])
        return probe_document(frame_of(design), tables, self.warnings, analysis["signature"])


class ProbeArguments(RunArguments, total=False):
    """What a probe measures, beside its study, jobs, templates and prompt format.

    What is measured:
        bias_type: explicit, implicit or both.
        context: plain, dialogue or both.
        debiasing_prompts: as `jobs`, of the study's debiasing prompts.
        target_words: a path to sets of target words, or the name of one shipped set for all templates.
        system_prompt: text for the system role.
        estimator: auto, or exact, top-k or sampling; of API models selected-ids, echo, top-k or sampling.
        samples: of each prompt in a batch of the sampling estimator, until three of them name a group.
        max_samples_per_prompt: the most samples of a prompt; by default 100.
        continuations: texts of up to 24 tokens sampled of each prompt beside the probabilities; `outcomes`
            says what they answer.
    """

    bias_type: str | None
    context: str | None
    debiasing_prompts: str | Sequence[str] | None
    target_words: str | None
    system_prompt: str | None
    estimator: str | None
    samples: int | None
    max_samples_per_prompt: int | None
    continuations: int | None


@lending
@checked(ProbeArguments, *OF_RUNS, target_words=TEXT)
def probe(
    *models: Any,
    study: str = DEFAULT_STUDY,
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    pairs: str | Path | pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    prompt_format: str | None = None,
    out: str | Path | None = None,
    **options: Unpack[ProbeArguments],
) -> ProbeResult:
    """Measure the probability that each model names each gender group, over jobs and templates.

    >>> mine = bk.writer("mine", lambda prompts: ["She" if "nurse" in p else "He" for p in prompts])
    >>> probed = bk.probe(mine, jobs="nurse,plumber", templates="1-2", out="probed", watcher=bk.Silent())
    >>> probed.jobs.query("bias_type == 'implicit'")[["job", "female_share"]].values.tolist()
    [['nurse', 1.0], ['plumber', 0.0]]

    Args:
        models: specs such as `demo`, `hf:ORG/NAME` or `LABEL=gguf:PATH`, models in memory (`bk.model`) or
            callables (`bk.writer`); by default those that the study names.
        study: a shipped study (`bk.corpora` lists them) or a path to a TOML file.
        jobs, templates: names, ids or ranges of the study's lists, or paths to lists of your own.
        pairs: in place of jobs and templates, pairs of sentences that differ in gender: a file, a DataFrame
            or a list of dicts with female and male and, where there are any, item, diverse, stereotype,
            direction, language and prefix.
        prompt_format: auto, raw, chat-prefill or chat-continue: how a question becomes a prompt.
        out: the run's folder; by default one named after the question. The same call continues a run.

    Returns a `ProbeResult`, whose tables are DataFrames and files of the run's folder. Raises `BiaskitError`
    where a model, a study or an argument does not exist or fit; its message says what to do.
    """
    keys = ("bias_type", "context", "system_prompt", "estimator", "samples", "max_samples_per_prompt")
    given = None
    for option, value in (("--jobs", jobs), ("--templates", templates)):
        if value is not None and (pairs is not None or study == PAIRS):
            raise UsageError(f"Pairs of sentences take no {option}: leave it out.")
    if pairs is not None:
        study, of_pairs, given = _study_of_pairs(pairs, study)
        options["settings"] = {**of_pairs, **(options.get("settings") or {})}
    overrides = stated(prompt_format=prompt_format, **{k: options.get(k) for k in (*keys, "continuations")})
    debiasing_prompts, target_words = options.get("debiasing_prompts"), options.get("target_words")
    lists = {"jobs": jobs, "templates": templates, "debiasing_prompts": debiasing_prompts}
    if any(isinstance(value, str) and is_path(value) for value in (*lists.values(), target_words)):
        # With lists of one's own the tables are no longer the paper's, and must not say so.
        overrides |= {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": "", **OWN_TITLES}
    for name, value in lists.items():
        overrides |= list_override(name, value)
    if target_words is not None:
        if not target_words:
            raise UsageError("target_words is empty. Give a file of target words, or a set's name.")
        overrides["target_words.source" if is_path(target_words) else "target_words.every"] = target_words
    loaded = load_as(ProbeStudy, study, {**overrides, **(options.get("settings") or {})})
    result: ProbeResult = run_study(resolve(loaded, given), models, out, options)
    return result


def _study_of_pairs(pairs: Any, study: str) -> tuple[str, dict[str, Any], list[dict[str, object]] | None]:
    """Choose the study that pairs are put in: its name, what they set in it, and pairs that are in memory."""
    import pandas as pd

    study = PAIRS if study == DEFAULT_STUDY else study
    named = {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": ""}
    if isinstance(pairs, str | Path):
        return study, {**named, "pairs": str(pairs)}, None
    rows = pairs.to_dict("records") if isinstance(pairs, pd.DataFrame) else pairs
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(f"pairs is {short(repr(pairs), 60)}: give a file, a DataFrame or a list of dicts.")
    return study, {**named, "pairs": "in memory"}, [dict(row) for row in rows]


RESULT = ProbeResult
