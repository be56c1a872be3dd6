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
    return [
        {
            "engine": one.engine,
            "study": name(one.study),
            "model": name(one.model),
            "kind": name(one.kind),
            "what": name(one.what),
            "form": name(one.form),
            "prompt": shown(cut(one.prompt, LONGEST_TEXT)),
            "system": None if one.system is None else shown(cut(one.system, LONGEST_TEXT)),
        }
        for one in shown_prompts
    ]


def texts(examples: Sequence[ExampleText]) -> list[dict[str, Any]]:
    """Each text in pieces, the counted words apart, with its association and what decided it."""
    return [_text(one) for one in examples]


def words(chosen: Sequence[WordInContext], sentences: Sequence[str], *, per_word: int) -> dict[str, Any]:
    """Lists of marked words; each word names its sentences by their place, and only those are kept."""
    places: dict[int, int] = {}
    lists: dict[tuple[str, ...], list[list[Any]]] = {}
    for one in chosen:
        held = [i for i in one.sentences[:per_word] if 0 <= i < len(sentences)]
        own = [places.setdefault(i, len(places)) for i in held]
        key = (one.model, one.occupation, one.origin, one.gender)
        lists.setdefault(key, []).append(
            [name(one.word), round(one.z, 4) if math.isfinite(one.z) else 0.0, own]
        )
    return {
        "lists": [
            {
                "model": name(model),
                "occupation": name(occupation),
                "origin": labels.VALUES["origin"].get(origin, name(origin)),
                "gender": PEOPLE.get(gender, name(gender)),
                "words": own,
            }
            for (model, occupation, origin, gender), own in lists.items()
        ],
        "sentences": [shown(cut(sentences[i], LONGEST_TEXT)) for i in places],
    }


def first_words(chosen: Sequence[WordInContext], n: int) -> tuple[WordInContext, ...]:
    """The first `n` words of each list, as many lists as there are."""
    taken: Counter[tuple[str, ...]] = Counter()
    kept = []
    for one in chosen:
        key = (one.model, one.occupation, one.origin, one.gender)
        taken[key] += 1
        if taken[key] <= n:
            kept.append(one)
    return tuple(kept)


def _text(one: ExampleText) -> dict[str, Any]:
    text = one.text[:LONGEST_TEXT]
    spans = [span for span in one.spans if span.end <= len(text)]
    rule = one.rule_id or ""
    return {
        "model": name(one.model),
        "occupation": name(one.occupation),
        "origin": labels.VALUES["origin"].get(one.origin, name(one.origin)),
        "asked": _gender(one.specified_gender),
        "gender": _gender(one.gender),
        "rule": name(rule),
        "why": labels.RULES.get(rule, ""),
        "counts": _counts(spans),
        "pieces": [[shown(piece), mark] for piece, mark in _pieces(text, spans)],
        "cut": one.cut or len(text) < len(one.text),
        "key": name(one.key),
        "instruction": one.instruction_id,
    }


def _gender(gender: str | None) -> str | None:
    return None if gender is None else PEOPLE.get(gender, name(gender))


def _counts(spans: Sequence[Span]) -> list[list[Any]]:
    """Number of counted words per class, in the order of `labels.CLASSES`."""
    found = Counter(span.counts_as for span in spans)
    return [[mark, found[mark]] for mark in labels.CLASSES if found[mark]]


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
