"""The page in a browser, as somebody meets it first: the picture, short sentences, nothing twice or empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.browser import Browser, chromium, require_axe
from fakes.first_screens import screens

from biaskit.report.figures import draw_all
from biaskit.report.findings import say
from biaskit.report.findings.finding import MOST_WORDS
from biaskit.report.page import render_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FIRST = 800  # pixels that a reader sees without scrolling
MOST_BEFORE = 80  # words before the picture
MOST_EXPLAINING = 35  # words of the sentence about the first interval
DESKTOP, PHONE = (1280, 800), (390, 844)
SIZES = {"desktop": DESKTOP, "phone": PHONE}
KINDS = ("probe", "texts", "both", "ten models", "own texts")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for kind, content in screens().items():
        said = say(content)
        made[kind] = folder / f"{kind.replace(' ', '-')}.html"
        made[kind].write_bytes(render_page(content, said, draw_all(content)).html)
    assert set(made) == set(KINDS)
    return made


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def opened(window: Browser, page: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Browser:
    window.size(*size)
    window.scheme(scheme)
    window.open(page)
    return window


COMMON = """
const seen = (one) => one.getClientRects().length > 0;
const drawing = (figure) => [...figure.querySelectorAll("svg")].find(seen);
const first = drawing(document.querySelector("figure"));
"""
PLACE = (
    COMMON
    + """
const before = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let words = "";
for (let node = before.nextNode(); node && !first.contains(node); node = before.nextNode()) {
  if (seen(node.parentElement) && !node.parentElement.closest("script, style")) words += " " + node.data;
}
const {top, bottom, left, right} = first.getBoundingClientRect();
const scroll = document.documentElement.scrollWidth;
return {top, bottom, left, right, scroll, words: words.trim().split(/\\s+/)};
"""
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_picture_is_on_the_first_screen(
    window: Browser, pages: Mapping[str, Path], size: str, scheme: str, kind: str
) -> None:
    found = opened(window, pages[kind], SIZES[size], scheme).run(PLACE)
    assert len(found["words"]) <= MOST_BEFORE, found["words"]
    assert 0 < found["top"] < FIRST
    part = 1.0 if size == "desktop" else 0.9
    assert found["top"] + part * (found["bottom"] - found["top"]) <= FIRST, found
    assert 0 <= found["left"] < found["right"] <= SIZES[size][0]
    assert found["scroll"] <= SIZES[size][0]
    assert window.messages == []


# --- nothing twice, nothing empty ---------------------------------------------------------------------------

FIGURES = (
    """
document.querySelectorAll("details").forEach((one) => { one.open = true; });
window.dispatchEvent(new Event("beforeprint"));
"""
    + COMMON
    + """
