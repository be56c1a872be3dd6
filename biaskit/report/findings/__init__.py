"""What stored numbers say in plain words, and what they cannot show (methods/tests#verdicts)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from biaskit.measurement import folders
from biaskit.report.content import Content
from biaskit.report.findings.changes import changes
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.report.findings.limits import cannot_show, explained, not_measured
from biaskit.report.findings.models import compared, models
from biaskit.report.findings.sentence import STRENGTH, Sentence
from biaskit.report.questions import ORDER

__all__ = [
    "BETWEEN",
    "READING",
    "Finding",
    "Sentences",
    "cannot_show",
    "findings",
    "first_about",
    "sentences",
]

READING = (
    "Brackets show intervals of at least 95 %, wider where a page tests more. A difference is reported if "
    "its interval excludes 0; where nothing differs, at most one page in twenty reports one. “About the "
    "same”: the 90 % interval is inside the margin. “Not identified”: an estimator’s bounds leave it open."
)
"""How to read the sentences; shown once with them."""
BETWEEN = ("models", "gaps", "relations")
"""Topics of the findings that tie models and measurements together."""
N_LEADING = 3
UNCLEAR, SILENT = STRENGTH["no-clear-difference"], STRENGTH["no-verdict"]


def findings(content: Content) -> tuple[Finding, ...]:
    """List what the tables say: the findings of the first screen, then by question, not measured last."""
    return sentences(content).findings


def first_about(topics: Sequence[str], content: Content) -> tuple[Finding, ...]:
    """List what the tables say, these topics before others; weak evidence is never the first."""
    ordered = sorted(findings(content), key=lambda finding: finding.topic not in topics)
    for finding in ordered:
        if not finding.weak and finding.verdict != "not-measured":
            ordered.remove(finding)
            return (finding, *ordered)
    return tuple(ordered)


def sentences(content: Content) -> Sentences:
    """Make everything that a page says in sentences."""
    unique: dict[Finding, Sentence] = {}
    # Their order here is that of those that say as much as each other.
    of_kinds = (folder.findings(content) for folder in folders())
    for sentence in chain(*of_kinds, models(content), changes(content)):
        unique[sentence.finding] = sentence
    every = list(unique.values())
    leading = _leading(content, every)
    others = [sentence for sentence in every if sentence not in leading]
    ordered = [*leading, *sorted(others, key=_place)]
    return Sentences(
        tuple(sentence.finding for sentence in ordered),
        len(leading),
        cannot_show(content),
        not_measured(content),
        READING,
        explained([sentence.number for sentence in ordered]),
    )


def _place(sentence: Sentence) -> tuple[bool, int, int]:
    finding = sentence.finding
    return finding.verdict == "not-measured", ORDER.index(finding.question), sentence.strength


def _leading(content: Content, every: Sequence[Sentence]) -> list[Sentence]:
    """Pick the headline, then the pair of a comparison, then what says most, each about another thing.

    Weak evidence never comes first. Where these are too few, a second clear sentence about one thing comes
    before what says nothing.
    """
    ranked = _ranked(content, every)
    first_of_thing: dict[str, Sentence] = {}
    for sentence in ranked:
        if sentence.strength < SILENT:
            first_of_thing.setdefault(sentence.about, sentence)
    chosen = list(first_of_thing.values())
    for sentence in ranked:
        if sentence.strength < UNCLEAR and sentence not in chosen:
            chosen.append(sentence)
    leading: list[Sentence] = []
    for sentence in chosen[:N_LEADING] or ranked[:1]:
        leading.append(sentence)
        leading += [other for other in every if other.beside == sentence.finding]
    return leading[:N_LEADING]


def _ranked(content: Content, every: Sequence[Sentence]) -> list[Sentence]:
    """Sort the sentences that stand alone by what they say, a firm one at the front."""
    ranked = [sentence for sentence in every if sentence.beside is None]
    ranked.sort(key=lambda sentence: (sentence.strength, *_place(sentence)))
    if len({row.models for row in compared(content)}) == 1:
        ranked.sort(key=lambda sentence: (sentence.strength > 0, sentence.finding.question != "models"))
    firm = next((sentence for sentence in ranked if not sentence.finding.weak), None)
    ranked.sort(key=lambda sentence: sentence is not firm)
    return ranked
