"""What `biaskit personas` and `bk.personas` do: draw texts, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.models.options import Dtype
from biaskit.models.spec import open_generator
from biaskit.personas.analysis import analyse_texts
from biaskit.personas.sampling.design import n_series, part_of, resolve_design
from biaskit.personas.sampling.draws import draw_texts
from biaskit.personas.sampling.rounds import Filling
from biaskit.personas.sampling.stored_design import describe_design, read_design
from biaskit.progress import Watcher
from biaskit.report.render.document import Document
from biaskit.report.render.personas import personas_document
from biaskit.runs.claims import GASP, OWN_LISTS, claims_of
from biaskit.runs.manifest import read_manifest
from biaskit.runs.shards import shard_of
from biaskit.runs.store import read_rows, rows_file
from biaskit.study.config import load_personas_study
from biaskit.tables.sets import TableSet, read_set
from biaskit.workflow.calls import CallOptions, list_override, run_study, stated
from biaskit.workflow.objects import lending
from biaskit.workflow.result import RunResult, table_property


@dataclass(frozen=True, repr=False)
class PersonasResult(RunResult):
    """A run of the generation engine: who is represented in its texts, and how."""

    headline = "word_lists"

    representation = table_property(
        "representation",
        "Shares of women and of non-binary people per occupation and prompt, with labour statistics.",
    )
    associations = table_property(
        "associations", "The gender of every text, with the rule that said so and what was counted."
    )
    marked_words = table_property(
        "marked_words", "The words that mark a gender, by both methods, with z, q-value and counts."
    )
    word_lists = table_property(
        "word_lists", "How long each list of marked words is, with its permutation baseline."
    )
    srb = table_property(
        "srb", "Subset Representational Bias per occupation and gender; negative = closer to requested women."
    )
    text_transfer = table_property(
        "text_transfer",
        "How well words without gender predict the gender of a text: held-out AUC.",
    )
    group_lists = table_property(
        "group_lists", "How long each group's list of marked words is, with its permutation baseline."
    )
    group_words = table_property("group_words", "The words that mark each group of your own column.")
    clusters = table_property("clusters", "Clusters of marked words and the occupations they occur in.")

    def document(self) -> Document:
        """Lay out the headline tables with notes and signature."""
        claim = claims_of(read_manifest(self.path)["resolved"])[GASP]
        return personas_document(read_set(self.path).rows(), self.analysis(), self.warnings, claim)


@lending
@checked()
def personas(
    *models: Any,
    tokenizer: Any = None,  # noqa: ARG001  (read by `lending`)
    study: str = "gasp-pilot",
    occupations: str | Sequence[str] | None = None,
    per_gender: int | None = None,
    max_samples: int | None = None,
    max_new_tokens: int | None = None,
    prompt_format: str | None = None,
    system_prompt: str | None = None,
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
) -> PersonasResult:
    """Sample personas and biographies, associate each with a gender, ask who is represented and how.

    Args:
        models: specs such as `demo`, `hf:ORG/NAME`, `LABEL=gguf:PATH`, models in memory (`bk.model`) or
            callables (`bk.writer`); by default the study's own. tokenizer: that of a loaded model that is
            given as it is.
        study: a shipped study's name (gasp-pilot, gasp, mattern-generation) or a path to a TOML file.
        occupations: a path to a list, or names, ids and ranges of the study's list.
        per_gender: texts wanted of women and of men for each occupation and prompt.
        max_samples: most draws of one occupation and prompt; default 20 x per_gender.
        max_new_tokens: most tokens of a text.
        prompt_format: auto, chat, completion or raw. system_prompt: text for the system role.
        settings: any key of the study by its dotted name, as `--set` takes it.
        out: the run's folder; by default one named after the question, so the same call goes on.
        device, dtype, batch_size: how local models run: auto, cpu, cuda or mps; auto, float32, bfloat16 or
            float16; texts at once, by default as many as fit.
        api_key_env: the environment variable that holds the key of `api:` models; LABEL=VARIABLE for several.
        endpoint_name: stands for the base URL in every key, so that a new port is the same model.
        max_cost: USD that a run may cost. price: "IN,OUT" in USD per million tokens.
        accept_model_change: go on where another model answers under the same name.
        reuse: take over what other runs of the same folder have stored under the same key.
        shard: "I/N", the I-th of N parts of the occupations, in a run folder of its own
            (docs/large-models.md#shards).
        write_requests: a .jsonl file: what is still to ask of an API is written there, in the format of
            OpenAI's batches, and nothing is asked; `bk.import_answers` puts the answers in.
        dry_run: plan only; nothing is written.
        watcher: sees plan and progress; by default they are shown on stderr, with `bk.Silent()` nothing is.

    Returns the result with its tables (docs/methods.md#texts). Raises `BiaskitError` with one line to act on.
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
    overrides = stated(per_gender=per_gender, max_samples=max_samples, max_new_tokens=max_new_tokens)
    overrides |= stated(prompt_format=prompt_format, system_prompt=system_prompt)
    overrides |= list_override("occupations", occupations)
    if "occupations.source" in overrides:
        overrides |= {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": ""}
    design = resolve_design(load_personas_study(study, {**overrides, **(settings or {})}))
    resolved = describe_design(design)
    return run_study(
        design.study,
        models,
        call,
        digest=resolved["digest"],
        open_model=open_generator,
        fill=partial(draw_texts, design, resolved=resolved),
        # Where not one text came the failures say why.
        analyse=lambda run, watcher: [] if _is_empty(run) else tables_of_texts(run, watcher=watcher).write(),
        unit="texts",
        result=PersonasResult,
    )


def _is_empty(run: Path) -> bool:
    rows = rows_file(run, "personas")
    return not rows.exists() or next(read_rows(rows, skip_bad=True), None) is None


def planned_draws(manifest: Mapping[str, Any], n_stored: int) -> int | None:
    """Count the draws that a run plans at least: the first round and the texts with a gender in the prompt.

    How many more Algorithm 5 requests is known only as it goes, so what is stored may be the larger.
    """
    if manifest["resolved"].get("imported"):
        return n_stored
    design = part_of(read_design(manifest["resolved"]), shard_of(manifest))
    n_open, n_specified = n_series(design)
    each = n_open * Filling.from_study(design.study).batch + n_specified * design.study.per_gender
    return max(n_stored, each * len(manifest["models"]))


def tables_of_texts(
    run: Path, overrides: Mapping[str, Any] | None = None, *, watcher: Watcher | None = None
) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    from biaskit.compare.model_tests import between_persona_models, merge_tests
    from biaskit.stats.verdict import Rule

    tables = analyse_texts(run, overrides, watcher=watcher)
    manifest = read_manifest(run)
    if len(manifest["models"]) > 1:
        design = read_design(manifest["resolved"], overrides)
        rows, changes, notes = between_persona_models(
            {name: tables.rows(name) for name in ("srb", "representation")},
            forms={label: entry["prompt_form"] for label, entry in manifest["models"].items()},
            margins=design.study.margin,
            seed=design.study.seed,
            run=str(run),
        )
        if changes:
            tables.add("srb_change", changes)
        tables.add("tests", merge_tests(tables.rows("tests"), rows, Rule(strict=design.study.strict)))
        tables.notes += notes
    return tables
