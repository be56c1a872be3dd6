"""How much of the probability the listed words hold, by the way in which a few cells are asked.

See docs/methods.md#forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from biaskit.errors import ModelError
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.probe.design import ProbeDesign, build_prompt
from biaskit.probe.rows import row_of
from biaskit.probe.shares.cells import cell_shares
from biaskit.provenance import key_of
from biaskit.records import (
    NO_INSTRUCTION,
    PROBE_FORMS,
    Cell,
    CellShares,
    Expression,
    Failed,
    Instruction,
    Item,
    ModelIdentity,
    PromptForm,
    ScoreRequest,
    Template,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask: a prompt form, and where an instruction to answer shortly stands, if anywhere."""

    form: PromptForm
    instructed: str = ""  # "", "prompt", "system"


@dataclass(frozen=True, slots=True)
class AskedCell:
    """A cell in one way, and what came back: a row as a run would store it, or why there is none."""

    cell: Cell
    row: Row | None
    reason: str = ""


def ways_of(identity: ModelIdentity) -> list[Way]:
    """Every way in which a model can be asked: as it is, and with the instruction in each place it has."""
    found = []
    for form in (form for form in PROBE_FORMS if form in identity.forms):
        places = ["", "prompt"] + (["system"] if form != "raw" and identity.takes_system else [])
        found += [Way(form, place) for place in places]
    return found


def some_cells(design: ProbeDesign, most: int) -> list[tuple[Template, Item]]:
    """At most so many cells of each bias type: templates in turn, and jobs spread over the list."""
    found = []
    for bias_type in dict.fromkeys(template.bias_type for template in design.templates):
        templates = [template for template in design.templates if template.bias_type == bias_type]
        n = min(most, len(templates) * len(design.items))
        stride = max(1, len(design.items) // n)
        places = dict.fromkeys(
            (i % len(templates), (i * stride + i // len(templates)) % len(design.items)) for i in range(n)
        )
        found += [(templates[t], design.items[j]) for t, j in places]
    return found


Requests = Mapping[str, tuple[Cell, ScoreRequest]]
"""Key → a cell and what is asked of it."""


def requests_of(
    design: ProbeDesign,
    label: str,
    way: Way,
    cells: Sequence[tuple[Template, Item]],
    instruction: Instruction,
    expressions: Mapping[str, Sequence[Expression]],
) -> dict[str, tuple[Cell, ScoreRequest]]:
    """Some cells of a model as they are asked in one way.

    `expressions`: bias type → those whose probability is wanted.
    """
    position = "system" if way.instructed == "system" else "prompt"
    placed = design.study.model_copy(update={"instruction_position": position, "system_prompt": None})
    design = replace(design, study=placed)
    asked = {}
    for template, item in cells:
        said = instruction if way.instructed else None
        prompt = build_prompt(design, template, item, said, "plain", way.form)
        number = NO_INSTRUCTION if said is None else said.id
        cell = Cell(
            *(label, template.bias_type, template.id, item.name, item.group),
            *(item.labour_female_share, number, "plain", way.form),
        )
        key = key_of([way.form, way.instructed, template.bias_type, template.id, item.name])
        asked[key] = cell, ScoreRequest(key, prompt, tuple(expressions[template.bias_type]))
    return asked


def ask(scorer: ContinuationScorer, form: PromptForm, asked: Requests) -> list[AskedCell]:
    """Ask cells in one prompt form.

    A cell that fails has a reason. Raises `ModelError` where the model cannot be asked so at all.
    """
    plan = scorer.plan_scores([request for _, request in asked.values()])
    estimator = scorer.estimator_for(form)
    found = {}
    with closing_stream(scorer.score(plan.batches)) as groups:
        for answer in (answer for group in groups for answer in group):
            cell, request = asked[answer.key]
            found[answer.key] = (
                AskedCell(cell, None, answer.reason)
                if isinstance(answer, Failed)
                else AskedCell(cell, row_of(answer, cell, request.prompt, estimator))
            )
    return [found.get(key) or AskedCell(cell, None, "no answer") for key, (cell, _) in asked.items()]


def shares_of(
    asked: Sequence[AskedCell], group_of: Mapping[str, str], groups: tuple[str, ...], word_boundary: str
) -> list[CellShares]:
    """Shares and coverage of the cells by some of the expressions that were asked: text → group."""
    return [
        cell_shares(one.cell, only(one.row, group_of), groups, word_boundary=word_boundary)
        for one in asked
        if one.row is not None
    ]


def only(row: Row, group_of: Mapping[str, str]) -> Row:
    """A row as if only these expressions had been asked; a text may stand with a space before it."""
    kept = [
        {**e, "group": group_of[e["text"].removeprefix(" ")]}
        for e in row["expressions"]
        if e["text"].removeprefix(" ") in group_of
    ]
    texts = {e["text"] for e in kept}
    counts = {text: n for text, n in row["counts"].items() if text in texts} if "counts" in row else None
    return {**row, "expressions": kept, **({} if counts is None else {"counts": counts})}


def mean_coverage(shares: Sequence[CellShares]) -> float | None:
    """The mean over cells; None where no cell was answered."""
    found = [x.coverage for x in shares if x.coverage is not None]
    return fmean(found) if found else None


# --- a hint before a run ----------------------------------------------------------------------------------

HANDFUL = 4
"""Cells of each bias type with which a run looks whether another form reaches the model."""
LOW = 0.1
"""Coverage under which another way to ask is worth a look."""


def better_form(
    design: ProbeDesign, scorer: ContinuationScorer, form: PromptForm
) -> tuple[float, PromptForm, float] | None:
    """The coverage in a form, and another form with at least twice as much, which is the greatest.

    None where the coverage in a handful of cells is not low, or no other form has as much.
    """
    cells = some_cells(design, HANDFUL)
    found = dict(_coverage_by_form(design, scorer, cells))
    here = found.pop(form, None)
    best = max(found.items(), key=lambda one: one[1], default=None)
    if here is None or here >= LOW or best is None or best[1] < 2 * here:
        return None
    return here, best[0], best[1]


def _coverage_by_form(
    design: ProbeDesign, scorer: ContinuationScorer, cells: Sequence[tuple[Template, Item]]
) -> Iterator[tuple[PromptForm, float]]:
    expressions = own_expressions(design)
    for form in (form for form in PROBE_FORMS if form in scorer.identity.forms):
        try:
            label = scorer.identity.label
            requests = requests_of(design, label, Way(form), cells, Instruction(1, ""), expressions)
            asked = ask(scorer, form, requests)
        except ModelError:
            continue
        group_of = {e.text: e.group for listed in expressions.values() for e in listed}
        coverage = mean_coverage(shares_of(asked, group_of, design.groups, design.study.word_boundary))
        if coverage is not None:
            yield form, coverage


def own_expressions(design: ProbeDesign) -> dict[str, tuple[Expression, ...]]:
    """Bias type → every expression of its templates, each once."""
    found: dict[str, dict[Expression, None]] = {}
    for (bias_type, _), listed in design.expressions.items():
        found.setdefault(bias_type, {}).update(dict.fromkeys(listed))
    return {bias_type: tuple(listed) for bias_type, listed in found.items()}
