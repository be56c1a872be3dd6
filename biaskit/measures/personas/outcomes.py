"""Outcomes of texts about women, men, non-binary people (methods/texts#refusals).

How a text ended says whether it is refused or empty; rules on its words say what any other text is. Texts
that are refused or empty, decline or lecture are in no list, score or calibration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from biaskit.measures.personas.texts.documents import REQUESTED, TextDocument
from biaskit.measures.personas.texts.outcomes import CUT
from biaskit.records import ALL
from biaskit.stats.proportions import Proportion, proportion
from biaskit.tables.query import Row

BY_ENDING: Mapping[str, str] = {"declines": "n_refused", "empty": "n_empty"}
"""Outcomes by how a text ended → the column of `refusal_rows` that counts them."""
_RULED = ("person", "no-person", "declines-in-words", "lectures", "cut")
IN_WORDS: Mapping[str, str] = {outcome: f"n_{outcome.replace('-', '_')}" for outcome in _RULED}
"""The same of all other texts, by the rules on their words."""
_SCOPE = ("model", "occupation", "requested_gender")

_BY_RULE = {"declines": "declines-in-words", "empty": "no-person"}  # of hidden characters alone: no person


def refusal_rows(texts: Iterable[TextDocument]) -> list[Row]:
    """Count how a model's texts about a woman, a man, a non-binary person end, and their outcomes.

    `texts` in study order; those whose prompt named a gender enter. Refused means refused or filtered.
    Returns: a row per model, occupation and gender asked for.
    """
    tallies: dict[tuple[str, str, str], Counter[str]] = {}
    for text in texts:
        if text.requested_gender is None:
            continue
        tally = tallies.setdefault((text.model, text.occupation, text.requested_gender), Counter())
        empty = text.empty and text.outcome != CUT
        tally.update(n_texts=1, n_refused=int(text.refused), n_empty=int(empty))
        if not (text.refused or empty) and text.read and text.outcome:
            tally[IN_WORDS[_BY_RULE.get(text.outcome, text.outcome)]] += 1
    rows: list[Row] = []
    for key, tally in tallies.items():
        scope = dict(zip(_SCOPE, key, strict=True))
        counts = {name: tally[name] for name in ("n_texts", *BY_ENDING.values(), *IN_WORDS.values())}
        refused, declined = tally["n_refused"], tally["n_refused"] + tally["n_declines_in_words"]
        shares = {"refused_share": refused / tally["n_texts"], "declined_share": declined / tally["n_texts"]}
        rows.append({**scope, **counts, **shares})
    return rows


def outcome_rows(refusals: Sequence[Row], unread: Mapping[str, str]) -> list[Row]:
    """Make the rows of text_outcomes.csv: each outcome by requested gender, with Wilson intervals.

    `refusals` as `refusal_rows` gives them; `unread`: models whose texts are in a language that the rules do
    not read, so that their outcomes in words have that reason instead of numbers.
    """
    rows: list[Row] = []
    for row in refusals:
        scope = {name: row[name] for name in _SCOPE}
        for outcome, name in {**BY_ENDING, **IN_WORDS}.items():
            reason = unread.get(row["model"]) if outcome in IN_WORDS else None
            n, share = row[name], proportion(row[name], row["n_texts"])
            if reason:
                n, share = None, Proportion(None)
            low, high = share.ci95 or (None, None)
            columns = {"template_id": ALL, "origin": REQUESTED, "outcome": outcome, "n": n}
            numbers = {"share": share.estimate, "ci_low": low, "ci_high": high, "reason": reason}
            rows.append({**scope, **columns, **numbers})
    return rows
