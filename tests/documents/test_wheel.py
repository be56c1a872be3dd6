"""An installed wheel finds its data as a checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from places import CITATION, GENERATED, ROOT


@pytest.mark.process
def test_a_wheel_has_the_corpora_studies_and_cited_pages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert 0 == built.returncode, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "biaskit", "corpora", "occugender"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == shown.returncode, shown.stderr
    assert "crane operator" in shown.stdout
    assert "templates.select" in shown.stdout
    assert (tmp_path / "site" / "biaskit" / "_data" / "configs" / "mattern.toml").is_file()
    cited = {
        page
        for source in (ROOT / "biaskit").rglob("*")
        if source.suffix in {".py", ".toml", ".j2"}
        for page, _ in CITATION.findall(source.read_text(encoding="utf-8"))
    }
    assert {"methods/tests", "howto/verify"} <= cited
    data = tmp_path / "site/biaskit/_data/docs"
    assert [] == [page for page in sorted(cited) if not (data / f"{page}.md").is_file()]
    assert not cited & {f"reference/{page}" for page in GENERATED}, "a clean checkout has no such page"
