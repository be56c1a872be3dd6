"""The page as a reader meets it: in a headless Chromium, from disk, with scripts and without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.browser import Browser, chromium, require_axe
from fakes.first_screens import screens
from fakes.page_contents import FIGURES, HOSTILE, NOTHING, SAID, content, hostile, part, ten_models

from biaskit.report.content import Content
from biaskit.report.figures import draw_all
from biaskit.report.findings import sentences
from biaskit.report.findings.finding import MOST_WORDS
from biaskit.report.findings.sentence import n_words
from biaskit.report.page import render_page

pytestmark = pytest.mark.browser

DESKTOP, PHONE = (1280, 800), (390, 844)
MOST_BEFORE = 80  # words before the picture
SMALL = content(["a", "b"], ["nurse", "pilot"], n_words=3, letters=300, n_prompts=9)
KINDS = ("probe", "texts", "both", "ten models", "own texts")
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; });"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def browser(window: Browser) -> Browser:
    """The one window, as large and as light as at first."""
    window.size(*DESKTOP)
    window.scheme()
    return window


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of ten models, 63 occupations and real amounts of text."""
    return written(tmp_path_factory.mktemp("page"), ten_models())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A page of each kind that has a first screen of its own."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for kind, shown in screens().items():
        made[kind] = folder / f"{kind.replace(' ', '-')}.html"
        made[kind].write_bytes(render_page(shown, sentences(shown), draw_all(shown)))
    assert set(made) == set(KINDS)
    return made


def written(folder: Path, what: Content, *said: Any) -> Path:
    file = folder / "report.html"
    file.write_bytes(render_page(what, *(said or (SAID, FIGURES))))
    return file


def column(browser: Browser, n: int) -> list[str]:
    """The cells of the n-th column of the table of scores, from 1."""
    cells: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)",
        f"#table-1-srb tbody tr > :nth-child({n})",
    )
    return cells


# --- from disk, alone -------------------------------------------------------------------------------------


@pytest.mark.daily
def test_ten_models_open_from_disk_and_ask_nobody(browser: Browser, ten: Path) -> None:
    browser.open(ten)
    assert [url for url in browser.requests if not url.startswith("data:")] == [ten.resolve().as_uri()]
    assert browser.messages == []


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


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_every_figure_and_table_is_there(
    browser: Browser, pages: Mapping[str, Path], kind: str
) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(pages[kind])
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.run("return document.querySelectorAll('th button').length") == 0
    browser.run(OPEN_ALL)
    drawn = browser.run(
        "return [...document.images].map((one) => [one.complete, one.naturalWidth, one.alt.length])"
    )
    assert drawn
    assert all(complete and width > 400 and alt > 20 for complete, width, alt in drawn)
    assert browser.run("return document.querySelectorAll('details table tbody tr').length") > 5


def test_one_click_leads_from_a_sentence_to_its_prompts_or_texts_without_a_script(
    browser: Browser, tmp_path: Path
) -> None:
    made = ten_models()
    page = written(tmp_path, made, sentences(made), FIGURES)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(page)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    link = browser.driver.find_element("css selector", "main .first a.source")
    anchor = link.get_attribute("href").partition("#")[2]
    seen = "return document.getElementById(arguments[0]).checkVisibility()"
    assert not browser.run(seen, anchor)
    link.click()
    assert browser.run(seen, anchor)


def test_a_telephone_and_a_dark_page_have_figures_of_their_own(
    browser: Browser, pages: Mapping[str, Path]
) -> None:
    width = "return document.images[0].naturalWidth"
    look = "return getComputedStyle(document.images[0]).filter"
    browser.size(1280)
    browser.open(pages[KINDS[0]])
    wide, light = browser.run(width), browser.run(look)
    browser.size(390)
    browser.scheme("dark")
    try:
        browser.open(pages[KINDS[0]])
        assert browser.run(width) < 0.6 * wide
        assert (light, browser.run(look)) == ("none", "invert(1) hue-rotate(180deg)")
    finally:
        browser.scheme("light")
        browser.size(1280)


# --- tables -------------------------------------------------------------------------------------------------


def test_a_click_sorts_by_value_and_the_undefined_stay_last(browser: Browser, tmp_path: Path) -> None:
    values = [None, 0.00012, -0.5, 1e-9, -0.60001, 12.0, None, 0.5]
    rows = [
        {"model": "ab"[i % 2], "occupation": f"item {i + 1}" if i else "Zebra", "srb": value, "reason": ""}
        for i, value in enumerate(values)
    ]
    browser.open(
        written(tmp_path, Content("t", (part("personas", ["a", "b"], {"srb": rows}),), {}), NOTHING, ())
    )
    browser.run(OPEN_ALL)
    heads = browser.run(
        "return [...document.querySelectorAll('#table-1-srb th button')].map((b) => b.textContent)"
    )
    press = "document.querySelectorAll('#table-1-srb th button')[arguments[0]].click()"
    for expected in (
        ["−0.6", "−0.5", "1e−09", "0.00012", "0.5", "12", "–", "–"],
        ["12", "0.5", "0.00012", "1e−09", "−0.5", "−0.6", "–", "–"],
    ):
        browser.run(press, heads.index("SRB"))
        assert column(browser, 1 + heads.index("SRB")) == expected
    browser.run(press, 0)
    assert column(browser, 1) == [*(f"item {i}" for i in range(2, 9)), "Zebra"]
    sorted_by = "return [...document.querySelectorAll('#table-1-srb th')].map((th) => th.ariaSort)"
    assert browser.run(sorted_by)[:1] == ["ascending"]
    browser.run("document.querySelector('#table-1-srb th button').focus()")
    from selenium.webdriver.common.keys import Keys

    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.run(sorted_by)[:1] == ["descending"]


