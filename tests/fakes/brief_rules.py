"""What holds for every short sentence, and which of them name a direction."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biaskit.report.content import Content
from biaskit.report.findings import Finding, briefs, findings, interval_explained, leading, not_measured
from biaskit.report.findings.brief import MOST_WORDS, Brief
from biaskit.report.findings.in_brief.sentence import ends
from biaskit.report.questions import ORDER
from biaskit.stats.verdict import verdict_of
from biaskit.tables.schema import SCHEMAS

INTERVAL = re.compile(r"\[[^\[\]]*\d[^\[\]]* to [^\[\]]*\]|\[[\d.<>]+–[\d.<>]+\]")
TABLE_NAMES = re.compile("|".join([*(name for name in SCHEMAS if "_" in name), r"\.csv"]))
JARGON = re.compile("Holm|null hypothesis|significant|p-value|[\u0370-\u03ff]")
MORE = re.compile(
    r"points more often|(says?|speaks? of|writes? about) \S+ more often|\braises\b|\bexaggerates?\b"
    r"|told apart in|fewer than|is [^,;.]* more for|farther than|about \S+ more often"
)
LESS = re.compile(
    r"points less often|(says?|speaks? of|writes? about) \S+ less often|\blowers\b|\bflattens?\b"
    r"|\breverses?\b|is [^,;.]* less for|are nearer than|about \S+ less often"
)
LABOUR = re.compile(r"mirrors?|flattens?|reverses?|exaggerates?")
COUNTED = re.compile(r"\b(\d+ of \d+|[Aa]ll \d+|[Bb]oth) (models|sets)")
DIRECTED = ("higher", "lower")
TOPICS = {
    "say": ("probe-explicit", "probe-implicit"),
    "write": ("representation",),
    "how": ("srb", "transfer"),
    "else": ("representation",),
    "models": ("models", "gaps"),
    "agree": ("relations",),
    "help": ("debiasing", "probe-explicit", "probe-implicit"),
}


def hold(content: Content, *, foreign: bool = False) -> tuple[Brief, ...]:
    """Assert what holds for every page's short sentences, and give them back.

    `foreign`: names of the content may hold what our own words never do.
    """
    made, long = briefs(content), findings(content)
    for one in made:
        assert len(one.text.split()) <= MOST_WORDS, one.text
        assert "\n" not in one.text
        assert one.text.endswith(".")
        assert "  " not in one.text
        assert one.verdict not in DIRECTED or claimed(one, long) or shown_by_a_row(one, content), one.text
        if not foreign:
            assert not one.text.endswith("…"), one.text
            assert len(INTERVAL.findall(one.text)) <= 1, one.text
            assert not TABLE_NAMES.search(one.text), one.text
            assert not JARGON.search(one.text), one.text
            assert not any(mark in one.text for mark in "{}"), one.text
            assert said_direction(one) in (None, one.verdict), one.text
    assert [ORDER.index(one.question) for one in made] == sorted(ORDER.index(one.question) for one in made)
    first = leading(content)
    assert len(first) <= 3
    assert set(first) <= set(made)
    assert bool(first) == bool(made)
    assert len(interval_explained(content).split()) <= 35
    assert all("`biaskit " in line and "\n" not in line for line in not_measured(content))
    return made


def said_direction(one: Brief) -> str | None:
    """The direction that the words of a sentence about one row name; sentences that count name none."""
    if COUNTED.search(one.text) or one.question == "agree":
        return None
    more, less = bool(MORE.search(one.text)), bool(LESS.search(one.text))
    assert not (more and less), one.text
    return "higher" if more else "lower" if less else None


def claimed(one: Brief, long: Sequence[Finding]) -> bool:
    """Whether a long finding of the same subject claims the direction; labour words are their own claims."""
    if LABOUR.search(one.text):
        return True
    beside = [finding for finding in long if finding.topic in TOPICS[one.question]]
    found = INTERVAL.search(one.text)
    two = found[0].strip("[]").split(" to ") if found else []
    ranges = [" to ".join(two), " to ".join(_minus(end) for end in reversed(two))] if two else []
    return any(
        finding.verdict == one.verdict
        or any(
            re.search(rf"\[{re.escape(one_range)}\](?!, (no|not|equi|yet))", finding.text)
            for one_range in ranges
        )
        for finding in beside
    )


def shown_by_a_row(one: Brief, content: Content) -> bool:
    """Whether a row of the tests has this direction and interval, as the largest of those that are clear."""
    found = INTERVAL.search(one.text)
    tables = [part.tables for part in content.parts]
    rows = [row for table in tables for row in table.get("tests", ()) if verdict_of(row) == one.verdict]
    return found is not None and found[0] in {ends(row).strip() for row in rows}


def _minus(number: str) -> str:
    return number[1:] if number.startswith("−") else number if number == "0" else f"−{number}"


FALSE = re.compile(
    r"(?<!how )\b(more|less) often\b|differs? clearly|words mark|uses? words, beyond|reverses?\b|are clear\b"
    r"|rise together|against each other|writes about women (more|less)|describes? women and men differently"
)
"""What a sentence of a world in which nothing differs must not say, however it counts."""


def false_directions(made: Sequence[Brief]) -> list[str]:
    """The sentences that name a direction where nothing differs; slopes are 0 there, so "flattens" holds."""
    return [
        one.text
        for one in made
        if (one.verdict in DIRECTED and not LABOUR.search(one.text)) or FALSE.search(one.text)
    ]
