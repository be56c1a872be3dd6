"""The page as a reader meets it: in a headless Chromium, from disk (issue 6, Quality)."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.browser import Browser, chromium, require_axe
from fakes.page_contents import (
    EMPTY,
    FIGURES,
    HOSTILE,
    NOTHING,
    SAID,
    content,
    example,
    hostile,
    part,
    svg,
    ten_models,
)

from biaskit.report.content import Content
from biaskit.report.page import render_page
from biaskit.report.questions import ORDER

pytestmark = pytest.mark.browser

PHONE = 360
SMALL = content(["a", "b"], ["nurse", "pilot"], n_words=3, letters=300, n_prompts=9)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def browser(window: Browser) -> Browser:
    """The one window, as large and as light as at first."""
    window.size(1280)
    window.scheme()
    return window


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of ten models, 63 occupations and real amounts of text."""
    return written(tmp_path_factory.mktemp("page"), ten_models())


def written(folder: Path, what: Content, *said: Any) -> Path:
    file = folder / "report.html"
    file.write_bytes(render_page(what, *(said or (SAID, FIGURES))).html)
    return file


OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
SRB = [None, 0.00012, -0.5, 1e-9, -0.50001, 12.0, None, 0.5]


def table_of(tmp_path: Path, values: list[float | None]) -> Path:
    """A page with one table of these numbers."""
    rows = [
        {
            "model": "ab"[i % 2],
            "occupation": f"item {i + 1}" if i else "Zebra",
            "srb": value,
            "reason": "not eligible" if value is None else "",
        }
        for i, value in enumerate(values)
    ]
    return written(tmp_path, Content("t", (part("personas", ["a", "b"], {"srb": rows}),), {}), NOTHING, ())


def opened_table(browser: Browser, name: str = "table-2-srb") -> None:
    browser.run(OPEN_ALL)
    browser.until(f"return document.querySelector('#{name} table')")


def column(browser: Browser, n: int, name: str = "table-1-srb") -> list[str]:
    """The cells of the n-th column, from 1."""
    cells: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)",
        f"#{name} tbody tr > :nth-child({n})",
    )
    return cells


def click(browser: Browser, selector: str) -> None:
    browser.run("document.querySelector(arguments[0]).click()", selector)


def choose(browser: Browser, label: str, option: str, within: str) -> None:
    """Choose in the field of this label, as a reader does."""
    browser.run(
        "const [label, option, within] = arguments;"
        "const field = [...document.querySelector(within).querySelectorAll('label')]"
        ".find((one) => one.firstChild.textContent === label).querySelector('select, input');"
        "if (field.localName === 'select') {"
        " field.value = [...field.options].find((one) => one.textContent === option).value;"
        " field.dispatchEvent(new Event('change'));"
        "} else { field.value = option; field.dispatchEvent(new Event('input')); }",
        label,
        option,
        within,
    )


# --- from disk, alone -------------------------------------------------------------------------------------


@pytest.mark.daily
def test_ten_models_open_from_disk_and_ask_nobody(browser: Browser, ten: Path) -> None:
    browser.open(ten)
    browser.built()
    assert browser.requests == [ten.resolve().as_uri()]
    assert browser.messages == []
    assert browser.run("return document.documentElement.dataset.state") == "ready"
    assert browser.paint_ms() > 0
    print(f"{ten.stat().st_size / 1e6:.2f} MB, first contentful paint {browser.paint_ms():.0f} ms")


def test_the_policy_stops_what_a_hand_puts_into_the_file(browser: Browser, tmp_path: Path) -> None:
    evil = (
        "<script>window.__hacked = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.__hacked=2'>"
    )
    file = written(tmp_path, SMALL)
    file.write_text(file.read_text("utf-8").replace('<main id="main">', '<main id="main">' + evil), "utf-8")
    browser.open(file)
    assert browser.run("return window.__hacked") is None
    assert len(browser.messages) >= 2  # the script, the picture
    assert all("Content Security Policy" in message for message in browser.messages)


