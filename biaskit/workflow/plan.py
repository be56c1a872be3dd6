"""What `biaskit plan` and `bk.plan` do: which differences a design shows, and which design shows one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from biaskit.arguments import PATH, checked
from biaskit.corpora.variance import CellVariance, TextVariance, load_cell_variance, load_text_variance
from biaskit.errors import UsageError
from biaskit.foreign import visible
from biaskit.models.api.endpoint import model_and_host
from biaskit.models.api.prices import Price, find_price, parse_price
from biaskit.models.counting import tokens_for
from biaskit.models.spec import full_spec, is_api, split_label
from biaskit.personas import power as of_texts
from biaskit.personas.sampling.design import resolve_design as resolve_texts
from biaskit.personas.sampling.design import series_of_design
from biaskit.probe import power as of_cells
from biaskit.probe.design import ProbeDesign, cells, resolve_design
from biaskit.records import Prompt, PromptForm
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.runs.manifest import read_manifest
from biaskit.stats.power import POWER
from biaskit.study.config import load_study
from biaskit.study.keys import PersonasStudy, ProbeStudy
from biaskit.tables.sets import read_set
from biaskit.wording import percent, point_number
from biaskit.workflow.calls import list_override
from biaskit.workflow.result import RunResult, run_path

CHARACTERS_OF_A_TOKEN = 4
MOST_READ = 2_000
"""Prompts whose length stands for all."""
STUDIES = {"probe": "occugender", "personas": "gasp-pilot"}
_PROBE_ONLY = ("jobs", "templates", "bias_type", "estimator", "draws")
_TEXTS_ONLY = ("occupations", "per_gender")
Outlook = of_cells.Outlook | of_texts.Outlook
Size = of_cells.Size | of_texts.Size


@dataclass(frozen=True)
class PlanResult:
    """What a design shows in 80 % of runs, and what it takes to show a difference.

    `shown` holds for each bias type (for texts one row) the size of the design, `difference` (None with its
    `reason`), for the prober `on_page` (as the first of `N_CLAIMS` comparisons) and the `parts` of the
    variance; `needed` the smallest designs that show `wanted`, one thing made larger at a time, with calls
    and cost (USD, None: unknown). `variance` is what was reckoned with.
    """

    study: str
    wanted: float | None
    shown: tuple[dict[str, Any], ...]
    needed: tuple[dict[str, Any], ...]
    variance: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program."""
        return asdict(self)

    def document(self) -> Document:
        """The tables with their notes, for a renderer."""
        tables = [_shown_table(self)]
        if self.wanted is not None:
            tables.append(_needed_table(self, self.wanted))
        return Document(tuple(tables), self.notes)


@checked(like=lambda value: isinstance(value, RunResult) or PATH(value))
def plan(
    model: str | None = None,
    *,
    study: str | None = None,
    difference: float | None = None,
    like: str | Path | RunResult | None = None,
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    bias_type: str | None = None,
    estimator: str | None = None,
    draws: int | None = None,
    occupations: str | Sequence[str] | None = None,
    per_gender: int | None = None,
    settings: Mapping[str, Any] | None = None,
    price: str | None = None,
) -> PlanResult:
    """Which differences a design would show in 80 % of runs, and what it takes to show one. Opens no model.

    Args:
        model: whose price and way to be asked are reckoned with; of a run given as `like`, its label.
        study: a shipped study or a path, of either engine; by default occugender, or gasp-pilot for a `like`
            of texts.
        difference: a share such as 0.05 (5 points); the designs that would show it are searched.
        like: a run whose variances are reckoned with; by default those of the demo model's own runs.
        jobs, templates, bias_type, estimator, draws: as `probe` takes them; draws alone means sampling.
        occupations, per_gender: as `personas` takes them.
        settings: any key of the study by its dotted name.
        price: "IN,OUT" in USD per million tokens.

    Each difference by itself, at a level of 5 % (docs/methods.md#power). Raises `BiaskitError` with one line
    to act on.
    """
    given = locals()
    if difference is not None and not 0 < difference < 1:
        raise UsageError(f"--difference {difference:g}: give a difference of shares such as 0.05 (5 points).")
    run = None if like is None else run_path(like)
    chosen = _chosen_study(given, run)
    asked = _Asked.of(model, price, {} if run is None else read_manifest(run)["models"])
    if isinstance(chosen, ProbeStudy):
        made = _of_cells(chosen, asked, run, draws)
    else:
        made = _of_texts(chosen, asked, run)
    outlooks, price_of, variance, notes = made
    needed = [] if difference is None else [row for o in outlooks for row in _needed(o, difference, price_of)]
    if asked.note and difference is not None:
        notes.append(asked.note)
    return PlanResult(
        chosen.name,
        difference,
        tuple(_plain(outlook.shown()) for outlook in outlooks),
        tuple(needed),
        tuple(asdict(v) for v in variance),
        tuple(notes),
    )


