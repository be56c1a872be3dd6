"""Studies as nobody should write them: every key of all measurements, in a file or by `--set`.

The keys and what they take come from the models of `biaskit/study/keys.py`: a new key is tried by itself.
"""

from __future__ import annotations

import json
import random
import shutil
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
import tomli_w
from fakes.command import Cli, Said
from fakes.personas_runs import write_vectors
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from biaskit.measurement import KINDS as MEASUREMENTS
from biaskit.measurement import measurement
from fuzz.common import ODD, SEED, TIMES, check_kept, check_said, snapshot, standing_in

pytestmark = pytest.mark.usefixtures("no_waiting")

KINDS = ("right", "right", "odd", "bound", "unknown", "another key's", "text")
MORE_ODD = (
    *(float("nan"), float("inf"), "1-5", "0", "a,b", "[JOB]", "\U0001f600", ["nurse"], ["nurse", 3]),
    *("corpus:", "corpus:none/none.csv", "~nobody/x.csv", "../../x.toml", {"share": "much"}),
)
HUGE = 10**6


@dataclass(frozen=True)
class Case:
    """Some keys with values, and the command that meets them in a file or as settings."""

    command: str
    in_file: bool
    keys: tuple[tuple[str, Any], ...]
    kinds: tuple[str, ...]


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key of a study by its dotted name, those of tables inside a table too."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}", field
        kinds = (field.annotation, *get_args(field.annotation))
        nested = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if nested and get_origin(field.annotation) is not tuple:
            yield from keys_of(nested[0], f"{prefix}{name}.")


# --- values -------------------------------------------------------------------------------------------


def _bounds(field: FieldInfo) -> dict[str, float]:
    names = ("ge", "gt", "le", "lt")
    return {name: getattr(rule, name) for rule in field.metadata for name in names if hasattr(rule, name)}


def right(field: FieldInfo, rng: random.Random) -> Any:
    """A value that the key takes, as far as its type says; its default where that says too little."""
    if field.annotation is str or any("Validator" in type(rule).__name__ for rule in field.metadata):
        return None if field.is_required() else field.get_default(call_default_factory=True)
    return _of(field.annotation, _bounds(field), rng)


def _of(annotation: Any, bounds: Mapping[str, float], rng: random.Random) -> Any:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return rng.choice(inside)
    if origin in (Union, types.UnionType):
        return _of(rng.choice([one for one in inside if one is not type(None)]), bounds, rng)
    if origin is tuple:
        return [_of(kind, {}, rng) for kind in (inside[:1] if inside[-1] is Ellipsis else inside)]
    if origin is dict:
        return {"share": 0.1} if inside[1] is float else {"x": "female"}
    if annotation is bool:
        return rng.random() < 0.5
    if annotation is int:
        low = int(bounds.get("ge", 1))
        return min(low + rng.choice((0, 1, 5)), int(bounds.get("le", low + 5)))
    if annotation is float:
        low, high = bounds.get("ge", bounds.get("gt", 0.0)), bounds.get("le", bounds.get("lt", 1.0))
        return low + (high - low) * rng.choice((0.25, 0.5, 0.9))
    return rng.choice(("nurse", "1", "all", "none", "x y"))


def _bound(field: FieldInfo, rng: random.Random) -> Any:
    """At the least that is allowed, or just beyond one of the bounds."""
    bounds = _bounds(field)
    step = 1 if int in (field.annotation, *get_args(field.annotation)) else 1e-9
    low = [bounds[name] - step * beyond for name in ("ge", "gt") if name in bounds for beyond in (0, 1)]
    high = [bounds[name] + step for name in ("le", "lt") if name in bounds]
    return rng.choice([*low, *high] or [-1])


def _pair(kind: str, known: Sequence[tuple[str, FieldInfo]], rng: random.Random) -> tuple[str, Any]:
    name, field = rng.choice(known)
    if kind == "unknown":
        place = rng.randrange(len(name) + 1)
        return name[:place] + rng.choice(("x", ".", "_", "é", " ")) + name[place:], right(field, rng) or 1
    if kind == "another key's":
        return name, right(rng.choice(known)[1], rng)
    if kind == "text":
        return name, str(right(field, rng))
    value = {"right": right, "bound": _bound}.get(kind)
    return name, value(field, rng) if value else rng.choice((*ODD, *MORE_ODD))


def _is_slow(name: str, value: Any) -> bool:
    """What is right and takes minutes: vectors trained on few texts, and sizes that nothing bounds."""
    huge = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > HUGE
    return huge or (name in ("vectors", "variant") and value in ("corpus", "exact", "released"))


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "probe": ("probe", "m=scripted:m.jsonl", "--study", "s.toml", "--out", "out"),
    "pairs": ("pairs", "m=scripted:m.jsonl", "--study", "s.toml", "--out", "out"),
    "decisions": ("decisions", "m=scripted:m.jsonl", "--study", "s.toml", "--out", "out", "--yes"),
    "personas": ("personas", "m=scripted:m.jsonl", "--study", "s.toml", "--out", "out", "--yes"),
    "personas plan": ("personas", "m=scripted:m.jsonl", "--study", "s.toml", "--dry-run"),
    "analyze": ("analyze", "run", "--study", "s.toml"),
    "report": ("report", "run", "--out", "page.html"),
}


def kind_of(command: str) -> str:
    named = command.split()[0]
    return named if named in MEASUREMENTS else "probe"


