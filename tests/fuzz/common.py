"""What every fuzz shares: how much is tried, and what must hold whatever is given.

By default a few cases, the same every day. `BIASKIT_FUZZ=20` tries twenty times as many, others for every
`BIASKIT_FUZZ_SEED`, as .ci/nightly does.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from fakes.command import Said

TIMES = int(os.environ.get("BIASKIT_FUZZ", "1"))
SEED = os.environ.get("BIASKIT_FUZZ_SEED", "")
EXIT_CODES = (0, 1, 2, 3, 4)
"""Those that a command states: done, failed, wrong use, rows missing, no equivalence."""
ODD = (
    *(None, True, False, -1, 0, 3, 1e308, -1e-308, 2**70, 0.5),
    *("", "x", "=1+1", "\u202eabc", "a\nb", "é" * 300),
    *([], {}, [[]], {"": {}}, [None] * 50, {"a": [1]}),
)
"""What may stand where a value of another kind was."""


def snapshot(*folders: Path) -> dict[Path, bytes]:
    """Every file that is a file of its own, with its content."""
    paths = (path for folder in folders for path in folder.rglob("*"))
    return {path: path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}


@contextlib.contextmanager
def standing_in(home: Path) -> Iterator[None]:
    """An empty folder of this name to stand in."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with contextlib.chdir(home):
        yield


def check_said(said: Said, case: object) -> None:
    """A documented exit code, no traceback, no validator's words; one line of error where it failed."""
    assert said.code in EXIT_CODES, (case, said.code)
    heard = said.err + said.out
    for word in ("Traceback", "pydantic", "Input should"):
        assert word not in heard, (case, said.err)
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


def put(value: object, path: tuple[object, ...], new: object) -> object:
    """A copy of nested lists and tables with another value at one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Every place of nested lists and tables."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*path, key))
