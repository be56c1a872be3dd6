"""Tests between models that wrote texts, over common occupations (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.pairs import PairNote, SidePair
from biaskit.compare.same_prompts import PromptTexts, all_equal
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Row, Scope, within_units
from biaskit.stats.swaps import percent_change
from biaskit.tables.query import Tables, by_labels, grouped, where, without_instruction, women_among

Values = Mapping[str, float | None]
"""Occupation → number; None where it is undefined, absent where the model was not asked."""


@dataclass(frozen=True, slots=True)
class Texts:
    """One model's numbers over occupations, and what they were made with."""

    model: str
    run: str
    form: str  # prompt form
    srb: Mapping[str, Values]  # gender → scores; empty without srb.csv
    srb_content: Mapping[str, Values]  # the same without gender words
    shares: Values  # share of women, template `all`, no instruction
    least: Values  # the same if all texts that name no gender were about men
    most: Values  # about women
    templates: tuple[str, ...]
    note: str | None = None  # where labels of a person corrected shares
    vectors: str = ""  # the vector model, and the control where there is one
    asked: PromptTexts = field(default_factory=PromptTexts)
    seed: int = 1


def texts_of(
    tables: Tables, forms: Mapping[str, str], *, run: str, seed: int, asked: PromptTexts | None = None
) -> dict[str, Texts]:
    """Read the models of one run from srb.csv and representation.csv; `forms`: model → prompt form."""
    srb = tables.get("srb", ())
    scores_of = grouped(srb, "model")
    plain_of = grouped(without_instruction(tables.get("representation", ())), "model")
    texts_of_model = {}
    for model, form in forms.items():
        scores, plain = scores_of.get((model,), []), plain_of.get((model,), [])
        vectors = dict.fromkeys(  # a positive control is a score of its own
            " ".join(str(row[name]) for name in ("vectors", "control") if row.get(name))
            for row in scores
            if row["srb"] is not None
        )
        shares = _values(where(plain, template_id="all"), "female_share")
        prompts_of = {
            name: where(plain, occupation=name) for name, share in shares.items() if share is not None
        }
        among = {name: found for name, rows in prompts_of.items() if (found := women_among(GENDERS, rows))}
        texts_of_model[model] = Texts(
            model=model,
            run=run,
            form=form,
            srb={g: _values(where(scores, gender=g), "srb") for g in WOMEN_AND_MEN if srb},
            srb_content={g: _values(where(scores, gender=g), "srb_content") for g in WOMEN_AND_MEN if srb},
            shares=shares,
            least={name: low for name, (_, low, _, _) in among.items()},
            most={name: high for name, (_, _, high, _) in among.items()},
            templates=tuple(dict.fromkeys(str(row["template_id"]) for row in plain)),
            note=by_labels(plain),
            vectors=" / ".join(vectors),
            asked=asked or PromptTexts(),
            seed=seed,
        )
    return texts_of_model


def _values(rows: Sequence[Mapping[str, object]], column: str) -> Values:
    return {
        str(row["occupation"]): float(value) if isinstance(value := row[column], int | float) else None
        for row in rows
    }


def pair_rows_of_texts(
    pair: SidePair, texts: Mapping[str, Texts], margins: Mapping[str, float]
) -> tuple[list[Row], list[PairNote]]:
    """Test SRB (women, men) and the share of women: rows welch and paired, later side minus earlier.

    A side's number is the mean over its models, on the occupations that all models have. Sides are not
    compared across prompt forms, prompts or vector models; the notes say so.
    """
    later, earlier = pair
    members = [texts[model] for model in (*later.models, *earlier.models)]
    if len({member.form for member in members}) > 1:
        return [], [PairNote("prompt formats")]
    if differing := _differing_prompts(members, with_gender=False):
        text = (
            f"{later.name} and {earlier.name} had different prompts ({', '.join(differing)}), so there is no"
            " test between their texts."
        )
        return [], [PairNote("prompts", text)]
    rows: list[Row] = []
    notes: list[PairNote] = []
    # `compare_collection` has one note on different vector models for all pairs.
    if any(any(member.srb.values()) for member in members) and one_vector_model(members):
        if differing := _differing_prompts(members, with_gender=True):
            text = (
                f"{later.name} and {earlier.name} had different prompts with a gender"
                f" ({', '.join(differing)}), so there is no test between their SRB."
            )
            notes.append(PairNote("prompts", text))
        else:
            for gender in WOMEN_AND_MEN:
                for quantity in ("srb", "srb_content"):
                    scores = {member.model: getattr(member, quantity).get(gender, {}) for member in members}
                    rows += unit_rows(pair, scores, _scope(pair, quantity, gender), margins, members[0].seed)
    if any(member.shares for member in members):
        shares = {member.model: member.shares for member in members}
        least, most = ({m.model: getattr(m, end) for m in members} for end in ("least", "most"))
        scope = _scope(pair, "represented_share", "female")
        note = joined([member.note and f"{member.model}: {member.note}" for member in members])
        for row in unit_rows(pair, shares, scope, margins, members[0].seed, ends=(least, most)):
            rows.append({**row, "reason": joined([str(row["reason"] or "") or None, note])})
    return rows, notes