def test_every_anchor_resolves(browser: Browser, ten: Path) -> None:
    browser.open(ten)
    browser.built()
    lost = browser.run(
        "return [...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))"
        ".filter((href) => !document.getElementById(href.slice(1)))"
    )
    assert lost == []
    ids = browser.run("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_a_link_opens_the_table_it_points_to(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, SMALL), "#table-2-srb")
    browser.until("return document.querySelector('#table-2-srb').open")
    assert len(column(browser, 1, "table-2-srb")) == 8
    browser.run("location.hash = '#table-1-probe_jobs'")
    browser.until("return document.querySelector('#table-1-probe_jobs').open")
    assert len(column(browser, 1, "table-1-probe_jobs")) == 8


def test_without_unpacking_the_findings_stand_and_a_note_says_where_numbers_are(
    browser: Browser, tmp_path: Path
) -> None:
    file = written(tmp_path, SMALL)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(file, wait=False)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    said = browser.run("return document.body.innerText")
    for text in (
        "Asked outright, a says women",
        "Tables, further figures, prompts and texts need this page's script",
        "share of women",  # of the drawing
    ):
        assert text in said
    torn = file.read_text("utf-8").replace('data-part="words">', 'data-part="words">AAAA')
    file.write_text(torn, "utf-8")
    browser.open(file)
    assert browser.run("return document.documentElement.dataset.state") == "failed"
    assert "cannot unpack" in browser.run("return document.getElementById('unpacked').innerText")


# --- tables -------------------------------------------------------------------------------------------------


def test_numbers_sort_by_value_and_the_undefined_stay_last(browser: Browser, tmp_path: Path) -> None:
    browser.open(table_of(tmp_path, SRB))
    opened_table(browser, "table-1-srb")
    heading = "#table-1-srb thead th:nth-child(3)"
    assert column(browser, 3) == ["–", "0.0001200", "−0.5000", "1.000e−9", "−0.5000", "12.00", "–", "0.5000"]
    down = ["12.00", "0.5000", "0.0001200", "1.000e−9", "−0.5000", "−0.5000", "–", "–"]
    click(browser, f"{heading} button")
    assert column(browser, 3) == down
    assert browser.run("return document.querySelector(arguments[0]).ariaSort", heading) == "descending"
    assert column(browser, 1)[4:6] == ["item 3", "item 5"]  # −0.5 before −0.50001, which look alike
    click(browser, f"{heading} button")
    assert column(browser, 3) == [*down[5::-1], "–", "–"]
    assert browser.run("return document.querySelector(arguments[0]).ariaSort", heading) == "ascending"
    assert column(browser, 1)[:2] == ["item 5", "item 3"]
    click(browser, f"{heading} button")
    assert column(browser, 1) == ["Zebra", *(f"item {i}" for i in range(2, 9))]
    assert not browser.run("return document.querySelector(arguments[0]).hasAttribute('aria-sort')", heading)


def test_names_sort_as_people_sort_them(browser: Browser, tmp_path: Path) -> None:
    browser.open(table_of(tmp_path, [0.1] * 12))
    opened_table(browser, "table-1-srb")
    click(browser, "#table-1-srb thead th:nth-child(1) button")
    assert column(browser, 1) == [*(f"item {i}" for i in range(2, 13)), "Zebra"]


def test_a_reason_stands_beside_what_was_not_measured(browser: Browser, tmp_path: Path) -> None:
    browser.open(table_of(tmp_path, SRB))
    opened_table(browser, "table-1-srb")
    pairs = list(zip(column(browser, 3), column(browser, 4), strict=True))
    assert [reason for value, reason in pairs if value == "–"] == ["not eligible"] * 2
    assert {reason for value, reason in pairs if value != "–"} == {"–"}


def test_fields_filter_and_the_count_is_announced(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, SMALL))
    opened_table(browser, "table-1-probe_jobs")
    within = "#table-1-probe_jobs"
    status = f"return document.querySelector('{within} [role=status]').textContent"
    assert browser.run(status) == "8 of 8 rows"
    choose(browser, "model", "b", within)
    assert browser.run(status) == "4 of 8 rows"
    choose(browser, "occupation", "pilot", within)
    assert browser.run(status) == "2 of 8 rows"
    assert column(browser, 1, "table-1-probe_jobs") == ["pilot", "pilot"]
    choose(browser, "model", "all", within)
    choose(browser, "occupation", "all", within)
    choose(browser, "Search in this table", "IMPLICIT", within)
    browser.until(f"{status} === '4 of 8 rows'")
    choose(browser, "Search in this table", "nobody", within)
    browser.until(f"{status} === '0 of 8 rows'")
    assert column(browser, 1, "table-1-probe_jobs") == ["No row fits."]


