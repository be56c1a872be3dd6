"""What `biaskit probe` and `bk.probe` do: resolve a study, score its cells, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from biaskit.arguments import TEXT, checked
from biaskit.errors import UsageError
from biaskit.measures.probe.design import read, resolve
from biaskit.measures.probe.printing.document import probe_document
from biaskit.measures.probe.printing.papers import frame_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.spec import may_sample, split_label
from biaskit.report.render.document import Document
from biaskit.report.result import RunResult, table_property
from biaskit.runs.manifest import read_manifest
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, RunArguments, overrides_of, run_study
from biaskit.study.config import load_as
from biaskit.tables.sets import read_set

_PRINTED = ("probe_groups", "probe_levels", "probe_next", "probe_outcomes", "tests", "ways", "reliability")


@dataclass(frozen=True, repr=False)
class ProbeResult(RunResult):
    """Read a run of `probe`: probabilities of words for each gender group.

    A share is a group's part of the probability on the target words, `coverage` is that probability.

    >>> probed
    ProbeResult('probed': mine, 8 prompts, 1 warning)
    """

    headline = "probe_groups"

    prompts = table_property("probe_prompts")
    jobs = table_property("probe_jobs")
    groups = table_property("probe_groups")
    templates = table_property("probe_templates")
    variance = table_property("probe_variance")
    next = table_property("probe_next")
    outcomes = table_property("probe_outcomes")
    levels = table_property("probe_levels")
    ways = table_property("ways")
    reliability = table_property("reliability")
    validity = table_property("validity")

    def document(self) -> Document:
        """Make what the command prints: the paper's tables, notes and the signature.

        >>> len(probed.document().tables)
        4
        """
        analysis = self.analysis()
        design = read(read_manifest(self.path).resolved, analysis["choices"])
        tables = read_set(self.path, _PRINTED).rows()
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
        ways: True asks some jobs in other prompt formats, system prompts and wordings too.
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
    ways: bool | None


_KEYS = tuple(name for name in ProbeArguments.__annotations__ if name not in RunArguments.__annotations__)


@lending
@checked(ProbeArguments, *OF_RUNS, target_words=TEXT)
def probe(
    *models: Any,
    study: str = "occugender",
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
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
        prompt_format: auto, raw, chat-prefill or chat-continue: how a question becomes a prompt.
        out: the run's folder; by default one named after the question. The same call continues a run.

    Returns a `ProbeResult`, whose tables are DataFrames and files of the run's folder. Raises `BiaskitError`
    where a model, a study or an argument does not exist or fit; its message says what to do.
    """
    given: dict[str, Any] = {"jobs": jobs, "templates": templates, "prompt_format": prompt_format}
    given |= {name: options.get(name) for name in _KEYS}
    if given["target_words"] == "":
        raise UsageError("target_words is empty. Give a file of target words, or a set's name.")
    overrides = {**overrides_of(ProbeStudy, study, given), **(options.get("settings") or {})}
    loaded = load_as(ProbeStudy, study, overrides)
    _check_samples(loaded, models, options)
    result: ProbeResult = run_study(resolve(loaded), models, out, options)
    return result


def _check_samples(study: ProbeStudy, models: Sequence[str], options: ProbeArguments) -> None:
    """Refuse a number of samples where none are drawn. Raises `UsageError`."""
    specs = [split_label(model)[1] for model in models] or study.models.values()
    drawn = study.estimator == "sampling" or (study.estimator == "auto" and any(map(may_sample, specs)))
    if options.get("samples") is not None and not drawn:
        raise UsageError(
            "--samples is for --estimator sampling, and these probabilities are exact: add it, or for texts"
            " beside the probabilities --continue N."
        )


RESULT = ProbeResult
