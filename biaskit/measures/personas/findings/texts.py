"""Say who a model writes about: against labour statistics, texts that name no gender, non-binary people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from biaskit.common.wording import count, people, percent, share_with_interval, short
from biaskit.corpora.languages import ENGLISH
from biaskit.measurement import words
from biaskit.records import ALL, GENDERS, NONBINARY_REFERENCE, UNNAMED
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import BY_LABELS, claim, templates_of
from biaskit.report.findings.finding import measured_by, noted
from biaskit.report.findings.sentence import DETAIL, Foreign, Piece, Sentence, filled, sentence_of, why
from biaskit.report.findings.workforce import Slope, apart, claim_of, slopes_with_words
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast
from biaskit.stats.proportions import wilson
from biaskit.tables.query import (
    Row,
    by_labels,
    by_person,
    column,
    defined,
    distinct,
    finds_nonbinary,
    first,
    mean_over_prompts,
    n_known,
    total,
    undefined,
    where,
)
from biaskit.tables.reasons import is_unread

MANY_CUT = 1 / 5
"""A larger part of texts that the limit cut is said on the page."""
MANY_WITHOUT = 1 / 3
"""A larger part of texts without a gender is said on the page."""
_TEMPLATES = templates_of("personas")
_SAYS: Mapping[str, Any] = words("personas")["write"]


def write(content: Content) -> Iterator[Sentence]:
    """Make the sentences on every model that wrote texts."""
    for part in parts_of(content.parts, "personas"):
        every = occupations_of(part)
        for model in models_of(part) or distinct(every, "model"):
            rows = where(every, model=model)
            yield from _language(part, model, rows)
            yield _shares(part, model, rows, workforce=content.reference in ("workforce", "both"))
            for said, name, rows_of, most in (
                ("without", "n_not_inferred", _readable(rows), MANY_WITHOUT),
                ("cut", "n_cut", rows, MANY_CUT),
            ):
                n, n_such = total(rows_of, "n_texts"), total(rows_of, name)
                if n_such > most * n:
                    text = filled(*_SAYS[said], such=percent(n_such / n), whose=whose(part, model, n))
                    yield _shown(text, texts_measured(part, model, rows))
            yield from _nonbinary(part, model, rows)
            yield from _rules(part, model)


def _shown(text: str, using: str, **how: Any) -> Sentence:
    return sentence_of(text, "representation", "write", measured=using, **how)


# --- parts of texts --------------------------------------------------------------------------------------


def measured(part: Part) -> Iterator[str]:
    """Say of texts at hand: their file, when it was read, how many they are, how many name no gender."""
    texts = part.tables.get("genders", ())
    if part.imported and texts:
        day = part.imported.get("read")
        yield short(PurePath(part.imported["source"]).name) + (f", read on {day}" if day else "")
        yield count(len(texts), "text")
        # As the rows stand: of a share that labels correct no text is left out.
        without = total(where(part.tables.get("representation", ()), template_id=ALL), "n_not_inferred")
        yield f"{without:,} ({percent(without / len(texts))} %) without a gender"


def models_of(part: Part) -> list[str]:
    """List the labels of a part's models."""
    return [model.label for model in part.models]


def occupations_of(part: Part) -> list[Row]:
    """Pick the rows that are means over prompts, without a debiasing prompt."""
    return mean_over_prompts(part.tables.get("representation", ()))


def against_workforce(part: Part, model: str, kind: str = "paired") -> Contrast | None:
    """Find a test of the share of women in texts against the workforce share, over occupations."""
    of_texts = {"quantity": "represented_share", "contrast": "workforce", "model_a": model}
    return first(part.tests, **of_texts, kind=kind)


def women_against_men(part: Part, model: str, quantity: str) -> Contrast | None:
    """Find the paired test over occupations of a quantity in women's against men's texts."""
    of_texts = {"quantity": quantity, "contrast": "genders", "group_a": "female", "group_b": "male"}
    return first(part.tests, **of_texts, kind="paired", model_a=model)


def whose(part: Part, model: str, n: int | None = None) -> Piece:
    """Say whose texts: 'm’s texts', 'your 2,400 texts', with the label where there are several sources."""
    texts = "texts" if n is None else count(n, "text")
    if part.imported:  # nobody knows what the texts were asked for
        only = part.is_alone and len(part.models) < 2
        return f"your {texts}" if only else Foreign(model, f"your {texts} (", ")")
    return Foreign(model, after=f"’s {texts}")


def texts_measured(part: Part, model: str, rows: Sequence[Row] = (), *notes: str) -> str:
    """Say what was measured: prompt format, n, model; `rows`: of representation.csv."""
    prompt_format = next((m.prompt_format for m in part.models if m.label == model), "")
    occupations = count(len(distinct(rows, "occupation")), "occupation") if rows else ""
    texts = count(total(rows, "n_texts"), "text") if rows else ""
    how = f"{prompt_format} prompts" if prompt_format else "imported texts"
    return measured_by(how, occupations, texts, short(model), notes=notes)