def _chosen_study(given: Mapping[str, Any], run: Path | None) -> ProbeStudy | PersonasStudy:
    """The study of a call, of the engine of the run that it is to be like."""
    engine = "probe" if run is None else str(read_manifest(run)["engine"])
    if engine not in STUDIES:
        raise UsageError(f"{run} is no run of an engine: name the run of probe or personas itself.")
    named = given["study"] or STUDIES[engine]
    own = load_study(named)
    if run is not None and own.engine != engine:
        raise UsageError(
            f"{run} is a run of {engine}, but {own.name} a study of {own.engine}: take one engine."
        )
    wrong = _TEXTS_ONLY if isinstance(own, ProbeStudy) else _PROBE_ONLY
    if stray := [name for name in wrong if given[name] is not None]:
        raise UsageError(
            f"{own.name} is a study of {own.engine}, which has no --{stray[0].replace('_', '-')}."
        )
    return load_study(named, _overrides(given))


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for name in ("jobs", "templates", "occupations"):
        overrides |= list_override(name, given[name])
    for name in ("bias_type", "estimator", "draws", "per_gender"):
        overrides |= {} if given[name] is None else {name: given[name]}
    return {**overrides, **(given["settings"] or {})}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who would be asked, and what a token costs."""

    label: str | None
    api: bool
    demo: bool
    price: Price | None  # None: unknown

    @classmethod
    def of(cls, model: str | None, price: str | None, known: Mapping[str, Any]) -> _Asked:
        """The model of a call; `known`: those of the run that it may name by their label."""
        given = None if price is None else parse_price(price)
        if model is None:
            return cls(None, api=False, demo=False, price=given)
        label, spec = (model, str(known[model]["spec"])) if model in known else split_label(model)
        if not is_api(spec):
            return cls(label, api=False, demo=spec == "demo", price=given or Price(0.0, 0.0, "local", ""))
        name, host = model_and_host(full_spec(spec))
        return cls(label, True, False, given or find_price(host.name, name))

    @property
    def note(self) -> str | None:
        """What a reader must know of the costs."""
        if self.label is None:
            return "no model is named, so there is no cost: biaskit plan MODEL"
        if self.price is None:
            return f"the price of {self.label} is unknown: give --price IN,OUT"
        if not self.api:
            return None
        return (
            "calls: one text each, fewer where the server gives several at once; cost: about, at"
            f" {self.price.input:g} and {self.price.output:g} USD per million tokens of"
            f" {CHARACTERS_OF_A_TOKEN} characters ({self.price.source})"
        )

    def cost(self, prompt_tokens: float, new_tokens: float) -> float | None:
        """USD, None where the price is unknown or nobody is asked."""
        return (
            None if self.price is None else self.price.cost(math.ceil(prompt_tokens), math.ceil(new_tokens))
        )


@dataclass(frozen=True, slots=True)
class _Asking:
    """What a design of some size asks, and what it costs."""

    asked: _Asked
    scopes: int  # instructions times settings
    prompt_tokens: float
    new_tokens: int

    def row(self, outlook: Outlook) -> dict[str, Any]:
        """Columns of a row: cells or texts, calls and cost."""
        if isinstance(outlook, of_cells.Outlook):
            size = outlook.size
            n_cells = sum(size.jobs) * size.templates * self.scopes
            calls = math.ceil(n_cells * (outlook.matched().drawn if size.draws else 1))
            counts = {"cells": n_cells}
        else:
            calls = outlook.size.occupations * outlook.size.prompts * outlook.size.texts * self.scopes
            counts = {}
        cost = self.asked.cost(calls * self.prompt_tokens, calls * self.new_tokens)
        return {**counts, "calls": calls, "cost": cost}


_Made = tuple[Sequence[Outlook], _Asking, Sequence[CellVariance | TextVariance], list[str]]


def _of_cells(study: ProbeStudy, asked: _Asked, run: Path | None, draws: int | None) -> _Made:
    design = resolve_design(study)
    draws_texts = study.estimator == "sampling" or (
        study.estimator == "auto" and (asked.api or draws is not None)
    )
    gender = of_cells.gender_of(design)
    variance = [v for v in load_cell_variance() if v.gender == gender]
    if run is not None:
        label = _label_in(run, asked)
        variance = of_cells.variance_of_tables(read_set(run).rows(), label, gender, str(run))
    coverage = None if run is not None or asked.demo or not draws_texts else 1.0
    outlooks = of_cells.outlooks(
        design, variance, draws=study.draws if draws_texts else None, coverage=coverage
    )
    if not outlooks:
        raise UsageError(
            f"There is no variance of {gender} shares for {study.name}: give --like RUN of a run that has it."
        )
    lengths = [_length(prompt) for _, prompt, _ in islice(cells(design, "", "raw"), MOST_READ)]
    longest = max(len(e.text) for listed in design.expressions.values() for e in listed)
    asking = _Asking(
        asked,
        len(design.instructions) * len(design.settings),
        sum(lengths) / len(lengths) / CHARACTERS_OF_A_TOKEN,
        tokens_for(longest) if draws_texts else 1,
    )
    return outlooks, asking, variance, _notes_of_cells(outlooks, design, run, coverage)


def _notes_of_cells(
    outlooks: Sequence[of_cells.Outlook], design: ProbeDesign, run: Path | None, coverage: float | None
) -> list[str]:
    notes = [
        f"a difference between two groups of jobs is found by the crossed test in {percent(POWER)} % of runs,"
        " by itself at a level of 5 %; in the last column as the first of the"
        f" {of_cells.N_CLAIMS} comparisons of a page (Holm)",
        _origin(run, "biaskit corpora variance"),
    ]
    if len(outlooks[0].groups) < 2:
        notes.append("one group of jobs: a difference is that of its share from 50 %")
    elif len({item.group for item in design.items}) > 2:
        notes.append(f"of several groups, {' and '.join(outlooks[0].groups)}")
    if coverage is not None:
        notes.append("every draw is taken to name a listed word: --like RUN takes a run's coverage")
    if design.study.estimator == "top-k":
        notes.append("the bounds of top-k come on top, however wide they are")
    missing = {t.bias_type for t in design.templates} - {o.bias_type for o in outlooks}
    return [*notes, *(f"no variance is known of {name} templates" for name in sorted(missing))]


def _of_texts(study: PersonasStudy, asked: _Asked, run: Path | None) -> _Made:
    design = resolve_texts(study)
    variance = load_text_variance()[0]
    if run is not None:
        tables = read_set(run).rows()
        variance = of_texts.variance_of_tables(
            tables.get("representation", ()), _label_in(run, asked), str(run)
        )
    outlook = of_texts.outlook_of(design, variance)
    form: PromptForm = "raw" if design.templates else "completion"
    open_prompts = (s.prompt for s in series_of_design(design, form) if s.specified_gender is None)
    lengths = [_length(prompt) for prompt in islice(open_prompts, MOST_READ)]
    tokens = sum(lengths) / len(lengths) / CHARACTERS_OF_A_TOKEN
    asking = _Asking(asked, len(design.instructions), tokens, study.max_new_tokens)
    notes = [
        "a mean difference between the share of women in the texts and in the labour force is found by the"
        f" paired t-test over occupations in {percent(POWER)} % of runs, by itself at a level of 5 %",
        _origin(
            run, f"biaskit corpora variance: {load_text_variance()[0].n_occupations} occupations, so roughly"
        ),
        f"{100 * variance.associated_share:.0f} % of the texts are taken to speak of a gender; texts of the"
        " first round of each prompt, not those that fill a gender or whose prompt names one",
    ]
    return [outlook], asking, [variance], notes


def _label_in(run: Path, asked: _Asked) -> str:
    """The model of a run that is meant: the one named, else the only one."""
    models = list(read_manifest(run)["models"])
    if asked.label in models:
        return str(asked.label)
    if len(models) == 1:
        return str(models[0])
    raise UsageError(f"{run} holds {', '.join(map(visible, models))}: name the one whose variance is taken.")


def _origin(run: Path | None, shipped: str) -> str:
    return f"variances of the demo model's own run ({shipped})" if run is None else f"variances of {run}"


def _length(prompt: Prompt) -> int:
    turns = sum(len(turn.question) + len(turn.answer) for turn in prompt.turns)
    return len(prompt.text) + len(prompt.system or "") + len(prompt.prefill) + turns


# --- which design shows a difference ---------------------------------------------------------------------


def _needed(outlook: Outlook, difference: float, asking: _Asking) -> list[dict[str, Any]]:
    """For each thing that can be made larger the smallest design that shows a difference."""
    rows = []
    for what, sizes in outlook.larger().items():
        found = _first(outlook, sizes, difference)
        of_type = outlook.bias_type if isinstance(outlook, of_cells.Outlook) else None
        row: dict[str, Any] = {"bias_type": of_type, "larger": what}
        if found is None:
            shown = outlook.at(sizes[-1]).shown()  # type: ignore[arg-type]
            most = f"the largest tried shows {point_number(shown.difference, 1)}" if shown.difference else ""
            blank = dict.fromkeys((*asdict(sizes[0]), *asking.row(outlook)))
            rows.append({**row, **blank, "reason": most or shown.reason})
        else:
            at = outlook.at(found)  # type: ignore[arg-type]
            rows.append({**row, **asdict(found), **asking.row(at), "reason": None})
    return rows


def _first(outlook: Outlook, sizes: Sequence[Size], difference: float) -> Size | None:
    """The first of growing sizes that shows a difference; None where the last does not."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if outlook.at(sizes[middle]).shows(difference):  # type: ignore[arg-type]
            high = middle
        else:
            low = middle + 1
    return sizes[low] if low < len(sizes) else None


