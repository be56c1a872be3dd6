"""How well women's and men's texts can be told apart by words that name no gender (docs/methods.md#transfer).

In texts that were asked for without a gender (associated), in texts asked for with one (specified), and
carried over: learnt in one, tested in the other. That transfer is what SRB means to say; unlike its z it is
a size that does not grow with the number of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biaskit.personas.texts.documents import ASSOCIATED, SPECIFIED, TextDocument, TextDocuments
from biaskit.personas.words.comparisons import TextComparison
from biaskit.personas.words.gender_words import says_gender
from biaskit.personas.words.run_lists import RunLists
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray
from biaskit.stats.crossed import joined
from biaskit.stats.held_out import CHANCE, HeldOut, Sample, across, strata_with_both, within
from biaskit.stats.resampling import generator
from biaskit.stats.welch import paired
from biaskit.study.keys import PersonasStudy
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row
from biaskit.tables.reasons import HOLD_OUT

MIN_TEXTS = 10
"""Texts of women and of men under which nothing is learnt and nothing is tested."""
MOST_TEXTS = 200
"""Texts of a prompt and gender that are used at most: pairs grow with their square, the size does not."""
CONTROL = f"{HOLD_OUT}: a positive control"
WITHIN_OCCUPATION = "one occupation: no interval"

Cell = tuple[str, str]
"""Where it is learnt, and where it is tested."""
CELLS: tuple[Cell, ...] = (
    (ASSOCIATED, ASSOCIATED),
    (SPECIFIED, SPECIFIED),
    (SPECIFIED, ASSOCIATED),
    (ASSOCIATED, SPECIFIED),
)
NO_TEXTS = {
    ASSOCIATED: "no texts without a specified gender",
    SPECIFIED: "no texts with a specified gender",
}


@dataclass(frozen=True, slots=True)
class _Area:
    """The area of one model, occupation and cell with those of shuffled genders; or why there is none."""

    n_female: int | None = None
    n_male: int | None = None
    found: HeldOut | None = None
    reason: str | None = None


def transfer_rows(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Row]:
    """text_transfer.csv: four rows for each model and occupation, then four means over them."""
    n_pairs, done = len(documents.models) * len(documents.occupations), 0
    for model in documents.models:
        kept = ~says_gender(documents.tokens.words, lists.names[model])
        of_cell: dict[Cell, list[_Area]] = {cell: [] for cell in CELLS}
        for occupation in documents.occupations:
            if progress:
                progress(done, n_pairs)
            done += 1
            known = any((model, occupation, origin) in lists.of for origin in (ASSOCIATED, SPECIFIED))
            if documents.imported and not known:
                continue
            for cell, area in _areas(documents, lists, study, model, occupation, kept).items():
                of_cell[cell].append(area)
                yield _row(model, occupation, cell, area, (None, None), study)
        for cell, areas in of_cell.items():
            if areas:
                mean = _mean(areas)
                yield _row(model, ALL_OCCUPATIONS, cell, mean, _interval(areas), study)
    if progress:
        progress(n_pairs, n_pairs)


def _areas(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    model: str,
    occupation: str,
    kept: BoolArray,
) -> Mapping[Cell, _Area]:
    """The four areas of one model and occupation."""
    samples: dict[str, Sample | str] = {}
    for origin in (ASSOCIATED, SPECIFIED):
        one, _ = lists.of.get((model, occupation, origin), (None, ()))
        if origin not in documents.origins:
            samples[origin] = NO_TEXTS[origin]
        elif one is None or one.reason is not None:
            samples[origin] = (one and one.reason) or f"no {origin} texts of this occupation"
        else:
            samples[origin] = _sample(documents, one, study, kept)
    return {cell: _area(samples[cell[0]], samples[cell[1]]) for cell in CELLS}


def _area(taught: Sample | str, judged: Sample | str) -> _Area:
    if isinstance(taught, str):
        return _Area(reason=taught)
    if isinstance(judged, str):
        return _Area(reason=judged)
    n_female, n_male = _sizes(judged)
    found = within(taught) if taught is judged else across(taught, judged)
    return _Area(n_female, n_male, found, WITHIN_OCCUPATION)


def _sizes(sample: Sample) -> tuple[int, int]:
    n_female = int(sample.labels[:, 0].sum())
    return n_female, len(sample.strata) - n_female


def _sample(
    documents: TextDocuments, one: TextComparison, study: PersonasStudy, kept: BoolArray
) -> Sample | str:
    """The texts of women and men that are compared in one origin, without gender words; or why not."""
    texts = _at_most([text for text in one.texts if text.gender in WOMEN_AND_MEN], one, study)
    is_female = [text.gender == WOMEN_AND_MEN[0] for text in texts]
    both = list(strata_with_both(is_female, [text.template_id for text in texts]))
    if texts and not both:
        return f"no prompt has {one.origin} texts of women and of men"
    n_female = sum(is_female[i] for i in both)
    if min(n_female, len(both) - n_female) < MIN_TEXTS:
        return (
            f"{n_female} {one.origin} texts of women and {len(both) - n_female} of men in prompts with both;"
            f" {MIN_TEXTS} of each are needed"
        )
    counts = documents.tokens.counts()[[texts[i].place for i in both]][:, np.flatnonzero(kept)]
    return Sample.shuffled(
        counts,
        [is_female[i] for i in both],
        [texts[i].template_id for i in both],
        generator(study.seed, "text_transfer", one.key),
        study.permutations,
    )


def _at_most(
    texts: Sequence[TextDocument], one: TextComparison, study: PersonasStudy
) -> Sequence[TextDocument]:
    """Of each prompt and gender at most so many, drawn at random and kept in their order."""
    groups: dict[tuple[str, str | None], list[int]] = {}
    for i, text in enumerate(texts):
        groups.setdefault((text.template_id, text.gender), []).append(i)
    chosen: list[int] = []
    for (template, gender), places in groups.items():
        if len(places) > MOST_TEXTS:
            rng = generator(study.seed, "text_transfer", [*one.key, template, gender])
            places = [places[i] for i in rng.permutation(len(places))[:MOST_TEXTS].tolist()]
        chosen += places
    return [texts[i] for i in sorted(chosen)]


# --- over occupations --------------------------------------------------------------------------------


def _mean(areas: Sequence[_Area]) -> _Area:
    """The mean over occupations, and the mean of each shuffle."""
    known = [(area, area.found) for area in areas if area.found is not None]
    if not known:
        return _Area(reason=areas[0].reason)
    left_out = len(areas) - len(known)
    note = f"{left_out} of {len(areas)} occupations left out" if left_out else None
    return _Area(
        sum(area.n_female or 0 for area, _ in known),
        sum(area.n_male or 0 for area, _ in known),
        HeldOut(
            float(np.mean([one.area for _, one in known])),
            np.mean([one.taught for _, one in known], axis=0),
            np.mean([one.judged for _, one in known], axis=0),
        ),
        joined([note, WITHIN_OCCUPATION if len(known) == 1 else None]),
    )


def _interval(areas: Sequence[_Area]) -> tuple[float | None, float | None]:
    """The t interval of the mean over occupations, clipped to [0, 1]."""
    values = np.array([area.found.area for area in areas if area.found is not None])
    ends = paired(values, np.full(values.shape, CHANCE)).ci95 if values.size else None
    return (None, None) if ends is None else (max(0.0, CHANCE + ends[0]), min(1.0, CHANCE + ends[1]))


def _row(
    model: str,
    occupation: str,
    cell: Cell,
    area: _Area,
    ends: tuple[float | None, float | None],
    study: PersonasStudy,
) -> Row:
    found = area.found
    return {
        "model": model,
        "occupation": occupation,
        "trained_on": cell[0],
        "tested_on": cell[1],
        "auc": found.area if found else None,
        "ci_low": ends[0],
        "ci_high": ends[1],
        "p_value": found.p_value if found else None,
        "n_female": area.n_female,
        "n_male": area.n_male,
        "reason": joined([CONTROL if study.hold_out else None, area.reason]),
    }