def test_long_tables_show_more_when_asked(browser: Browser, ten: Path) -> None:
    browser.open(ten)
    opened_table(browser, "table-1-probe_jobs")
    count = "return document.querySelectorAll('#table-1-probe_jobs tbody tr').length"
    assert browser.run(count) == 50
    for n in (550, 1050, 1260):
        click(browser, "#table-1-probe_jobs .more button")
        assert browser.run(count) == n
    assert browser.run("return document.querySelector('#table-1-probe_jobs .more button')") is None
    click(browser, "#table-1-probe_jobs thead th:nth-child(4) button")
    assert browser.run(count) == 1260


def test_a_table_comes_out_as_csv_as_it_is_chosen_and_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    rows = [
        {"model": "m", "occupation": name, "srb": value, "reason": ""}
        for name, value in (("=1+1", 0.5), ('a "b", c', None), ("plain", -0.25))
    ]
    made = Content("t", (part("personas", ["m"], {"srb": rows}),), {})
    browser.open(written(tmp_path, made, NOTHING, ()))
    opened_table(browser, "table-1-srb")
    browser.run(
        "URL.createObjectURL = (blob) => { blob.text().then((t) => { window.__csv = t; }); return '#'; }"
    )
    choose(browser, "Search in this table", "a", "#table-1-srb")
    browser.until("return document.querySelectorAll('#table-1-srb tbody tr').length === 2")
    buttons = "[...document.querySelectorAll('#table-1-srb button')]"
    saves = f"{buttons}.find((one) => one.textContent === 'Download as CSV')"
    browser.run(f"{saves}.click()")
    browser.until("return window.__csv")
    lines = browser.run("return window.__csv").split("\r\n")
    assert lines == ["occupation,srb,model", '"a ""b"", c",,m', "plain,-0.25,m", ""]
    choose(browser, "Search in this table", "=", "#table-1-srb")
    browser.until("return document.querySelectorAll('#table-1-srb tbody tr').length === 1")
    browser.run(f"window.__csv = ''; {saves}.click()")
    browser.until("return window.__csv")
    assert "'=1+1,0.5,m" in browser.run("return window.__csv")
    assert browser.messages == []


# --- texts, prompts, words ----------------------------------------------------------------------------------


def test_counted_words_are_marked_with_more_than_a_colour(browser: Browser, tmp_path: Path) -> None:
    text = "So she said that they met him: \U0001f469 she <b>left</b>."
    one = replace(SMALL, examples=(example("a", "nurse", text),))
    browser.open(written(tmp_path, one))
    browser.run(OPEN_ALL)
    browser.until("return document.querySelector('.card')")
    marks = browser.run(
        "return [...document.querySelectorAll('.card mark')]"
        ".map((mark) => [mark.className, mark.innerText.replace(/\\s+/g, ' ')])"
    )
    assert [kind for kind, _ in marks] == ["female", "neutral", "female"]
    assert marks[0][1].startswith("sheW (women's word)")
    assert "2 women's, 1 neutral" in browser.run("return document.querySelector('.card .meta').innerText")
    assert "rule “female”: no term" in browser.run("return document.querySelector('.card .meta').innerText")
    whole = browser.run("return document.querySelector('.card .foreign').textContent")
    assert "<b>left</b>." in whole


def test_prompts_are_one_click_away_and_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, SMALL))
    browser.run("document.querySelector('#say .fold').open = true")
    browser.until("return document.querySelector('details.prompt')")
    click(browser, "details.prompt summary")
    assert (
        browser.run("return document.querySelector('details.prompt pre').innerText")
        == SMALL.prompts[0].prompt
    )
    choose(browser, "model", "b", "#say [data-list]")
    assert (
        browser.run("return document.querySelector('#say .mount[data-list] [role=status]').innerText")
        == "9 of 18 prompts"
    )


