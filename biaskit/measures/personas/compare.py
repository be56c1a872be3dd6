"""Tests between models that wrote texts, over common occupations (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.wording import ROUNDING, count, joined, listed, short
from biaskit.compare.comparison import MODELS, Comparison
from biaskit.compare.pairs import PairNote, PairTests, Side, SidePair, members_of, model_pairs, rows_of_all
from biaskit.compare.same_prompts import PromptTexts, all_equal, one_vector_model, vectors_of
from biaskit.compare.units import Values, unit_rows
from biaskit.corpora.languages import ENGLISH
from biaskit.measurement import words as words_of_kind
from biaskit.records import ALL, GENDERS, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust, one_row
from biaskit.stats.crossed import Spread, crossed_test
from biaskit.stats.power import POWER, texts_to_show
from biaskit.stats.proportions import noise_of
from biaskit.stats.swaps import percent_change
from biaskit.tables.query import (
    Row,
    Tables,
    by_person,
    column,
    defined,
    distinct,
    grouped,
    lookup,
    n_known,
    where,
    without_debiasing,
    women_among,
)

_NOTES: Mapping[str, str] = words_of_kind("personas")["notes"]["compare"]
SCORES = ("srb", "srb_content")
"""Columns of srb.csv that are tested: with gender words, and without."""
_OF_TEXTS = ("female_share", "ci_low", "ci_high", "n_texts", "n_female", "n_male", "n_nonbinary")


@dataclass(frozen=True, slots=True)
class Shares:
    """One model's share of women by occupation, template `all`, no debiasing prompt, and its two ends."""

    mean: Values
    least: Values  # if all texts that name no gender were about men
    most: Values  # about women
    note: str | None  # where labels of a person corrected it, or genders are known
    rows: Mapping[str, Row] = field(default_factory=dict)  # of occupations with a share


@dataclass(frozen=True, slots=True)
class Texts:
    """One model's numbers over occupations, and what they were made with."""

    model: str
    run: str
    prompt_format: str  # "" of a user's own texts
    scores: Mapping[tuple[str, str], Values]  # by gender and `SCORES`
    by_rules: Shares
    by_labels: Shares  # the rules' where an occupation is not of `labelled`
    labelled: frozenset[str]  # occupations whose share labels of a person corrected
    templates: tuple[str, ...]
    language: str = ENGLISH  # whose rules read them; "": labels of a person alone say who they are about
    vectors: str = ""  # the vector model, and the control where there is one
    asked: PromptTexts = field(default_factory=PromptTexts)
    seed: int = 1


def compare(comparison: Comparison) -> None:
    """Add tests and changes of SRB between models that wrote texts."""
    runs, notes = comparison.runs("personas"), comparison.tables.notes
    models = comparison.models(runs)
    texts: dict[str, Texts] = {}
    for run in runs:
        entries = run.manifest.models.items()
        formats = {label: entry.prompt_format for label, entry in entries}
        seed = int(run.manifest.resolved["study"].get("seed", 1))
        texts |= texts_of(run.tables, formats, run=str(run.path), seed=seed, asked=PromptTexts(run.question))
    test = partial(pair_rows_of_texts, texts=texts, margins=comparison.margins)
    comparison.test_models(models, test, "personas")
    comparison.tables.rows["srb_change"] += _changes(texts)
    if not _one_vector_model(texts.values()):
        used = [f"{one.run} ({one.vectors})" for one in texts.values() if one.vectors]
        notes.append(_NOTES["vectors"].format(", ".join(dict.fromkeys(used))))
    columns = []
    for run in runs:
        if lists := run.tables.get("group_lists"):
            columns.append(f"{short(lists[0]['column'])} in {run.path}")
    if columns:
        notes.append(_NOTES["groups"].format(", ".join(columns)))


def between_persona_models(
    tables: Tables, *, formats: Mapping[str, str], margins: Mapping[str, float], seed: int, run: str = ""
) -> tuple[list[Contrast], list[Row], list[str]]:
    """Test every pair of models of one run over common occupations, later named − earlier.

    Made from srb (women and men apart, GAS(P) Table 14) and representation (share of women, template
    `all`). Returns rows welch and paired, those of srb_change.csv (old = named first), and notes. `formats`:
    model → prompt format; a pair in two formats is not compared.
    """
    texts = texts_of(tables, formats, run=run, seed=seed)
    test = partial(pair_rows_of_texts, texts=texts, margins=margins)
    rows, notes = rows_of_all(test, formats)
    return adjust(rows), list(_changes(texts)), notes