# --- how it is shown -------------------------------------------------------------------------------------


def _plain(shown: of_cells.Shown | of_texts.Shown) -> dict[str, Any]:
    content = asdict(shown)
    return {**content.pop("size"), **content}


def _shown_table(result: PlanResult) -> TitledTable:
    probe = "bias_type" in result.shown[0]
    drawn = probe and result.shown[0]["draws"]
    sources = [name for name in result.shown[0]["parts"] if drawn or not probe or name != "draws"]
    size = ("jobs", "templates") if probe else ("occupations", "prompts", "texts each")
    heads = [*(["Bias"] if probe else ["Against"]), *size]
    heads += ["draws"] if drawn else []
    heads += ["shows", *(["on a page"] if probe else []), *(f"% {name}" for name in sources)]
    rows = []
    for one in result.shown:
        own = [one["bias_type"], *_size_of(one)] if probe else ["labour statistics", *_size_of(one)]
        numbers = [one["difference"], *([one["on_page"]] if probe else [])]
        rows.append((*own, *map(_points, numbers), *(f"{100 * one['parts'][name]:.0f}" for name in sources)))
    why = [f"{one.get('bias_type', '')} {one['reason']}".strip() for one in result.shown if one["reason"]]
    title = f"The smallest difference that {result.study} shows, in points"
    note = "; ".join(["%: of the variance of the difference, by where it comes from", *why]) + "."
    return TitledTable(title, (tuple(map(Heading, heads)),), tuple(rows), note=note)


