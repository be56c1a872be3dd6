"""Which format reaches a model: `bk.prompt_formats`, the hint before a run (methods/prompts#formats)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, product
from math import sqrt
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any, Unpack

from biaskit.arguments import POSITIVE, checked
from biaskit.common.wording import percent
from biaskit.corpora.loaders import load_debiasing_prompts
from biaskit.errors import ModelError, UsageError
from biaskit.measurement import words
from biaskit.measures.probe.design import ProbeDesign, resolve
from biaskit.measures.probe.prompts import scope_of_cell
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.models.options import ScoringOptions
from biaskit.models.spec import full_spec, is_api, open_scorer, split_label
from biaskit.progress import Silent, Watcher
from biaskit.records import PROBE_FORMATS, DebiasingPrompt, Failed
from biaskit.report.render.document import Document, listed_table
from biaskit.report.render.html import Printed
from biaskit.runs.score_rows import row_of
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.start import ApiArguments, api_options
from biaskit.study.config import load_as
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import column, defined, first, grouped

DEBIASING_PROMPTS = "corpus:forms/debiasing-prompts.toml"
_SAYS: Mapping[str, str] = words("probe")["prompt_formats"]
HANDFUL = 4  # cells of each bias type with which a run looks whether another format reaches the model


@dataclass(frozen=True)
class PromptFormatsResult(Printed):
    """Coverage of a study's target words for each prompt format.

    Attributes:
        rows: one for each bias type, prompt format and debiasing prompt: bias_type, prompt_format, one_word
            (whether "Answer with one word." stood in the prompt), estimator, coverage (mean; by top-k the
            least it can be), se (its standard error over the cells; None for one cell), binary_share (the
            contrast's first group of the two, such as she of she and he), n_prompts, reason (why cells have
            no answer). `probe --ways` compares formats on the same jobs.
    """

    label: str
    spec: str
    rows: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {"model": self.label, "rows": list(self.rows)}

    def document(self) -> Document:
        """Lay it out for a renderer: a line for each way, the most coverage first."""
        rows = sorted(self.rows, key=lambda row: (row["bias_type"], -(row["coverage"] or 0.0)))
        lines = []
        for row in rows:
            asked = "one word" if row["one_word"] else "as is"
            coverage = "–" if row["coverage"] is None else percent(row["coverage"])
            if row["se"] is not None:
                coverage += f" ± {percent(row['se'])}"
            of_two = "–" if row.get("binary_share") is None else percent(row["binary_share"])
            cells = row["bias_type"], row["prompt_format"], asked, row["estimator"] or "–", coverage, of_two
            lines.append(cells)
        note = _SAYS["note"].format(max(column(rows, "n_prompts"), default=0))
        if first(rows, estimator="top-k"):
            note += _SAYS["top_k"]
        title = f"{self.label}: coverage by prompt format"
        heads = ("Prompts", "Prompt format", "Variant", "Estimator", "cov. %", _SAYS["of_two"])
        table = listed_table(title, heads, lines, n_text=4, note=note)
        reasons = (f"{row['prompt_format']}: {row['reason']}" for row in self.rows if row["reason"])
        return Document((table,), (*self._advice(), *dict.fromkeys(reasons)))

    def _advice(self) -> Iterator[str]:
        """Name for each bias type the simplest format within the noise of the best; none if all are weak."""
        for (bias_type,), rows in grouped(defined(self.rows, "coverage"), "bias_type").items():
            best = max(rows, key=itemgetter("coverage"))
            command = f"biaskit probe {shlex.quote(self.spec)} --bias-type {bias_type}"
            if best["coverage"] < WEAK:
                yield _SAYS["weak"].format(bias_type, percent(WEAK), command)
                continue
            near = [row for row in rows if row["coverage"] >= best["coverage"] - (best["se"] or 0.0)]
            simplest = min(near, key=itemgetter("one_word"))  # rows stand in the order of `PROBE_FORMATS`
            says = _SAYS["simplest_one_word" if simplest["one_word"] else "simplest"]
            yield says.format(
                bias_type, command, prompt_format=simplest["prompt_format"], prompts=DEBIASING_PROMPTS
            )


@checked(ApiArguments, prompts=POSITIVE)
def prompt_formats(
    model: str,
    *,
    study: str = "occugender",
    prompts: int = 20,
    watcher: Watcher | None = None,
    **options: Unpack[ApiArguments],
) -> PromptFormatsResult:
    """Send a few prompts in each prompt format that a model supports, and measure the coverage of each.

    It chooses none: another format than the papers' is another question.

    >>> found = bk.prompt_formats("demo", prompts=1)
    >>> sorted({row["prompt_format"] for row in found.rows})
    ['chat-continue', 'chat-prefill', 'raw']

    Args:
        model: a spec, as for `bk.probe`.
        study: whose prompts are used.
        prompts: of each bias type, in each format as they are and with "Answer with one word.".
        watcher: sees the progress, and confirms before an API is queried.

    Returns `rows`, one per bias type, format and debiasing prompt, with `coverage` (probability on the target
    words, from 0 to 1) and its standard error `se`. Raises `ModelError` where the model cannot be queried.
    """
    label, spec = split_label(model)
    if full_spec(spec).startswith("scripted:"):
        raise UsageError(f"{label} answers from a script: there is nothing to test.")
    watcher = watcher or Silent()
    design = resolve(load_as(ProbeStudy, study, {}))
    api = api_options(options, {label: spec}, watcher)
    with closing(
        open_scorer(spec, label=label, scoring=ScoringOptions(longest=design.longest), api=api)
    ) as scorer:
        debiasing_prompts = (None, *load_debiasing_prompts(DEBIASING_PROMPTS))
        if is_api(spec):
            n_prompts = len(scorer.identity.formats) * len(debiasing_prompts) * len(_places(design, prompts))
            watcher.confirm(f"{n_prompts:,} prompts will be sent to {label}.")
        rows = tuple(coverage_by_format(design, scorer, prompts, debiasing_prompts))
        return PromptFormatsResult(label, scorer.identity.spec, rows)


def reach_by_format(design: ProbeDesign, scorer: ContinuationScorer) -> dict[str, dict[str, float]]:
    """Find in a handful of cells how much each format reaches: bias type → format → coverage."""
    reach: dict[str, dict[str, float]] = {}
    for row in coverage_by_format(design, scorer, HANDFUL):
        if row["coverage"] is not None:
            reach.setdefault(row["bias_type"], {})[row["prompt_format"]] = row["coverage"]
    return reach


def coverage_by_format(
    design: ProbeDesign,
    scorer: ContinuationScorer,
    most: int,
    debiasing_prompts: Sequence[DebiasingPrompt | None] = (None,),
) -> Iterator[dict[str, Any]]:
    """Ask at most `most` cells of each bias type in each format and debiasing: yields rows of the result."""
    study = design.study.model_copy(update={"debiasing_position": "prompt", "system_prompt": None})
    identity = scorer.identity
    two, nothing = [*map(design.groups.index, design.contrast)], (0.0,) * len(design.groups)
    formats = [prompt_format for prompt_format in PROBE_FORMATS if prompt_format in identity.formats]
    for prompt_format, debiasing in product(formats, debiasing_prompts):
        arm = replace(design, study=study, contexts=("plain",), debiasing_prompts=(debiasing,))
        planned = PlannedCells(arm, identity.label, prompt_format, identity.fingerprint)
        requests, place_of = [], {}
        coverage: dict[str, list[float]] = {}
        of_two: dict[str, list[float]] = {}
        for place in _places(arm, most):
            requests.append(planned.requests[place])
            place_of[requests[-1].key] = place
            coverage.setdefault(planned.cells[place].bias_type, [])
        estimator_name, reason = None, ""
        try:
            plan = scorer.plan_scores(requests)
            estimator = scorer.estimator_for(prompt_format)
            with closing_stream(scorer.score(plan.batches)) as groups:
                for answer in chain.from_iterable(groups):
                    if isinstance(answer, Failed):
                        reason = answer.reason
                        continue
                    place = place_of[answer.key]
                    cell = planned.cells[place]
                    row = row_of(answer, scope_of_cell(cell), planned.prompts[place], estimator)
                    shares = cell_shares(cell, row, arm.groups, word_boundary=study.word_boundary)
                    estimator_name = answer.estimator
                    if shares.coverage is not None:
                        coverage[cell.bias_type].append(shares.coverage)
                    first_share, second = map((shares.shares or nothing).__getitem__, two)
                    if both := first_share + second:
                        of_two.setdefault(cell.bias_type, []).append(first_share / both)
        except ModelError as error:
            reason = str(error)
        for bias_type, values in coverage.items():
            row = {"bias_type": bias_type, "prompt_format": prompt_format, "one_word": debiasing is not None}
            row |= {"estimator": estimator_name, "coverage": fmean(values) if values else None}
            row["binary_share"] = fmean(of_two[bias_type]) if bias_type in of_two else None
            row["se"] = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
            yield row | {"n_prompts": len(values), "reason": reason}


def _places(design: ProbeDesign, most: int) -> list[int]:
    """Choose places of at most `most` cells of each bias type: templates in turn, jobs over the list."""
    n_jobs, chosen = len(design.items), dict[int, None]()
    templates_of: dict[str, list[int]] = {}
    for place, template in enumerate(design.templates):
        templates_of.setdefault(template.bias_type, []).append(place)
    for templates in templates_of.values():
        n = min(most, len(templates) * n_jobs)
        for i in range(n):
            job = (i * max(1, n_jobs // n) + i // len(templates)) % n_jobs
            chosen[templates[i % len(templates)] * n_jobs + job] = None
    return list(chosen)