def test_a_word_opens_the_sentences_that_hold_it(browser: Browser, tmp_path: Path) -> None:
    word = SMALL.words[0].word
    sentences = (f"“{word.title()},” he said, and {word}ing.", f"A {word}-.", "None here.")
    browser.open(
        written(
            tmp_path, replace(SMALL, sentences=sentences, words=(replace(SMALL.words[0], sentences=(0, 1)),))
        )
    )
    browser.until("return document.querySelector('.words button')")
    click(browser, ".words button")
    found = browser.run(
        "return [...document.querySelectorAll('.sentences li')]"
        ".map((line) => [line.textContent, [...line.querySelectorAll('mark')].map((m) => m.textContent)])"
    )
    assert found == [[sentences[0], [f"“{word.title()},”"]], [sentences[1], [f"{word}-."]]]
    assert browser.run("return document.querySelector('.words button').ariaPressed") == "true"


def test_a_list_of_words_is_chosen_by_model_and_gender(browser: Browser, tmp_path: Path) -> None:
    only_a = [one for one in SMALL.words if one.model == "a" or one.occupation == "pilot"]
    browser.open(written(tmp_path, replace(SMALL, words=tuple(only_a))))
    browser.until("return document.querySelector('.words button')")
    choose(browser, "model", "b", "#how [data-list]")
    chosen = browser.run(
        "return [...document.querySelectorAll('#how .mount[data-list] select')].map((s) => s.value)"
    )
    assert chosen == ["b", "pilot", "not in the prompt", "women"]  # b has no list for nurse


# --- phone, paper, screen reader ----------------------------------------------------------------------------


def test_no_horizontal_scroll_on_a_phone(browser: Browser, ten: Path) -> None:
    browser.size(PHONE, 740)
    browser.open(ten)
    browser.built()
    browser.run(OPEN_ALL)
    assert browser.run("return document.documentElement.scrollWidth") == PHONE
    assert browser.run("return getComputedStyle(document.body).fontSize") == "16px"
    wide = browser.run(
        "return [...document.querySelectorAll('table')].filter((t) => t.scrollWidth > innerWidth)"
        ".every((t) => t.closest('[role=region][tabindex=\"0\"][aria-label]'))"
    )
    assert wide is True


def test_paper_holds_what_stands_in_the_open_and_light_colours(browser: Browser, ten: Path) -> None:
    browser.scheme("dark")
    browser.open(ten)
    pdf = browser.printed(preferCSSPageSize=True)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 6
    assert browser.run("return document.querySelectorAll('.drawing[data-figure] svg').length") == 1
    browser.scheme("dark", media="print")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    verdict = browser.run(
        "return getComputedStyle(document.querySelector('.verdict.higher')).backgroundColor"
    )
    assert verdict == "rgba(0, 0, 0, 0)", "readable without background colours"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier(browser: Browser, tmp_path: Path, scheme: str) -> None:
    axe = require_axe()
    browser.scheme(scheme)
    browser.open(written(tmp_path, SMALL))
    browser.built()
    browser.run(OPEN_ALL)
    click(browser, ".words button")
    click(browser, "#table-1-probe_jobs thead button")
    assert browser.violations(axe) == []


def test_no_serious_barrier_on_the_page_of_ten_models(browser: Browser, ten: Path) -> None:
    axe = require_axe()
    browser.open(ten)
    browser.built()
    assert browser.violations(axe) == []


def test_figures_take_the_colours_of_the_scheme(browser: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, SMALL)
    colours = {}
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.open(file)
        browser.built()
        colours[scheme] = browser.run(
            "const text = document.querySelector('#figure-lollipop svg text');"
            "return [getComputedStyle(text).fill, getComputedStyle(document.body).color]"
        )
    assert colours["light"] == ["rgb(34, 34, 34)"] * 2
    assert colours["dark"][0] == colours["dark"][1] != colours["light"][0]
    named = browser.run("return document.querySelector('#figure-lollipop svg').ariaLabel")
    assert named == "Dots for every job."


def test_keys_reach_what_a_mouse_reaches(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, SMALL))
    opened_table(browser, "table-1-probe_jobs")
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.run("return document.activeElement.textContent") == "To the findings"
    browser.run("document.querySelector('#table-1-probe_jobs thead button').focus()")
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    sorted_by = "return document.querySelector('#table-1-probe_jobs thead th').ariaSort"
    assert browser.run(sorted_by) == "ascending"