return [...document.querySelectorAll("figure")].map((figure) => {
  const svg = drawing(figure);
  return {
    name: figure.id,
    marks: svg ? svg.querySelectorAll("use, rect, path, circle").length : 0,
    told: svg ? svg.querySelectorAll("title").length : 0,
    drawn: [...figure.querySelectorAll("svg")].map((one) =>
      [...one.querySelectorAll("text")].map((text) => text.textContent).join(" ")).join(" "),
    caption: figure.querySelector("figcaption")?.textContent ?? "",
  };
});
"""
)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_caption_stands_twice_and_no_figure_is_empty(
    window: Browser, pages: Mapping[str, Path], size: str, kind: str
) -> None:
    browser = opened(window, pages[kind], SIZES[size])
    browser.built()
    figures = browser.run(FIGURES)
    assert figures
    assert [] == [one["name"] for one in figures if one["marks"] < 3 or not one["caption"]]
    captions = [one["caption"] for one in figures]
    assert len(set(captions)) == len(captions)
    page = " ".join(browser.run("return document.body.textContent").split())
    for one in figures:
        assert page.count(" ".join(one["caption"].split())) == 1, one["name"]
        inside = " ".join(one["drawn"].split())
        assert [] == [s for s in sentences(one["caption"]) if len(s) > 20 and s.rstrip(".") in inside]
    assert browser.messages == []


# --- sentences ----------------------------------------------------------------------------------------------

OPEN_TEXT = """
const closed = "details, figcaption, .limits, svg, nav, script, style, noscript, .mount, .tip, [hidden]";
const blocks = [...document.querySelectorAll("h1, h2, h3, p, li, td, dd")];
const apart = (part) => part.nodeType === 1 && part.matches(".verdict, .badge");
const text = (part) => (apart(part) ? " · " : "") + part.textContent;
return blocks.filter((one) => !one.closest(closed)).map((one) => [...one.childNodes].map(text).join(""));
"""


def sentences(text: str) -> list[str]:
    """A text's sentences; a dot between points is the end of one too."""
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z“0-9])|\s+·\s+", " ".join(text.split()))
    return [part for part in parts if part]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_outside_the_folds_are_short(window: Browser, pages: Mapping[str, Path], kind: str) -> None:
    browser = opened(window, pages[kind])
    browser.built()
    interval = browser.run(
        "return document.querySelector('.answer > .note:not([hidden])')?.textContent ?? ''"
    )
    assert len(interval.split()) <= MOST_EXPLAINING, interval
    said = [text for text in browser.run(OPEN_TEXT) if text != interval]
    assert len(said) > 5
    long = [s for text in said for s in sentences(text) if len(s.split()) > MOST_WORDS]
    assert [] == long


# --- what marks say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_taps_on_the_picture_say_what_a_mark_is(
    window: Browser, pages: Mapping[str, Path], size: str, kind: str
) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened(window, pages[kind], SIZES[size])
    told = "return document.querySelector('figure .tip[role=status]').textContent"
    titles = browser.run(
        COMMON + "return [...first.querySelectorAll('title')].filter((one) => seen(one.parentNode))"
        ".map((one) => one.textContent)"
    )
    assert len(titles) > 2
    browser.run("document.querySelector('figure .drawing').focus()")
    for key, number in ((Keys.ARROW_RIGHT, 0), (Keys.ARROW_DOWN, 1), (Keys.ARROW_LEFT, 0)):
        browser.driver.switch_to.active_element.send_keys(key)
        assert browser.run(told) == titles[number]
    middle = browser.run(COMMON + CENTRE)
    for kind_of, more in (("mousePressed", 1), ("mouseReleased", 1)):
        event = {"type": kind_of, "x": middle["x"], "y": middle["y"], "button": "left", "clickCount": more}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    assert browser.run(told) == middle["says"]
    assert re.search(r"\d", middle["says"])


CENTRE = """
const titles = [...first.querySelectorAll("title")].filter((one) => seen(one.parentNode));
for (const title of titles.reverse()) { // what is drawn last lies on top
  const box = title.parentNode.getBoundingClientRect();
  const at = {x: box.x + box.width / 2, y: box.y + box.height / 2};
  const top = document.elementFromPoint(at.x, at.y);
  if (title.parentNode.contains(top)) return {...at, says: title.textContent};
}
"""


# --- without scripts, and for everybody ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_the_first_two_figures_are_there(
    window: Browser, pages: Mapping[str, Path], kind: str
) -> None:
    window.size(*DESKTOP)
    window.scheme()
    window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.open(pages[kind], wait=False)
    finally:
        window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert window.run("return document.documentElement.dataset.state ?? ''") == ""
    drawn: list[Any] = window.run(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; });"
        + COMMON
        + "return [...document.querySelectorAll('figure')].map(drawing).map((svg) => svg ?"
        " svg.querySelectorAll('use, rect, path').length : 0)"
    )
    assert sum(n > 2 for n in drawn) == min(2, len(drawn))


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("kind", KINDS)
def test_no_barrier_with_every_fold_open(
    window: Browser, pages: Mapping[str, Path], size: str, scheme: str, kind: str
) -> None:
    axe = require_axe()
    browser = opened(window, pages[kind], SIZES[size], scheme)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.built()
    assert browser.run("return document.documentElement.scrollWidth") <= SIZES[size][0]
    assert browser.violations(axe) == []
