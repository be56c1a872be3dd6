"""How well women's and men's texts can be told apart by words that name no gender (docs/methods.md#transfer).

In texts that were asked for without a gender (associated), in texts asked for with one (specified), and
carried over: learnt in one, tested in the other. That transfer is what SRB means to say; unlike its z it is a
size, with a ceiling that more texts bring it nearer to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biaskit.personas.texts.documents import ASSOCIATED, SPECIFIED, TextDocument, TextDocuments
from biaskit.personas.words.comparisons import TextComparison
from biaskit.personas.words.gender_words import says_gender
from biaskit.personas.words.labelled_texts import of_columns
from biaskit.personas.words.run_lists import RunLists
from biaskit.personas.words.shuffles import why_unequal
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.crossed import joined
from biaskit.stats.held_out import HeldOut, Sample, across, area_interval, strata_with_both, within
from biaskit.stats.resampling import generator
from biaskit.study.keys import PersonasStudy
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row
from biaskit.tables.reasons import HOLD_OUT, NOT_ENGLISH, parts_of_reason

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MIN_TEXTS = 10
"""Texts of women and of men under which nothing is learnt and nothing is tested."""
MOST_TEXTS = 200
"""Texts of a prompt and gender that are used at most: pairs grow with their square, the size does not."""
DRAWN = f"{MOST_TEXTS} texts of a prompt and gender, drawn at random"
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
    lengths: tuple[tuple[FloatArray, FloatArray], ...] = ()  # women's and men's, of texts taught and judged

    @property
    def why_unequal(self) -> str | None:
        """Why the area is no claim: longer texts can be told apart by their length alone."""
        found = (why_unequal(dict(zip(WOMEN_AND_MEN, sides, strict=True))) for sides in self.lengths)
        return next(filter(None, found), None)


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
                if occupation != ALL_OCCUPATIONS:  # texts without an occupation: the mean is theirs
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
    chosen: dict[str, _Chosen | str] = {}
    for origin in (ASSOCIATED, SPECIFIED):
        one, _ = lists.of.get((model, occupation, origin), (None, ()))
        if model in documents.unread:  # gender words and names are English ones
            chosen[origin] = NOT_ENGLISH
        elif origin not in documents.origins:
            chosen[origin] = NO_TEXTS[origin]
        elif one is None or one.reason is not None:
            chosen[origin] = (one and one.reason) or f"no {origin} texts of this occupation"
        else:
            chosen[origin] = _choose(one, study)
    counts = documents.tokens.counts()
    places = [text.place for one in chosen.values() if isinstance(one, _Chosen) for text in one.texts]
    occurs = np.unique(counts[places].indices)
    columns = occurs[kept[occurs]]
    samples = {
        origin: one if isinstance(one, str) else one.sample(counts, columns, study)
        for origin, one in chosen.items()
    }
    cut = {origin for origin, one in chosen.items() if isinstance(one, _Chosen) and one.is_cut}
    return {cell: _area(samples[cell[0]], samples[cell[1]], bool(cut & {*cell})) for cell in CELLS}


def _area(taught: Sample | str, judged: Sample | str, is_cut: bool) -> _Area:
    if isinstance(taught, str):
        return _Area(reason=taught)
    if isinstance(judged, str):
        return _Area(reason=judged)
    n_female = int(judged.labels[:, 0].sum())
    found = within(taught) if taught is judged else across(taught, judged)
    reason = joined([DRAWN if is_cut else None, WITHIN_OCCUPATION])
    return _Area(n_female, len(judged.strata) - n_female, found, reason, (_lengths(taught), _lengths(judged)))


def _lengths(sample: Sample) -> tuple[FloatArray, FloatArray]:
    lengths, is_female = np.asarray(sample.counts.sum(axis=1), dtype=np.float64).ravel(), sample.labels[:, 0]
    return lengths[is_female], lengths[~is_female]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The texts of women and of men of one comparison that are used."""

    of: TextComparison
    texts: tuple[TextDocument, ...]
    is_cut: bool  # more were there

    def sample(
        self, counts: csr_matrix, columns: NDArray[np.signedinteger[Any]], study: PersonasStudy
    ) -> Sample:
        """Their counts of the words that may be used."""
        return Sample.shuffled(
            of_columns(counts[[text.place for text in self.texts]], columns),
            [text.gender == WOMEN_AND_MEN[0] for text in self.texts],
            [text.template_id for text in self.texts],
            generator(study.seed, "text_transfer", self.of.key),
            study.permutations,
        )


def _choose(one: TextComparison, study: PersonasStudy) -> _Chosen | str:
    """The texts of women and of men in prompts that have both; or why they are too few."""
    texts = [text for text in one.texts if text.gender in WOMEN_AND_MEN]
    most = _at_most(texts, one, study)
    both = strata_with_both([t.gender == WOMEN_AND_MEN[0] for t in most], [t.template_id for t in most])
    used = tuple(most[i] for i in both)
    n_female, n_male = (sum(text.gender == gender for text in used) for gender in WOMEN_AND_MEN)
    if min(n_female, n_male) < MIN_TEXTS:
        return (
            f"{n_female} {one.origin} texts of women and {n_male} of men in prompts that have both;"
            f" {MIN_TEXTS} of each are needed"
        )
    return _Chosen(one, used, len(most) < len(texts))


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
    drawn = DRAWN if any(DRAWN in parts_of_reason(area.reason) for area, _ in known) else None
    return _Area(
        sum(area.n_female or 0 for area, _ in known),
        sum(area.n_male or 0 for area, _ in known),
        HeldOut(
            float(np.mean([one.area for _, one in known])),
            np.mean([one.taught for _, one in known], axis=0),
            np.mean([one.judged for _, one in known], axis=0),
        ),
        joined([note, drawn, WITHIN_OCCUPATION if len(known) == 1 else None]),
        tuple(
            (np.concatenate([one[0] for one in sides]), np.concatenate([one[1] for one in sides]))
            for sides in zip(*(area.lengths for area, _ in known), strict=True)
        ),
    )


def _interval(areas: Sequence[_Area]) -> tuple[float | None, float | None]:
    """The interval of the mean over occupations."""
    return area_interval([area.found.area for area in areas if area.found is not None]) or (None, None)


def _row(
    model: str,
    occupation: str,
    cell: Cell,
    area: _Area,
    ends: tuple[float | None, float | None],
    study: PersonasStudy,
) -> Row:
    found, unequal = area.found, area.why_unequal
    return {
        "model": model,
        "occupation": occupation,
        "trained_on": cell[0],
        "tested_on": cell[1],
        "auc": found.area if found else None,
        "ci_low": ends[0],
        "ci_high": ends[1],
        "p_value": found.p_value if found and not unequal else None,
        "n_female": area.n_female,
        "n_male": area.n_male,
        "reason": joined([CONTROL if study.hold_out else None, unequal, area.reason]),
    }
