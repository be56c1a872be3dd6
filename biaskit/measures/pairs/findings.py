"""What pairs of sentences show: whether the probability follows stereotypes, and in how many languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, listed, percent, share_with_interval, short
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import DIRECTED, measured_by, noted, outcome_of
from biaskit.report.findings.sentence import DETAIL, Foreign, Sentence, filled, sentence_of
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import PARITY
from biaskit.tables.query import Row, distinct, first, grouped, named, where

MOST_LANGUAGES = 4  # that have a sentence of their own
_TEMPLATES = templates_of("pairs")
_SAYS = words("pairs")["shares"]


def findings(content: Content) -> Iterator[Sentence]:
    """Say of each model the gap between what stereotypes expect, the rate, and the clear languages."""
    for part in parts_of(content.parts, "pairs"):
        tests = part.tests
        for (model,), rows in grouped(part.tables["pair_groups"], "model").items():
            yield from _of_model(model, rows, where(tests, model_a=model, model_b=model))


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say what else than gender two sentences of a pair differ in."""
    if parts_of(parts, "pairs"):
        yield words("pairs")["limits"]["lengths"]


def _of_model(model: str, rows: Sequence[Row], tests: Sequence[Contrast]) -> Iterator[Sentence]:
    """`rows`: of pair_groups.csv."""
    [whole] = where(rows, language=ALL, stereotype=ALL)
    gap = first(tests, contrast="pairs")
    using = _measured(rows, whole, [gap])
    if gap is not None:
        kind = "log_ratio" if gap.quantity == "log_ratio" else "pairs"
        end = _SAYS["ends"][(whole["female_share"] or 0) > PARITY]
        yield claim(_TEMPLATES[kind], gap, "pairs", using, model=model, about="pairs", pieces={"end": end})
    yield from _shares(model, whole, using, alone=gap is None)
    languages = where(tests, contrast="languages")
    clear = [row for row in languages if outcome_of(row) in DIRECTED]
    for row in clear[:MOST_LANGUAGES]:
        own = first(rows, language=row.group_a, stereotype=ALL)
        kind = "log_ratio_in_language" if row.quantity == "log_ratio" else "in_language"
        yield claim(
            *(_TEMPLATES[kind], row, "pairs", _measured(rows, own or whole, [row])),
            model=model,
            about="pairs",
            least=DETAIL,
            pieces={"language": Foreign(row.group_a, "“", "”")},
        )
    if len(languages) > 1 and gap is not None and outcome_of(gap) in DIRECTED:
        n = count(len(languages), "language")
        text = filled(_SAYS["in_languages"], model=Foreign(model), k=str(len(clear)), n=n)
        yield sentence_of(text, "pairs", "say", measured=using, about="pairs", strength=DETAIL)


def _shares(model: str, row: Row, using: str, *, alone: bool) -> Iterator[Sentence]:
    """Say how often a stereotype holds; where nothing is tested, also the share of the feminine sentence."""
    if row["female_share"] is None:
        text = filled(_SAYS["none"], model=Foreign(model))
        yield sentence_of(text, "pairs", "say", "not-measured", using, about="pairs")
        return
    if alone:
        share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
        text = filled(_SAYS["share"], model=Foreign(model), share=share)
        yield sentence_of(text, "pairs", "say", measured=using, number=share, about="pairs")
    if row["expected_rate"] is not None:
        rate = share_with_interval(row["expected_rate"], row["expected_low"], row["expected_high"])
        n = count(row["n_directed"], "pair")
        text = filled(_SAYS["expected"], model=Foreign(model), share=rate, n=n)
        yield sentence_of(text, "pairs", "say", measured=using, about="pairs", strength=DETAIL)


def _measured(rows: Sequence[Row], row: Row, tests: Sequence[Row | None]) -> str:
    sizes = [count(row["n_pairs"], "pair")]
    for name in ("stereotype", "language"):
        n = len(distinct(rows, name)) - 1
        if row[name] == ALL and n > 1:
            sizes.append(count(n, name))
    estimators = listed(named(rows, "estimator"))
    notes = noted([*tests, row])
    if row["n_per_token_differs"]:
        part = percent(row["n_per_token_differs"] / row["n_pairs"])
        notes.append(f"per token the other sentence is more probable in {part} % of pairs")
    return measured_by(estimators, ", ".join(sizes), short(str(row["model"])), notes=notes)
