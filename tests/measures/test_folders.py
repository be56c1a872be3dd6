"""Each folder of `measures/` keeps what the frame asks by name: files, functions, arguments, facts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

from biaskit.measurement import ACROSS, FOLDERS, KINDS, Measurement, measurement, specs
from biaskit.tables.schema import SCHEMAS

PACKAGE = ROOT / "biaskit"
SOURCE = (PACKAGE / "measurement.py").read_text("utf-8")
MEMBERS = [(file, name) for file, name in re.findall(r'@in_file\("(\w+)"\)\n    def (\w+)', SOURCE)]
FILES = sorted({file for file, _ in MEMBERS})
NEEDED = {
    "study": ("STUDY",),
    "design": ("resolve", "read", "Stored"),
    "ask": ("open_model", "ask"),
    "analysis": ("tables",),
}
"""What every kind must have; the rest of `Measurement` has a default."""


def contract_functions() -> Iterator[tuple[str, str, str]]:
    """Yield (folder, file, function) of every member that a folder implements."""
    for folder in FOLDERS:
        kind = Measurement(folder, {})
        for file, name in MEMBERS:
            module = kind.file(file)
            if module is not None and hasattr(module, name):
                yield folder, file, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_what_it_must_have(kind: str) -> None:
    for file, names in NEEDED.items():
        module = Measurement(kind, {}).file(file)
        assert [] == [f"{kind}/{file}.py: {name}" for name in names if not hasattr(module, name)]


def test_a_kind_that_lacks_a_function_is_told_which() -> None:
    with pytest.raises(NotImplementedError, match=r"measures/agree/design\.py needs resolve\(\)"):
        Measurement("agree", {}).resolve(None)


@pytest.mark.parametrize(("folder", "file", "name"), list(contract_functions()))
def test_a_function_takes_what_the_frame_gives(folder: str, file: str, name: str) -> None:
    """Every argument of the member has a place in the function, in the same order."""
    function = getattr(Measurement(folder, {}).file(file), name)
    member = inspect.signature(getattr(Measurement, name)).parameters
    asked = [
        parameter for parameter in list(member.values())[1:] if parameter.kind is not parameter.VAR_KEYWORD
    ]
    taken = inspect.signature(function)
    by_place = [p for p in asked if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = {p.name: None for p in asked if p.kind is p.KEYWORD_ONLY}
    taken.bind(*(None for _ in by_place), **by_name)


@pytest.mark.parametrize("file", [file for file in FILES if file not in ("examples", "analysis")])
def test_no_function_is_misspelt(file: str) -> None:
    """A public function of a contract file is asked by the frame or used by somebody: a slip is neither."""
    asked = {name for _, name in MEMBERS}
    code = "".join(
        path.read_text("utf-8") for path in [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    )
    for folder in FOLDERS:
        module = Measurement(folder, {}).file(file)
        for name, value in vars(module).items() if module else ():
            own = inspect.isfunction(value) and value.__module__ == module.__name__  # type: ignore[union-attr]
            if own and not name.startswith("_") and name not in asked:
                assert len(re.findall(rf"\b{name}\b", code)) > 1, f"{folder}/{file}.py: nobody asks {name}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_facts_of_a_kind_name_what_there_is(kind: str) -> None:
    about = measurement(kind)
    table, share = about.published
    assert SCHEMAS[about.each].owner == kind
    assert SCHEMAS[table].owner == kind
    assert share in SCHEMAS[table].says  # every column has a meaning (tests/tables/test_spec.py)
    assert about.about
    assert about.unit
    assert about.over


def test_what_relates_kinds_asks_nothing() -> None:
    for folder in ACROSS:
        kind = Measurement(folder, {})
        assert [] == [file for file in ("study", "ask", "command") if kind.file(file)]
    assert {*specs()} == {*FOLDERS}


def test_every_folder_is_listed() -> None:
    folders = {path.parent.name for path in Path(PACKAGE, "measures").glob("*/__init__.py")}
    assert folders == {*FOLDERS}
