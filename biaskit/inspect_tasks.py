"""Studies as tasks of Inspect: `inspect eval biaskit/occugender --model …` (docs/integrations.md#inspect).

Inspect finds this module by an entry point. The log of a task becomes a run with `biaskit import RUN LOG`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.viewer import ViewerConfig

from biaskit.errors import UsageError
from biaskit.exchange.inspect_asking import InspectModel
from biaskit.exchange.inspect_format import MARK, of_log, of_sample
from biaskit.probe.analysis import effects_of
from biaskit.probe.design import ProbeDesign, cell_at, resolve_design
from biaskit.probe.planned import PlannedCells
from biaskit.probe.shares.cells import cell_shares
from biaskit.probe.stored_design import compatibility, describe_design
from biaskit.records import Cell, CellShares, as_record
from biaskit.runs.manifest import new_manifest
from biaskit.study.config import load_probe_study
from biaskit.workflow.probe import overrides_of

ROW = "row"


@task
def occugender(
    study: str = "occugender",
    jobs: str | list[Any] | None = None,
    templates: str | int | list[Any] | None = None,
    bias_type: str | None = None,
    estimator: str = "sampling",
    draws: int | None = None,
    max_draws_per_cell: int | None = None,
    prompt_form: str | None = None,
    seed: int | None = None,
) -> Task:
    """How often a model names women and men for a job, over the full product of jobs and templates.

    Args:
        study: a shipped study of probabilities, or a path to a TOML file.
        jobs: names, ids and ranges of the study's list, or a path.
        templates: the same.
        bias_type: explicit, implicit or both.
        estimator: sampling; or top-k, where the provider gives log-probabilities.
        draws: texts of a round; a cell is drawn until three of its texts name a group, or until
            max_draws_per_cell.
        max_draws_per_cell: see draws.
        prompt_form: chat-continue or raw; by default raw for providers of completions.
        seed: of the intervals; the seed of each draw follows from its cell.
    """
    if estimator not in ("sampling", "top-k"):
        raise UsageError(f"estimator is {estimator!r}: through Inspect it is sampling or top-k.")
    design = resolve_design(load_probe_study(study, _overrides(locals())))
    _check(design)
    return Task(
        dataset=_dataset(design),
        solver=_asking(design),
        scorer=_scoring(design),
        name=design.study.name,
        viewer=ViewerConfig(trust_content=False),
        metadata={MARK: of_log(_manifest(design), {}, None, None)},
    )


def _manifest(design: ProbeDesign) -> dict[str, Any]:
    """What a run of this design has, its models still to be told by the samples."""
    asked = compatibility(design), describe_design(design)
    return new_manifest("probe", design.study.name, *asked, {}, "inspect eval biaskit/occugender")


def _check(design: ProbeDesign) -> None:
    """Refuse what a model of Inspect cannot be asked, before anything is."""
    study = design.study
    system = bool(study.system_prompt) or study.instruction_position == "system"
    if study.prompt_form == "chat-prefill":
        # Some providers go on from an assistant's message, others answer it; they do not say which.
        raise UsageError("Through Inspect a prompt is raw or chat-continue, not chat-prefill.")
    if study.prompt_form == "raw" and system:
        raise UsageError("A raw prompt has no system role: leave out the system prompt, or raw.")
    if study.estimator == "top-k" and study.word_boundary == "word":
        raise UsageError("word_boundary = word is not possible by top-k: use -T estimator=sampling.")


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as keys of the study; Inspect reads `1,2` as a list of numbers, and `7` as one."""
    known = dict.fromkeys(("instructions", "expressions", "setting", "system_prompt", "continuations"))
    lists = {name: _as_list(given[name]) for name in ("jobs", "templates")}
    found = overrides_of({**known, **given, **lists})
    return found if given["seed"] is None else {**found, "seed": given["seed"]}