def texts_of(
    tables: Tables, formats: Mapping[str, str], *, run: str, seed: int, asked: PromptTexts | None = None
) -> dict[str, Texts]:
    """Read the models of one run from srb.csv and representation.csv; `formats`: model → prompt format."""
    scores_of = grouped(tables.get("srb", ()), "model")
    shares_of = grouped(tables.get("representation", ()), "model")
    texts_of_model = {}
    for model, prompt_format in formats.items():
        scores, rows = scores_of.get((model,), []), shares_of.get((model,), [])
        values: dict[tuple[str, str], Values] = {}
        for gender, score in product(WOMEN_AND_MEN, SCORES):
            # Of a user's own texts without any score there is nothing to test.
            scored = scores if prompt_format or defined(scores, score) else []
            values[gender, score] = lookup(where(scored, gender=gender), "occupation", score)
        by_rules = _shares([{**row, "share_corrected": None} for row in rows])
        labelled = frozenset(row["occupation"] for row in rows if row.get("share_corrected") is not None)
        templates = tuple(map(str, distinct(without_debiasing(rows), "template_id")))
        how: Any = {"vectors": vectors_of(scores), "asked": asked or PromptTexts(), "seed": seed}
        how["language"] = (rows[0].get("language", ENGLISH) or "") if rows else ENGLISH
        texts_of_model[model] = Texts(
            model, run, prompt_format, values, by_rules, _shares(rows), labelled, templates, **how
        )
    return texts_of_model


def _shares(rows: Sequence[Row]) -> Shares:
    plain = without_debiasing(rows)
    means, least, most = where(plain, template_id=ALL), dict[str, float](), dict[str, float]()
    known = defined(means, "female_share")
    rows_of = dict(zip(column(known, "occupation"), known, strict=True))
    for name in rows_of:
        if among := women_among(GENDERS, where(plain, occupation=name)):
            _, least[name], most[name], _ = among
    return Shares(lookup(means, "occupation", "female_share"), least, most, by_person(plain), rows_of)


def pair_rows_of_texts(pair: SidePair, texts: Mapping[str, Texts], margins: Mapping[str, float]) -> PairTests:
    """Test SRB (women, men) and the share of women: rows welch and paired, later side minus earlier.

    A side's number is the mean over its models, on the occupations that all models have. Sides are not
    compared across prompt formats, prompts or vector models; the notes say so.
    """
    later, earlier = pair
    members = members_of(pair, texts)
    if not all_equal(map(attrgetter("prompt_format"), members)):
        return [], [PairNote("prompt formats")]
    names = later.name, earlier.name
    if differing := _differing_prompts(members, with_gender=False):
        return [], [PairNote("prompts", _NOTES["prompts"].format(*names, ", ".join(differing)))]
    rows: list[Contrast] = []
    notes: list[PairNote] = []
    scope = Scope("personas", MODELS, later.name, earlier.name, unit="occupation")
    seed = members[0].seed
    # `compare` has one note on different vector models for all pairs.
    imported = not members[0].prompt_format
    if any(any(member.scores.values()) for member in members) and _one_vector_model(members):
        if differing := _differing_prompts(members, with_gender=True):
            notes.append(PairNote("prompts", _NOTES["srb_prompts"].format(*names, ", ".join(differing))))
        else:
            for gender, score in product(WOMEN_AND_MEN, SCORES):
                scores = {member.model: member.scores.get((gender, score), {}) for member in members}
                own = replace(scope, quantity=score, gender=gender)
                rows += unit_rows(pair, scores, own, margins, seed)

    # The rules' errors would be a difference between a side that labels correct and one that they do not.
    common = set(members[0].by_labels.mean)
    for member in members:
        common &= {job for job, share in member.by_labels.mean.items() if share is not None}
    all_labelled = all(common <= member.labelled for member in members)
    shares = {}
    for member in members:
        only_labels = all_labelled or not any(member.by_rules.mean.values())  # of texts that no rules read
        shares[member.model] = member.by_labels if only_labels else member.by_rules

    def of(name: str) -> dict[str, Values]:
        return {model: getattr(own, name) for model, own in shares.items()}

    if any(of("mean").values()):
        scope = replace(scope, quantity="represented_share", gender="female")
        note = joined([one.note and f"{model}: {one.note}" for model, one in shares.items()])
        if any(member.labelled and shares[member.model] is member.by_rules for member in members):
            note = joined([note, _NOTES["labels"]])
        if not all_equal(map(attrgetter("language"), members)):
            read = [f"{member.model}: {member.language or 'none'}" for member in members]
            note = joined([note, _NOTES["languages"].format(", ".join(read))])
        known = [model for model, own in shares.items() if n_known(own.rows.values())]
        if 0 < len(known) < len(members):
            note = joined([note, _NOTES["known"].format(listed(known))])
        ends = of("least"), of("most")
        of_share = unit_rows(pair, of("mean"), scope, margins, seed, ends=ends)
        if imported:
            of_share = _over_texts(pair, shares, replace(scope, unit="text"), margins) or of_share
        for row in of_share:
            rows.append(replace(row, reason=joined([row.reason, note])))
    return rows, notes