def cases(n: int) -> list[Case]:
    """n cases, the same for the same seed."""
    rng = random.Random(f"studies {SEED}")
    found: list[Case] = []
    while len(found) < n:
        command = rng.choice(list(COMMANDS))
        kind_name = kind_of(command)
        known = list(keys_of(measurement(kind_name).study))
        if command == "analyze":
            known = [
                (name, field)
                for name, field in known
                if name.split(".")[0] in measurement(kind_name).study.analysis_keys
            ]
        kinds = tuple(rng.choice(KINDS) for _ in range(rng.choice((1, 1, 1, 2, 4))))
        pairs = tuple(_pair(kind, known, rng) for kind in kinds)
        if not any(_is_slow(name, value) for name, value in pairs):
            found.append(Case(command, command != "report" and rng.random() < 0.5, pairs, kinds))
    return found


# --- the command and the oracle -----------------------------------------------------------------------

SMALL: Mapping[str, Mapping[str, Any]] = {
    "probe": {
        "jobs": {"source": "corpus:occugender/jobs.csv", "select": ["nurse", "plumber"]},
        "templates": {"source": "corpus:occugender/templates.toml", "select": "1"},
        "target_words": {"explicit": "occugender-explicit", "implicit": "pronoun-subject"},
    },
    "pairs": {"pairs": "pairs.csv"},
    "decisions": {"cases": "cases.csv", "people": "people.csv"},
    "personas": {
        "occupations": {"source": "corpus:gasp/occupations.csv", "select": ["nurse"]},
        "per_gender": 3,
        "max_samples": 9,
        "permutations": 19,
        "clusters": False,
        "vectors": "pretrained:vectors.txt",
    },
}


def check(case: Case, home: Path, call: Cli, stored: Path) -> None:
    """Write the study, call the command, hold what came of it against the oracle."""
    kind_name = kind_of(case.command)
    with standing_in(home):
        texts = [f"{'She' if i % 2 else 'He'} is a nurse of {i} patient warm people." for i in range(9)]
        sentences = {"She nurses.": -9.0, "He nurses.": -10.0}
        answers = {" Yes": -0.7, " No": -0.9, " yes": -1.5, " no": -1.7}
        line = {"log_probs": {" She": -0.5, " He": -1.5, **sentences, **answers}, "texts": texts}
        (home / "cases.csv").write_text("case,text\na,[NAME] nurses.\nb,[NAME] cooks.\n", "ascii")
        (home / "people.csv").write_text("name,sex,race\nAnn,female,White\nBob,male,Black\n", "ascii")
        (home / "pairs.csv").write_text("female,male\nShe nurses.,He nurses.\n", "ascii")
        (home / "m.jsonl").write_text(json.dumps(line) + "\n", "ascii")
        write_vectors(home / "vectors.txt")
        if case.command in ("analyze", "report"):
            shutil.copytree(stored, home / "run")
        content: dict[str, Any] = {
            "name": "s",
            "measurement": kind_name,
            **json.loads(json.dumps(SMALL[kind_name])),
        }
        if case.command == "analyze":
            content = {"name": "s"}
        settings = [] if case.in_file else [f"{name}={_toml(value)}" for name, value in case.keys]
        for name, value in case.keys if case.in_file else ():
            _put(content, name.split("."), value)
        Path("s.toml").write_text(tomli_w.dumps(content), "utf-8")
        words = COMMANDS[case.command]
        if case.command == "analyze" and not case.in_file:
            words = words[:2]
        before = snapshot(home)
        said = call(*words, *(word for setting in settings for word in ("--set", setting)))
        check_said(said, case)
        check_kept({path: data for path, data in before.items() if "run" not in path.parts}, case)
        if said.code == 2 and case.command in MEASUREMENTS:
            assert not Path("out").exists(), (case, "a command that was wrong left a run")
        if said.code == 0 and "unknown" in case.kinds and "right" not in case.kinds:
            known = {name for name, _ in keys_of(measurement(kind_name).study)} | {
                "margin.x",
                "models.x",
                "gender_codes.x",
            }
            assert all(" " in name or name in known for name, _ in case.keys), (case, "not refused")


def _put(content: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        inner = content.get(name)
        content[name] = content = inner if isinstance(inner, dict) else {}
    if (shown := _without_none(value)) is not None:
        content[path[-1]] = shown


def _without_none(value: Any) -> Any:
    """TOML has no null."""
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value if one is not None]
    if isinstance(value, dict):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value


def _toml(value: Any) -> str:
    """A value as a person writes it behind `--set key=`."""
    if isinstance(value, str):
        return value
    shown = _without_none(value)
    if isinstance(shown, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(one)}" for name, one in shown.items()) + "}"
    return "" if shown is None else tomli_w.dumps({"v": shown}).removeprefix("v = ").strip()


# --- the tests ------------------------------------------------------------------------------------------


def test_odd_studies(console: Cli, tmp_path: Path, stored_probe: Path) -> None:
    for case in cases(24 * TIMES):
        check(case, tmp_path / "home", console, stored_probe)


@pytest.mark.parametrize("kind_name", MEASUREMENTS)
def test_every_key_is_tried(kind_name: str) -> None:
    tried = {name for case in cases(4_000) for name, _ in case.keys}
    assert {name for name, _ in keys_of(measurement(kind_name).study)} <= tried


@pytest.mark.parametrize(
    "err", ["biaskit: Input should be a number.\n", "biaskit: a\nbiaskit: b\n", "", "Traceback\n"]
)
def test_the_oracle_hears_a_validator_and_a_second_line(err: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(Case("probe", True, (), ()), tmp_path / "home", lambda *words: Said(2, "", err), tmp_path)