# --- the first screen ------------------------------------------------------------------------------------

BEFORE = """
const first = document.querySelector("figure img"), seen = (one) => one.getClientRects().length > 0;
const before = document.createTreeWalker(document.body, NodeFilter.SHOW_ALL);
let words = "";
for (let node = before.nextNode(); node && node !== first; node = before.nextNode()) {
  if (node.nodeType === 3 && seen(node.parentElement)) words += " " + node.data;
}
const {top, bottom, left} = first.getBoundingClientRect();
return {top, bottom, left, scroll: document.documentElement.scrollWidth, words: words.trim().split(/\\s+/)};
"""
OPEN_TEXT = """
const closed = "details, figcaption, .limits, nav, script, style";
const blocks = [...document.querySelectorAll("h1, h2, h3, p, li")];
const apart = (part) => part.nodeType === 1 && part.matches(".verdict, .badge");
const text = (part) => (apart(part) ? " · " : "") + part.textContent;
return blocks.filter((one) => !one.closest(closed)).map((one) => [...one.childNodes].map(text).join(""));
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_is_on_the_first_screen_beside_short_sentences(
    browser: Browser, pages: Mapping[str, Path], kind: str
) -> None:
    browser.open(pages[kind])
    place = browser.run(BEFORE)
    assert n_words(" ".join(place["words"])) <= MOST_BEFORE + 40, " ".join(place["words"])
    assert 0 < place["top"] < place["bottom"] <= DESKTOP[1]
    interval = browser.run("return document.querySelector('.answer > .note')?.textContent ?? ''")
    said = [text for text in browser.run(OPEN_TEXT) if text != interval]
    parts = [part for text in said for part in re.split(r"(?<=[.!?])\s+(?=[A-Z“0-9])|\s+·\s+", text)]
    assert [] == [part for part in parts if n_words(part) > MOST_WORDS]
    captions = browser.run(
        "return [...document.querySelectorAll('figcaption')].map((one) => one.textContent)"
    )
    assert len(captions) == len({*captions})


# --- phone, paper, screen reader ----------------------------------------------------------------------------


def test_no_horizontal_scroll_on_a_phone(browser: Browser, ten: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes(render_page(*hostile("w" * 60)))
    for page in (ten, tmp_path / "report.html"):
        browser.size(*PHONE)
        browser.open(page)
        browser.run(OPEN_ALL)
        assert browser.run("return document.documentElement.scrollWidth") == PHONE[0]


def test_paper_has_light_colours_and_every_figure_in_the_open(browser: Browser, ten: Path) -> None:
    browser.scheme("dark")
    browser.open(ten)
    assert browser.printed(preferCSSPageSize=True).startswith(b"%PDF")
    browser.scheme("dark", media="print")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    ground = "return getComputedStyle(document.querySelector('.verdict.higher')).backgroundColor"
    assert browser.run(ground) == "rgba(0, 0, 0, 0)", "no ink for a badge"


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_no_serious_barrier_with_every_fold_open(
    browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    axe = require_axe()
    browser.size(*size)
    browser.scheme(scheme)
    browser.open(written(tmp_path, SMALL))
    browser.run(OPEN_ALL)
    assert browser.violations(axe) == []


# --- hostile text -------------------------------------------------------------------------------------------

PROVOKED = """
document.querySelectorAll("details").forEach((one) => { one.open = true; });
document.querySelectorAll("main button").forEach((one) => one.click());
document.querySelectorAll("main *").forEach((one) => {
  for (const kind of ["mouseover", "focus", "load", "error"]) one.dispatchEvent(new Event(kind));
});
const all = (selector) => document.querySelectorAll(selector).length;
return [all("table tbody tr"), all("details"), all("img"), all("script"), all("iframe, object, embed, form")];
"""


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_runs_nothing_and_breaks_nothing(browser: Browser, tmp_path: Path, number: int) -> None:
    seen = []
    for payload in ("x", HOSTILE[number]):
        (tmp_path / "report.html").write_bytes(render_page(*hostile(payload)))
        browser.open(tmp_path / "report.html")
        seen.append(browser.run(PROVOKED))
    assert seen[0] == seen[1]
    assert browser.run("return window.__hacked") is None
    assert browser.messages == []
