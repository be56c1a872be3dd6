"""Rows of probabilities: an answer with what it answers, and whether a stored one fits (run-folder#rows)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, Strict, TypeAdapter, ValidationError

from biaskit.common.provenance import SCORING_VERSION
from biaskit.records import Estimator, EstimatorName, LogProb, Prompt, Scored, ScoreRequest, TargetWord
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest
from biaskit.study.keys import notes_on_margins
from biaskit.tables.sets import TableSet


def row_of(
    answer: Scored, scope: Mapping[str, Any], prompt: Prompt, estimator: Estimator, number: int = 0
) -> dict[str, Any]:
    """Make a row; `scope`: the columns that say what is answered, `number`: of the batch, with `sampling`."""
    row = {
        "key": answer.key,
        **scope,
        "prompt": answer.prompt,
        "system": prompt.system,
        "estimator": answer.estimator,
        "answered_by": answer.answered.by,
        "answered_at": answer.answered.at,
        "prompt_tokens": answer.answered.prompt_tokens,
    }
    row["target_words"] = [_target_word(e, answer.estimator) for e in answer.log_probs]
    if answer.left_out:
        row["left_out"] = list(map(list, answer.left_out))
    if answer.listed is not None:
        row["k"] = estimator.k
        row["listed"] = {before: list(listed) for before, listed in answer.listed.items()}
        if answer.may_hide:
            row["may_hide"] = True
    if answer.listed_next is not None:
        # Six decimals: float32 sums are not better.
        row["listed_next"] = [[t.text, round(t.log_prob, 6), t.id] for t in answer.listed_next]
    if answer.counts is not None:
        row |= {"batch": number, "samples": answer.samples, "counts": dict(answer.counts)}
        row["answers"] = [list(text_and_end) for text_and_end in answer.answers or ()]
    if answer.raw is not None:
        row["raw"] = list(answer.raw)
    return row


def _target_word(e: LogProb, estimator: EstimatorName) -> dict[str, Any]:
    """Write a target word of a row: a point, or the ends of what is known."""
    entry: dict[str, Any] = {"group": e.group, "text": e.text, "log_prob": None, "token_ids": e.token_ids}
    if estimator == "top-k":
        entry |= {"low": as_json(e.low), "high": as_json(e.high)}
    elif estimator != "sampling":
        entry["log_prob"] = as_json(e.high)
    return entry if e.tokens is None else {**entry, "tokens": e.tokens}


def as_json(log_prob: float | None) -> float | None:
    """Write a log-probability as a row holds it: JSON has no -inf, so impossible is null."""
    return log_prob if log_prob is not None and math.isfinite(log_prob) else None


# --- whether a stored row fits its study ------------------------------------------------------------------

_Whole = Annotated[int, Field(ge=0)]
_LogProb = Annotated[FiniteFloat, Field(le=1e-6)]
"""At most 0, but for rounding."""


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True)


class _TargetWord(_Stored):
    group: str
    text: str
    log_prob: _LogProb | None
    token_ids: list[int] | None = None
    tokens: list[str] | None = None


class _Points(_Stored):
    estimator: Literal["exact", "selected-ids", "echo"]
    prompt: str
    target_words: list[_TargetWord]
    left_out: list[Annotated[tuple[str, str], Strict(False)]] = []
    listed_next: list[Annotated[tuple[str, _LogProb, int], Strict(False)]] = []


class _Lists(_Points):
    estimator: Literal["top-k"]  # type: ignore[assignment]
    k: Annotated[int, Field(ge=1)]
    listed: dict[str, list[Annotated[tuple[str, FiniteFloat], Strict(False)]]]
    may_hide: bool = False


class _Counts(_Points):
    estimator: Literal["sampling"]  # type: ignore[assignment]
    batch: _Whole = 0
    samples: Annotated[int, Field(ge=1)]
    counts: dict[str, _Whole]
    answers: list[Annotated[tuple[str, str], Strict(False)]] = []
    raw: list[str | None] = []


_ROW: TypeAdapter[_Points | _Lists | _Counts] = TypeAdapter(
    Annotated[_Points | _Lists | _Counts, Field(discriminator="estimator")]
)


def fault(row: Mapping[str, Any], request: ScoreRequest) -> str | None:
    """Say what is wrong with a row of a request; None where nothing is."""
    return fault_of(row, request.target_words)


def fault_of(row: Mapping[str, Any], expected: Sequence[TargetWord]) -> str | None:
    """Say what is wrong with a row of a cell whose study has these target words; None where nothing is."""
    try:
        stored = _ROW.validate_python(row)
    except ValidationError as error:
        place = error.errors(include_url=False, include_input=False)[0]["loc"]
        return f"its {'.'.join(str(part) for part in place) or 'estimator'} is not valid"
    forms = sorted([*((e.group, e.text) for e in stored.target_words), *getattr(stored, "left_out", ())])
    # Each form once, after the word boundary, without it, or both (models/conversation.py).
    spaces = [space for space in ("", " ") if (expected[0].group, space + expected[0].text) in forms]
    if not spaces or forms != sorted((e.group, space + e.text) for e in expected for space in spaces):
        return "its target words are not those of the study"
    if isinstance(stored, _Lists) and "" not in stored.listed:
        return "it has no list of tokens"
    if isinstance(stored, _Counts):
        if stored.answers and len(stored.answers) != stored.samples:
            return "it does not have one answer per sample"
        texts = {text for _, text in forms}
        if not stored.counts.keys() <= texts or sum(stored.counts.values()) > stored.samples:
            return "its counts do not match its samples"
    return None


def describe_analysis(
    made: TableSet,
    design: Any,
    manifest: Manifest,
    answerers: Answerers,
    notes: Sequence[str],  # the kind's own
    *,
    keys: Sequence[str],  # of the study that are stated, so that the same tables can be made again
    methods: Mapping[str, int],
    rows_digest: str,
    n_prompts: int,
    n_unused: int,  # stored rows that were not needed
) -> None:
    """Add the notes and the record of an analysis (analysis.json) to its tables."""
    study, models = design.study, manifest.models
    made.notes += [*answerers.notes(models, study), *notes]
    if n_unused:
        made.notes.append(f"{n_unused} stored rows are not part of this study and were not used")
    choices = {name: value for name, value in study.model_dump().items() if name in keys}
    made.notes += notes_on_margins(choices.get("margin", {}))
    made.analysis |= {"choices": {**choices, "contrast": list(design.contrast)}, "methods": methods}
    made.analysis |= {"scoring": SCORING_VERSION, "signature": design.sign(models)}
    made.analysis |= {"rows_digest": rows_digest, "n_prompts": n_prompts, "answered": answerers.record()}
    made.analysis |= {"notes": [*made.notes], "versions": manifest.versions}
