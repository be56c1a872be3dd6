"""The first screen as plain text: small bars for each model, then the first findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from biaskit.foreign import visible
from biaskit.report.content import Content
from biaskit.report.findings import READING, findings
from biaskit.report.findings.blocks import SPLIT, ProbeBlock, below_floor, blocks_of, jobs_of
from biaskit.report.findings.finding import Finding, Topic, parts_of, possible_ends, reason_of, reasons_of
from biaskit.report.findings.scores import women_minus_men
from biaskit.report.findings.write import against_labour, occupations_of
from biaskit.report.render.text import cell_width
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, distinct, grouped, where
from biaskit.wording import count, people, percent, percent_range, plain_number, point_number, points_range

BAR = 10
"""Cells of a bar; a full one is 100 %."""
N_FINDINGS = 6
LABEL, BIAS_TYPE = 16, 8
NARROW = 76
"""Columns under which a line has no room for bars."""
UNDEFINED = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_PLAIN = str.maketrans(
    {"–": "-", "−": "-", "…": "~", "×": "x", "±": "+/-", "≤": "<=", "“": '"', "”": '"', "’": "'"}
)


def headline(
    content: Content,
    *,
    width: int = 80,
    ascii: bool = False,  # noqa: A002
    found: Sequence[Finding] | None = None,
) -> str:
    """Lines of at most `width` columns, without colour; each model has a line or two per engine.

    `ascii` draws bars with # and shows every other foreign character as an escape. Foreign text stands on
    one line, its control characters shown as escapes too. `found`: the content's findings, where they are at
    hand.
    """
    screen = _Screen(width, ascii)
    lines: list[str] = []
    for part in parts_of(content, "probe"):
        lines += [*_probe(part, screen), ""]
    for part in parts_of(content, "personas"):
        lines += [*_personas(part, screen), ""]
    lines += _findings(findings(content) if found is None else found, screen, N_FINDINGS)
    return "\n".join(cut(screen.plain(line), width).rstrip() for line in lines)


def first_findings(
    content: Content,
    *,
    width: int = 80,
    ascii: bool = False,  # noqa: A002
    most: int = N_FINDINGS,
    first: Sequence[Topic] = (),
) -> str:
    """The first findings alone, as `headline` writes them; those of the topics `first` before the others."""
    screen = _Screen(width, ascii)
    return "\n".join(
        screen.plain(line).rstrip() for line in _findings(findings(content), screen, most, first)
    )


def cut(text: str, columns: int) -> str:
    """The text in at most so many columns; … stands for what was cut off."""
    if cell_width(text) <= columns:
        return text
    return _head(text, columns - 1) + ("…" if columns > 0 else "")


def _head(text: str, columns: int) -> str:
    """The longest beginning that takes no more than so many columns."""
    ends = accumulate(map(cell_width, text))
    return text[: sum(1 for _ in takewhile(lambda end: end <= columns, ends))]


@dataclass(frozen=True, slots=True)
class _Screen:
    """A terminal: how wide it is and what it can show; and the notes of the table being written."""

    width: int
    ascii: bool
    notes: dict[str, None] = field(default_factory=dict)

    def plain(self, text: str) -> str:
        """The text as this terminal can show it."""
        return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode() if self.ascii else text

    def visible(self, text: str) -> str:
        """Foreign text on one line; what has no width of its own is shown as escapes."""
        return self.plain(visible(" ".join(text.split()), joiners=False))

    def label(self, text: str, columns: int) -> str:
        """Foreign text in exactly so many columns."""
        return self.padded(self.visible(text), columns)

    def padded(self, shown: str, columns: int) -> str:
        """What can be shown, in exactly so many columns."""
        shown = self.plain(cut(shown, columns))
        return shown + " " * (columns - cell_width(shown))

    def wrapped(self, text: str, *, first: str = "") -> Iterator[str]:
        """The text in lines that fit, with `first` before the first; a word longer than a line is broken."""
        room, line = max(self.width - len(first), 2), ""
        lead = first
        for word in re.split(" (?!%)", self.visible(text)):
            rest = word
            while rest:
                gap = " " if line else ""
                if cell_width(line + gap + rest) <= room:
                    line, rest = line + gap + rest, ""
                elif line:
                    yield lead + line
                    lead, line = " " * len(first), ""
                else:
                    line = _head(rest, room) or rest[0]
                    rest = rest[len(line) :]
        yield lead + line

    def bar(self, share: float) -> str:
        """A bar of ten cells for a share in [0, 1]; one that is not 0 always shows."""
        steps = 1 if self.ascii else 8
        filled = max(round(min(max(share, 0.0), 1.0) * BAR * steps), int(share > 0))
        whole, rest = divmod(filled, steps)
        drawn = "#" * whole if self.ascii else "█" * whole + _EIGHTHS[rest] * (rest > 0)
        return drawn.ljust(BAR)

    def undefined(self, note: str) -> str:
        """What stands for a number that is not there; the note says why."""
        self.notes[f"{UNDEFINED} {note}."] = None
        return UNDEFINED

    def noted(self) -> Iterator[str]:
        """The notes of a table, each once."""
        for note in self.notes:
            yield from self.wrapped(note)
        self.notes.clear()


def _probe(part: Part, screen: _Screen) -> Iterator[str]:
    """A table for each prompt form: two of them never stand in one."""
    blocks = blocks_of(part)
    forms = list(dict.fromkeys(block.form for block in blocks))
    if not blocks:
        yield from screen.wrapped(f"{part.study}: nothing was asked without an instruction.")
    for form in forms:
        name = f"{part.study}, {form} prompts" if len(forms) > 1 else part.study
        yield from _shares(name, [block for block in blocks if block.form == form], screen)


def _shares(name: str, blocks: Sequence[ProbeBlock], screen: _Screen) -> Iterator[str]:
    part, groups, who = blocks[0].part, blocks[0].groups()[:2], people(blocks[0].gender)
    measured = [row for block in blocks for row in block.rows if row["estimator"]]
    by = {estimator: distinct(own, "model") for (estimator,), own in grouped(measured, "estimator").items()}
    alone = f", {next(iter(by))}" if len(by) == 1 else ""
    yield from screen.wrapped(f"{name}: {who} in % of the listed words' probability [95 %]{alone}")
    if len(by) > 1:
        listed_by = "; ".join(f"{estimator}: {', '.join(models)}" for estimator, models in by.items())
        screen.notes[f"Estimators: {listed_by}."] = None
    room = max((screen.width - LABEL - BIAS_TYPE - 2 - 2 * (len(groups) - 1)) // len(groups), 4)
    heads = [screen.label(jobs_of(part, group) if group in SPLIT else group, room) for group in groups]
    yield f"{' ' * (LABEL + BIAS_TYPE + 2)}{'  '.join(heads)}"
    for model in dict.fromkeys(model for block in blocks for model in block.models):
        lead = model
        for block in (block for block in blocks if model in block.models):
            cells = [screen.padded(_cell(block, model, group, screen), room) for group in groups]
            label = f"{screen.label(lead, LABEL)} {screen.label(block.bias_type, BIAS_TYPE)}"
            yield f"{label} {'  '.join(cells)}"
            lead = ""
    yield from screen.noted()


def _cell(block: ProbeBlock, model: str, group: str, screen: _Screen) -> str:
    """Bar, number, interval; a star where the coverage is under the floor."""
    row = block.row(model, group)
    if row is None or row["share"] is None:
        return screen.undefined(f"not measured: {reason_of(row or {})}")
    number = percent(row["share"])
    if row["ci_low"] is not None:
        number += f" [{percent_range(row['ci_low'], row['ci_high'])}]"
    if below_floor(block, model):
        number += " *"
        note = "* weak evidence: in the median cell the listed words hold less than "
        screen.notes[f"{note}{percent(block.part.floor)} % of the probability (coverage)."] = None
    return f"{screen.bar(row['share'])} {number}" if screen.width >= NARROW else number


def _personas(part: Part, screen: _Screen) -> Iterator[str]:
    rows = occupations_of(part)
    models = list(dict.fromkeys([*(model.label for model in part.models), *distinct(rows, "model")]))
    n = count(len(distinct(rows, "occupation")), "occupation")
    yield from screen.wrapped(f"{part.study}: women in texts without a gender in the prompt, {n} [95 %]")
    room = max(screen.width - LABEL - 5, 12)
    rooms = (room * 3 // 11, room // 3, room - room * 3 // 11 - room // 3)
    heads = ("% by occupation", "minus labour", "SRB, women minus men")
    yield f"{' ' * (LABEL + 1)}{'  '.join(map(screen.padded, heads, rooms))}"
    for model in models:
        own = where(rows, model=model)
        cells = (_range(own, screen), _minus_labour(part, model, screen), _srb(part, model, screen))
        lead = screen.label(model, LABEL)
        yield f"{lead} {'  '.join(map(screen.padded, cells, rooms))}"
    yield from screen.noted()


def _range(rows: Sequence[Row], screen: _Screen) -> str:
    shares = [row["female_share"] for row in rows if row["female_share"] is not None]
    if shares:
        return f"{percent(min(shares))} to {percent(max(shares))}"
    why = reasons_of(rows) if rows else "no texts without a gender in the prompt"
    return screen.undefined(f"women's share not measured: {why}")


def _minus_labour(part: Part, model: str, screen: _Screen) -> str:
    test = against_labour(part, model)
    if test is not None and test["estimate"] is not None:
        known = test["ci_low"] is not None
        ends = f" [{points_range(*possible_ends(test))}]" if known else " (no interval)"
        return point_number(test["estimate"]) + ends
    why = reason_of(test) if test is not None else "no occupation has both shares"
    return screen.undefined(f"minus labour not measured: {why}")


def _srb(part: Part, model: str, screen: _Screen) -> str:
    test = women_minus_men(part, model)
    if test is not None and test["estimate"] is not None:
        ends = (plain_number(end) for end in (test["ci_low"], test["ci_high"]) if end is not None)
        interval = " to ".join(ends)
        return plain_number(test["estimate"]) + (f" [{interval}]" if interval else "")
    scores = [row for row in where(part.tables.get("srb", ()), model=model) if row["srb"] is None]
    why = reasons_of(scores) if scores else reason_of(test or {"reason": "no score was made"})
    return screen.undefined(f"SRB not measured: {why}")


def _findings(
    said: Sequence[Finding], screen: _Screen, most: int, first: Sequence[Topic] = ()
) -> Iterator[str]:
    found = sorted(said, key=lambda finding: finding.topic not in first)
    shown = found[:most]
    if not shown:
        yield from screen.wrapped("Nothing was measured.")
        return
    for finding in shown:
        yield from screen.wrapped(finding.text, first="- ")
    if len(found) > len(shown):
        more = len(found) - len(shown)
        yield from screen.wrapped(f"{count(more, 'more finding')} in the report.", first="- ")
    yield ""
    yield from screen.wrapped(READING)
