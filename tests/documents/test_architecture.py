"""docs/architecture.md says what is there: its paths exist, its layers are those of the contract."""

from __future__ import annotations

import re
import tomllib

import pytest
from places import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "biaskit"


def missing(text: str) -> list[str]:
    """Paths in backticks that are neither in the package nor at the top; a bare name may lie anywhere."""
    named = re.findall(r"`([\w./-]+(?:\.py|\.md|\.toml|/))`", text)
    return [
        name
        for name in named
        if "NAME" not in name
        and name != "corpus.toml"
        and not (PACKAGE / name).exists()
        and not (ROOT / name).exists()
        and ("/" in name.rstrip("/") or not any(PACKAGE.rglob(name.rstrip("/"))))
    ]


def test_every_path_exists() -> None:
    assert [] == missing(TEXT)


@pytest.mark.parametrize("wrong", ["`probe/cell.py`", "`nowhere.py`", "`persona/`"])
def test_a_path_that_is_gone_is_found(wrong: str) -> None:
    assert [wrong.strip("`")] == missing(f"{TEXT} {wrong}")


def test_the_layers_are_those_of_the_contract() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = configured["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = TEXT.split("```")[1].strip().splitlines()
    assert len(layers) == len(drawn)
    for layer, line in zip(layers, drawn, strict=True):
        packages = [package.strip().removeprefix("biaskit.") for package in layer.split("|")]
        assert [] == [package for package in packages if not re.search(rf"\b{package}\b", line)], line


def test_every_package_is_described() -> None:
    packages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert [] == [package for package in packages if f"{package}/" not in TEXT]
