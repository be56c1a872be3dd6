"""The page as a file: what it holds, what it may not hold; what it does is for a browser."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from fakes.page_contents import (
    EMPTY,
    FIGURES,
    FINDINGS,
    HOSTILE,
    NOTHING,
    SAID,
    content,
    example,
    hostile,
    part,
    rows,
    ten_models,
)
from hypothesis import given
from hypothesis import strategies as st

from biaskit.common.foreign import HIDDEN, JOINERS, visible
from biaskit.compare import check
from biaskit.corpora.languages import ENGLISH, shipped_language
from biaskit.report.content import Content, Equivalence, Span
from biaskit.report.figures import differences
from biaskit.report.page import is_page, labels, render_page
from biaskit.report.page.rendering import LONGEST_TEXT, cut, pieces
from biaskit.report.page.tables import MOST_ROWS, ListedTable, list_tables
from biaskit.report.questions import ORDER
from biaskit.stats.contrast import Verdict
from biaskit.tables.io import columns
from biaskit.tables.schema import SCHEMAS

SMALL = content(["a", "b"], ["nurse", "pilot"], n_words=3, letters=300, n_prompts=2)


def page(what: Content = SMALL) -> bytes:
    return render_page(what, SAID, FIGURES)


class Reader(HTMLParser):
    """Elements with their attributes, and the text under each heading."""

    VOID = frozenset(("meta", "link", "br", "img", "input", "source"))

    def __init__(self, made: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.under: list[str] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(made.decode("utf-8"))
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
            self.under.append("")
        elif tag == "img" and self.under:
            self.under[-1] += "picture"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self.open):
            return
        self.said += data
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)
        elif self.under:
            self.under[-1] += data

    def attributes(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(name)) is not None]


def bare_headings(made: bytes) -> list[str]:
    """Headings with nothing under them, neither text nor a lower heading that has some."""
    read = Reader(made)
    bare = []
    for i, (level, text) in enumerate(read.headings):
        below = read.under[i].strip()
        for j in range(i + 1, len(read.headings)):
            if read.headings[j][0] <= level:
                break
            below += read.under[j].strip()
        if not below:
            bare.append(text)
    return bare


# --- one file that asks for nothing and needs no script ------------------------------------------------


def test_same_content_same_bytes_that_are_known_as_a_page() -> None:
    assert page() == page()
    assert is_page(page())
    assert not is_page(b"<!doctype html>\n<html>")


def test_the_policy_allows_the_one_script_by_its_hash() -> None:
    text = page().decode("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert script.count("\n") <= 100
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval", script)


def test_nothing_is_fetched_from_anywhere() -> None:
    read = Reader(page())
    for name in ("action", "data", "poster", "background"):
        assert not read.attributes(name)
    drawn = [*read.attributes("src"), *read.attributes("srcset")]
    assert all(src.startswith("data:image/svg+xml;base64,") for src in drawn)
    assert all(href.startswith("#") or href == "data:," for href in read.attributes("href"))
    style = page().decode().split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import", style)


def test_every_figure_stands_in_the_page_with_its_text_and_one_caption() -> None:
    read, html = Reader(page()), page().decode()
    pictures = [attrs for tag, attrs in read.elements if tag == "img"]
    drawn = [base64.b64decode(str(one["src"]).partition(",")[2]) for one in pictures]
    assert sorted(drawn) == sorted(one.svg for one in FIGURES)
    assert {one["alt"] for one in pictures} == {"nurse: 20%; pilot: 40%."}
    assert html.count("n = 63 jobs; bars") == len(FIGURES)
    before = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(script|style).*?</\1>", "", html[: html.index("<img")]))
    assert len(before.split()) <= 80, "few words stand before the first picture"


def test_every_link_and_every_id_stand_once() -> None:
    read = Reader(page())
    ids = read.attributes("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in read.attributes("href") if href.startswith("#")} <= set(ids)
    asked = [one for one in ids if one in ORDER]
    assert asked[-1] == "sure"
    assert asked == [href[1:] for href in read.attributes("href") if href[1:] in ORDER]
    assert {"table-0-gaps", "table-1-probe_jobs", "table-2-srb", "figure-answer", "figure-scatter"} <= {*ids}


# --- every heading has content or a reason -------------------------------------------------------------

ONE_MODEL = content(["a"], ["nurse"], n_words=1, letters=50, n_prompts=1)
CASES: Mapping[str, Content] = {
    "nothing at all": EMPTY,
    "two models": SMALL,
    "one model, one occupation": ONE_MODEL,
    "probe alone": replace(
        ONE_MODEL, parts=ONE_MODEL.parts[:1], between={}, words=(), examples=(), sentences=()
    ),
    "personas alone": replace(ONE_MODEL, parts=ONE_MODEL.parts[1:], between={}, prompts=()),
    "a part without tables": replace(ONE_MODEL, parts=(part("personas", ["a"], {}),), between={}, words=()),
    "tables without rows": replace(
        ONE_MODEL, parts=(part("probe", ["a"], {"probe_jobs": []}),), between={"gaps": []}
    ),
    "twenty models": content([f"m{i}" for i in range(20)], ["nurse"], n_words=2, letters=80, n_prompts=1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("said", [True, False])
def test_every_heading_has_content_or_a_reason(name: str, said: bool) -> None:
    assert bare_headings(render_page(CASES[name], *((SAID, FIGURES) if said else (NOTHING, ())))) == []


def test_what_is_not_there_is_said_or_not_asked() -> None:
    text = Reader(render_page(EMPTY, NOTHING, ())).said
    assert text.count("--no-texts was given") == 1
    assert "may offend" not in text
    assert "may offend" in Reader(page()).said
    ids = Reader(page(replace(SMALL, parts=SMALL.parts[:1], between={}, words=(), examples=()))).attributes(
        "id"
    )
    assert {"say", "sure"} <= {*ids}
    assert "help" not in ids
    assert "probe_prompts.csv" in Reader(page()).said
    assert not [one for one in ids if "probe_prompts" in one]


def test_a_sentence_of_the_first_screen_is_not_repeated_under_its_question() -> None:
    html = page().decode()
    for one in FINDINGS[:2]:
        assert html.count(f">{one.text}") == 2  # on the first screen, and in the fold with its record
        assert html.rindex(f">{one.text}") > html.index('<details class="fold">')
    only = replace(SAID, findings=SAID.findings[:2])
    bare = render_page(replace(SMALL, words=(), examples=()), only, FIGURES[:1]).decode()
    assert bare.count("See the top of the page.") == 2


@pytest.mark.parametrize(
    ("equivalence", "said", "kind"),
    [
        (Equivalence(True, 0, 12), "Equivalent in all 12 differences", "holds"),
        (Equivalence(False, 3, 12), "Not shown to be equivalent in 3 of 12 differences", "fails"),
        (Equivalence(True, 0, 12, weak=True), "Equivalent in all 12 differences, weak evidence", "holds"),
        (Equivalence(False, 0, 0), "Not shown to be equivalent: nothing was compared", "fails"),
    ],
)
def test_a_comparison_of_two_models_wears_its_equivalence(
    equivalence: Equivalence, said: str, kind: str
) -> None:
    html = page(replace(SMALL, equivalence=equivalence)).decode()
    assert f'<span class="badge {kind}">{said}</span>' in html
    assert html.index(said) > html.index(FINDINGS[0].text), "an answer comes before a requirement"
    assert 'class="badge' not in page().decode()


EVERY = {"scoped": True, "labelled": True}


def test_every_column_table_verdict_and_rule_has_words() -> None:
    for name in SCHEMAS:
        assert SCHEMAS[name].title or SCHEMAS[name].not_on_page
        for column in columns(name, groups=("male", "female", "x"), contrast=("female", "male"), **EVERY):
            assert "_" not in labels.column(column.name)
    assert labels.column("female_share_ci_low") == "women, 95 % from"
    assert labels.column("n_templates") == "templates"
    assert {table.question for table in SCHEMAS.values()} <= {*ORDER}
    verdicts = {*get_args(Verdict)}
    assert verdicts == labels.VERDICTS.keys()
    assert verdicts == differences._SHAPE_OF.keys()
    assert verdicts - {"higher", "lower", "equivalent", "not-measured"} == check.NO_DIRECTION.keys()
    rules = [rule.id for rule in shipped_language(ENGLISH).rules]
    assert [*rules, "not-english", "not-read"] == list(labels.RULES)


# --- tables --------------------------------------------------------------------------------------------


def listed(rows_of: Sequence[Mapping[str, Any]], name: str = "srb") -> ListedTable:
    (made,) = list_tables(
        Content("t", (replace(part("personas", ["a"], {name: rows_of}), templates=()),), {})
    )
    return made


def cells(table: ListedTable, label: str) -> list[str]:
    (column,) = [one for one in table.columns if one.label == label]
    return [*column.cells]


def test_numbers_are_shown_with_four_digits_and_the_undefined_is_never_nought() -> None:
    values = [None, 0.00012, -0.5, 1e-9, float("nan"), 12.0, 0.0]
    table = listed(
        [{"model": "a", "occupation": str(i), "srb": v, "reason": ""} for i, v in enumerate(values)]
    )
    assert cells(table, "SRB") == ["–", "0.00012", "−0.5", "1e−09", "–", "12", "0"]
    assert [column.label for column in table.columns if column.is_number] == ["SRB"]


def test_what_is_the_same_in_every_row_is_said_once_and_yes_is_not_one() -> None:
    base = {"model": "a", "gender": "female", "kept": True, "cluster": 1, "words": "x", "reason": ""}
    table = listed([base, {**base, "words": "y", "kept": False}], "clusters")
    assert table.same == [("model", "a"), ("gender", "women"), ("cluster", "1")]
    assert [column.label for column in table.columns] == ["words", "kept"]
    assert cells(table, "kept") == ["yes", "no"]


def test_a_long_table_shows_its_first_rows_and_says_where_all_of_them_are() -> None:
    many = [
        {"model": "a", "occupation": f"o{i}", "srb": 0.1 * i, "reason": ""} for i in range(MOST_ROWS + 50)
    ]
    table = listed(many)
    assert (table.n_rows, table.n_stored, len(cells(table, "occupation"))) == (200, 250, 200)
    made = Reader(page(Content("t", (part("personas", ["a"], {"srb": many}),), {}))).said
    assert "200 of 250 rows; all of them in runs/personas/tables/srb.csv" in " ".join(made.split())
    short = Reader(page(Content("t", (part("personas", ["a"], {"srb": many[:3]}),), {}))).said
    assert "All rows, also in runs/personas/tables/srb.csv" in " ".join(short.split())


def test_marked_words_are_the_first_twenty_of_calibrated_lists() -> None:
    keys = {"model": ["a"], "occupation": ["o"], "origin": ["inferred"], "gender": ["female"]}
    of = {"against": ["male"], "method": ["calibrated", "x"], "word": [f"w{i}" for i in range(30)]}
    made = [{**row, "rank": 1 + i % 30} for i, row in enumerate(rows("marked_words", {**keys, **of}))]
    table = listed(made, "marked_words")
    assert (table.n_rows, table.n_stored) == (20, 60)


# --- texts and prompts ---------------------------------------------------------------------------------


def test_counted_words_are_cut_out_where_they_stand() -> None:
    text = "She \U0001f600 told him."
    spans = [Span(0, 3, "female"), Span(11, 14, "male")]
    assert [*pieces(text, spans)] == [
        ("", ""),
        ("She", "female"),
        (" \U0001f600 told ", ""),
        ("him", "male"),
        (".", ""),
    ]
    for span in (Span(2, 90, "female"), Span(3, 3, "female"), Span(4, 2, "female"), Span(0, 3, "none")):
        assert [*pieces(text, [span])] == [(text, "")]
    assert [*pieces("", [])] == []


def test_a_text_stands_with_what_it_was_read_as_and_endless_ones_end() -> None:
    one = replace(example("m", "nurse", "she said he " * 5), rule_id="female", outcome="person")
    said = " ".join(Reader(page(replace(SMALL, examples=(one,)))).said.split())
    assert (
        "describes a person · counted as a text about women · rule “female”: no term for non-binary" in said
    )
    assert "words counted: 5 women's word, 5 men's word" in said
    assert cut("x" * (LONGEST_TEXT + 9), LONGEST_TEXT).endswith(f"… (cut: {LONGEST_TEXT + 9:,} characters)")
    long = replace(example("m", "nurse", "y" * 3 * LONGEST_TEXT))
    assert Reader(page(replace(SMALL, examples=(long,)))).said.count("y") < 1.1 * LONGEST_TEXT


def test_prompts_and_texts_of_many_are_spread_over_all_of_them() -> None:
    html = page(ten_models()).decode()
    assert 30 <= html.count('<p class="foreign"') <= 60
    assert 50 <= html.count('<p class="who">Prompt') <= 100
    assert len(html) < 6_000_000
    assert re.search(r"exactly as sent, \d+ of 500 kinds", html)
    assert re.search(r"may offend: \d+ of 1260 examples", html)


# --- hostile text ----------------------------------------------------------------------------------------


@given(st.text(), st.sampled_from(["", "\n\t"]), st.booleans())
def test_what_is_visible_is_decided_letter_by_letter(text: str, keep: str, joiners: bool) -> None:
    kept = keep + (JOINERS if joiners else "")
    expected = "".join(
        c if c in kept or unicodedata.category(c) not in HIDDEN else ascii(c)[1:-1] for c in text
    )
    assert visible(text, keep=keep, joiners=joiners) == expected


def skeleton(made: bytes) -> list[tuple[str, list[str]]]:
    """The elements with the names of their attributes."""
    return [(tag, sorted(attrs)) for tag, attrs in Reader(made).elements]


@pytest.fixture(scope="module")
def plain() -> list[tuple[str, list[str]]]:
    """The elements of a page whose payload is a letter."""
    return skeleton(render_page(*hostile("x")))


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_changes_no_element_and_shows_nothing_hidden(
    plain: list[tuple[str, list[str]]], number: int
) -> None:
    evil = render_page(*hostile(HOSTILE[number]))
    assert skeleton(evil) == plain
    assert not any(unicodedata.category(c) in HIDDEN and c not in "\n\t" + JOINERS for c in {*evil.decode()})