def _with_gender(rows: Sequence[Row]) -> str:
    """Say how the genders that rows of representation.csv count were found."""
    if not n_known(rows):
        return str(_SAYS["named"]["inferred"])
    all_known = n_known(rows) == sum(map(partial(total, rows), ("n_female", "n_male", "n_nonbinary")))
    return str(_SAYS["named"]["known" if all_known else "both"])


def _readable(rows: Sequence[Row]) -> list[Row]:
    """Rows of texts in a language that the rules can read."""
    return [row for row in rows if not is_unread(row)]


def _left_out(rows: Sequence[Row]) -> list[str]:
    n_none = total(_readable(rows), "n_not_inferred")
    n_foreign = total(_readable(rows), "n_not_english")
    n_refused = total(rows, "n_refused")
    missing = undefined(rows, "female_share")
    notes = []
    if n_none:
        notes.append(f"{count(n_none, 'text')} without a gender left out")
    if n_foreign:
        elsewhere = any(row.get("language") not in (None, "", ENGLISH) for row in rows)
        notes.append(f"{n_foreign:,} of these {'in another language' if elsewhere else 'not in English'}")
    if n_refused:
        notes.append(f"{count(n_refused, 'text')} refused")
    if missing:
        notes += [f"{count(len(missing), 'occupation')} without a share", *noted(missing)]
    return notes


# --- sentences -------------------------------------------------------------------------------------------


def language_of(part: Part, model: str) -> Mapping[str, Any]:
    """Find the language, other than English, that a model's texts are read in (`LanguageReading.record`)."""
    found = next((m.language for m in part.models if m.label == model), {})
    return found if found.get("language") not in (None, ENGLISH) else {}


def _language(part: Part, model: str, rows: Sequence[Row]) -> Iterator[Sentence]:
    """Say which language's rules read the texts, and how often they are right on sentences of one person."""
    if not (read := language_of(part, model)) or not rows:
        return
    pieces: dict[str, Piece] = {"whose": whose(part, model), "name": Foreign(read["name"])}
    says, notes = "in_language_unmeasured", []
    if rates := read.get("measured"):
        says, notes = "in_language", [f"{count(rates['n'], 'sentence')} of {short(rates['data'])}"]
        pieces |= {"decided": percent(rates["decided"]), "right": percent(rates["right"])}
    yield _shown(filled(*_SAYS[says], **pieces), texts_measured(part, model, rows, *notes), strength=DETAIL)


def _shares(part: Part, model: str, rows: Sequence[Row], *, workforce: bool) -> Sentence:
    """Hold shares against labour statistics; without them say the share, or the lowest and the highest."""
    test, text_of = against_workforce(part, model) if workforce else None, whose(part, model)
    shares = defined(rows, "female_share")
    if test is not None and test.estimate is not None and len(shares) > 1:
        off = against_workforce(part, model, "distance")
        notes = [*apart(off), *_tipping(test), *noted([test]), *_left_out(rows)]
        using = texts_measured(part, model, rows, *notes)
        templates = _TEMPLATES["against_workforce"]
        return claim(templates, test, "representation", using, model=model, pieces={"whose": text_of})
    notes = [*filter(None, [by_person(rows)]), *_left_out(rows)]
    if len(shares) == 1 and (of_workforce := shares[0]["workforce_share"]) is not None:
        notes.insert(0, _SAYS["notes"]["of_workforce"].format(percent(of_workforce)))
    using = texts_measured(part, model, rows, *notes)
    if not shares:
        reason: Piece = why(rows[0]) if rows else "no texts without a gender in the prompt"
        if rows and is_unread(rows[0]):
            said = short(rows[0]["reason"].partition(": ")[2], 200)
            return _shown(filled(*_SAYS["unread"], whose=text_of, why=said), using, verdict="not-measured")
        text = filled(*_SAYS["not_measured"], whose=text_of, why=reason)
        return _shown(text, using, verdict="not-measured")
    share_of_women = itemgetter("female_share")
    low, high = min(shares, key=share_of_women), max(shares, key=share_of_women)
    lead = BY_LABELS if by_labels(rows) else ""
    pieces: dict[str, Piece] = {"lead": lead, "whose": text_of, "named": _with_gender(rows)}
    if low is high:
        share = share_with_interval(low["female_share"], low["ci_low"], low["ci_high"])
        says = _SAYS["share" if low["occupation"] == UNNAMED else "share_of_one"]
        text = filled(*says, **pieces, share=share, job=Foreign(low["occupation"]))
        return _shown(text, using, number=share)
    shown: dict[str, Piece] = {"least": Foreign(low["occupation"]), "most": Foreign(high["occupation"])}
    for name, row in (("low", low), ("high", high)):
        ends = (row["ci_low"], row["ci_high"]) if lead else (None, None)
        shown[name] = share_with_interval(row["female_share"], *ends)
    return _shown(filled(*_SAYS["range"], **pieces, **shown), using)


