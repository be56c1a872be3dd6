"""What must hold of a command whatever it is given: the same for every generator of cases."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from fakes.command import Said

EXIT_CODES = (0, 1, 2, 3, 4)
"""Those that a command states: done, failed, wrong use, rows missing, no equivalence."""


def snapshot(*folders: Path) -> dict[Path, bytes]:
    """Every file that is a file of its own, with its content."""
    return {
        path: path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@contextlib.contextmanager
def standing_in(home: Path) -> Iterator[None]:
    """An empty folder of this name to stand in."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    here = Path.cwd()
    os.chdir(home)
    try:
        yield
    finally:
        os.chdir(here)


def check_said(said: Said, case: object) -> None:
    """A documented exit code, no traceback, no validator's words; one line of error where it failed."""
    assert said.code in EXIT_CODES, (case, said.code)
    heard = said.err + said.out
    assert "Traceback" not in heard, (case, said.err)
    assert "pydantic" not in heard and "Input should" not in heard, (case, said.err)  # noqa: PT018
    if said.code in (1, 2):
        errors = [line for line in said.err.splitlines() if line.startswith("biaskit: ")]
        assert len(errors) == 1, (case, said.err)
        assert len(errors[0]) < 2_000, (case, "an endless line")
        assert not re.search(r"(Key|Type|Attribute|Index|Value|Assertion)Error\(", errors[0]), (case, errors)


def check_kept(before: dict[Path, bytes], case: object) -> None:
    """What was there is there, as it was."""
    for path, content in before.items():
        assert path.is_file(), (case, f"{path} is gone")
        assert path.read_bytes() == content, (case, f"{path} was changed")
