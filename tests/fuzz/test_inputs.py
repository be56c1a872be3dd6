"""A bounded number of odd studies and inputs; thousands by `python tests/fuzz/long.py --minutes 30`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli, Said

from biaskit.study.keys import STUDIES
from fuzz import studies, texts
from fuzz.studies import keys_of

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("generator", "n"), [(studies, 8), (texts, 5)], ids=["studies", "texts"])
def test_odd_inputs(generator: Any, n: int, part: int, console: Cli, tmp_path: Path) -> None:
    for case in generator.cases(n, seed=part):
        generator.check(case, tmp_path / "home", console)


@pytest.mark.parametrize("name", [name for name in texts.INPUTS if not name.startswith("script of")])
def test_every_input_is_accepted_as_it_should_be(name: str, console: Cli, tmp_path: Path) -> None:
    """Else every change of it would be refused for another reason."""
    said: list[Said] = []

    def call(*words: str) -> Said:
        said.append(console(*words))
        return said[-1]

    texts.check(texts.Case(name, (), "", 1), tmp_path / "home", call)
    assert said[0].code == 0, said[0].err


@pytest.mark.parametrize("engine", STUDIES)
def test_every_key_is_tried_with_right_values_and_odd_ones(engine: str) -> None:
    """Keys come from the models of the studies; right values are those that the studies take."""
    tried = {name for case in studies.cases(4_000, seed=1) for name, _ in case.keys}
    assert {key.name for key in keys_of(engine)} <= tried


def test_the_oracle_hears_a_validator_and_sees_a_file_that_changed(console: Cli, tmp_path: Path) -> None:
    case = texts.Case("jobs csv", (), "", 1)

    def with_err(err: str) -> Callable[..., Said]:
        return lambda *words: Said(2, "", err)

    for err in ("biaskit: Input should be a valid number.\n", "biaskit: a\nbiaskit: b\n", "", "Traceback\n"):
        with pytest.raises(AssertionError):
            texts.check(case, tmp_path / "home", with_err(err))

    def eating(*words: str) -> Said:
        Path("m.jsonl").unlink()
        return Said(2, "", "biaskit: no.\n")

    with pytest.raises(AssertionError, match="is gone"):
        texts.check(case, tmp_path / "home", eating)