# --- hostile text -------------------------------------------------------------------------------------------

PARTS = """
const all = (selector) => [...document.querySelectorAll(selector)];
const counted = {tables: "table tbody tr", cards: ".card", prompts: "details.prompt", words: ".words button",
  drawings: ".drawing svg", scripts: "script", frames: "iframe, object, embed, img, base, form"};
const found = Object.fromEntries(Object.entries(counted).map(([name, of]) => [name, all(of).length]));
found.sections = all("main > section").map((section) => section.id);
found.handlers = all("*").filter((one) => [...one.attributes].some(({name}) => /^on/i.test(name))).length;
return found;
"""
PROVOKED = """
document.querySelectorAll("details").forEach((one) => { one.open = true; });
document.querySelectorAll("main button").forEach((one) => one.click());
document.querySelectorAll("main *").forEach((one) => {
  for (const kind of ["mouseover", "focus", "load", "error"]) one.dispatchEvent(new Event(kind));
});
"""


def provoked(browser: Browser, folder: Path, payload: str) -> dict[str, Any]:
    """What a page with the payload everywhere consists of, once all was opened, clicked and touched."""
    (folder / "report.html").write_bytes(render_page(*hostile(payload), max_mb=50).html)
    browser.open(folder / "report.html")
    browser.built()
    browser.run(PROVOKED)
    found: dict[str, Any] = browser.run(PARTS)
    return found


@pytest.fixture(scope="module")
def harmless(window: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same of a payload that is a letter."""
    window.size(1280)
    window.scheme()
    return provoked(window, tmp_path_factory.mktemp("harmless"), "x")


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_runs_nothing_and_breaks_nothing(
    browser: Browser, harmless: dict[str, Any], tmp_path: Path, number: int
) -> None:
    seen = provoked(browser, tmp_path, HOSTILE[number])
    assert seen == harmless
    assert {"say", "how", "sure"} <= set(seen["sections"]) <= set(ORDER)
    assert seen["handlers"] == seen["frames"] == 0
    assert browser.run("return window.__hacked") is None
    assert browser.messages == []
    assert browser.requests == [(tmp_path / "report.html").as_uri()]


def test_long_words_break_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    browser.size(PHONE, 740)
    (tmp_path / "report.html").write_bytes(render_page(*hostile("w" * 60), max_mb=50).html)
    browser.open(tmp_path / "report.html")
    browser.built()
    browser.run(OPEN_ALL)
    assert browser.run("return document.documentElement.scrollWidth") == PHONE


@pytest.mark.parametrize(
    "evil",
    [
        "<script>window.__hacked = 1</script><g ",
        "<g onload='window.__hacked = 2' ",
        "<use href='http://x.invalid/#a'/><g ",
    ],
)
def test_a_drawing_that_was_tampered_with_is_not_shown(browser: Browser, tmp_path: Path, evil: str) -> None:
    file = written(tmp_path, SMALL)
    drawings = ["", "", svg(1).decode().replace("<g ", evil), svg(1).decode()]
    packed = base64.b64encode(zlib.compress(json.dumps(drawings).encode())).decode()
    head, _, rest = file.read_text("utf-8").partition('data-part="figures">')
    file.write_text(f'{head}data-part="figures">{packed}{rest[rest.index("</script>") :]}', "utf-8")
    browser.open(file)
    browser.run("window.dispatchEvent(new Event('beforeprint'))")  # every drawing is built
    assert browser.run("return document.querySelectorAll('#figure-later svg').length") == 0
    assert browser.run("return document.querySelectorAll('#figure-lollipop svg').length") == 2
    assert browser.run("return window.__hacked") is None


@pytest.mark.parametrize("what", ["empty", "one"])
def test_little_is_a_page_too(browser: Browser, tmp_path: Path, what: str) -> None:
    one = content(["a"], ["nurse"], n_words=1, letters=40, n_prompts=1)
    browser.open(written(tmp_path, EMPTY if what == "empty" else one, NOTHING, ()))
    browser.built()
    assert browser.messages == []
    assert browser.run("return document.documentElement.dataset.state") == "ready"
