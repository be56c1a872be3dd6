"""What holds for every finding, and which of them name a direction."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biaskit.common.wording import plain_number
from biaskit.report.content import Content
from biaskit.report.findings import Finding, sentences
from biaskit.report.findings.finding import DIRECTED, MOST_WORDS
from biaskit.report.findings.sentence import ends, n_words
from biaskit.report.findings.workforce import slopes_with_words
from biaskit.report.questions import ORDER
from biaskit.tables.schema import SCHEMAS

TOPICS = (
    *("probe-explicit", "probe-implicit", "pairs", "representation", "srb", "words", "groups", "transfer"),
    *("debiasing", "models", "gaps", "relations"),
)
INTERVAL = re.compile(r"\[[^\[\]]*\d[^\[\]]* to [^\[\]]*\]|\[[\d.<>]+–[\d.<>]+\]")
TABLE_NAMES = re.compile("|".join([*(name for name in SCHEMAS if "_" in name), r"\.csv"]))
JARGON = re.compile("Holm|null hypothesis|significant|p-value|[\u0370-\u03ff]|(?<![Dd]e)[Bb]ias(?!kit)")
MORE = re.compile(
    r"points more often|(says?|are about|writes? about) \S+ more often|\braises\b|\bexaggerates?\b"
    r"|separate[ds] .*in \d|fewer than|is [^,;.]* more for|are farther than|about \S+ more often"
)
LESS = re.compile(
    r"points less often|(says?|are about|writes? about) \S+ less often|\blowers\b|\bflattens?\b"
    r"|\breverses?\b|is [^,;.]* less for|are closer than|about \S+ less often"
)
WORKFORCE = re.compile(r"mirrors?|flattens?|reverses?|exaggerates?")
COUNTED = re.compile(r"\b(\d+ of \d+|[Aa]ll \d+|[Bb]oth) (models|sets)")


def hold(content: Content, *, foreign: bool = False) -> tuple[Finding, ...]:
    """Assert what holds for every page's sentences, and give them back.

    `foreign`: names of the content may hold what our own words never do.
    """
    page = sentences(content)
    for one in page.findings:
        assert n_words(one.text) <= MOST_WORDS, one.text
        assert "\n" not in one.text + one.measured_with
        assert one.text.endswith(".") or foreign, one.text
        assert one.measured_with, one.text
        assert one.topic in TOPICS
        assert one.verdict not in DIRECTED or backed(one, content), one.text
        if not foreign:
            assert "  " not in one.text + one.measured_with, one
            assert not one.text.endswith("…"), one.text
            assert one.text[:1] == one.text[:1].upper() or one.text[:1] in "mnx", one.text  # a model's name
            assert len(INTERVAL.findall(one.text)) <= 1, one.text
            assert not TABLE_NAMES.search(one.text), one.text
            assert not JARGON.search(one.text), one.text
            assert not any(mark in one.text for mark in "{}"), one.text
            assert said_direction(one) in (None, one.verdict), one.text
    rest = page.findings[page.n_leading :]
    places = [(one.verdict == "not-measured", ORDER.index(one.question)) for one in rest]
    assert places == sorted(places)
    assert page.n_leading <= 3
    assert bool(page.leading) == bool(page.findings)
    assert len(set(page.findings)) == len(page.findings)
    assert len(page.interval.split()) <= 35
    assert all("`biaskit " in line and "\n" not in line for line in page.not_measured)
    return page.findings


def said_direction(one: Finding) -> str | None:
    """The direction that the words of a sentence about one row name; sentences that count name none."""
    if COUNTED.search(one.text) or one.question == "agree":
        return None
    more, less = bool(MORE.search(one.text)), bool(LESS.search(one.text))
    assert not (more and less), one.text
    return "higher" if more else "lower" if less else None


def backed(one: Finding, content: Content) -> bool:
    """Whether rows of the tests claim the direction, with the interval that the sentence shows.

    Workforce words are claims of their own (methods/representation#workforce-words).
    """
    if WORKFORCE.search(one.text):
        return one.verdict in [slope.verdict for slope in slopes_with_words(content)]
    rows = [row for row in content.every_test if row.conclusion == one.verdict]
    found = INTERVAL.search(one.text)
    if found is None or "of 100 pairs" in one.text:
        return bool(rows)
    shown = {ends(row).strip() for row in rows}
    for row in rows:
        if row.kind == "spearman":
            shown.add("[{} to {}]".format(*map(plain_number, row.shown)))
    return found[0] in shown


FALSE = re.compile(
    r"(?<!how )\b(more|less) often\b|differs? clearly|words mark|uses? words|reverses?\b|(is|are) clear\b"
    r"|rise together|against each other|writes about women (more|less)|describes? women and men differently"
    r"|(?<!not )clearly (different|change|more)|(women|men) are (farther|closer)"
)
"""What a sentence of a world in which nothing differs must not say, however it counts."""


def false_directions(made: Sequence[Finding]) -> list[str]:
    """The sentences that name a direction where nothing differs; slopes are 0 there, so "flattens" holds."""
    return [
        one.text
        for one in made
        if (one.verdict in DIRECTED and not WORKFORCE.search(one.text)) or FALSE.search(one.text)
    ]