def _needed_table(result: PlanResult, wanted: float) -> TitledTable:
    probe, rows = "bias_type" in result.shown[0], result.needed
    drawn = probe and result.shown[0]["draws"]
    heads = ["More", "occupations", "prompts", "texts each"]
    if probe:
        heads = ["Bias", "More", "jobs", "templates", *(["draws"] if drawn else []), "cells"]
    # Columns that say nothing new: a call for each cell of a model in process, a cost that nobody has.
    counted = [*(["calls"] if not probe or any(row["calls"] != row["cells"] for row in rows) else [])]
    paid = any(row["cost"] for row in rows)
    heads += [*(["calls" if probe else "texts"] if counted else []), *(["USD"] if paid else [])]
    shown, why = [], []
    for row in rows:
        name = [row["bias_type"]] if probe else []
        numbers = [*_size_of(row, drawn), *([_count(row["cells"])] if probe else [])]
        numbers += [*(_count(row[column]) for column in counted), *([_usd(row["cost"])] if paid else [])]
        shown.append((*name, row["larger"], *numbers))
        why += [" ".join([*name, row["larger"], "alone:", row["reason"]])] if row["reason"] else []
    title = f"What shows a difference of {point_number(wanted, 1)} points, one thing made larger at a time"
    note = "; ".join(why) + "." if why else ""
    return TitledTable(title, (tuple(map(Heading, heads)),), tuple(shown), note=note, n_text=1 + probe)


def _size_of(row: Mapping[str, Any], drawn: object = None) -> list[str]:
    if "jobs" in row:
        jobs = "–" if row["jobs"] is None else " + ".join(map(str, row["jobs"]))
        draws = [_count(row["draws"])] if row["draws"] or drawn else []
        return [jobs, _count(row["templates"]), *draws]
    return [_count(row[name]) for name in ("occupations", "prompts", "texts")]


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _points(fraction: float | None) -> str:
    return "–" if fraction is None else point_number(fraction, 1)


def _usd(cost: float | None) -> str:
    return "–" if cost is None else "0" if not cost else f"{cost:.4f}" if cost < 0.1 else f"{cost:,.2f}"
