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
    press(browser, "n", "m")  # after the last text a key labels nothing
    assert browser.run("return document.querySelector('#text').getClientRects().length") == 0
    assert "All 4 texts have a label." == browser.run("return document.querySelector('#end').textContent")
    press(browser, "ArrowLeft", "Delete", "ArrowRight")
    said = "The end: 3 texts have a label, 1 have none yet."
    assert said == browser.run("return document.querySelector('#end').textContent")
    press(browser, "ArrowLeft")
    assert "Text 4 of 4; 3 labelled" == browser.run("return document.querySelector('#place').textContent")
    press(browser, "ArrowRight")
    browser.run("document.querySelector('#done .save').click()")
    assert "labels-A-B-.csv" in browser.run("return document.querySelector('#saved').textContent")
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
    browser.scheme("dark")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 26)"
    press(browser, "w", "w", "w", "w")
    assert browser.run("return document.activeElement.textContent") == "done, save"
    browser.run("document.querySelector('#how').open = true")
    assert [] == browser.violations(require_axe())
    browser.size(390, 844)
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_instructions_are_in_a_fold_and_say_they_break_off_of_sampled_texts_alone(tmp_path: Path) -> None:
    for imported in (False, True):
        sheet = tmp_path / str(imported) / "sheet.csv"
        write_sheet(sheet, TEXTS, imported=imported)
        page = sheet.with_suffix(".html").read_text("utf-8")
        fold = page.split("<details")[1].split("</details>")[0]
        assert ("they break off" in fold) is not imported
        assert "<td>the main person is a woman or a girl</td>" in fold
    # Instructions that a person changed are the page's, and no markup in them counts.
    (tmp_path / "True" / "instructions.md").write_text("# Ours\n\n<script>x</script> Only nurses.")
    write_sheet(sheet, TEXTS, imported=True)
    fold = sheet.with_suffix(".html").read_text("utf-8").split("<details")[1].split("</details>")[0]
    assert "&lt;script&gt;x&lt;/script&gt; Only nurses." in fold
