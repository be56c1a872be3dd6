"""The page as a file: what it holds, what it may not hold, how large it is; what it does is for a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import unicodedata
import zlib
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
    LIMITS,
    NOTHING,
    SAID,
    Figure,
    content,
    example,
    hostile,
    model,
    part,
    rows,
    svg,
    ten_models,
)
from hypothesis import given
from hypothesis import strategies as st

from biaskit.compare import gate
from biaskit.foreign import HIDDEN, JOINERS, visible
from biaskit.personas.texts.association import ASSOCIATION_RULES
from biaskit.report.content import Content, ExampleText, Gate, Span
from biaskit.report.figures import between_models
from biaskit.report.page import Page, labels, render_page
from biaskit.report.page.drawing import UnfitDrawing, drawing
from biaskit.report.page.foreign import LONGEST_TEXT, shown
from biaskit.report.questions import ORDER
from biaskit.stats.verdict import Verdict
from biaskit.tables.io import columns
from biaskit.tables.schema import SCHEMAS

SMALL = content(["a", "b"], ["nurse", "pilot"], n_words=3, letters=300, n_prompts=2)


def page(what: Content = SMALL, **options: Any) -> Page:
    return render_page(what, SAID, FIGURES, **options)


def data_of(made: Page) -> dict[str, Any]:
    """The page's data as its script unpacks them."""
    packed = re.findall(
        rb'<script type="application/octet-stream;base64" data-part="(\w+)">([^<]*)</script>', made.html
    )
    return {name.decode(): json.loads(zlib.decompress(base64.b64decode(data))) for name, data in packed}


