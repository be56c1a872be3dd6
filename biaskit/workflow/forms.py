"""What `biaskit doctor --forms` and `bk.forms` do: which question reaches a model (docs/methods.md#forms)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from biaskit.arguments import checked
from biaskit.corpora.loaders import load_expression_sets, load_instructions, render_forms
from biaskit.errors import ModelError, UsageError
from biaskit.models.base import ContinuationScorer
from biaskit.models.options import Dtype, ScoringOptions
from biaskit.models.spec import full_spec, is_api, open_scorer, split_label
from biaskit.probe.design import ProbeDesign, resolve_design
from biaskit.probe.outcomes import outcome_of
from biaskit.probe.ways import (
    AskedCell,
    Requests,
    Way,
    ask,
    mean_coverage,
    own_expressions,
    requests_of,
    shares_of,
    some_cells,
    ways_of,
)
from biaskit.progress import Silent, Watcher, duration
from biaskit.records import Expression
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.study.config import load_probe_study
from biaskit.wording import percent
from biaskit.workflow.calls import CallOptions

SETS = "corpus:expressions/sets.toml"
ONE_WORD = "corpus:forms/instructions.toml"
ASKED_AS = {"": "as it is", "prompt": "one word", "system": "one word (system)"}
OWN = "the study's"
FOURTH = 4
"""Texts are drawn of one cell in so many: a text takes as long as many probabilities."""
SHOWN = ("listed", "unknown", "declines")
"""Outcomes that have a column."""


@dataclass(frozen=True)
class FormsResult:
    """How much of the probability the listed words hold, for each way to ask.

    Attributes:
        rows: one for each bias type, way and expression set: bias_type, prompt_form, one_word,
            expressions, coverage (mean; by top-k the least it can be), diverse_share (mean, of the study's
            third group), n_cells, estimator, the share of drawn answers with each outcome and their number
            n_texts (of the study's own set), reason.
    """

    label: str
    spec: str
    study: str
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    def best(self, bias_type: str) -> dict[str, Any] | None:
        """The row of the study's own words with the greatest coverage."""
        own = [
            row
            for row in self.rows
            if (row["bias_type"], row["expressions"]) == (bias_type, OWN) and row["coverage"] is not None
        ]
        return max(own, key=lambda row: row["coverage"], default=None)

    def command(self, row: Mapping[str, Any]) -> str:
        """The command that asks so."""
        words = ["biaskit", "probe", self.spec, "--prompt-form", row["prompt_form"]]
        words += ["--study", self.study] if self.study != "occugender" else []
        words += ["--bias-type", row["bias_type"]]
        if row["one_word"]:
            words += ["--instructions", ONE_WORD]
        if row["one_word"] == "system":
            words += ["--set", "instruction_position=system"]
        return shlex.join(words)

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program."""
        best = {
            row["bias_type"]: self.command(row)
            for bias_type in dict.fromkeys(row["bias_type"] for row in self.rows)
            if (row := self.best(bias_type)) is not None
        }
        return {"model": self.label, "rows": list(self.rows), "best": best, "notes": list(self.notes)}

    def document(self) -> Document:
        """For a renderer: the ways by the study's own words, and the sets of words in the best of them."""
        tables, notes = [], list(self.notes)
        for bias_type in dict.fromkeys(row["bias_type"] for row in self.rows):
            of_type = [row for row in self.rows if row["bias_type"] == bias_type]
            tables.append(_ways_table(self.label, bias_type, [r for r in of_type if r["expressions"] == OWN]))
            best = self.best(bias_type)
            if best is None:
                continue
            same = [r for r in of_type if all(r[n] == best[n] for n in ("prompt_form", "one_word"))]
            if len(same) > 1:
                tables.append(_sets_table(bias_type, same))
            notes.append(f"most coverage, {bias_type}: `{self.command(best)}`")
        return Document(tuple(tables), tuple(notes))


def _ways_table(label: str, bias_type: str, rows: Sequence[Mapping[str, Any]]) -> TitledTable:
    """A line for each way, by the study's own words."""
    lines = tuple(
        (
            row["prompt_form"],
            ASKED_AS[row["one_word"]],
            row["estimator"] or "–",
            *(_shown(row[name]) for name in ("coverage", "diverse_share", *SHOWN)),
        )
        for row in rows
    )
    heads = ("Prompt form", "Asked", "by", "cov. %", "D %", "names one", "leaves open", "declines")
    cells, texts = (max((row[name] or 0 for row in rows), default=0) for name in ("n_cells", "n_texts"))
    least = any(row["estimator"] == "top-k" for row in rows)
    return TitledTable(
        f"{label}, {bias_type} prompts: how much each way to ask reaches",
        (tuple(map(Heading, heads)),),
        lines,
        note=f"cov.: probability on the study's words, D: of that on words for neither, in %, mean of {cells}"
        f" cells. Then % of {texts} short texts, by what they say."
        + (" by top-k: what the server lists, so cov. is the least it can be." if least else ""),
        n_text=3,
    )


def _sets_table(bias_type: str, rows: Sequence[Mapping[str, Any]]) -> TitledTable:
    lines = tuple((row["expressions"], _shown(row["coverage"]), _shown(row["diverse_share"])) for row in rows)
    return TitledTable(
        f"The same way by other lists of words, {bias_type} prompts",
        ((Heading("Words"), Heading("cov. %"), Heading("D %")),),
        lines,
        note="--expressions NAME takes a list for all templates.",
    )


def _shown(share: float | None) -> str:
    return "–" if share is None else percent(share)


@checked()
def forms(
    model: str,
    *,
    study: str = "occugender",
    cells: int = 20,
    draws: int = 4,
    device: str = "auto",
    dtype: Dtype = "auto",
    batch_size: int | None = None,
    api_key_env: str | Sequence[str] | None = None,
    endpoint_name: str | None = None,
    max_cost: float | None = None,
    price: str | None = None,
    watcher: Watcher | None = None,
) -> FormsResult:
    """Ask a few cells in every way that a model takes, and say how much each reaches.

    Args:
        model: a spec, as for `bk.probe`. study: whose cells are asked.
        cells: of each bias type, in every prompt form, as it is and with "Answer with one word." in the
            prompt or the system role. draws: texts of up to 24 tokens of each fourth cell: what is answered?
        device, dtype, batch_size, api_key_env, endpoint_name, max_cost, price: as for `bk.probe`.
        watcher: is told of progress, and asked before an API is.

    Returns coverage, share of the third group and outcomes by way and list of words. It never chooses: the
    way with the most coverage here is another question than the papers'. Raises `ModelError` where the model
    cannot be asked at all.
    """
    label, spec = split_label(model)
    if full_spec(spec).startswith("scripted:"):
        raise UsageError(f"{label} answers from a script: there is nothing to look for.")
    watcher = watcher or Silent()
    design = resolve_design(load_probe_study(study, {}))
    call = CallOptions(
        device=device,
        dtype=dtype,
        batch_size=batch_size,
        api_key_env=api_key_env,
        endpoint_name=endpoint_name,
        max_cost=max_cost,
        price=price,
    )
    asking = _Asking(design, label, spec, call, cells, draws, watcher)
    scored = asking.by(ScoringOptions(longest=asking.longest), asking.every_expression())
    drawn = asking.by(
        ScoringOptions("sampling", draws=draws, longest=asking.longest, new_tokens=24),
        own_expressions(design),
        part=FOURTH,
    )
    rows = tuple(_rows(asking, scored, drawn))
    low = [row for row in rows if row["reason"]]
    notes = tuple(dict.fromkeys(f"{row['prompt_form']}: {row['reason']}" for row in low))
    return FormsResult(label, spec, study, rows, notes)


Asked = Mapping[Way, Sequence[AskedCell] | str]
"""What came back in each way, or why nothing can."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """One model, and the cells that it is asked."""

    design: ProbeDesign
    label: str
    spec: str
    call: CallOptions
    n_cells: int
    draws: int
    watcher: Watcher

    @property
    def longest(self) -> int:
        return max(len(e.text) for listed in self.every_expression().values() for e in listed)

    def sets(self) -> dict[str, dict[str, str]]:
        """Name of a shipped set with the study's groups → its texts with their group."""
        return {
            name: {e.text: e.group for e in render_forms(one)}
            for name, one in load_expression_sets(SETS).items()
            if tuple(group for group, _ in one.groups) == self.design.groups
        }

    def every_expression(self) -> dict[str, tuple[Expression, ...]]:
        """Bias type → the study's own expressions and those of every shipped set, each text once."""
        found = {}
        for bias_type, own in own_expressions(self.design).items():
            texts = {e.text: e for e in own}
            for listed in self.sets().values():
                new = {text: Expression(group, text) for text, group in listed.items()}
                texts = {**new, **texts}
            found[bias_type] = tuple(texts.values())
        return found

    def by(
        self, scoring: ScoringOptions, expressions: Mapping[str, Sequence[Expression]], part: int = 1
    ) -> Asked:
        """Ask every way by one estimator; the model is opened for it and closed.

        `part`: one cell in so many is asked, where each takes long.
        """
        scorer = open_scorer(
            self.spec,
            label=self.label,
            local=self.call.local(),
            scoring=scoring,
            api=self.call.api({self.label: self.spec}, self.watcher),
        )
        some = some_cells(self.design, -(-self.n_cells // part))
        (instruction,) = load_instructions(ONE_WORD)
        asked = {
            way: requests_of(self.design, self.label, way, some, instruction, expressions)
            for way in ways_of(scorer.identity)
        }
        doing = f"{self.label}, {'texts' if scoring.estimator == 'sampling' else 'probabilities'} by way"
        found: dict[Way, Sequence[AskedCell] | str] = {}
        try:
            if is_api(self.spec) and part == 1:
                self.watcher.confirm(self._announced(scorer, asked))
            for done, (way, requests) in enumerate(asked.items()):
                self.watcher.progress(doing, done, len(asked))
                try:
                    found[way] = ask(scorer, way.form, requests)
                except ModelError as error:
                    found[way] = str(error)
            self.watcher.progress(doing, len(asked), len(asked))
        finally:
            scorer.close()
        return found

    def _announced(self, scorer: ContinuationScorer, asked: Mapping[Way, Requests]) -> str:
        """What a server will be asked, before it is: prompts, calls, time; and the texts drawn after that."""
        calls, seconds = 0, 0.0
        for requests in asked.values():
            try:
                plan = scorer.plan_scores([request for _, request in requests.values()])
            except ModelError:
                continue  # the table will say why
            calls += plan.calls
            seconds += scorer.estimate_seconds(plan.batches) or 0.0
        n_texts = len(asked) * len(some_cells(self.design, -(-self.n_cells // FOURTH))) * self.draws
        return (
            f"{sum(map(len, asked.values())):,} prompts go to {self.label} in {calls:,} calls"
            f" (about {duration(seconds)}), and {n_texts:,} short texts are drawn after that."
        )


def _rows(asking: _Asking, scored: Asked, drawn: Asked) -> Iterator[dict[str, Any]]:
    own = {
        bias_type: {e.text: e.group for e in listed}
        for bias_type, listed in own_expressions(asking.design).items()
    }
    for bias_type, of_study in own.items():
        for way, asked in scored.items():
            outcomes = _outcomes(asking.design, bias_type, drawn.get(way, ()))
            for name, group_of in {OWN: of_study, **asking.sets()}.items():
                yield {
                    "bias_type": bias_type,
                    "prompt_form": way.form,
                    "one_word": way.instructed,
                    "expressions": name,
                    **_measured(asking.design, _of_type(asked, bias_type), group_of),
                    "estimator": _estimator(_of_type(asked, bias_type)),
                    **(outcomes if name == OWN else dict.fromkeys(outcomes)),
                    "reason": asked if isinstance(asked, str) else _why(asked),
                }


def _of_type(asked: Sequence[AskedCell] | str, bias_type: str) -> list[AskedCell]:
    return [] if isinstance(asked, str) else [one for one in asked if one.cell.bias_type == bias_type]


def _estimator(asked: Sequence[AskedCell]) -> str | None:
    return next((str(one.row["estimator"]) for one in asked if one.row is not None), None)


def _why(asked: Sequence[AskedCell]) -> str:
    reasons = Counter(one.reason for one in asked if one.reason)
    return "; ".join(f"{n} cells failed ({reason})" for reason, n in reasons.items())


def _measured(design: ProbeDesign, asked: Sequence[AskedCell], group_of: Mapping[str, str]) -> dict[str, Any]:
    shares = shares_of(asked, group_of, design.groups, design.study.word_boundary)
    third = [x.shares[2] for x in shares if x.shares is not None and len(x.shares) > 2]
    return {
        "coverage": mean_coverage(shares),
        "diverse_share": fmean(third) if third else None,
        "n_cells": len(shares),
    }


def _outcomes(
    design: ProbeDesign, bias_type: str, asked: Sequence[AskedCell] | str
) -> dict[str, float | int | None]:
    """Shares of the outcomes that have a column, among all texts drawn in one way, and their number."""
    said: Counter[str] = Counter()
    for row in (one.row for one in _of_type(asked, bias_type) if one.row is not None):
        expressions = design.expressions[row["bias_type"], row["template_id"]]
        for text, _ in row["answers"]:
            found = outcome_of(text, question=row["prompt"], expressions=expressions, groups=design.groups)
            said[found.outcome] += 1
    n = said.total()
    return {**{name: said[name] / n if n else None for name in SHOWN}, "n_texts": n}
