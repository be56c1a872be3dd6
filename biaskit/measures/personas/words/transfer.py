"""How well women's and men's texts can be told apart by words that name no gender (methods/srb#transfer).

In texts that were asked for without a gender (inferred), in texts asked for with one (requested), and
carried over: learnt in one, tested in the other. That transfer is what SRB is meant to measure; unlike srb_z,
it is an effect size: 10 + 10 texts teach, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.plain import group_by
from biaskit.common.wording import joined
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import (
    INFERRED,
    NO_TEXTS,
    REQUESTED,
    TextDocument,
    TextDocuments,
)
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.words.comparisons import TextComparison, some_of
from biaskit.measures.personas.words.run_lists import Progress, RunLists
from biaskit.measures.personas.words.shuffles import why_unequal
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.classification import TAUGHT, HeldOut, Sample, across, area_interval, at_one_size, within
from biaskit.stats.crossed import MANY, share_interval
from biaskit.stats.resampling import generator
from biaskit.tables.quantities import AREAS
from biaskit.tables.query import Row
from biaskit.tables.reasons import HOLD_OUT, parts_of_reason

MIN_TEXTS = TAUGHT + 2  # texts of women, and of men: those that teach, and two that are tested each time
MOST_TEXTS = 200
"""Texts of a prompt and gender that are used at most: the work grows with their square."""
SAMPLED = f"{MOST_TEXTS} texts of a prompt and gender, sampled at random"
CONTROL = f"{HOLD_OUT}: a positive control"
WITHIN_OCCUPATION = "one occupation: no interval"

_Used = tuple[Sample, bool]  # True: there were more texts
Cell = tuple[str, str]  # origin of the texts that are learnt from, and of those that are tested
CELLS: tuple[Cell, ...] = (*AREAS.values(), (INFERRED, REQUESTED))


@dataclass(frozen=True, slots=True)
class _Area:
    """The area of one model, occupation and cell with what its p-value is of; or why there is none."""

    area: float | None = None
    variance: float | None = None  # over texts
    interval: tuple[float, float] | None = None  # of a mean over occupations
    held_out: HeldOut | None = None
    reason: str | None = None
    lengths: tuple[tuple[FloatArray, FloatArray], ...] = ()  # women's and men's, of texts taught and judged


def transfer_rows(
    documents: TextDocuments, lists: RunLists, study: PersonasStudy, progress: Progress
) -> Iterator[Row]:
    """Yield the rows of text_transfer.csv: four for each model and occupation, then four means over them."""
    from threadpoolctl import threadpool_limits

    n_pairs, done = len(documents.models) * len(documents.occupations), 0
    for model in documents.models:
        usable = ~says_gender(documents.tokens.words, lists.names[model])
        areas_of: dict[Cell, list[_Area]] = {cell: [] for cell in CELLS}
        for occupation in documents.occupations:
            progress(done, n_pairs)
            done += 1
            if documents.imported and not lists.has(model, occupation):
                continue
            samples: dict[str, _Used | str] = {}
            for origin in (INFERRED, REQUESTED):
                compared = lists.compared(model, occupation, origin)
                samples[origin] = _sample(documents, study, model, origin, compared, usable)
            with threadpool_limits(limits=1):  # the last digits must not depend on the number of cores
                for cell, areas in areas_of.items():
                    areas.append(_area(samples[cell[0]], samples[cell[1]], study, [model, occupation, *cell]))
            if occupation != ALL:  # texts without an occupation: the mean is theirs
                for cell, areas in areas_of.items():
                    yield _row(model, occupation, cell, areas[-1], study)
        for cell, areas in areas_of.items():
            if areas:
                yield _row(model, ALL, cell, _mean(areas, over_texts=documents.imported), study)
    progress(n_pairs, n_pairs)


def _sample(
    documents: TextDocuments,
    study: PersonasStudy,
    model: str,
    origin: str,
    compared: TextComparison | None,
    usable: BoolArray,
) -> _Used | str:
    """Sample texts of women and men in prompts that have both; or say why not."""
    if model in (unread := documents.lacking("words")):  # gender words and names are English ones
        return unread[model]
    if origin not in documents.origins:
        return NO_TEXTS[origin]
    if compared is None or compared.reason is not None:
        return (compared and compared.reason) or f"{NO_TEXTS[origin]} for this occupation"
    of_two = compared.of_women_and_men()
    groups = group_by(of_two.texts, attrgetter("template_id", "gender"))
    texts: list[TextDocument] = []
    for (template, gender), of_cell in groups.items():
        if not ((template, "female") in groups and (template, "male") in groups):
            continue
        if len(of_cell) > MOST_TEXTS:
            rng = generator(study.seed, "text_transfer", [*compared.key, template, gender])
            of_cell = some_of(of_cell, MOST_TEXTS, rng)
        texts += of_cell
    used = replace(of_two, texts=tuple(texts))
    n_female, n_male = map(used.genders.count, WOMEN_AND_MEN)
    if min(n_female, n_male) < MIN_TEXTS:
        few = f"{n_female} texts of women, {n_male} of men in prompts that have both (gender {origin})"
        return f"{few}; {MIN_TEXTS} of each are needed"
    counts, rng = documents.counts_of(texts)[:, usable], generator(study.seed, "text_transfer", compared.key)
    is_female = [gender == WOMEN_AND_MEN[0] for gender in used.genders]
    of_units = list(map(attrgetter("unit"), texts))
    sample = Sample.shuffled(counts, is_female, used.prompts, rng, study.permutations, of_units)
    return sample, max(map(len, groups.values())) > MOST_TEXTS


def _area(taught: _Used | str, judged: _Used | str, study: PersonasStudy, row_key: Sequence[str]) -> _Area:
    if isinstance(taught, str) or isinstance(judged, str):
        return _Area(reason=taught if isinstance(taught, str) else str(judged))
    rng = generator(study.seed, "text_transfer", row_key)
    held_out = within(taught[0], rng) if taught is judged else across(taught[0], judged[0])
    found = at_one_size(taught[0], judged[0], rng)
    if found is None:
        return _Area(reason="no prompt has texts of women and of men besides the training texts")
    lengths = []
    for sample, _ in (taught, judged):
        words = np.asarray(sample.counts.sum(axis=1), dtype=np.float64).ravel()
        lengths.append((words[sample.labels[:, 0]], words[~sample.labels[:, 0]]))
    reason = joined([SAMPLED if taught[1] or judged[1] else None, WITHIN_OCCUPATION])
    return _Area(*found, None, held_out, reason, tuple(lengths))


def _mean(areas: Sequence[_Area], *, over_texts: bool) -> _Area:
    """Average over occupations, and over those of each shuffle; `over_texts`: with an interval over texts."""
    defined = [area for area in areas if area.area is not None]
    if not defined:
        return _Area(reason=areas[0].reason)
    left_out = len(areas) - len(defined)
    reasons = [f"{left_out} of {len(areas)} occupations left out" if left_out else None]
    if any(SAMPLED in parts_of_reason(area.reason) for area in defined):
        reasons.append(SAMPLED)
    if len(defined) == 1:
        reasons.append(WITHIN_OCCUPATION)

    def values(name: str) -> list[Any]:
        return list(map(attrgetter(name), defined))

    taught, judged = (np.mean(values(f"held_out.{side}"), axis=0) for side in ("taught", "judged"))
    held_out = HeldOut(float(np.mean(values("held_out.area"))), taught, judged)
    lengths = []
    for of_occupations in zip(*values("lengths"), strict=True):  # texts taught, texts judged
        women, men = map(np.concatenate, zip(*of_occupations, strict=True))
        lengths.append((women, men))
    found, variance = values("area"), sum(values("variance")) / len(defined) ** 2 if over_texts else 0.0
    area, interval = float(np.mean(found)), area_interval(found)
    if len(defined) > 1 and variance > 0:
        reasons.append("interval over texts")
        low, high = share_interval(area, np.array(variance), np.array(MANY))
        interval = float(low), float(high)
    return _Area(area, variance or None, interval, held_out, joined(reasons), tuple(lengths))


def _row(model: str, occupation: str, cell: Cell, area: _Area, study: PersonasStudy) -> Row:
    # Longer texts can be told apart by their length alone: no claim then.
    why_no_claim = None
    for sides in area.lengths:
        why_no_claim = why_no_claim or why_unequal(dict(zip(WOMEN_AND_MEN, sides, strict=True)))
    row: dict[str, Any] = {"model": model, "occupation": occupation}
    row |= {"trained_on": cell[0], "tested_on": cell[1], "auc": area.area}
    row["se"] = None if area.variance is None else math.sqrt(area.variance)
    row["ci_low"], row["ci_high"] = area.interval or (None, None)
    row["p_value"] = area.held_out.p_value if area.held_out and not why_no_claim else None
    row["n_female"], row["n_male"] = map(len, area.lengths[1]) if area.lengths else (None, None)
    return {**row, "reason": joined([CONTROL if study.hold_out else None, why_no_claim, area.reason])}
