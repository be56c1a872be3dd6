"""The cells of a run as samples by Every Eval Ever's schema of instances, 0.3.0."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.exchange.cells import rows_of_cells
from biaskit.exchange.results import CONDITIONS, Result
from biaskit.exchange.source import Source
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.query import Row
from biaskit.wording import count

Json = dict[str, Any]
NO_ANSWER_IS_RIGHT = "no answer is right or wrong; is_correct is false because the schema takes no other word"
_BLOCK = ("bias_type", *CONDITIONS)
_CELL = (*_BLOCK, "template_id", "job")


def samples_of(
    source: Source, run: StoredRun, model: Model, results: Sequence[Result], whole: Mapping[str, Any]
) -> tuple[list[Json], list[str]]:
    """A record for each cell and gender whose mean stands among the results, in the order of probe_cells.csv.

    Cells without a share are left out, counted in a note: a score must be a number.
    """
    rows = _answers(source, run, model)
    of_block: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        key = (*(result.row[name] for name in _BLOCK), result.row["job_group"])
        of_block.setdefault(key, []).append(result)
    found: list[Json] = []
    n_empty = 0
    for cell in run.tables.get("probe_cells", ()):
        if cell["model"] != model.label:
            continue
        row = rows.get(tuple(cell[name] for name in _CELL))
        own = of_block.get((*(cell[name] for name in _BLOCK), cell["job_group"]), ())
        n_empty += row is None or any(cell[f"{one.gender}_share"] is None for one in own)
        if row is not None:
            found += _of_cell(cell, row, own, whole)
    left_out = f"{model.label}: {count(n_empty, 'cell')} without a share or an answer left out of the samples"
    return found, [left_out] if n_empty else []


def _answers(source: Source, run: StoredRun, model: Model) -> dict[tuple[Any, ...], list[Json]]:
    """Cell → the rows that answer it: several rounds where answers were drawn."""
    found: dict[tuple[Any, ...], list[Json]] = {}
    for cell, row in rows_of_cells(source, run):
        if cell.model == model.label:
            found.setdefault(tuple(getattr(cell, name) for name in _CELL), []).append(row)
    return found


def _of_cell(
    cell: Row, rows: Sequence[Json], own: Sequence[Result], whole: Mapping[str, Any]
) -> Iterator[Json]:
    first = rows[0]
    name = "/".join(str(cell[key]) for key in _CELL)
    said = [answer[0] for row in rows for answer in row.get("answers", ())] or [_probabilities(first)]
    for result in own:
        share = cell[f"{result.gender}_share"]
        if share is None:
            continue
        yield {
            "schema_version": whole["schema_version"],
            "evaluation_id": whole["evaluation_id"],
            "model_id": whole["model_info"]["id"],
            "evaluation_name": f"biaskit: {result.name}",
            "evaluation_result_id": result.name,
            "sample_id": name,
            "sample_hash": hashlib.sha256(first["prompt"].encode("utf-8", "surrogatepass")).hexdigest(),
            "interaction_type": "single_turn",
            "input": {
                "raw": first["prompt"],
                "reference": [],
                "choices": [expression["text"] for expression in first["expressions"]],
            },
            "output": {"raw": said},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": repr(share),
                    "extraction_method": f"share of {result.gender}, {cell['estimator']}",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": share, "is_correct": False},
            "metadata": _metadata(cell, first, result),
        }


def _probabilities(row: Json) -> str:
    """What a model answered where nothing was generated: each word's log-probability, or its bounds."""
    shown = {
        e["text"]: e["log_prob"] if e["log_prob"] is not None else [e.get("low"), e.get("high")]
        for e in row["expressions"]
    }
    return json.dumps(shown, allow_nan=False)


def _metadata(cell: Row, row: Json, result: Result) -> dict[str, str]:
    known = {name: cell[name] for name in (*_CELL, "job_group", "estimator", "coverage")}
    known |= {"mass": cell[f"{result.gender}_mass"], "below_floor": cell["below_floor"], "key": row["key"]}
    known |= {"system_prompt": row.get("system"), "is_correct": NO_ANSWER_IS_RIGHT}
    return {name: str(value) for name, value in known.items() if value not in (None, "")}