def _tipping(test: Contrast) -> list[str]:
    """Note how many of the texts without a gender would have to be women's for no difference to be left."""
    low, high = test.bounds
    if low == high:
        return []
    part = -low / (high - low)
    if not 0 <= part <= 1:
        return [_SAYS["notes"]["sign_is_sure"]]
    return [_SAYS["notes"]["tipping"].format(percent(part))]


def _nonbinary(part: Part, model: str, rows: Sequence[Row]) -> Iterator[Sentence]:
    """Count non-binary people where the interval of their share excludes that of the population."""
    shares = defined(rows, "nonbinary_share")
    n = total(shares, "n_nonbinary")
    n_gendered = n + total(shares, "n_female") + total(shares, "n_male")
    interval = wilson(n, n_gendered)
    if interval is None or interval[0] <= NONBINARY_REFERENCE <= interval[1]:
        return
    pieces = {"n": f"{n:,}" if n else "None", "number": f"{n:,}", "are": "is" if n < 2 else "are"}
    notes = [_SAYS["notes"]["population"].format(100 * NONBINARY_REFERENCE)]
    # That so few are found says nothing where the rules may find none.
    is_shown = interval[0] > NONBINARY_REFERENCE or finds_nonbinary(part.tables, model)
    says = _SAYS["nonbinary" if is_shown else "nonbinary_not_found"]
    labelled = defined(shares, "nonbinary_corrected") if "nonbinary_corrected" in shares[0] else []
    if corrected := column(labelled, "nonbinary_corrected"):
        ends = dict.fromkeys(map(percent, (min(corrected), max(corrected))))
        notes.append(_SAYS["notes"]["nonbinary_corrected"].format(" to ".join(ends)))
    named = _with_gender(shares)
    n_texts = n_gendered if is_shown else total(shares, "n_texts")
    text = filled(*says, whose=whose(part, model, n_texts), named=named, **pieces)
    yield _shown(text, texts_measured(part, model, shares, *notes), strength=DETAIL)


def _rules(part: Part, model: str) -> Iterator[Sentence]:
    """Say how often the word rules find the known gender, and the requested one."""
    represented = where(occupations_of(part), model=model)
    known, requested = dict[str, tuple[int, int]](), dict[str, tuple[int, int]]()
    if n_known(represented) and "n_labelled" not in represented[0]:  # else the table is of labels, too
        validated = where(part.tables.get("label_validation", ()), model=model)
        for gender in GENDERS:
            name, of_gender = f"n_{gender}", where(validated, gender=gender)
            known[people(gender)] = total(of_gender, name), total(validated, name)
    for row in where(part.tables.get("gender_validation", ()), model=model):
        requested[row["requested_gender"]] = row["n_correct"], row["n_texts"]
    for says, found in (("known", known), ("rules", requested)):
        n_correct, n = map(sum, zip(*found.values(), strict=True)) if found else (0, 0)
        if n:
            text = filled(*_SAYS[says], whose=whose(part, model, n), share=percent(n_correct / n))
            each = [f"{who} {n_found} of {n_such}" for who, (n_found, n_such) in found.items() if n_such]
            yield _shown(text, texts_measured(part, model, (), *each), strength=DETAIL)


# --- mirrors, flattens or exaggerates (methods/representation#workforce-words) ------------------------------


def slopes(content: Content) -> Iterator[Slope]:
    """Yield the slope of each model; the mean difference from workforce shares takes the level's place."""
    for part in parts_of(content.parts, "personas"):
        rows = where(part.tests, quantity="represented_share", contrast="workforce", kind="slope")
        for row in defined(rows, "estimate"):
            level, distance = (against_workforce(part, row.model_a, kind) for kind in ("paired", "distance"))
            yield Slope(part, row.model_a, row, level, distance)


def workforce(content: Content) -> Iterator[Sentence]:
    """Make a sentence for each model; the mean difference says what an unclear word would."""
    for slope in slopes_with_words(content):
        if slope.part.measurement == "personas" and slope.word != "unclear":
            notes = [*noted((slope.row, slope.level, slope.distance)), *apart(slope.distance)]
            using = measured_by(short(slope.model), notes=[*notes, *_not_of_two(slope.part, slope.model)])
            pieces, topic = {"opening": "in its texts"}, "representation"
            yield claim_of(slope, "write", topic=topic, measured=using, about="write", pieces=pieces)


def _not_of_two(part: Part, model: str) -> list[str]:
    """Note how many of the texts with a gender are about neither a woman nor a man."""
    rows = where(occupations_of(part), model=model)
    n_of = {gender: total(rows, f"n_{gender}") for gender in GENDERS}
    if not n_of["nonbinary"]:
        return []
    return [_SAYS["notes"]["not_of_two"].format(percent(n_of["nonbinary"] / sum(n_of.values())))]
