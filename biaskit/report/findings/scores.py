"""How a model writes: whether women's and men's texts are told apart, and whether SRB shows a difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.contrasts import APART, Claim, Kind, contrast
from biaskit.report.findings.finding import Topic, noted, outcome_of, parts_of, women_against_men
from biaskit.report.findings.sentence import DETAIL, Piece, Said, said, sentence, why
from biaskit.report.findings.write import are_imported, texts_measured, things, whose
from biaskit.runs.collection import Part
from biaskit.stats.held_out import CHANCE
from biaskit.tables.quantities import ALL_OCCUPATIONS, AREAS
from biaskit.tables.query import Row, defined, distinct, undefined, where
from biaskit.wording import count, listed, short

CARRIED = "auc_transfer"
BEYOND = 0.05
TOLD_APART = Kind(
    question="how",
    what="whether women and men can be told apart without gender words",
    of=" in {whose}",
    one={
        "higher": (
            "Without gender words, women’s and men’s texts among {whose} are told apart in {pairs} of 100 "
            "pairs{span}; a coin gives 50.",
            "Without gender words, {whose} on women and men are told apart in {pairs} of 100 pairs{span}.",
        ),
        "lower": (
            "Words that mark women in texts with a given gender mark men in the rest of {whose}.",
            "Words that mark women with the gender given mark men in the rest of {whose}.",
        ),
        "equivalent": (
            "Without gender words, women’s and men’s texts among {whose} are told apart as by a coin.",
        ),
        "no-clear-difference": (
            "Without gender words, no clear sign that {whose} on women and on men can be told apart{span}.",
            "Without gender words, no clear sign that {whose} on women and men differ.",
        ),
    },
    many={
        "higher": "write about women and men in words that tell them apart, without gender words",
        "lower": "turn the words of women and men round where no gender is asked for",
        "equivalent": "write about women and men in words that tell them apart no better than a coin",
        "no-clear-difference": "show no clear sign of words that tell women from men, beyond gender words",
    },
    after=APART,
)
NEARER = Kind(
    question="how",
    what="how differently women and men are described",
    of=" in {whose}",
    one={
        "lower": ("In {whose}, words for women lie nearer than men’s to texts meant to be about a woman.",),
        "higher": (
            "In {whose}, words for women lie farther than men’s from texts meant to be about a woman.",
        ),
        "equivalent": (
            "In {whose}, words for women and for men are about equally near to texts about a woman.",
        ),
        "no-clear-difference": (
            "In {whose}, no clear sign that words for women resemble texts about women more than men’s do.",
        ),
    },
    many={
        "lower": "describe women, more than men, as texts about women do",
        "higher": "describe men, more than women, as texts about women do",
        "equivalent": "describe women and men about equally like texts about women",
        "no-clear-difference": "show no clear sign that women’s and men’s descriptions differ in kind",
    },
    after=APART,
)


def scores(content: Content) -> Iterator[Said]:
    """What areas and SRB come to; a positive control comes to nothing, and says so."""
    for part in parts_of(content, "personas"):
        if is_control(part):
            yield from _control(part)
            continue
        yield from _areas(part)
        yield from _srb(part)


def is_control(part: Part) -> bool:
    """Whether its scores are of texts whose prompts named a gender, taken as if they had not."""
    return any(row.get("control") for row in part.tables.get("srb", ()))


def women_minus_men(part: Part, model: str) -> Row | None:
    """The paired test of women's SRB against men's, without gender words (docs/methods.md#srb-content)."""
    return women_against_men(part, model, "srb_content")


def carried_over(part: Part, model: str) -> Row | None:
    """The test of what specified texts teach of unprompted ones against 0.5, over occupations."""
    return women_against_men(part, model, CARRIED)


def vectors_of(rows: Sequence[Row]) -> list[str]:
    """The vector models of scores."""
    named = listed([short(vectors) for vectors in distinct(rows, "vectors") if vectors])
    return [f"vectors {named}"] if named else []


def _control(part: Part) -> Iterator[Said]:
    models = distinct(part.tables["srb"], "model")
    text = "A positive control, no result: half of {whose} that name a gender, scored as if they did not."
    using = texts_measured(part, models, (), *vectors_of(part.tables["srb"]), "hold-out")
    yield said(sentence(text, whose=whose(part, models)), "srb", "how", measured=using, strength=DETAIL)


def _of_models(
    kind: Kind,
    part: Part,
    found: Mapping[str, Row | None],
    missing: Sequence[Row],
    topic: Topic,
    notes: Sequence[str],
    about: str,
    least: int = 0,
) -> Iterator[Said]:
    """A sentence about the models that have an estimate; where none has, why, if there are `missing` rows."""
    known = {model: row for model, row in found.items() if row is not None and row["estimate"] is not None}
    models = [*known] or distinct(missing, "model")
    pieces: dict[str, Piece] = {"whose": whose(part, models)} if models else {}
    using = texts_measured(part, models, (), *notes, *noted([*known.values(), *missing]))
    if len(known) == 1:
        row = next(iter(known.values()))
        assert row is not None
        pieces |= _pairs(row) if topic == "transfer" else {}
    if known:
        claims = [Claim(model, row) for model, row in known.items()]
        yield contrast(
            kind, claims, topic, using, about=about, least=least, things=things(part), pieces=pieces
        )
    elif missing:
        text = sentence(*kind.of_one("not-measured"), **pieces, why=why(missing[0]))
        yield said(text, topic, "how", "not-measured", using, about=about)


def _areas(part: Part) -> Iterator[Said]:
    """What carries over, else what the texts of one kind alone teach of others of that kind."""
    table = part.tables.get("text_transfer", ())
    models, means = [model.label for model in part.models], where(table, occupation=ALL_OCCUPATIONS)
    quantities = sorted(AREAS, key=lambda quantity: quantity != CARRIED)
    tested = {q: {model: women_against_men(part, model, q) for model in models} for q in quantities}
    measured = [
        q for q in quantities if any(row and row["estimate"] is not None for row in tested[q].values())
    ]
    used = measured[0] if measured else CARRIED
    missing = [] if defined(means, "auc") else means
    notes = [f"{_LEARNT[used]}, by words that are no gender words and no names"]
    notes += [
        note for q in measured[1:] for row in tested[q].values() if row for note in _also(q, row, models)
    ]
    if used != CARRIED and are_imported(part):
        notes += noted(undefined(means, "auc")[:1])
    yield from _of_models(TOLD_APART, part, tested[used], missing, "transfer", notes, "how-apart")


_LEARNT = {
    CARRIED: "learnt from texts with the gender in the prompt, tested in the others",
    "auc_associated": "learnt and tested in texts without a gender in the prompt",
    "auc_specified": "learnt and tested in texts with the gender given",
}


def _also(quantity: str, row: Row, models: Sequence[str]) -> list[str]:
    """The areas beside the one that a sentence is about."""
    if row["estimate"] is None or len(models) > 1:
        return []
    pairs = _pairs(row)
    verdict = {"higher": "", "no-clear-difference": ", no clear sign"}.get(outcome_of(row), "")
    return [f"{_LEARNT[quantity]}: {pairs['pairs']} of 100 pairs{pairs['span']}{verdict}"]


def _pairs(row: Row) -> dict[str, Piece]:
    """An area as how often of 100 pairs, and its interval; one that excludes a half never touches it."""

    def of_hundred(over_chance: float) -> str:
        value = 100 * min(max(CHANCE + over_chance, 0.0), 1.0)
        return f"{value:.1f}" if f"{value:.0f}" == "50" and value != 50 else f"{value:.0f}"

    if row["ci_low"] is None:
        return {"pairs": of_hundred(row["estimate"]), "span": ""}
    low, high = of_hundred(row["ci_low"]), of_hundred(row["ci_high"])
    unit = "" if outcome_of(row) == "higher" else " of 100 pairs"
    return {"pairs": of_hundred(row["estimate"]), "span": f" [{low} to {high}{unit}]"}


def _srb(part: Part) -> Iterator[Said]:
    rows = part.tables.get("srb", ())
    known, models = defined(rows, "srb"), [model.label for model in part.models]
    notes = [*vectors_of(known), "without gender words", *_null(known)]
    found = {model: women_minus_men(part, model) for model in models}
    tested = [{**row, "model": row["model_a"]} for row in found.values() if row is not None]
    missing = tested if known else undefined(rows, "srb")
    yield from _of_models(NEARER, part, found, missing, "srb", notes, "how-srb")


def _null(rows: Sequence[Row]) -> list[str]:
    """How many scores lie beyond their null, one by one."""
    tested = defined(rows, "srb_content_p_value")
    beyond = sum(row["srb_content_p_value"] <= BEYOND for row in tested)
    said_of = f"{beyond} of {count(len(tested), 'score')} beyond shuffled genders (p ≤ 0.05)"
    return [said_of] if tested else []
