"""Studies: defaults, then the study's file, then options; later wins, and an unknown key is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from biaskit.common.files import data_dir
from biaskit.common.foreign import visible
from biaskit.common.inputs import Inputs, TooMuch, expanded, parse_toml
from biaskit.common.provenance import digest
from biaskit.common.sheets import is_sheet
from biaskit.common.wording import count
from biaskit.corpora.loaders import load_debiasing_prompts
from biaskit.corpora.sources import shown, source_digest
from biaskit.errors import CorpusError, StudyError, nearest
from biaskit.measurement import KINDS, measurement, measurements
from biaskit.records import DebiasingPrompt
from biaskit.study.keys import DISPLAY_KEYS, Study

STUDY_FILE = Inputs(StudyError, most=64 * 2**20)


def study_names() -> list[str]:
    """List the shipped studies."""
    return sorted(path.stem for path in data_dir("configs").glob("*.toml"))


def read_study_file(name: str) -> dict[str, Any]:
    """Read a study's file as written, its paths relative to it; `name` is a shipped study or a path."""
    path, shipped = expanded(name), study_names()
    if name in KINDS and name not in shipped:
        return {"name": name, "measurement": name}  # a kind whose keys all have defaults needs no file
    if not is_path(name):
        path = data_dir("configs") / f"{name}.toml"
        if name not in shipped:
            raise StudyError(
                f"There is no study {name!r}.{nearest(name, shipped)} Shipped: {', '.join(shipped)};"
                " or give a path."
            )
    content = STUDY_FILE.toml(path)
    kind_name = content.get("measurement", KINDS[0])
    if kind_name not in KINDS:
        return content  # an error for whoever builds it
    study = measurement(kind_name).study
    lists = [(content[key], "source") for key in study.lists if isinstance(content.get(key), dict)]
    for table, key in (*lists, *((content, key) for key in study.files)):
        if isinstance(table.get(key), str) and not table[key].startswith("corpus:"):
            table[key] = str(path.parent / expanded(table[key]))
    return content


_LIST_FILES = (".csv", ".xlsx", ".txt", ".toml")


def is_path(text: str) -> bool:
    """Tell whether an option's value is a file rather than names (howto/own-items#selection)."""
    return "/" in text or text.endswith(_LIST_FILES) or is_sheet(text)


