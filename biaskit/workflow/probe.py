"""What `biaskit probe` and `bk.probe` do: resolve a study, score its cells, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import TEXT, checked
from biaskit.common.provenance import key_of
from biaskit.errors import ModelError, UsageError
from biaskit.models.base import ContinuationScorer
from biaskit.models.options import Dtype, LocalOptions, ScoringOptions, WordBoundary
from biaskit.models.spec import open_scorer
from biaskit.probe.analysis import analyse_probe_rows, form_notes
from biaskit.probe.continuations import continue_cells
from biaskit.probe.design import ProbeDesign, resolve_design
from biaskit.probe.papers import frame_of
from biaskit.probe.scoring import score_cells
from biaskit.probe.stored_design import compatibility, describe_design, read_design
from biaskit.progress import Watcher
from biaskit.records import Expression, Failed, Prompt, PromptForm, ScoreRequest
from biaskit.report.render.document import Document
from biaskit.report.render.probe import probe_document
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.manifest import read_manifest, write_manifest
from biaskit.runs.session import Outcome, Session
from biaskit.study.config import is_path, load_probe_study
from biaskit.tables.sets import TableSet, read_set
from biaskit.workflow.calls import CallOptions, list_override, run_study, stated
from biaskit.workflow.objects import lending
from biaskit.workflow.prompt_formats import HANDFUL, reach_by_form
from biaskit.workflow.result import RunResult, table_property

if TYPE_CHECKING:
    import pandas as pd

_PRINTED = ("probe_groups", "probe_levels", "probe_next", "probe_outcomes", "tests")
OWN_TITLES = {"table.explicit": "Explicit templates", "table.implicit": "Implicit templates"}


@dataclass(frozen=True, repr=False)
class ProbeResult(RunResult):
    """A run of the prober: probabilities of gendered continuations."""

    headline = "probe_groups"

    cells = table_property("probe_cells", "One row per prompt: coverage, each group's probability and share.")
    jobs = table_property(
        "probe_jobs", "One row per job: means over templates, and the signed difference of the contrast."
    )
    groups = table_property(
        "probe_groups", "One row per job group and gender group: share, interval, coverage."
    )
    templates = table_property("probe_templates", "One row per template: means over the jobs of a group.")
    variance = table_property("probe_variance", "Variance components of job, template and residual.")
    next = table_property(
        "probe_next", "What comes next, target word or not: tokens by their mean probability."
    )
    outcomes = table_property(
        "probe_outcomes", "What the sampled answers say: shares with intervals, by job group and outcome."
    )
    levels = table_property("probe_levels", "Means over the debiasing prompts of an abstraction level.")

    def document(self) -> Document:
        """Lay out the paper's tables with notes and signature."""
        analysis = self.analysis()
        design = read_design(read_manifest(self.path)["resolved"], analysis["choices"])
        tables = read_set(self.path, _PRINTED).rows()
        return probe_document(frame_of(design), tables, self.warnings, analysis["signature"])


