"""What people type by mistake gets one line that helps, before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.command import Cli, Said

import biaskit as bk
from biaskit.errors import StudyError, UsageError
from biaskit.personas.texts.gender_codes import GenderCodes, how_to_map
from biaskit.study.config import build_study
from biaskit.study.keys import STUDIES


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
    (("probe", "demo", "--occupations", "nurse"), "Here it is --jobs."),
    (("personas", "demo", "--jobs", "nurse"), "Here it is --occupations."),
    (("analyze", "mine.csv"), "biaskit analyze --texts mine.csv"),
    (("probe", "demo", "--jobs", "Nurse"), "Did you mean 'nurse'?"),
    (("probe", "demo", "--set", "jobs=3"), "this is a table of keys"),
    (("probe", "demo", "--set", "draws=x"), "draws = x: write a valid integer"),
]


@pytest.mark.parametrize(("command", "said"), SLIPS)
def test_a_slip_stops_at_once_with_what_to_write(cli: Cli, command: tuple[str, ...], said: str) -> None:
    found = cli(*command)
    assert 2 == found.code
    assert said in one_line(found)
    assert not Path("biaskit-runs").exists(), "nothing was begun"


def test_a_job_in_the_place_of_a_model_stops_in_python_too() -> None:
    with pytest.raises(UsageError, match="jobs are named by --jobs nurse"):
        bk.probe("demo", "nurse", watcher=bk.Silent())


def test_help_is_a_word_too(cli: Cli) -> None:
    assert "Commands:" in cli("help").out
    assert "--jobs" in cli("help", "probe").out
    assert 2 == cli("help", "nothing").code


@pytest.mark.parametrize("engine", STUDIES)
@pytest.mark.parametrize(
    "value", [3, -1, 1.5, float("nan"), "x", "", True, [], [1], {}, {"a": 1}, None, [[{}]]]
)
def test_no_message_holds_a_validators_own_words(engine: str, value: object) -> None:
    """Every key with every kind of value: what does not fit says what to write."""
    said: list[str] = []
    for key in STUDIES[engine].model_fields.keys() - {"engine"}:
        try:
            build_study({"engine": engine, "name": "t", "jobs": {"source": "x"}}, {key: value}, "t.toml")
        except StudyError as error:
            said.append(str(error))
    leaks = ("input should", "valid dictionary", "validation", "pydantic", "instance of", "\n")
    assert [] == [one for one in said if any(leak in one.lower() for leak in leaks)]


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