def _over_texts(
    pair: SidePair, shares: Mapping[str, Shares], scope: Scope, margins: Mapping[str, float]
) -> list[Contrast]:
    """Test the share of women over a user's own texts: occupations are fixed (methods/comparisons#own-texts).

    They are those of all models, and weigh as in the later side's texts that name a gender; no row of none.
    """
    members = [*map(attrgetter("rows"), members_of(pair, shares))]
    names = sorted(set(members[0]).intersection(*members))
    if not names:
        return []

    def numbers(side: Side) -> list[FloatArray]:
        of_models, k = [], len(side.models)
        for own in map(shares.__getitem__, side.models):
            of_texts = partial(column, list(map(own.rows.__getitem__, names)))
            p, low, high, n_texts, *n = map(np.array, map(of_texts, _OF_TEXTS))
            n_gendered = sum(n) if np.any(n) else n_texts  # without rules no count names a gender
            noise, dof = noise_of(p, low, high)
            ends = [*map(own.least.get, names)], [*map(own.most.get, names)]
            of_models.append([k * n_gendered, noise / k, noise**2 / dof / k**3, p, *ends])
        return list(np.array(of_models, dtype=np.float64).mean(axis=0))

    # Satterthwaite's terms stand in `below`; a and b are the share, its least and its most.
    (n_a, noise_a, below_a, *a), (n_b, noise_b, below_b, *b) = map(numbers, pair)
    weights = n_a / n_a.sum()
    estimate, low, high = weights @ (a[0] - b[0]), weights @ (a[1] - b[2]), weights @ (a[2] - b[1])
    variance = weights**2 @ (noise_a + noise_b)
    test = crossed_test(float(estimate), Spread(variance, variance**2 / (weights**4 @ (below_a + below_b))))
    notes = [_NOTES["own_texts"].format(count(len(names), "occupation"), pair[0].name)]
    if n_out := len(set().union(*members)) - len(names):
        notes.append(_NOTES["left_out"].format(n_out))
    if high - low > ROUNDING:
        notes.append(_NOTES["no_gender"].format(low, high))
    row = one_row("standardised", test, scope=scope, n=int(n_a.sum()), margins=margins, note=None)
    row = replace(row, n_b=int(n_b.sum()))
    if row.margin and not row.equivalent and not row.direction:
        notes.append(_NOTES["needs"].format(row.margin, texts_to_show(row, row.margin), 100 * POWER))
    return [replace(row, reason=joined([row.reason, *notes]))]


def _one_vector_model(members: Iterable[Texts]) -> bool:
    return one_vector_model(map(attrgetter("vectors", "run"), members))


def _differing_prompts(members: Sequence[Texts], *, with_gender: bool) -> list[str]:
    """Templates that not all models were asked in the same words."""
    differing = []
    for name in dict.fromkeys(name for member in members for name in member.templates if name != ALL):
        everywhere = all(name in member.templates for member in members if member.templates)
        asked = [each.asked.prompt(name, each.prompt_format, with_gender=with_gender) for each in members]
        if not everywhere or not all_equal(asked):
            differing.append(name)
    return differing


def _changes(texts: Mapping[str, Texts]) -> Iterator[Row]:
    """Rows of srb_change.csv (GAS(P) Figure 4), old = earlier; none between formats, prompts or vectors."""
    for later, earlier in model_pairs(list(texts)):
        new, old = texts[later.name], texts[earlier.name]
        differ = new.prompt_format != old.prompt_format or _differing_prompts([new, old], with_gender=True)
        if differ or not _one_vector_model([new, old]):
            continue
        for gender in WOMEN_AND_MEN:
            before, after = (of_model.scores.get((gender, "srb"), {}) for of_model in (old, new))
            for occupation in dict.fromkeys([*before, *after]):
                scores = before.get(occupation), after.get(occupation)
                change, reason = percent_change(*scores, gender)
                row: dict[str, Any] = {"model_old": old.model, "model_new": new.model}
                row |= {"occupation": occupation, "gender": gender}
                row |= {"srb_old": scores[0], "srb_new": scores[1]}
                yield {**row, "percent_change": change, "reason": reason}