@lending
@checked(target_words=TEXT)
def probe(
    *models: Any,
    tokenizer: Any = None,  # noqa: ARG001  (read by `lending`)
    study: str = "occugender",
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    debiasing_prompts: str | Sequence[str] | None = None,
    target_words: str | None = None,
    bias_type: str | None = None,
    context: str | None = None,
    prompt_format: str | None = None,
    system_prompt: str | None = None,
    estimator: str | None = None,
    samples: int | None = None,
    max_samples_per_prompt: int | None = None,
    continuations: int | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    batch_size: int | None = None,
    api_key_env: str | Sequence[str] | None = None,
    endpoint_name: str | None = None,
    max_cost: float | None = None,
    price: str | None = None,
    accept_model_change: bool = False,
    reuse: bool = True,
    shard: str | None = None,
    write_requests: str | Path | None = None,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> ProbeResult:
    """Measure the probability that each model names each gender group, over all jobs and templates.

    Args:
        models: specs such as `demo`, `hf:ORG/NAME`, `LABEL=gguf:PATH`, models in memory (`bk.model`) or
            callables (`bk.writer`); by default the study's own. tokenizer: that of a loaded model that is
            given as it is.
        study: a shipped study's name or a path to a TOML file.
        jobs, templates, debiasing_prompts: a path to a list, or names, ids and ranges of the study's list.
        target_words: a path to expression sets, or the name of one shipped set for all templates.
        bias_type: explicit, implicit or both. context: plain, dialogue or both.
        prompt_format: auto, raw, chat-prefill or chat-continue.
        system_prompt: text for the system role.
        estimator: auto, or selected-ids, echo, top-k or sampling for API models
            (docs/methods.md#estimators); local models take top-k and sampling too.
        samples: texts of a round of sampling; a cell is drawn until three of its texts name a group, or until
            max_samples_per_prompt (default 100).
        continuations: texts of up to 24 tokens drawn of each cell beside its probabilities; what they say
            is in probe_outcomes.csv (docs/methods.md#outcomes).
        settings: any key of the study by its dotted name, as `--set` takes it.
        out: the run's folder; by default one named after the question, so the same call goes on.
        device, dtype, batch_size: how local models run: auto, cpu, cuda or mps; auto, float32, bfloat16 or
            float16; texts at once, by default as many as fit.
        api_key_env: the environment variable that holds the key of `api:` models; LABEL=VARIABLE for several.
        endpoint_name: stands for the base URL in every key, so that a new port is the same model.
        max_cost: USD that a run may cost. price: "IN,OUT" in USD per million tokens.
        accept_model_change: go on where another model answers under the same name.
        reuse: take over what other runs of the same folder have stored under the same key.
        shard: "I/N", the I-th of N parts of the cells, in a run folder of its own
            (docs/large-models.md#shards).
        write_requests: a .jsonl file: what is still to ask of an API is written there, in the format of
            OpenAI's batches, and nothing is asked; `bk.import_answers` puts the answers in.
        dry_run: plan only; nothing is written.
        watcher: sees plan and progress; by default they are shown on stderr, with `bk.Silent()` nothing is.

    Returns the result with its tables (docs/methods.md#cells-to-tables). Raises `BiaskitError` with one
    line to act on.
    """
    call = CallOptions(
        out=out,
        device=device,
        dtype=dtype,
        batch_size=batch_size,
        api_key_env=api_key_env,
        endpoint_name=endpoint_name,
        max_cost=max_cost,
        price=price,
        accept_model_change=accept_model_change,
        reuse=reuse,
        shard=shard,
        write_requests=write_requests,
        dry_run=dry_run,
        watcher=watcher,
    )
    overrides = stated(
        bias_type=bias_type,
        context=context,
        prompt_format=prompt_format,
        system_prompt=system_prompt,
        estimator=estimator,
        samples=samples,
        max_samples_per_prompt=max_samples_per_prompt,
        continuations=continuations,
    )
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
    design = resolve_design(load_probe_study(study, {**overrides, **(settings or {})}))
    described = describe_design(design)
    digest = described["digest"]
    resolved = None if call.dry_run else described
    del described  # a dry run writes none of it: long lists are not held twice
    return run_study(
        design.study,
        models,
        call,
        digest=digest,
        open_model=partial(open_scorer, scoring=scoring_of(design)),
        fill=partial(fill_probe, design, resolved),
        analyse=lambda run, _: tables_of_probe_run(run).write(),
        unit="prompts",
        result=ProbeResult,
    )


def scoring_of(design: ProbeDesign) -> ScoringOptions:
    """Say what a study measures of every model."""
    study = design.study
    return ScoringOptions(
        study.estimator,
        study.k,
        study.samples,
        longest=max(len(e.text) for group in design.expressions.values() for e in group),
        word_boundary=study.word_boundary,
        on_prefix=study.on_prefix,
        next_tokens=study.record_next,
    )


def fill_probe(
    design: ProbeDesign, resolved: dict[str, Any] | None, session: Session[ContinuationScorer]
) -> Outcome:
    """Ask for the probabilities of every cell, then for the texts that the study wants beside them."""
    outcome = score_cells(design, session, partial(_look_at_forms, design, session), resolved)
    if design.study.continuations:
        continue_cells(design, session)
    return outcome


def _look_at_forms(
    design: ProbeDesign, session: Session[ContinuationScorer], scorer: ContinuationScorer, form: PromptForm
) -> None:
    """Try a few prompts in every form where `auto` chose one: the notes under the tables say what gives more.

    An API is not asked: that would cost before anything was agreed to. Nor is a run that goes on.
    """
    label, spec = scorer.identity.label, scorer.identity.spec
    entry = session.manifest["models"].get(label, {})
    several, lent = len(scorer.identity.forms) > 1, getattr(scorer, "lent", None)
    chosen = design.study.prompt_format != "auto" or design.study.system_prompt
    if lent is None or not several or chosen or entry.get("notes") is not None:
        return
    with lent(HANDFUL) as tried:
        reach = reach_by_form(design, tried)
    if session.dry_run:
        found = {"spec": spec, "prompt_form": form, "reach": reach}
        session.outcome.notes += form_notes(label, found, {}, alone=len(session.models) == 1)
    else:
        entry["reach"] = reach
        write_manifest(session.run, session.manifest)


def tables_of_probe_run(run: Path, overrides: Mapping[str, Any] | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    from biaskit.compare.model_tests import between_models, merge_tests
    from biaskit.compare.same_prompts import PromptTexts
    from biaskit.stats.verdict import Rule

    tables = analyse_probe_rows(run, overrides)
    manifest = read_manifest(run)
    models = list(manifest["models"])
    if len(models) > 1:
        design = read_design(manifest["resolved"], overrides)
        rows, notes = between_models(
            tables.rows("probe_cells"),
            groups=design.groups,
            models=models,
            margins=design.study.margin,
            run=str(run),
            asked=PromptTexts(compatibility(design)),  # templates of one frame are one unit
        )
        tables.add(
            "tests", merge_tests(tables.rows("tests"), rows, Rule(design.contrast[:1], design.study.strict))
        )
        tables.notes += notes
    return tables


@checked()
def score_continuations(
    model: str,
    prompts: Sequence[str],
    target_words: Mapping[str, Sequence[str]] | Sequence[str],
    *,
    device: str = "auto",
    dtype: Dtype = "auto",
    batch_size: int | None = None,
    word_boundary: WordBoundary = "token",
) -> pd.DataFrame:
    """Score each expression after each prompt: exact natural log-probabilities (docs/methods.md#exact).

    Args:
        model: a spec such as `demo` or `hf:ORG/NAME`.
        prompts: raw text; each ends in a non-space, since the space belongs to the continuation.
        target_words: group → texts, or a list of texts (then the group is empty); scored as written.
        device, dtype, batch_size: how a local model runs, as for `bk.probe`.
        word_boundary: token, a space before each expression as in the papers; word, times the probability
            that the word ends there.

    Returns one row per prompt and expression, in the order given: prompt_index, prompt, group, expression
    (with its word boundary), log_prob (at most 0). Raises `ModelError` where the model cannot score a prompt.

    Example: `bk.score_continuations("demo", ["The nurse said that"], {"female": ["she"], "male": ["he"]})`.
    """
    import pandas as pd

    listed = target_words if isinstance(target_words, Mapping) else {"": target_words}
    for texts in (prompts, *listed.values()):
        if isinstance(texts, str):
            raise UsageError(f"{texts!r} is one text where a list is wanted: write [{texts!r}].")
    wanted: tuple[Expression, ...] = tuple(
        Expression(group, text) for group, texts in listed.items() for text in texts
    )
    if not len(prompts) or not wanted:
        raise UsageError("Give at least one prompt and one target word.")
    requests = [ScoreRequest(key_of([i, text]), Prompt(text), wanted) for i, text in enumerate(prompts)]
    local, scoring = LocalOptions(device, dtype, batch_size), ScoringOptions(word_boundary=word_boundary)
    with closing(open_scorer(model, label=model, local=local, scoring=scoring)) as scorer:
        plan = scorer.plan_scores(requests)
        answers = {answer.key: answer for group in scorer.score(plan.batches) for answer in group}
    rows = []
    for i, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
        answer = answers[request.key]
        if isinstance(answer, Failed):
            raise ModelError(f"{model} cannot score prompt {i}: {answer.reason}.")
        rows += [(i, prompt, e.group, e.text, e.high) for e in answer.log_probs]
    return pd.DataFrame(rows, columns=["prompt_index", "prompt", "group", "expression", "log_prob"])
