"""What a command and a notebook both do: resolve, ask, analyse, compare, and hand back a result."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.config import ANALYSIS_KEYS, ProbeStudy, build_study, is_path, load_study, read_study_file
from biaskit.errors import BiaskitError, Interrupted, ModelError, RunError, StudyError, UsageError
from biaskit.models.spec import LocalOptions, open_scorer, split_label
from biaskit.probe.cells import Questions, resolve
from biaskit.probe.layout import lay_out
from biaskit.probe.manifest import describe_question, read_question
from biaskit.probe.merge import merge
from biaskit.probe.results import analyse as analyse_probe
from biaskit.probe.study import ask, expressions_of
from biaskit.probe.watching import ModelPlan, Silent, Watcher
from biaskit.provenance import key_of
from biaskit.records import Expression, Failed, Prompt, ScoreRequest
from biaskit.report.document import Document
from biaskit.runs import (
    MANIFEST,
    default_run_path,
    find_run,
    read_manifest,
    read_rows,
    rows_file,
)
from biaskit.sources import check_label
from biaskit.tables import read_rows as read_table_rows
from biaskit.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

OWN_TITLES = {"table.explicit": "Explicit templates", "table.implicit": "Implicit templates"}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A run's tables and what a careful reader must know about them.

    The DataFrames are the files in `path / "tables"`: shares and probabilities are fractions in [0, 1],
    differences are signed as their names say, an undefined number is NaN with its `reason` beside it.
    """

    path: Path
    warnings: tuple[str, ...] = ()
    failed_models: Mapping[str, str] = field(default_factory=dict)
    failed_cells: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    plans: tuple[ModelPlan, ...] = ()

    def table(self, name: str) -> pd.DataFrame:
        """A public table by name, such as `probe_groups`; an error where the run has none of it."""
        file = self.path / "tables" / f"{name}.csv"
        if not file.exists():
            raise RunError(f"{self.path} has no table {name}: this study does not make it.")
        return read_table(file)

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell: mass, coverage and share of each group."""
        return self.table("probe_cells")

    @property
    def jobs(self) -> pd.DataFrame:
        """One row per job: means over templates, and the signed difference of the contrast."""
        return self.table("probe_jobs")

    @property
    def groups(self) -> pd.DataFrame:
        """One row per job group and gender group: share, interval, coverage."""
        return self.table("probe_groups")

    @property
    def templates(self) -> pd.DataFrame:
        """One row per template: means over the jobs of a group."""
        return self.table("probe_templates")

    @property
    def variance(self) -> pd.DataFrame:
        """Variance components of job, template and residual."""
        return self.table("probe_variance")

    @property
    def levels(self) -> pd.DataFrame:
        """Means over the instructions of a level of abstraction."""
        return self.table("probe_levels")

    @property
    def tests(self) -> pd.DataFrame:
        """Every named contrast with interval, effect size, p-value and Holm-adjusted p-value."""
        return self.table("tests")

    @property
    def complete(self) -> bool:
        """Whether every cell that was asked in this call has its row."""
        return not self.failed_models and not self.failed_cells

    def document(self) -> Document:
        """The paper's tables with notes and signature, for a renderer."""
        made = self.analysis()
        questions = read_question(read_manifest(self.path)["resolved"], made["choices"])
        tables = {
            name: read_table_rows(file)
            for name in ("probe_groups", "probe_levels")
            if (file := self.path / "tables" / f"{name}.csv").exists()
        }
        return lay_out(questions, tables, self.warnings, made["signature"])

    def analysis(self) -> dict[str, Any]:
        """How the stored tables were made: choices, signature, digest of the rows (analysis.json)."""
        made: dict[str, Any] = json.loads((self.path / "tables" / "analysis.json").read_text("ascii"))
        return made

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.warnings)
        return f"<p>{escape(str(self.path))}</p><ul>{notes}</ul>{self.groups.to_html()}"


# --- asking ------------------------------------------------------------------------------------------