def build_study(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> Study:
    """Build a study of defaults, then `content`, then `overrides` (dotted keys). Raises `StudyError`."""
    kind_name = overrides.get("measurement", content.get("measurement", KINDS[0]))
    if not isinstance(kind_name, str) or kind_name not in KINDS:
        raise StudyError(
            f"{where}: there is no measurement {str(kind_name)[:60]!r}.{nearest(str(kind_name), KINDS)}"
            f" Write one of {', '.join(KINDS)}."
        )
    kind = measurement(kind_name).study
    copied = {key: dict(value) if isinstance(value, dict) else value for key, value in content.items()}
    merged = {**_variant(kind, copied), **copied}
    for dotted, value in {**_variant(kind, overrides), **overrides}.items():
        *tables, last = dotted.split(".")
        table = merged
        for name in tables:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise StudyError(f"{dotted}: {name} is a value, not a table.")
        table[last] = value
    try:
        return kind.model_validate({"measurement": kind_name, **merged})
    except ValidationError as error:
        raise StudyError(explain(error, where, kind)) from error


def _variant(kind: type[Study], keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the keys that a variant sets; they go before those beside it, so that each can be set back."""
    return kind.variants.get(str(keys.get("variant")), {})


def load_study(name: str, overrides: Mapping[str, Any] | None = None) -> Study:
    """Load a study by shipped name or path, with overrides by dotted key."""
    return build_study(read_study_file(name), overrides or {}, name)


S = TypeVar("S", bound=Study)


def load_as(kind: type[S], name: str, overrides: Mapping[str, Any] | None = None) -> S:
    """Load a study of a kind; one of another kind is an error that says where it belongs."""
    content = read_study_file(name)
    kind_name = content.get("measurement", KINDS[0])
    if kind_name in KINDS and measurement(kind_name).study is not kind:
        raise StudyError(
            f"{name} is a study for the other measurement: biaskit {kind_name} ... --study {name}."
        )
    study = build_study(content, overrides or {}, name)
    assert isinstance(study, kind)
    return study


def parse_setting(text: str) -> tuple[str, Any]:
    """Read `key.sub=value` of `--set`; the value is TOML where the key takes more than text."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise StudyError(f"--set {text}: write --set key.sub=value.")
    try:
        parsed = parse_toml(f"v = {value}")["v"]
    except TooMuch as error:
        raise StudyError(f"--set {key}: {error}.") from None
    except ValueError:  # no TOML: the text itself
        return key, value
    *tables, last = key.split(".")
    known = [fields_at(kind.study, tables) for kind in measurements()]
    fields = [keys[last] for keys in known if last in keys]
    takes_text = any(str in (f.annotation, *getattr(f.annotation, "__args__", ())) for f in fields)
    # jobs.select=3 and name=2024 are texts, whatever TOML makes of them.
    return key, value if takes_text and not isinstance(parsed, list | str) else parsed


def explain(error: ValidationError, where: str, study: type[BaseModel], prefix: str = "") -> str:
    """Say the first problem in one line, and count the others. `prefix` is put before the key."""
    problems = error.errors()
    first = problems[0]
    key = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = fields_at(study, first["loc"][:-1])
        hint = nearest(str(first["loc"][-1]), known) or f" Known: {', '.join(sorted(known))}."
        message = f"{where}: unknown key {key!r}.{hint}"
    elif first["type"] == "missing":
        message = f"{where}: the key {key!r} is missing."
    else:
        message = f"{where}: {key} = {str(first['input'])[:60]}: {_advice(first)}."
    return message + (f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else "")


def _advice(problem: Mapping[str, Any]) -> str:
    """Say what to write instead, in pydantic's words without those about Python."""
    kind = str(problem["type"])
    if kind == "value_error":  # a check of ours, which says what to write
        return str(problem["ctx"]["error"])
    if kind.startswith(("dict", "model")):
        return "this is a table of keys: write KEY.SUB = VALUE"
    if kind.startswith(("tuple", "list")):
        return "write a list, like [1, 2]"
    expected = str(problem["msg"]).removeprefix("Input should be ").partition(", unable")[0]
    expected = expected.partition(" after validation")[0]
    return f"write {'a number ' if expected.startswith(('greater', 'less')) else ''}{expected}"


def fields_at(study: type[BaseModel], location: Sequence[int | str]) -> Mapping[str, FieldInfo]:
    """Find the keys of a table inside a study, none where there is no such table; list places are skipped."""
    model: Any = study
    for name in (part for part in location if isinstance(part, str)):
        field = model.model_fields.get(name)
        model = _nested(field.annotation) if field else None
        if model is None:
            return {}
    fields: Mapping[str, FieldInfo] = model.model_fields
    return fields


def _nested(annotation: Any) -> Any:
    """Find the model inside an annotation such as `Choice | None` or `tuple[Pair, ...]`; None without one."""
    kinds = (annotation, *getattr(annotation, "__args__", ()))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def describe_keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (dotted key, default, description) of every key that a study can set."""
    for name, field in model.model_fields.items():
        nested = _nested(field.annotation)
        if nested is not None:
            yield from describe_keys(nested, f"{prefix}{name}.")
        else:
            value = "(required)" if field.is_required() else field.get_default(call_default_factory=True)
            default = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            yield f"{prefix}{name}", "(none)" if value is None else default, field.description or ""


def stated_choices(study: Study) -> dict[str, str]:
    """State, for a signature, the analysis keys that change a number and are not at their default."""
    counted = study.analysis_keys - DISPLAY_KEYS
    return {
        name: _signed(name, getattr(study, name))
        for name, field in type(study).model_fields.items()
        if name in counted and getattr(study, name) != field.get_default(call_default_factory=True)
    }


def _signed(name: str, value: Any) -> str:
    """Write a key's value as a signature states it; it is published: of a file the name, not the folder."""
    if name in ("drop_words", "categories") and value:
        try:
            return f"{Path(value).name}@{source_digest(value)[:12]}"
        except CorpusError:  # a run that was moved without the file; what needs the file stops there itself
            return Path(value).name
    if name in ("gender_codes", "unmarked"):  # free text, which a line of names and values cannot hold
        return digest(value)[:12]
    if isinstance(value, dict):
        return ",".join(f"{key}:{number:g}" for key, number in sorted(value.items()))
    source, colon, path = str(value).partition(":")
    return f"{source}:{Path(path).name}" if colon else source


def choose_debiasing_prompts(
    study: str, source: str | None, parts: Sequence[str], advice: str
) -> tuple[DebiasingPrompt | None, ...]:
    """Choose debiasing prompts: none first, which every contrast needs. `advice`: how to name their file."""
    parts = [part for part in parts if part not in ("0", "none", "")]
    if not parts:
        return (None,)
    if source is None:
        raise StudyError(f"{study} has no debiasing prompts: {advice}.")
    listed = load_debiasing_prompts(source)
    wanted = "all" if parts == ["all"] else parts
    return (None, *select(wanted, [], [i.id for i in listed], listed, "debiasing prompts"))


T = TypeVar("T")


def parts_of(choice: str | Sequence[str]) -> list[str]:
    """Split a choice: the entries of a list, or a text's parts between commas."""
    return [part.strip() for part in (choice.split(",") if isinstance(choice, str) else choice)]


def select(
    choice: str | Sequence[str],
    names: Sequence[str],
    ids: Sequence[int],
    entries: Sequence[T],
    what: str,
    *,
    or_file: bool = True,
) -> list[T]:
    """Pick entries in list order: all, none, names, ids or ranges; a name such as "7" goes before an id.

    `or_file`: whether a file could stand in place of the choice, for the message about what is not there.
    """
    if choice in ("all", "none"):
        return list(entries) if choice == "all" else []
    # A single name may hold a comma.
    parts = [choice] if isinstance(choice, str) and choice in names else parts_of(choice)
    chosen: set[int] = set()
    place_of_name = {name: i for i, name in enumerate(names)}
    place_of_id = {number: i for i, number in enumerate(ids)}
    first, last = min(ids, default=0), max(ids, default=0)
    for part in parts:
        if part in place_of_name:
            chosen.add(place_of_name[part])
        elif not part:
            raise StudyError(f"{what}: an entry is empty. Write names, ids or ranges, such as 1-3, or all.")
        elif span := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            low, high = (int(text) if len(text) < 10 else 10**9 for text in (span[1], span[2] or span[1]))
            if not ids or not first <= low <= high <= last:
                raise StudyError(
                    f"There are no {what} {visible(part, longest=60)}: the ids are {first} to {last}."
                )
            chosen |= {place_of_id[number] for number in range(low, high + 1) if number in place_of_id}
        else:
            raise StudyError(_not_there(part, names, ids, what, or_file=or_file))
    return [entry for i, entry in enumerate(entries) if i in chosen]


def _not_there(part: str, names: Sequence[str], ids: Sequence[int], what: str, *, or_file: bool) -> str:
    """Say what a choice could have meant: a name that is near, a file that lies here, or what there is."""
    message = f"There is no {what.removesuffix('s')} {shown(part)}."
    files = [part + suffix for suffix in _LIST_FILES] if or_file and "\0" not in part else []
    here = next((name for name in files if len(name) < 200 and Path(name).is_file()), None)
    if here is not None:
        return f"{message} There is a file of that name: write --{what.replace(' ', '-')} ./{here}"
    if hint := nearest(part, names):
        return message + hint
    examples = [*map(shown, names[:5])] or [f"ids from {min(ids, default=0)} to {max(ids, default=0)}"]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    ends = f"; a file ends in {', '.join(_LIST_FILES)}" if or_file else ""
    return f"{message} There are {', '.join(examples)}{more}{ends}."
