"""A headless Chromium that opens pages from disk and tells what they did: requests, messages, paint."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import missing

SECONDS = 120
"""Patience with a machine that is busy; nothing here is a measurement."""

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--hide-scrollbars",
)


def require_browser() -> tuple[str, str]:
    """The paths of Chromium and its driver, or a skip that says how to get them."""
    if importlib.util.find_spec("selenium") is None:
        missing("selenium is not installed: pip install selenium")
    browsers = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, browsers)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        missing("Chromium and its driver are not installed: apt-get install chromium chromium-driver")
    return browser, driver


def require_axe() -> str:
    """The script of axe-core, which finds what a screen reader or a keyboard cannot use."""
    inside = Path("node_modules", "axe-core", "axe.min.js")
    places = [Path(sys.prefix, "axe", inside), Path.home() / inside]
    if named := os.environ.get("BIASKIT_AXE"):
        places.insert(0, Path(named))
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        missing(f"axe-core is not installed: npm install --prefix {Path(sys.prefix, 'axe')} axe-core")
    return found.read_text("utf-8")


class Browser:
    """One window; `requests` and `messages` are of the page opened last."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.requests: list[str] = []
        self.messages: list[str] = []

    def size(self, width: int, height: int = 900) -> None:
        """The page's window in CSS pixels; a window of the system has a smallest width, this has none."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str = "light", media: str = "") -> None:
        """Light or dark, on screen or (`media="print"`) on paper."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def open(self, path: Path) -> None:
        """Open a file from disk."""
        self._logs()
        self.driver.get("about:blank")
        self._logs()
        self.driver.get(path.resolve().as_uri())
        self.requests, self.messages = self._logs()

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a script's `return`."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> None:
        """Wait until a script returns something true."""
        end = time.monotonic() + SECONDS
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {SECONDS} s: {script}")
            time.sleep(0.05)

    def printed(self, **options: object) -> bytes:
        """The page as a PDF."""
        found = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, **options})
        return base64.b64decode(found["data"])

    def violations(self, axe: str) -> list[Mapping[str, Any]]:
        """What axe-core calls serious or critical, with the elements it means."""
        self.run(axe + "; window.axe = axe;")
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(done, (e) => done({error: String(e)}));"
        )
        assert "error" not in found, found
        return [
            {"rule": one["id"], "at": [node["html"][:200] for node in one["nodes"][:5]]}
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    def _logs(self) -> tuple[list[str], list[str]]:
        requests = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                requests.append(message["params"]["request"]["url"])
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        return requests, said


@contextmanager
def chromium(profile: Path, flags: Sequence[str] = ()) -> Iterator[Browser]:
    """A browser with an empty profile of its own, which ends with the block."""
    program, driver_program = require_browser()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*_FLAGS, f"--user-data-dir={profile}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_program))
    try:
        driver.set_page_load_timeout(SECONDS)
        driver.set_script_timeout(SECONDS)
        yield Browser(driver)
    finally:
        driver.quit()
