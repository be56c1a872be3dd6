"""What stored numbers say in plain words, and what they cannot show (methods/tests#verdicts)."""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.report.content import Content
from biaskit.report.findings.answers import say as say_whom
from biaskit.report.findings.coverage import beside
from biaskit.report.findings.engines import agree
from biaskit.report.findings.finding import Finding, Sentences, Topic
from biaskit.report.findings.instructions import instructions
from biaskit.report.findings.labour import labour
from biaskit.report.findings.limits import cannot_show, explained, not_measured
from biaskit.report.findings.marked_words import words
from biaskit.report.findings.models import compared, models
from biaskit.report.findings.pairs import pairs
from biaskit.report.findings.scores import scores
from biaskit.report.findings.sentence import STRENGTH, Said
from biaskit.report.findings.texts import write
from biaskit.report.questions import ORDER

__all__ = ["BETWEEN", "READING", "Finding", "Sentences", "cannot_show", "findings", "first_about", "say"]

READING = (
    "Brackets show intervals of at least 95 %, wider where a page tests more. A difference is reported if "
    "its interval excludes 0; where nothing differs, at most one page in twenty reports one. “About the "
    "same”: the 90 % interval is inside the margin. “Not identified”: an estimator’s bounds leave it open."
)
"""How to read the sentences; shown once with them."""
BETWEEN: tuple[Topic, ...] = ("models", "gaps", "relations")
"""Topics of the findings that tie models and engines together."""
N_LEADING = 3
UNCLEAR, SILENT = STRENGTH["no-clear-difference"], STRENGTH["no-verdict"]
_SAID_BY = (say_whom, pairs, labour, write, words, scores, beside, models, agree, instructions)


def findings(content: Content) -> tuple[Finding, ...]:
    """List what the tables say: the findings of the first screen, then by question, not measured last."""
    return say(content).findings


def first_about(topics: Sequence[Topic], content: Content) -> tuple[Finding, ...]:
    """List what the tables say, these topics before others; weak evidence is never the first."""
    said = sorted(findings(content), key=lambda finding: finding.topic not in topics)
    firm = next((one for one in said if not one.weak and one.verdict != "not-measured"), None)
    return tuple(sorted(said, key=lambda finding: finding is not firm))


def say(content: Content) -> Sentences:
    """Everything that a page says in sentences."""
    sentences = list({said.finding: said for say_ in _SAID_BY for said in say_(content)}.values())
    leading = _leading(content, sentences)
    ordered = [*leading, *sorted((said for said in sentences if said not in leading), key=_place)]
    return Sentences(
        tuple(said.finding for said in ordered),
        len(leading),
        cannot_show(content),
        not_measured(content),
        READING,
        explained([said.number for said in ordered]),
    )


def _place(said: Said) -> tuple[bool, int, int]:
    return said.finding.verdict == "not-measured", ORDER.index(said.finding.question), said.strength


def _leading(content: Content, sentences: Sequence[Said]) -> list[Said]:
    """Pick the headline, then the pair of a comparison, then what says most, each about another thing.

    Weak evidence never comes first. Where these are too few, a second clear sentence about one thing comes
    before what says nothing.
    """
    alone = (said for said in sentences if said.beside is None)
    by_weight = sorted(alone, key=lambda said: (said.strength, *_place(said)))
    if len({(row["model_a"], row["model_b"]) for row in compared(content)}) == 1:
        by_weight.sort(key=lambda said: (said.strength > 0, said.finding.question != "models"))
    firm = next((said for said in by_weight if not said.finding.weak), None)
    by_weight.sort(key=lambda said: said is not firm)
    first_about: dict[str, Said] = {}
    for said in by_weight:
        if said.strength < SILENT:
            first_about.setdefault(said.about, said)
    second = [said for said in by_weight if said.strength < UNCLEAR and said not in first_about.values()]
    chosen = [*first_about.values(), *second][:N_LEADING] or by_weight[:1]
    both = [one for said in chosen for one in (said, *(s for s in sentences if s.beside == said.finding))]
    return both[:N_LEADING]