def probe(
    *models: str,
    study: str = "occugender",
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    instructions: str | Sequence[str] | None = None,
    expressions: str | None = None,
    bias_type: str | None = None,
    setting: str | None = None,
    prompt_form: str | None = None,
    system_prompt: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> ProbeResult:
    """The probability that each model names each gender group, over the full product of jobs and templates.

    Args:
        models: specs such as `demo`, `hf:ORG/NAME`, `LABEL=gguf:PATH`; by default the study's own.
        study: a shipped study's name or a path to a TOML file.
        jobs, templates, instructions: a path to a list, or names, ids and ranges of the study's list.
        expressions: a path to expression sets, or the name of one shipped set for all templates.
        bias_type: explicit, implicit or both. setting: plain, dialogue or both.
        prompt_form: auto, raw, chat-prefill or chat-continue.
        system_prompt: text for the system role.
        settings: any key of the study by its dotted name, as `--set` takes it.
        out: the run's folder; by default one named after the question, so the same call goes on.
        dry_run: plan only; nothing is written.
        watcher: told of plan and progress.

    Returns the result with its tables (METHODS §1.4). Raises `BiaskitError` with one line to act on.
    """
    overrides: dict[str, Any] = {}
    if any(
        isinstance(value, str) and is_path(value) for value in (jobs, templates, instructions, expressions)
    ):
        # With lists of one's own the tables are no longer the paper's, and must not say so.
        overrides |= {"name": f"{Path(study).stem}-own-lists", "summary": "", **OWN_TITLES}
    for name, value in (("jobs", jobs), ("templates", templates), ("instructions", instructions)):
        overrides |= list_override(name, value)
    if expressions is not None:
        key = "expressions.source" if is_path(expressions) else "expressions.every"
        overrides[key] = expressions
    plain = {
        "bias_type": bias_type,
        "setting": setting,
        "prompt_form": prompt_form,
        "system_prompt": system_prompt,
    }
    overrides |= {name: value for name, value in plain.items() if value is not None}
    chosen = load_study(study, {**overrides, **(settings or {})})
    options = LocalOptions(device, dtype, batch_size, chosen.word_boundary, chosen.on_prefix)
    return probe_study(chosen, models, out=out, options=options, dry_run=dry_run, watcher=watcher)


def list_override(name: str, value: str | Sequence[str] | None) -> dict[str, Any]:
    """A list option as keys: a path replaces the whole list, anything else chooses from it."""
    if value is None:
        return {}
    if isinstance(value, str) and is_path(value):
        return {f"{name}.source": value, f"{name}.select": "all"}
    return {f"{name}.select": value if isinstance(value, str) else tuple(value)}


def probe_study(
    study: ProbeStudy,
    models: Sequence[str],
    *,
    out: str | Path | None = None,
    options: LocalOptions | None = None,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> ProbeResult:
    """Ask, analyse and compare one study; `probe` with the study already built."""
    options = options or LocalOptions(word_boundary=study.word_boundary, on_prefix=study.on_prefix)
    questions = resolve(study)
    named = label_models(models or [f"{label}={spec}" for label, spec in study.models.items()])
    watcher = watcher or Silent()
    if named and not models:
        # A study file from somebody else may name any folder or server.
        listed = ", ".join(f"{label} = {spec}" for label, spec in named.items())
        watcher.confirm(f"The study {study.name} names the models itself: {listed}.")
    if not named:
        raise UsageError("Name a model: demo, hf:ORG/NAME, hf:PATH, gguf:PATH or scripted:FILE.")
    question = [describe_question(questions)["digest"], list(named)]
    run = Path(out) if out is not None else default_run_path("probe", study.name, question)

    def open_model(label: str, spec: str, kept_batch_size: int | None) -> Any:
        size = options.batch_size or kept_batch_size
        return open_scorer(
            spec,
            label=label,
            options=LocalOptions(
                options.device, options.dtype, size, options.word_boundary, options.on_prefix
            ),
        )

    command = shlex.join(["biaskit", *sys.argv[1:]]) if sys.argv[:1] else ""
    try:
        asked = ask(
            questions,
            named,
            run,
            open_model=open_model,
            watcher=watcher,
            dry_run=dry_run,
            command=command,
        )
    except KeyboardInterrupt as error:
        raise Interrupted(_how_to_go_on(run)) from error
    if dry_run or not (run / MANIFEST).exists():
        return ProbeResult(
            run, tuple(asked.notes), asked.failed_models, asked.failed_cells, tuple(asked.plans)
        )
    notes = [*asked.notes, *analyse(run)]
    notes += [
        f"{label}: {n} cells failed ({reason}); the same command asks them again"
        for label, reasons in asked.failed_cells.items()
        for reason, n in reasons.items()
    ]
    notes += [f"{label} is left out: {reason}" for label, reason in asked.failed_models.items()]
    return ProbeResult(run, tuple(notes), asked.failed_models, asked.failed_cells, tuple(asked.plans))


def _how_to_go_on(run: Path) -> str:
    rows = rows_file(run, "probe")
    n = sum(1 for _ in read_rows(rows, skip_bad=True)) if rows.exists() else 0
    return f"Stopped. {n} finished rows are kept in {run}; the same command goes on from there."


def label_models(texts: Sequence[str]) -> dict[str, str]:
    """Label → spec, in order; labels are unique and can stand in a public table."""
    found: dict[str, str] = {}
    for text in texts:
        label, spec = split_label(text)
        check_label(label, "The model label")
        if label in found:
            raise UsageError(
                f"Two models are called {label!r}: give one of them a label, as in other={spec}."
            )
        found[label] = spec
    return found


# --- analysing ---------------------------------------------------------------------------------------


def analyse(run: Path, overrides: Mapping[str, Any] | None = None) -> list[str]:
    """Every table of a run from its rows, rows between models included; returns the notes."""
    from biaskit.compare import between_models, merge_tests

    notes = analyse_probe(run, overrides)
    manifest = read_manifest(run)
    models = list(manifest["models"])
    if len(models) > 1:
        questions = read_question(manifest["resolved"], overrides)
        rows, more = between_models(
            run / "tables", groups=questions.groups, models=models, margins=questions.study.margin
        )
        merge_tests(run / "tables" / "tests.csv", rows)
        notes += more
    return notes


def analysis_keys(study: str, run: Path) -> dict[str, Any]:
    """The analysis keys that a study file states; any other key must be stated as the run has it."""
    stated = read_study_file(study)
    stored = read_manifest(run)["resolved"]["study"]
    whole = {
        name: {**stored[name], **value} if isinstance(value, dict) and name in stored else value
        for name, value in stated.items()
    }
    asked = build_study({**stored, **whole}, {}, study).model_dump(mode="json")
    for key in (key for key in stated if key not in ANALYSIS_KEYS | {"name", "models"}):
        if (difference := _stated_otherwise(stated[key], asked[key], stored.get(key))) is not None:
            raise StudyError(
                f"{study}: {key} is {difference[0]!r}, the run's is {difference[1]!r}: ask anew."
            )
    return {key: asked[key] for key in stated if key in ANALYSIS_KEYS}


def _stated_otherwise(stated: Any, asked: Any, stored: Any) -> tuple[Any, Any] | None:
    """(asked, stored) where they differ in what the file states; a table's unstated entries do not count."""
    if isinstance(stated, dict) and isinstance(asked, dict) and isinstance(stored, dict):
        apart = (_stated_otherwise(stated[name], asked[name], stored.get(name)) for name in stated)
        return next((pair for pair in apart if pair is not None), None)
    return None if asked == stored else (asked, stored)


def load(run: str | Path) -> ProbeResult:
    """A stored run's tables, made again from its rows; needs no model."""
    path = find_run(str(run))
    return ProbeResult(path, tuple(analyse(path)))


# --- a scorer without a study -------------------------------------------------------------------------


def score_continuations(
    model: str,
    prompts: Sequence[str],
    expressions: Mapping[str, Sequence[str]] | Sequence[str],
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    word_boundary: str = "token",
) -> pd.DataFrame:
    """Exact natural log-probability of each expression after each prompt (METHODS §1.2).

    Args:
        model: a spec such as `demo` or `hf:ORG/NAME`.
        prompts: raw text; each ends in a non-space, since the space belongs to the continuation.
        expressions: group → texts, or a list of texts (then the group is empty); scored as written.

    Returns one row per prompt and expression, in the order given: prompt_index, prompt, group, expression
    (with its word boundary), log_prob.
    """
    import pandas as pd

    listed = expressions if isinstance(expressions, Mapping) else {"": expressions}
    for texts in (prompts, *listed.values()):
        if isinstance(texts, str):
            raise UsageError(f"{texts!r} is one text where a list is wanted: write [{texts!r}].")
    wanted: tuple[Expression, ...] = expressions_of(listed)
    if not prompts or not wanted:
        raise UsageError("Give at least one prompt and one expression.")
    scorer = open_scorer(model, label=model, options=LocalOptions(device, dtype, batch_size, word_boundary))
    keys = [key_of([i, prompt]) for i, prompt in enumerate(prompts)]
    plan = scorer.plan_scores(
        [ScoreRequest(key, Prompt(prompt), wanted) for key, prompt in zip(keys, prompts, strict=True)]
    )
    answers = {answer.key: answer for group in scorer.score(plan.batches) for answer in group}
    scorer.close()
    rows = []
    for i, (key, prompt) in enumerate(zip(keys, prompts, strict=True)):
        answer = answers[key]
        if isinstance(answer, Failed):
            raise ModelError(f"{model} cannot score prompt {i}: {answer.reason}.")
        rows += [(i, prompt, e.group, e.text, e.high) for e in answer.log_probs]
    return pd.DataFrame(rows, columns=["prompt_index", "prompt", "group", "expression", "log_prob"])


def describe_run(path: Path) -> dict[str, Any]:
    """What `biaskit runs` shows of a run: study, models, rows stored of planned, last write."""
    manifest = read_manifest(path)
    rows = rows_file(path, manifest["engine"])
    done = sum(1 for _ in read_rows(rows, skip_bad=True)) if rows.is_file() else 0
    planned = None
    if manifest.get("engine") == "probe":
        questions: Questions = read_question(manifest["resolved"])
        planned = questions.n_cells * len(manifest["models"])
    return {
        "run": str(path),
        "study": manifest.get("study", ""),
        "models": list(manifest["models"]),
        "rows": done,
        "planned": planned,
        "last_write": rows.stat().st_mtime if rows.is_file() else None,
    }


__all__ = [
    "BiaskitError",
    "ProbeResult",
    "StudyError",
    "analyse",
    "analysis_keys",
    "load",
    "merge",
    "probe",
    "score_continuations",
]