class Reader(HTMLParser):
    """Elements with their attributes, and the text under each heading."""

    VOID = frozenset(("meta", "link", "br", "img", "input"))

    def __init__(self, made: Page) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.under: list[str] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(made.html.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
            self.under.append("")

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


def bare_headings(made: Page) -> list[str]:
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


# --- one file that asks for nothing -------------------------------------------------------------------


def test_same_content_same_bytes_and_valid_utf_8() -> None:
    assert page().html == page().html
    page().html.decode("utf-8")


def test_the_policy_allows_the_one_script_by_its_hash() -> None:
    text = page().html.decode("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy is not None
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode("utf-8")).digest()).decode("ascii")
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_fetched_from_anywhere() -> None:
    read = Reader(page())
    for name in ("src", "srcset", "action", "data", "poster", "background"):
        assert not read.attributes(name)
    assert all(href.startswith("#") or href == "data:," for href in read.attributes("href"))
    style = page().html.decode().split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_every_link_and_every_id_stand_once() -> None:
    read = Reader(page())
    ids = read.attributes("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in read.attributes("href") if href.startswith("#")} <= set(ids)
    asked = [one for one in ids if one in ORDER]
    assert asked[-1] == "sure"
    assert asked == [href[1:] for href in read.attributes("href") if href[1:] in ORDER]


def test_ids_of_the_parts_that_others_link_to() -> None:
    ids = Reader(page()).attributes("id")
    assert {
        "table-0-gaps",
        "table-1-probe_jobs",
        "table-2-srb",
        "figure-lollipop",
        "figure-later",
    } <= set(ids)


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
    "no provenance": replace(
        EMPTY, parts=(replace(ONE_MODEL.parts[0], runs=(), commands=(), signatures=()),)
    ),
    "twenty models": content([f"m{i}" for i in range(20)], ["nurse"], n_words=2, letters=80, n_prompts=1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("said", [True, False])
def test_every_heading_has_content_or_a_reason(name: str, said: bool) -> None:
    made = render_page(CASES[name], *((SAID, FIGURES) if said else (NOTHING, ())))
    assert bare_headings(made) == []


def test_no_texts_is_said() -> None:
    text = Reader(render_page(EMPTY, NOTHING, ())).said
    assert text.count("--no-texts was given") == 1
    assert "may offend" not in text
    assert "may offend" in Reader(page()).said


def test_a_question_that_nothing_answers_is_not_asked() -> None:
    asked = Reader(page(replace(SMALL, parts=SMALL.parts[:1], between={}, words=(), examples=()))).attributes(
        "id"
    )
    assert "say" in asked
    assert "sure" in asked
    assert "help" not in asked
    alone = Reader(render_page(replace(SMALL, between={}), NOTHING, ())).attributes("id")
    assert "agree" not in alone


def test_tables_that_stay_on_disk_are_named() -> None:
    said = Reader(page()).said
    assert "probe_cells.csv" in said
    assert "associations.csv" in said
    assert not [table["id"] for table in data_of(page())["tables"] if "probe_cells" in table["id"]]


def test_the_first_screen_then_the_questions_then_what_is_behind_them() -> None:
    said = Reader(page()).said
    places = [
        said.index(one)
        for one in (FINDINGS[0].text, "Who does it say?", "Women get 58", "a, raw, exact", LIMITS[0])
    ]
    assert places == sorted(places)
    alone = Reader(render_page(replace(SMALL, between={}), SAID, FIGURES[:1])).said
    assert alone.index("Fewer than 10 occupations") > alone.index("Asked, but not measured")


def test_a_sentence_of_the_first_screen_is_not_repeated_under_its_question() -> None:
    html = page().html.decode()
    for one in FINDINGS[:2]:
        assert html.count(f">{one.text}") == 2  # on the first screen, and in the fold with its record
        assert html.rindex(f">{one.text}") > html.index('<details class="fold">')
    third = html.index("Women get 58")
    assert html.index('id="say"') < third < html.index('<details class="fold">')
    only = replace(SAID, findings=SAID.findings[:2])
    bare = render_page(replace(SMALL, words=(), examples=()), only, FIGURES[:1]).html.decode()
    assert bare.count("Said at the top of the page.") == 2


def test_the_picture_stands_once_before_few_words_and_has_one_caption() -> None:
    html = page().html.decode()
    before = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(script|style).*?</\1>", "", html[: html.index("<svg")]))
    assert len(before.split()) <= 80
    assert html.count('<figure id="figure-lollipop"') == 1
    assert html.count(FIGURES[0].caption) == 3  # once for each figure; the drawings hold none
    assert html.count("<svg") == 3, "the first two figures without scripts, the first in two widths"


@pytest.mark.parametrize(
    ("gate", "said", "kind"),
    [
        (Gate(True, 0, 12), "Equivalent in all 12 differences", "holds"),
        (Gate(False, 3, 12), "Not shown to be equivalent in 3 of 12 differences", "fails"),
        (Gate(False, 0, 0), "Not shown to be equivalent: nothing was compared", "fails"),
    ],
)
def test_a_comparison_of_two_models_wears_its_gate(gate: Gate, said: str, kind: str) -> None:
    html = page(replace(SMALL, gate=gate)).html.decode()
    assert f'<span class="badge {kind}">{said}</span>' in html
    assert html.index(said) < html.index("<main")
    assert 'class="badge' not in page().html.decode()


def test_how_to_read_the_findings_is_said_once() -> None:
    made = render_page(SMALL, replace(SAID, reading="Brackets hold 95 % intervals."), FIGURES)
    assert Reader(made).said.count("Brackets hold") == 1


def test_every_column_and_table_has_words() -> None:
    for name in SCHEMAS:
        assert name in labels.TITLES or name in labels.NOT_ON_PAGE
        for column in columns(name, groups=("male", "female", "x"), contrast=("female", "male"), scoped=True):
            if name not in labels.NOT_ON_PAGE:
                label, _ = labels.column(column.name, ("male", "female", "x"), ("female", "male"))
                assert "_" not in label, column.name
                assert column.name in labels.COLUMNS or label != column.name.replace("_", " "), column.name


def test_every_verdict_has_words_wherever_it_is_shown() -> None:
    """A verdict without words would stand on the page as a code, and in a figure as an error."""
    verdicts = {*get_args(Verdict)}
    assert verdicts == labels.VERDICTS.keys() - {"shown"}
    assert verdicts == between_models._SHAPE_OF.keys()
    assert verdicts - {"higher", "lower", "equivalent", "not-measured"} == gate.NO_DIRECTION.keys()


def test_the_rules_of_the_association_are_those_explained() -> None:
    assert [rule.id for rule in ASSOCIATION_RULES] == list(labels.RULES)


# --- tables as data ------------------------------------------------------------------------------------


def _listed(rows_of: Sequence[Mapping[str, Any]], name: str = "srb") -> dict[str, Any]:
    made = render_page(Content("t", (part("personas", ["a"], {name: rows_of}),), {}), NOTHING, ())
    return next(table for table in data_of(made)["tables"] if table["id"] == f"table-1-{name}")


def _column(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(column for column in table["columns"] if column["name"] == name)


def test_numbers_keep_their_order_to_the_last_digit() -> None:
    rng = random.Random(1)
    close = [0.1, 0.1 + 1e-13, 0.1 - 1e-13, 0.1 + 1e-16, *(rng.random() for _ in range(50))]
    given = [{"model": "a", "occupation": str(i), "srb": value} for i, value in enumerate(close)]
    packed = _column(_listed(given), "srb")["values"]
    assert sorted(range(len(close)), key=close.__getitem__) == sorted(
        range(len(close)), key=packed.__getitem__
    )
    assert len(set(packed)) == len(set(close))
    short = [{"model": "a", "occupation": str(i), "srb": 0.123456789012345 + i} for i in range(3)]
    assert _column(_listed(short), "srb")["values"] == [0.123457, 1.12346, 2.12346]


def test_an_undefined_number_is_null_and_never_nought() -> None:
    given = [
        {"model": "a", "occupation": "nurse", "srb": None, "reason": "not eligible"},
        {"model": "a", "occupation": "pilot", "srb": 0.0, "reason": ""},
    ]
    table = _listed(given)
    assert _column(table, "srb")["values"] == [None, 0.0]
    reason = _column(table, "reason")
    assert (reason["levels"], reason["codes"]) == (["not eligible"], [0, -1])


def test_a_number_that_json_has_no_word_for_is_null() -> None:
    given = [
        {"model": "a", "occupation": name, "srb": value}
        for name, value in zip("abcd", (float("nan"), float("-inf"), 1.5, None), strict=True)
    ]
    assert _column(_listed(given), "srb")["values"] == [None, None, 1.5, None]


def test_what_is_the_same_in_every_row_is_said_once() -> None:
    given = [{"model": "a", "occupation": str(i), "srb": 0.5, "srb_z": None, "n_oov": 3} for i in range(3)]
    table = _listed(given)
    assert [column["name"] for column in table["columns"]] == ["occupation"]
    assert table["same"] == [["model", "a"], ["SRB", "0.5"], ["without vector", "3"]]
    assert table["empty"] == ["SRB, z"]


def test_yes_is_not_one_and_genders_have_words() -> None:
    given = [
        {"model": "a", "occupation": "x", "gender": g, "origin": o, "kept": k}
        for g, o, k in (("female", "associated", True), ("nonbinary", "specified", False))
    ]
    table = _listed(given, "clusters")
    assert _column(table, "kept")["levels"] == ["yes", "no"]
    assert _column(table, "gender")["levels"] == ["women", "non-binary people"]
    assert _column(table, "origin")["levels"] == ["not in the prompt", "in the prompt"]


def test_marked_words_are_the_first_twenty_of_calibrated_lists() -> None:
    lists = {"model": ("a",), "gender": ("female", "male"), "method": ("calibrated", "marked-personas")}
    given = [
        {**row, "rank": i % 30 + 1}
        for i, row in enumerate(rows("marked_words", {**lists, "word": range(30)}))
    ]
    table = _listed(given, "marked_words")
    assert (table["n"], table["stored"]) == (40, 120)
    assert max(_column(table, "rank")["values"]) == 20


def test_a_caption_says_with_what_its_table_was_measured() -> None:
    said = " ".join(Reader(page()).said.split())
    inside = "64de5f416e0f, instruct, local"
    assert f"a ({inside}) · b ({inside}) · form chat-prefill · estimator exact" in said
    assert "vectors corpus:0123abcd" in said
    many = content([f"m{i}" for i in range(5)], ["nurse"], n_words=1, letters=9, n_prompts=1)
    assert "5 models (see Models) · form chat-prefill" in Reader(page(many)).said


# --- texts ---------------------------------------------------------------------------------------------


def _pieces(text: str, *spans: tuple[int, int, str]) -> list[list[str]]:
    one = ExampleText("a", "nurse", "associated", None, None, None, text, tuple(Span(*s) for s in spans), "k")
    found = data_of(render_page(replace(SMALL, examples=(one,)), NOTHING, ()))["texts"]
    pieces: list[list[str]] = found[0]["pieces"]
    return pieces


def test_counted_words_are_cut_out_where_they_stand() -> None:
    assert _pieces("So she said he", (3, 6, "female"), (12, 14, "male")) == [
        ["So ", ""],
        ["she", "female"],
        [" said ", ""],
        ["he", "male"],
    ]


def test_letters_that_the_browser_counts_twice_move_no_mark() -> None:
    assert _pieces("\U0001f469\u202e she", (3, 6, "female")) == [
        ["\U0001f469\\u202e ", ""],
        ["she", "female"],
    ]


@pytest.mark.parametrize(
    "span", [(0, 99, "female"), (2, 2, "male"), (5, 3, "male"), (0, 3, "robot"), (-4, -1, "female")]
)
def test_spans_that_fit_no_text_are_left_out(span: tuple[int, int, str]) -> None:
    assert _pieces("she said", span) == [["she said", ""]]


def test_endless_texts_end() -> None:
    one = example("a", "nurse", "x" * (LONGEST_TEXT + 5))
    found = data_of(render_page(replace(SMALL, examples=(one,)), NOTHING, ()))["texts"][0]
    assert found["cut"]
    assert sum(len(piece) for piece, _ in found["pieces"]) == LONGEST_TEXT


def test_words_name_their_sentences_and_no_others_are_kept() -> None:
    held = data_of(page())["words"]
    lists = held["lists"]
    first = SMALL.words[0]
    word, z, places = lists[0]["words"][0]
    assert (word, z) == (first.word, first.z)
    assert [held["sentences"][i] for i in places] == [SMALL.sentences[i] for i in first.sentences]
    used = {i for one in SMALL.words for i in one.sentences}
    assert len(held["sentences"]) == len(used)


def test_hidden_characters_are_shown_as_escapes() -> None:
    assert shown("a\x1b[0m\u202eb\ud83d\u2028\ufeff") == "a\\x1b[0m\\u202eb\\ud83d\\u2028\\ufeff"
    assert (
        shown("zwj \u200d nbsp \u00a0 tab\t line\r\nend عربي")
        == "zwj \u200d nbsp \u00a0 tab\t line\nend عربي"
    )


LETTERS = st.sampled_from("ab\n\t\r \u200d\u202e\u0301\u0327\u00a0\u2013\ufeff")


@given(st.lists(LETTERS, max_size=12).map("".join), st.sampled_from(["", "\n\t"]), st.booleans())
def test_what_is_visible_is_decided_letter_by_letter(text: str, keep: str, joiners: bool) -> None:
    kept = keep + JOINERS * joiners
    plain = (c if c in kept or unicodedata.category(c) not in HIDDEN else ascii(c)[1:-1] for c in text)
    assert "".join(plain) == visible(text, keep=keep, joiners=joiners)


def test_marks_piled_on_a_letter_are_cut_in_any_text() -> None:
    assert "e\u0301\u0301 \u2013" == visible("e" + 9 * "\u0301" + " \u2013", marks=2)


# --- figures ---------------------------------------------------------------------------------------------


def test_a_drawing_has_ids_of_its_own_and_the_colours_of_the_page() -> None:
    made = drawing(svg(1), "f7-")
    assert 'id="f7-c-1"' in made
    assert 'clip-path="url(#f7-c-1)"' in made
    assert 'href="#f7-m-1"' in made
    assert 'fill="var(--ink)"' in made
    assert 'stroke="var(--line)"' in made
    assert "#222222" not in made
    assert 'fill="#e69f00"' in made


INSIDE = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">%s</svg>'


@pytest.mark.parametrize(
    "evil",
    [
        "<script>1</script>",
        "<g onclick='x()'/>",
        "<g ONLOAD='x()'/>",
        "<foreignObject><p xmlns='http://www.w3.org/1999/xhtml'>x</p></foreignObject>",
        "<a href='#x'><text>x</text></a>",
        "<use xlink:href='http://x.invalid/a.svg#b'/>",
        "<use href='javascript:x()'/>",
        "<image href='http://x.invalid/a.png'/>",
        "<image href='data:image/svg+xml;base64,AAAA'/>",
        "<g fill='url(http://x.invalid/#a)'/>",
        "<g style='fill: url( \"http://x.invalid\")'/>",
        "<g style='fill: u\\72l(x)'/>",
        "<style>@import 'x.css';</style>",
        "<animate attributeName='href' to='javascript:x()'/>",
        "<p xmlns='http://www.w3.org/1999/xhtml'>x</p>",
        "<g>",
    ],
)
def test_a_drawing_that_could_run_or_load_is_not_shown(evil: str) -> None:
    with pytest.raises(UnfitDrawing):
        drawing((INSIDE % evil).encode(), "f-")
    made = render_page(SMALL, NOTHING, (Figure("x", "X", (INSIDE % evil).encode()),))
    assert "its drawing was refused" in Reader(made).said
    assert b"<svg" not in made.html
    assert data_of(made)["figures"] == [""]


def test_entities_are_not_read() -> None:
    bomb = b'<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + (INSIDE % "<text>&a;</text>").encode()
    with pytest.raises(UnfitDrawing, match="entities"):
        drawing(bomb, "f-")


def test_what_matplotlib_writes_is_shown() -> None:
    prologue = (
        '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'
        '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\n  "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n'
    )
    inside = (
        "<metadata><rdf xmlns='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/></metadata>"
        "<defs><style type='text/css'>*{stroke-linejoin: round}</style></defs>"
        "<g style=\"stroke: #222222; clip-path: url('#p1')\"><text xml:space='preserve'>1 &lt; 2</text></g>"
        "<image href='data:image/png;base64,iVBO Rw0K'/>"
    )
    made = drawing((prologue + INSIDE % inside).encode(), "f-")
    assert "metadata" not in made
    assert "linejoin" not in made
    assert "stroke: var(--ink); clip-path: url(#f-p1)" in made
    assert "1 &lt; 2" in made


def test_an_alternative_text_stands_where_nothing_is_drawn() -> None:
    assert '<p class="alt" dir="auto">Dots for every job.</p>' in page().html.decode()


# --- size ------------------------------------------------------------------------------------------------


def test_a_small_page_holds_everything() -> None:
    made = page()
    assert made.notes == ()
    assert len(made.html) < 200_000
    held = data_of(made)
    assert len(held["texts"]) == len(SMALL.examples)
    assert len(held["prompts"]) == len(SMALL.prompts)


@pytest.mark.slow
def test_ten_models_fit() -> None:
    made = render_page(ten_models(), SAID, FIGURES)
    assert len(made.html) <= 3_000_000
    assert len(made.html) > 2_000_000  # what may stay stays
    assert any("sentences" in note for note in made.notes)


@pytest.mark.slow
def test_things_are_left_out_in_order_and_said() -> None:
    many = content(["a", "b", "c"], [f"job {i}" for i in range(6)], n_words=20, n_texts=4)
    whole = len(page(many).html)
    made = [page(many, max_mb=size / 1_000_000) for size in (whole + 1_500, 0.8 * whole, 0.5 * whole)]
    said = [" ".join(one.notes) for one in made]
    assert "1 instead of 3 sentences" in said[0]
    assert "example texts" not in said[0]
    assert "72 of 144 example texts" in said[1]
    assert "marked words" not in said[1]
    assert "9 of 144 example texts" in said[2]
    assert "only the first 5 words of each list" in said[2]
    assert "figures" not in said[2]
    assert [len(one.html) <= share * whole for one, share in zip(made, (1.01, 0.8, 0.5), strict=True)] == [
        True
    ] * 3
    read = " ".join(Reader(made[2]).said.split())
    assert "Left out for the size of the page: 9 of 144 example texts" in read


def test_findings_stay_whatever_happens() -> None:
    made = page(max_mb=0.001)
    read = Reader(made).said
    assert all(shown(one.text).replace(" %", "\u00a0%") in read for one in FINDINGS)
    assert all(limit in read for limit in LIMITS)
    assert "over report.max_mb = 0.001" in made.notes[-1]
    assert data_of(made)["figures"] == ["", "", ""]  # two stand in the page itself, and stay


def test_figures_go_the_largest_first() -> None:
    figures = (*FIGURES[:2], Figure("big", "Big", svg(4000)), Figure("small", "Small", svg(10)))
    whole = render_page(EMPTY, NOTHING, figures)
    made = render_page(EMPTY, NOTHING, figures, max_mb=(len(whole.html) - 5_000) / 1_000_000)
    _, _, big, small = data_of(made)["figures"]
    assert big == ""
    assert small.startswith("<svg")
    assert "1 of 4 figures are not drawn here" in made.notes[0]


# --- hostile text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(HOSTILE) - 1))  # the last one is no text at all
def test_hostile_text_changes_no_element(number: int) -> None:
    plain, evil = (Reader(render_page(*hostile(payload), max_mb=50)) for payload in ("x", HOSTILE[number]))
    names = [[tag for tag, _ in read.elements] for read in (plain, evil)]
    assert names[0] == names[1]
    attributes = [[sorted(attrs) for _, attrs in read.elements] for read in (plain, evil)]
    assert attributes[0] == attributes[1]


def test_the_data_cannot_end_their_element() -> None:
    evil = render_page(*hostile("</script><!-- <script>\ud83d"))
    held = data_of(evil)
    assert len(held) == 5
    assert (
        "</script><!-- <script>\\ud83d"
        in held["sentences" if "sentences" in held else "words"]["sentences"][0]
    )


def test_no_hidden_character_reaches_the_page() -> None:
    made = render_page(*hostile("\u202e\x1b\x00\u2028\ud800"))
    for text in (made.html.decode("utf-8"), json.dumps(data_of(made), ensure_ascii=False)):
        assert not set(text) & set("\u202e\x1b\x00\u2028\ud800")
    assert all("\u202e" not in note for note in made.notes)


def test_the_model_table_holds_what_was_measured_with() -> None:
    one = replace(model("m"), estimator="top-k(k=20)", answered_by=("x-2026",), tuning="unknown")
    probed = replace(SMALL.parts[0], models=(one,))
    said = " ".join(Reader(render_page(replace(SMALL, parts=(probed,)), NOTHING, ())).said.split())
    for what in (
        "hf:m",
        "64de5f416e0f",
        "local, unknown",
        "chat-prefill",
        "top-k(k=20)",
        "x-2026, 2026-11-21 to 2026-11-22",
    ):
        assert what in said


def test_what_a_drawing_says_aloud_may_hold_anything() -> None:
    from biaskit.report.page.drawing import drawing

    said = "job \\u202e of $\\frac{1$, url(x) and #222222"
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" aria-label="{said}"><path d="M0 0" fill="#222222"/></svg>'
    drawn = drawing(svg.encode(), "f-")
    assert f'aria-label="{said}"' in drawn
    assert 'fill="#222222"' not in drawn
