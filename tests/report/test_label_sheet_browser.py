"""The page on which a person labels texts: keys, what it keeps, the file it saves, in a headless Chromium."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.browser import SECONDS, Browser, chromium, require_axe

from biaskit.measures.personas.labels.sheets import read_sheet, short_id, write_sheet

pytestmark = pytest.mark.browser

TEXTS = [
    (f"{i:032x}"[::-1], text) for i, text in enumerate(["She\ncooks.", "</script><b>He</b>", "I.", "=1"])
]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with chromium(tmp_path / "profile") as opened:
        command = {"behavior": "allow", "downloadPath": str(tmp_path)}
        opened.driver.execute_cdp_cmd("Browser.setDownloadBehavior", command)
        yield opened


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.run("dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]}))", key)


def start(browser: Browser, page: Path, reader: str) -> None:
    browser.open(page)
    browser.run("document.querySelector('#reader').value = arguments[0]", reader)
    browser.run("document.querySelector('#start button').click()")


def test_keys_label_and_what_is_saved_is_a_sheet(browser: Browser, tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.csv", TEXTS)
    page = tmp_path / "sheet.html"
    start(browser, page, "A. B.")
    shown = "return document.querySelector('#text').textContent"
    assert "She\ncooks." == browser.run(shown)
    press(browser, "w")
    assert "</script><b>He</b>" == browser.run(shown)
    press(browser, "m", "x", "?", "ArrowLeft", "0")
    assert "Text 4 of 4; 3 labelled" == browser.run("return document.querySelector('#place').textContent")
    assert "=1" == browser.run(shown)
    press(browser, "n", "Delete")
    assert "Text 4 of 4; 3 labelled" == browser.run("return document.querySelector('#place').textContent")
    browser.run("document.querySelector('#save').click()")
    saved, end = tmp_path / "labels-A-B-.csv", time.monotonic() + SECONDS
    while not saved.exists() and time.monotonic() < end:
        time.sleep(0.05)
    ids = [short_id(key) for key, _ in TEXTS]
    assert {ids[0]: "female", ids[1]: "male", ids[2]: "none"} == read_sheet(saved)
    # Opened again, it goes on at the first text without a label; another reader begins.
    start(browser, page, "C")
    assert "Text 1 of 4; 0 labelled" == browser.run("return document.querySelector('#place').textContent")
    start(browser, page, "A. B.")
    assert "=1" == browser.run(shown)
    assert [] == browser.messages
    assert all(url.startswith(("file:", "blob:", "data:")) for url in browser.requests)


def test_it_can_be_used_without_a_mouse_and_read_aloud(browser: Browser, tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.csv", TEXTS)
    browser.open(tmp_path / "sheet.html")
    press(browser, "w")  # does nothing before a reader has a name
    assert [] == browser.violations(require_axe())
    start(browser, tmp_path / "sheet.html", "D")
    assert "Text 1 of 4; 0 labelled" == browser.run("return document.querySelector('#place').textContent")
    assert [] == browser.violations(require_axe())
    browser.size(390, 844)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
