"""A hostile log in Inspect's own viewer: its texts are seen, and nothing of them runs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.browser import SECONDS, chromium, require_browser

import biaskit as bk

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.process]

MARKUP = (
    "<b id=hurt>bold</b><img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"
    " [click](javascript:window.hurt=1) ![p](/hurt.png)"
)


FLAGS = ("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",)


@contextmanager
def viewing(logs: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "inspect_ai",
        "view",
        "start",
        "--log-dir",
        str(logs),
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
        try:
            while True:
                try:
                    urllib.request.urlopen(url, timeout=5).close()
                    break
                except OSError:
                    assert server.poll() is None
                    assert time.monotonic() < end
                    time.sleep(0.2)
            yield url
        finally:
            server.terminate()


def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path) -> None:
    require_browser()
    (tmp_path / "m.jsonl").write_text(
        json.dumps({"texts": [MARKUP, f"She {MARKUP}"], "log_probs": {}}) + "\n"
    )
    asked = {"jobs": "1,21", "templates": "1", "bias_type": "implicit", "estimator": "sampling", "draws": 4}
    label = "<hurt>m</hurt>"
    run = bk.probe(
        f"{label}=scripted:{tmp_path / 'm.jsonl'}", **asked, out=tmp_path / "run", watcher=bk.Silent()
    ).path
    log = bk.export(run, to="inspect", watcher=bk.Silent()).path
    from inspect_ai.log import read_eval_log

    sample = read_eval_log(str(log)).samples[0]  # type: ignore[index]
    with viewing(log.parent) as url, chromium(tmp_path / "profile", FLAGS) as browser:
        for place in ("transcript", "messages", "scoring", "metadata"):
            browser.driver.get(f"{url}/#/logs/{log.name}/samples/sample/{sample.id}/1/{place}")
            browser.until("return document.body.innerText.includes('skincare specialist')")
            time.sleep(1)
            assert browser.run("return window.hurt === undefined")
            assert 0 == browser.run("return document.querySelectorAll('#hurt, hurt').length")
            pictures = "return [...document.images].filter(i => i.src.includes('hurt')).length"
            assert 0 == browser.run(pictures)
        browser.driver.get(f"{url}/#/logs/{log.name}/samples/sample/{sample.id}/1/messages")
        browser.until("return document.body.innerText.includes('onerror')")  # as text
