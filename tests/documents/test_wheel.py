"""An installed wheel finds its data as a checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from places import ROOT


@pytest.mark.process
def test_a_wheel_holds_the_corpora_and_studies_and_finds_them(tmp_path: Path) -> None:
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
