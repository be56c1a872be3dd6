"""What `biaskit doctor --agreement` does: how often degraded estimators' intervals hold the exact value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from biaskit.errors import ModelError, UsageError
from biaskit.models.base import closing_stream
from biaskit.models.options import Dtype, LocalOptions, ScoringOptions
from biaskit.models.spec import is_api, open_scorer, split_label
from biaskit.probe.design import ProbeDesign, cell_key, cells, resolve_design
from biaskit.probe.rounds import OpenCells, Rounds, add_up
from biaskit.probe.rows import row_of
from biaskit.probe.shares.cells import cell_shares
from biaskit.probe.shares.draws import wilson_ends
from biaskit.probe.shares.top_k import MassBounds, Sought, bound_masses
from biaskit.probe.stored_design import describe_design
from biaskit.progress import Silent, Watcher
from biaskit.provenance import key_of, signature, versions
from biaskit.records import (
    Cell,
    CellShares,
    Expression,
    Failed,
    ModelIdentity,
    Prompt,
    PromptForm,
    ScoreRequest,
)
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.stats.proportions import wilson
from biaskit.study.config import load_probe_study
from biaskit.study.keys import ProbeStudy
from biaskit.workflow.agreed_means import Pair, bounded_means, drawn_means
from biaskit.workflow.calls import list_override

NOISE = 1e-5
"""How far a bound may be passed by float noise: the values on both sides come from two matrix products."""
NOMINAL = {"top-k": 1.0, "sampling": 0.95}

Chosen = Sequence[tuple[Cell, Prompt, tuple[Expression, ...]]]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class AgreementResult:
    """How often the intervals of each estimator hold the exact value, per bias type, level and quantity.

    `rows` hold bias_type, level (cell, job, group, or contrast of two groups), estimator, quantity, n
    (intervals), n_inside, share_inside with its Wilson interval ci_low and ci_high (sampling's cells, which
    are independent), expected, expected_here (what the interval attains at the exact values and numbers of
    draws of these cells), mean_width, mean_difference (absolute, of the point value from the exact one) and
    reason.
    """

    model: str
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    signature: str

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program."""
        return asdict(self)

    def document(self) -> Document:
        """The table with its notes, for a renderer."""
        heads = (
            *("Bias", "Estimator", "Quantity", "intervals", "hold it", "%", "95 % interval"),
            *("expected", "expected here", "mean width", "mean |difference|"),
        )
        table = TitledTable(
            f"Intervals that hold the exact value, {self.model}",
            (tuple(map(Heading, heads)),),
            tuple(map(_shown, self.rows)),
            note="expected here: what the interval attains at the exact values and numbers of draws of these"
            " cells; mean |difference|: of the point value from the exact one; job, group: means over"
            " these cells; group contrast: one group's mean minus the other's.",
            n_text=3,
        )
        return Document((table,), self.notes, self.signature)


def agreement(
    model: str,
    *,
    study: str = "occugender",
    jobs: str | Sequence[str] | None = None,
    templates: str | Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    cells_per_type: int = 40,
    k: int = 20,
    draws: int = 25,
    seed: int = 1,
    device: str = "auto",
    dtype: Dtype = "float32",
    batch_size: int | None = None,
    watcher: Watcher | None = None,
) -> AgreementResult:
    """Degrade a local model's exact probabilities to `top-k` and `sampling`, and compare.

    Args:
        model: a local model, such as `demo` or `hf:ORG/NAME`; every estimator runs it in one `dtype`.
        study, jobs, templates, settings: as `probe` takes them; of the cells of each bias type
            `cells_per_type` are taken, evenly spaced in study order.
        k: listed tokens of `top-k`. draws: of a round of `sampling`; seed: which ones.

    A bound of `top-k` must always hold the exact value (word_boundary token), a 95 % interval of
    `sampling` as often as Wilson's interval does (word_boundary word). Raises `UsageError` for a model
    that is not in process, `ModelError` where a cell cannot be scored. docs/methods.md#agreement-check
    """
    label, spec = split_label(model)
    if is_api(spec) or spec.startswith("scripted:"):
        raise UsageError(f"{label} has no exact probabilities to compare with: take a local model.")
    overrides = {**list_override("jobs", jobs), **list_override("templates", templates), **(settings or {})}
    design = resolve_design(load_probe_study(study, overrides))
    chosen, cap = _choose(design, label, cells_per_type), design.study.max_draws_per_cell
    local, on_prefix = LocalOptions(device, dtype, batch_size), design.study.on_prefix
    model_rows = _ModelRows(spec, label, local, design.study, seed, watcher or Silent())
    exact = model_rows.by(chosen, ScoringOptions("exact", on_prefix=on_prefix))
    listed = model_rows.by(chosen, ScoringOptions("top-k", k=k, on_prefix=on_prefix))
    found = [*_compare_bounds(design, exact, listed), *_compare_means(design, exact, listed, seed)]
    exact = model_rows.by(chosen, ScoringOptions("exact", word_boundary="word", on_prefix=on_prefix))
    for some in _by_type(chosen):
        longest = max(len(e.text) for _, _, expressions in some for e in expressions)
        drawn = model_rows.by(some, ScoringOptions("sampling", draws=draws, longest=longest))
        found += _compare_draws(design, exact, drawn, Rounds.of(draws, cap))
        found += _compare_means(design, exact, drawn, seed)
    rows = _summaries(found, design)
    notes = _notes(len(chosen), k, draws, found)
    return AgreementResult(
        label, tuple(rows), notes, model_rows.sign(design, k=k, draws=draws, max_draws_per_cell=cap)
    )