def _as_list(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return value if value is None else str(value)


def _dataset(design: ProbeDesign) -> MemoryDataset:
    planned = PlannedCells(design, "", "raw", "")
    samples = []
    for place in range(design.n_cells):
        cell, prompt = planned.cells[place], planned.prompts[place]
        asked = {
            name: value for name, value in as_record(cell).items() if name not in ("model", "prompt_form")
        }
        samples.append(Sample(input=prompt.text, id=f"{place:06d}", metadata={**asked, "place": place}))
    return MemoryDataset(samples, name=design.study.name)


def _asking(design: ProbeDesign) -> Solver:
    @solver(name="biaskit_cell")
    def asking() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            model = InspectModel(get_model(), design)
            place = state.metadata["place"]
            rows, messages, output = await model.ask(place)
            state.messages = [*messages, *(choice.message for choice in output.choices[:1])]
            state.output = output
            held = [("probe", place * 1_000 + i, row) for i, row in enumerate(rows)]
            state.metadata[MARK] = of_sample(held, {"label": model.name, **model.entry})
            state.store.set(ROW, rows)
            return state

        return solve

    return asking()


def _scoring(design: ProbeDesign) -> Scorer:
    """A cell's shares, by the code that makes them of stored rows, and the study's own means of them."""

    @metric(name="shares")
    def shares() -> Metric:
        def means(scores: list[SampleScore]) -> Value:
            return _means(design, scores)

        return means

    @scorer(metrics=[shares()], name="biaskit")
    def scoring() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
            found = _cell_shares(design, state)
            said = dict(zip(design.groups, found.shares or (), strict=False))
            held = {} if found.coverage is None else {"coverage": found.coverage}
            return Score(
                value={**held, **{f"{name} share": x for name, x in said.items()}},
                answer=", ".join(f"{name} {x:.3f}" for name, x in said.items()) or found.reason,
                metadata={"place": state.metadata["place"], "cell": asdict(found)},
            )

        return score

    return scoring()


def _cell_shares(design: ProbeDesign, state: TaskState) -> CellShares:
    from biaskit.probe.rounds import Rounds, add_up

    model = InspectModel(get_model(), design)
    rounds = Rounds.of(model.estimator.draws, design.study.max_draws_per_cell)
    rows = state.store.get(ROW) or []
    whole = add_up(dict(enumerate(rows)), rounds)[0] if rounds.most > 1 and rows else next(iter(rows), None)
    cell = model.planned.cells[state.metadata["place"]]
    boundary, contrast = design.study.word_boundary, design.contrast
    return cell_shares(cell, whole, design.groups, word_boundary=boundary, contrast=contrast)


def _means(design: ProbeDesign, scores: Sequence[SampleScore]) -> dict[str, float]:
    """Share with interval, and coverage, of each group of jobs: the rows of probe_groups.csv."""
    found = {}
    for one in scores:
        held = one.score.metadata or {}
        found[held["place"]] = _shares(held["cell"])
    if not found:
        return {}
    first = next(iter(found.values())).cell
    cells = [
        found[place]
        if place in found
        else CellShares(
            cell_at(design, place, first.model, first.prompt_form)[0], None, None, None, None, "no answer"
        )
        for place in range(design.n_cells)
    ]
    return dict(_named(effects_of(cells, design)["probe_groups"]))


def _named(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The numbers of the rows under names that tell them apart."""
    several = len({row["bias_type"] for row in rows}) > 1
    found: dict[str, float] = {}
    for row in rows:
        where = ", ".join([row["bias_type"], row["job_group"]] if several else [row["job_group"]])
        said = {
            f"{row['gender']} share in {where}": row["share"],
            f"{row['gender']} share in {where}, 95 % from": row["ci_low"],
            f"{row['gender']} share in {where}, 95 % to": row["ci_high"],
            f"coverage in {where}": row["coverage"],
        }
        found |= {name: value for name, value in said.items() if value is not None and math.isfinite(value)}
    return found


def _shares(stored: Mapping[str, Any]) -> CellShares:
    """A cell's shares as a score holds them; of a log that was read again, with lists for tuples."""

    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, list | tuple) else value

    return CellShares(
        **{**{name: plain(value) for name, value in stored.items()}, "cell": Cell(**stored["cell"])}
    )
