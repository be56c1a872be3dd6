"""What people type by mistake gets one line that helps, before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.command import Cli, Said

from biaskit.measures.personas.texts.gender_codes import GenderCodes, how_to_map


@pytest.fixture
def cli(console: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The console script in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return console


def one_line(said: Said) -> str:
    """The one line of an error."""
    (line,) = said.err.splitlines()
    return line.removeprefix("biaskit: ")


SLIPS = [
    (("probe", "demo", "gpt2", "--dry-run"), "'gpt2' is not a model"),
    (
        ("probe", "demo", "--jobs", "nurse", "plumber"),
        "'plumber' is not a model; jobs are named by --jobs plumber",
    ),
    (("personas", "demo", "Nurse"), "occupations are named by --occupations nurse"),
    (("probe", "occugender", "demo"), "'occugender' is a study, not a model: write --study occugender"),
    (("probe", "dmo"), "Did you mean 'demo'?"),
    (("probe", "demo", "--occupations", "nurse"), "This command calls it --jobs."),
    (("personas", "demo", "--jobs", "nurse"), "This command calls it --occupations."),
    (("analyze", "mine.csv"), "biaskit analyze --texts mine.csv"),
    (("probe", "demo", "--jobs", "Nurse"), "Did you mean 'nurse'?"),
    (("probe", "demo", "--set", "jobs=3"), "this is a table of keys"),
    (("probe", "demo", "--set", "samples=x"), "samples = x: write a valid integer"),
]


@pytest.mark.parametrize(("command", "said"), SLIPS)
def test_a_slip_stops_at_once_with_what_to_write(cli: Cli, command: tuple[str, ...], said: str) -> None:
    found = cli(*command)
    assert 2 == found.code
    assert said in one_line(found)
    assert not Path("biaskit-runs").exists(), "nothing was begun"


def test_a_hint_for_codes_turns_nobody_into_another_when_it_is_pasted() -> None:
    assert "=VALUE" in how_to_map(["maennlich2"])
    assert "=female" not in how_to_map(["maennlich2"])


@pytest.mark.parametrize(
    ("code", "gender"),
    [("Weiblich", "female"), ("männlich", "male"), ("maennlich", "male"), ("Femme", "female"),
     ("homme", "male"), ("mujer", "female"), ("hombre", "male"), ("donna", "female"),
     ("uomo", "male"), ("divers", "nonbinary")],
)  # fmt: skip
def test_words_of_the_larger_languages_are_known(code: str, gender: str) -> None:
    assert gender == GenderCodes()[code]
