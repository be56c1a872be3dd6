"""Prompts, example texts and marked words in context, as the page's script reads them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from biaskit.report.content import ExampleText, PromptShown, Span, WordInContext
from biaskit.report.page import labels
from biaskit.report.page.foreign import LONGEST_TEXT, cut, name, shown
from biaskit.wording import PEOPLE


def prompts(shown_prompts: Sequence[PromptShown]) -> list[dict[str, Any]]:
    """Each prompt with what it can be chosen by: engine, model and kind."""
    named = ("study", "model", "kind", "what", "form")
    return [
        {
            "engine": one.engine,
            **{field: name(getattr(one, field)) for field in named},
            "prompt": _long(one.prompt),
            "system": None if one.system is None else _long(one.system),
        }
        for one in shown_prompts
    ]


def words(chosen: Sequence[WordInContext], sentences: Sequence[str], *, per_word: int) -> dict[str, Any]:
    """Lists of marked words; each word names its sentences by their place, and only those are kept."""
    places: dict[int, int] = {}
    lists: dict[tuple[str, ...], list[list[Any]]] = {}
    for one in chosen:
        held = [i for i in one.sentences[:per_word] if 0 <= i < len(sentences)]
        own = [places.setdefault(i, len(places)) for i in held]
        z = round(one.z, 4) if math.isfinite(one.z) else 0.0
        lists.setdefault(_list_of(one), []).append([name(one.word), z, own])
    return {
        "lists": [
            {
                "model": name(model),
                "occupation": name(occupation),
                "origin": _origin(origin),
                "gender": _gender(gender),
                "words": own,
            }
            for (model, occupation, origin, gender), own in lists.items()
        ],
        "sentences": [_long(sentences[i]) for i in places],
    }


def first_words(chosen: Sequence[WordInContext], n: int) -> tuple[WordInContext, ...]:
    """The first `n` words of each list, as many lists as there are."""
    taken: Counter[tuple[str, ...]] = Counter()
    kept = []
    for one in chosen:
        taken[_list_of(one)] += 1
        if taken[_list_of(one)] <= n:
            kept.append(one)
    return tuple(kept)


def example(one: ExampleText) -> dict[str, Any]:
    """A text in pieces, the counted words apart, with its association and what decided it."""
    text = one.text[:LONGEST_TEXT]
    spans = [span for span in one.spans if span.end <= len(text)]
    rule = one.rule_id or ""
    counts = Counter(span.counts_as for span in spans)
    return {
        "model": name(one.model),
        "occupation": name(one.occupation),
        "origin": _origin(one.origin),
        "asked": _gender(one.specified_gender),
        "gender": _gender(one.gender),
        "rule": name(rule),
        "why": labels.RULES.get(rule, ""),
        "counts": [[mark, counts[mark]] for mark in labels.CLASSES if counts[mark]],
        "pieces": [[shown(piece), mark] for piece, mark in _pieces(text, spans)],
        "cut": one.cut or len(text) < len(one.text),
        "key": name(one.key),
        "instruction": one.instruction_id,
        "outcome": labels.OUTCOMES.get(one.outcome, name(one.outcome)) or None,
    }


def _list_of(one: WordInContext) -> tuple[str, str, str, str]:
    return one.model, one.occupation, one.origin, one.gender


def _long(text: str) -> str:
    return shown(cut(text, LONGEST_TEXT))


def _origin(origin: str) -> str:
    return labels.VALUES["origin"].get(origin, name(origin))


def _gender(gender: str | None) -> str | None:
    return None if gender is None else PEOPLE.get(gender, name(gender))


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, str]]:
    # Cut here, in code points: the script counts UTF-16 units, and escapes make a text longer.
    at = 0
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < at or span.end <= span.start or span.counts_as not in labels.CLASSES:
            continue
        if span.start > at:
            yield text[at : span.start], ""
        yield text[span.start : span.end], span.counts_as
        at = span.end
    if at < len(text):
        yield text[at:], ""