def one_vector_model(members: Sequence[Texts]) -> bool:
    """Whether all SRB scores come from one vector model (methods/srb#vector-models).

    Names of trained and of read vectors hold a digest of what they are made of; vectors of the marked lists
    are named alike in every run and are never the same. A model without a score has none.
    """
    named = ("corpus:", "pretrained:")
    return len({(m.vectors, "" if m.vectors.startswith(named) else m.run) for m in members if m.vectors}) < 2


def comparable(members: Sequence[Texts], *, scores: bool) -> bool:
    """Whether the texts answer the same prompts in one form and, for `scores`, share one vector model."""
    return (
        len({member.form for member in members}) == 1
        and not _differing_prompts(members, with_gender=scores)
        and (not scores or one_vector_model(members))
    )


def _differing_prompts(members: Sequence[Texts], *, with_gender: bool) -> list[str]:
    """Templates that not all models were asked in the same words."""
    templates = dict.fromkeys(name for member in members for name in member.templates if name != "all")
    return [
        name
        for name in templates
        if not all(name in member.templates for member in members if member.templates)
        or not all_equal([m.asked.prompt(name, m.form, with_gender=with_gender) for m in members])
    ]


def _scope(pair: SidePair, quantity: str, gender: str) -> Scope:
    a, b = (side.name for side in pair)
    return Scope("personas", "models", a, b, quantity=quantity, gender=gender, unit="occupation")


def unit_rows(
    pair: SidePair,
    values: Mapping[str, Values],
    scope: Scope,
    margins: Mapping[str, float],
    seed: int,
    *,
    ends: tuple[Mapping[str, Values], Mapping[str, Values]] | None = None,
) -> list[Row]:
    """Test one number over the units that all models have: rows welch and paired, later side − earlier.

    `values`: model → unit → number; a side's number is the mean over its models. No row without any unit.
    `ends`: what the numbers lie between, where they are not known in full.
    """
    members = [values[model] for side in pair for model in side.models]
    if not any(members):
        return []
    shared = set(members[0]).intersection(*members[1:])
    common = sorted(unit for unit in shared if all(member[unit] is not None for member in members))
    n_out = len(set().union(*members)) - len(common)
    both = "both" if len(members) == 2 else "all"

    def of_sides(values: Mapping[str, Values]) -> Iterator[FloatArray]:
        for side in pair:
            by_model = [[values[model][unit] for unit in common] for model in side.models]
            yield np.array(by_model, dtype=np.float64).mean(axis=0)

    a, b = of_sides(values)
    (low_a, low_b), (high_a, high_b) = map(of_sides, ends or (values, values))
    return within_units(
        a,
        b,
        ends=(low_a - high_b, high_a - low_b) if ends else None,
        scope=scope,
        kinds=("welch", "paired"),
        margins=margins,
        seed=seed,
        note=f"{n_out} {scope.unit}s left out, not in {both} models" if n_out else None,
    )


def change_rows(pair: SidePair, texts: Mapping[str, Texts]) -> Iterator[Row]:
    """Rows of srb_change.csv (GAS(P) Figure 4), old = earlier; none between forms, prompts or vectors."""
    new, old = (texts[side.models[0]] for side in pair)
    if not comparable([new, old], scores=True):
        return
    for gender in WOMEN_AND_MEN:
        before, after = old.srb.get(gender, {}), new.srb.get(gender, {})
        for occupation in dict.fromkeys([*before, *after]):
            change, reason = percent_change(before.get(occupation), after.get(occupation), gender)
            yield {
                "model_old": old.model,
                "model_new": new.model,
                "occupation": occupation,
                "gender": gender,
                "srb_old": before.get(occupation),
                "srb_new": after.get(occupation),
                "percent_change": change,
                "reason": reason,
            }