# --- which cells ------------------------------------------------------------------------------------------


def _choose(design: ProbeDesign, label: str, most: int) -> Chosen:
    """So many cells of each bias type, evenly spaced in study order: all templates, and jobs in turn."""
    if most < 1:
        raise UsageError(f"{most} cells per bias type are too few: give at least 1.")
    chosen: list[tuple[Cell, Prompt, tuple[Expression, ...]]] = []
    for some in _by_type(list(cells(design, label, _form_of(design.study)))):
        n = min(most, len(some))
        chosen += [some[i * len(some) // n] for i in range(n)]
    return chosen


def _form_of(study: ProbeStudy) -> PromptForm:
    if study.prompt_form != "auto":
        return study.prompt_form
    return "chat-prefill" if study.system_prompt or study.instruction_position == "system" else "raw"


def _by_type(chosen: Chosen) -> Iterator[Chosen]:
    for bias_type in dict.fromkeys(cell.bias_type for cell, _, _ in chosen):
        yield [one for one in chosen if one[0].bias_type == bias_type]


# --- one model by several estimators ----------------------------------------------------------------------


@dataclass(slots=True)
class _ModelRows:
    """One model's rows; it is opened anew for each estimator and freed again."""

    spec: str
    label: str
    local: LocalOptions
    study: ProbeStudy
    seed: int
    watcher: Watcher
    identity: ModelIdentity | None = None

    def by(self, chosen: Chosen, scoring: ScoringOptions) -> dict[Cell, Row]:
        """Each cell's row by an estimator, as a run would store it."""
        scorer = open_scorer(self.spec, label=self.label, local=self.local, scoring=scoring)
        self.identity = scorer.identity
        estimator = scorer.estimator_for(chosen[0][0].prompt_form)
        requests = {self._key(*one): one for one in chosen}
        found: dict[Cell, dict[int, Row]] = {}
        rounds = Rounds.of(estimator.draws, self.study.max_draws_per_cell)
        asked = OpenCells([ScoreRequest(key, p, e) for key, (_, p, e) in requests.items()], rounds, {})
        try:
            with closing_stream(asked.score(scorer, scorer.plan_scores(asked.due).batches)) as groups:
                for group in groups:
                    for answer in group:
                        if isinstance(answer, Failed):
                            raise ModelError(f"{self.label} fails by {estimator.name}: {answer.reason}.")
                        key, number = asked.place(answer.key)
                        cell, prompt, _ = requests[key]
                        row = row_of(answer, cell, prompt, estimator, number)
                        found.setdefault(cell, {})[number] = row
                    done = len(chosen) - asked.n_left
                    self.watcher.progress(f"{self.label} {estimator.name}", done, len(chosen))
        finally:
            scorer.close()
        if estimator.draws is None:
            return {cell: rows[0] for cell, rows in found.items()}
        return {cell: whole for cell, rows in found.items() if (whole := add_up(rows, rounds)[0])}

    def _key(self, cell: Cell, prompt: Prompt, expressions: tuple[Expression, ...]) -> str:
        """One key for a cell by whatever estimator; its draws follow from it."""
        return key_of([self.seed, cell_key(cell, prompt, expressions, "", self.study)])

    def sign(self, design: ProbeDesign, **choices: int) -> str:
        """Every choice that changes one of the numbers."""
        known = self.identity
        return signature(
            {
                "biaskit": versions().get("biaskit", ""),
                "study": self.study.name,
                "model": f"{self.label}@{known.fingerprint[:12]}" if known else self.label,
                "form": _form_of(self.study),
                "on_prefix": self.study.on_prefix,
                "question": describe_design(design)["digest"][:12],
                **{name: str(value) for name, value in choices.items()},
                "seed": str(self.seed),
            }
        )


# --- one interval against one exact value ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Compared:
    """An exact value, and what an estimator says of it: point and ends, None where it says nothing."""

    bias_type: str
    estimator: str
    quantity: str
    exact: float
    point: float | None
    ends: tuple[float, float] | None
    chance: float = 1.0  # with which such an interval holds the exact value
    level: str = "cell"

    def holds(self) -> bool:
        """Whether the exact value lies between the ends, up to float noise."""
        assert self.ends is not None
        return self.ends[0] - NOISE <= self.exact <= self.ends[1] + NOISE


_Ends = tuple[float | None, float | None] | None
_Known = tuple[str, float, float | None, _Ends]
"""A quantity, its exact value, an estimator's point and ends."""


def _compare_bounds(
    design: ProbeDesign, exact: Mapping[Cell, Row], bounded: Mapping[Cell, Row]
) -> Iterator[_Compared]:
    groups, contrast = design.groups, design.contrast
    for cell, row in bounded.items():
        true = cell_shares(cell, exact[cell], groups)
        got = cell_shares(cell, row, groups, contrast=contrast)
        known = [*_masses(true, got, _mass_bounds(row, groups)), *_shares(true, got, ["share"] * len(groups))]
        if true.shares is not None:
            first, second = (groups.index(name) for name in contrast)
            point = got.shares[first] - got.shares[second] if got.shares else None
            known.append(("difference", true.shares[first] - true.shares[second], point, got.difference_ends))
        for quantity, value, point, ends in known:
            least = -1.0 if quantity == "difference" else 0.0
            yield _Compared(cell.bias_type, "top-k", quantity, value, point, _closed(ends, least))


def _compare_draws(
    design: ProbeDesign, exact: Mapping[Cell, Row], drawn: Mapping[Cell, Row], rounds: Rounds
) -> Iterator[_Compared]:
    """Of shares only the draws that matched count; when a cell ends depends on its coverage alone."""
    for cell, row in drawn.items():
        true = cell_shares(cell, exact[cell], design.groups, word_boundary="word")
        got = cell_shares(cell, row, design.groups)
        names = [f"{group}_share" for group in design.groups]
        coverage: _Known = ("coverage", true.coverage or 0.0, got.coverage, got.coverage_ends)
        for quantity, value, point, ends in (coverage, *_shares(true, got, names)):
            held = chance_to_hold_coverage(value, rounds) if quantity == "coverage" else None
            chance = chance_to_hold(value, got.matched or 0) if held is None else held
            yield _Compared(cell.bias_type, "sampling", quantity, value, point, _closed(ends, 0.0), chance)


def _compare_means(
    design: ProbeDesign, exact: Mapping[Cell, Row], degraded: Mapping[Cell, Row], seed: int
) -> Iterator[_Compared]:
    """The same cells above their own level: jobs and groups, and the difference between groups."""
    estimator = "sampling" if any("counts" in row for row in degraded.values()) else "top-k"
    boundary, contrast = ("word", None) if estimator == "sampling" else ("token", design.contrast)
    pairs: dict[str, list[Pair]] = {}
    for cell, row in degraded.items():
        true = cell_shares(cell, exact[cell], design.groups, word_boundary=boundary)
        got = cell_shares(cell, row, design.groups, contrast=contrast)
        pairs.setdefault(cell.bias_type, []).append((true, got))
    first, second = (design.groups.index(name) for name in design.contrast)
    for bias_type, own in pairs.items():
        found = drawn_means(own, seed=seed) if contrast is None else bounded_means(own, (first, second))
        for x in found:
            yield _Compared(bias_type, estimator, x.quantity, x.exact, x.point, x.ends, x.chance, x.level)


def _masses(true: CellShares, got: CellShares, bounds: MassBounds) -> Iterator[_Known]:
    for i, group in enumerate(bounds.groups):
        ends = (bounds.low([group]), bounds.high([group]))
        yield "mass", true.masses[i] if true.masses else 0.0, got.masses[i] if got.masses else None, ends
    yield "coverage", true.coverage or 0.0, got.coverage, got.coverage_ends


def _shares(true: CellShares, got: CellShares, names: Sequence[str]) -> Iterator[_Known]:
    for i, name in enumerate(names if true.shares else ()):
        assert true.shares is not None
        ends = got.share_ends[i] if got.share_ends else None
        yield name, true.shares[i], got.shares[i] if got.shares else None, ends


def _mass_bounds(row: Row, groups: Sequence[str]) -> MassBounds:
    sought = [
        Sought(e["group"], e["text"], tuple(e["tokens"]), tuple(e["token_ids"])) for e in row["expressions"]
    ]
    return bound_masses(row["listed"], row["k"], sought, groups)


def _closed(ends: _Ends, least: float) -> tuple[float, float] | None:
    """Ends of which one alone is unknown reach to the end of what the quantity can be."""
    if ends is None or ends == (None, None):
        return None
    low, high = ends
    return least if low is None else low, 1.0 if high is None else high


@lru_cache(maxsize=4096)
def chance_to_hold(p: float, n: int) -> float:
    """Probability that Wilson's 95 % interval of n draws holds their true share p; 1 with no draw."""
    held = (k for k in range(n + 1) if (ends := wilson_ends(k, n)) and ends[0] <= p <= ends[1])
    return math.fsum(math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in held) if n else 1.0


def chance_to_hold_coverage(p: float, rounds: Rounds) -> float:
    """The same of the coverage of a cell that is drawn in rounds: n and what matched end together."""
    ends = rounds.ends(p).items()
    return math.fsum(chance for (n, k), chance in ends if (e := wilson_ends(k, n)) and e[0] <= p <= e[1])


# --- what they come to ------------------------------------------------------------------------------------


def _summaries(found: Sequence[_Compared], design: ProbeDesign) -> list[dict[str, Any]]:
    """One row per bias type, level, estimator and quantity, all of one bias type together."""
    counted = [f"{group}_share" for group in design.groups] + ["coverage"]
    asked = [("cell", "top-k", quantity) for quantity in ("share", "mass", "coverage", "difference")]
    asked += [
        (level, "top-k", quantity) for level in ("job", "group") for quantity in ("share", "difference")
    ]
    asked += [("contrast", "top-k", "share"), *(("cell", "sampling", quantity) for quantity in counted)]
    asked += [(level, "sampling", "share") for level in ("group", "contrast")]
    names = ("bias_type", "level", "estimator", "quantity")
    return [
        _summary(
            [x for x in found if (x.bias_type, x.level, x.estimator, x.quantity) == (bias_type, *of)],
            dict(zip(names, (bias_type, *of), strict=True)),
        )
        for bias_type in dict.fromkeys(template.bias_type for template in design.templates)
        for of in asked
    ]


def _summary(compared: Sequence[_Compared], names: Mapping[str, str]) -> dict[str, Any]:
    known = [x for x in compared if x.ends is not None]
    n, inside = len(known), sum(x.holds() for x in known)
    sampled = names["estimator"] == "sampling"
    # Cells are independent; means share their cells.
    ci = (wilson(inside, n) if sampled and names["level"] == "cell" else None) or (None, None)
    reasons = [] if sampled or not n else ["a bound, not a sample: one miss is a mistake"]
    if not compared:
        reasons.append("one group of jobs" if not sampled else "too few matched draws, or one group of jobs")
    if n < len(compared):
        what = "no draw matched" if sampled else "nothing listed"
        reasons.append(f"{len(compared) - n} of {len(compared)} without an interval: {what}")
    return {
        **names,
        "n": n,
        "n_inside": inside,
        "share_inside": inside / n if n else None,
        "ci_low": ci[0],
        "ci_high": ci[1],
        "expected": NOMINAL[names["estimator"]],
        "expected_here": _mean([x.chance for x in known]),
        "mean_width": _mean([x.ends[1] - x.ends[0] for x in known if x.ends is not None]),
        "mean_difference": _mean([abs(x.point - x.exact) for x in compared if x.point is not None]),
        "reason": "; ".join(reasons) or None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _notes(n_cells: int, k: int, draws: int, found: Sequence[_Compared]) -> tuple[str, ...]:
    missed = [x for x in found if x.estimator == "top-k" and x.ends is not None and not x.holds()]
    notes = [
        f"{n_cells} cells; top-k (k = {k}) bounds word_boundary = token and must hold always; sampling"
        f" (rounds of {draws} draws) estimates word_boundary = word and holds as often as a 95 % interval"
        " does",
        "sampling also counts a word after a line break or a quotation mark, the exact value only one after a"
        " space (at the start of a turn also without)",
    ]
    if missed:
        what = "bounds of top-k miss the exact value: this is a mistake, please report it"
        notes.append(f"{len(missed)} {what}")
    if without := sum(x.ends is None for x in found if x.estimator == "sampling"):
        notes.append(f"{without} shares have no interval, since no draw of their cell named an expression")
    return tuple(notes)


def _quantity(row: Row) -> str:
    """Level and quantity in words; a cell's is named by the quantity alone."""
    if row["level"] == "contrast":
        return "group contrast"
    return f"{row['level']} {row['quantity']}".removeprefix("cell ").replace("_", " ")


def _shown(row: Mapping[str, Any]) -> tuple[str, ...]:
    ends = [_number(100, row[name], 1) for name in ("ci_low", "ci_high")]
    return (
        *(row["bias_type"], row["estimator"], _quantity(row)),
        *(str(row["n"]), str(row["n_inside"]), _number(100, row["share_inside"], 1)),
        "–" if row["ci_low"] is None else "–".join(ends),
        *(_number(100, row[name], 1) for name in ("expected", "expected_here")),
        *(_number(1, row[name], 3) for name in ("mean_width", "mean_difference")),
    )


def _number(times: int, value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{times * value:.{decimals}f}"
