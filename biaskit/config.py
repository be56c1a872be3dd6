"""Studies: defaults, then the study's file, then options; later wins, and an unknown key is an error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from biaskit.errors import StudyError, nearest
from biaskit.files import data_dir

SELECT_DOC = "all, none, names, or 1-based ids and ranges such as 1,3-5"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Choice(_Strict):
    """A list (a shipped one, or a file) and which of its entries are used."""

    source: str = Field(description="corpus:NAME/FILE, or a path (relative to the study file)")
    select: str | tuple[str, ...] = Field(default="all", description=SELECT_DOC)


class TemplateChoice(Choice):
    """Templates; ids count within a bias type."""

    slot: str | None = Field(
        default=None, description="the slot an item replaces; default: the template file's own"
    )


class InstructionChoice(_Strict):
    """Debiasing instructions; 0 is none."""

    source: str | None = Field(default=None, description="corpus:NAME/FILE, or a path; none: no instructions")
    select: str | tuple[str, ...] = Field(
        default="none", description=f"{SELECT_DOC}; 0 (none) is always among several"
    )


class ExpressionChoice(_Strict):
    """Which expression set each bias type takes; a template's own set goes before it."""

    source: str = Field(default="corpus:expressions/sets.toml", description="corpus:NAME/FILE, or a path")
    explicit: str | None = Field(default=None, description="set for explicit templates")
    implicit: str | None = Field(default=None, description="set for implicit templates")
    every: str | None = Field(default=None, description="one set for all templates, before any other")


class TableTitles(_Strict):
    """What the rendered tables are called: the paper's own numbers."""

    explicit: str = Field(default="Explicit bias", description="title over the explicit table")
    implicit: str = Field(default="Implicit bias", description="title over the implicit table")


class Pair(_Strict):
    """One (template, item) pair of an explicit listing."""

    bias_type: Literal["explicit", "implicit"]
    template: int
    job: str


class ProbeStudy(_Strict):
    """Everything the prober can be asked to do otherwise."""

    name: str = Field(description="names the default run folder")
    engine: Literal["probe"] = Field(default="probe", description="which engine runs it")
    summary: str = Field(default="", description="one line: whose tables it lays out")
    papers: tuple[str, ...] = Field(default=(), description="corpora whose papers `biaskit cite` prints")
    models: dict[str, str] = Field(
        default={}, description="LABEL = SPEC, used when the command names no model"
    )

    bias_type: Literal["explicit", "implicit", "both"] = Field(default="both", description="which templates")
    jobs: Choice = Field(description="items that fill the slot")
    templates: TemplateChoice = Field(description="questions, and openings of answers")
    instructions: InstructionChoice = Field(default=InstructionChoice(), description="debiasing instructions")
    expressions: ExpressionChoice = Field(
        default=ExpressionChoice(), description="what counts as naming a group"
    )
    pairs: tuple[Pair, ...] = Field(
        default=(), description="an explicit list of pairs; refused unless it is the full product"
    )
    setting: Literal["plain", "dialogue", "both"] = Field(
        default="plain", description="question alone, or after a conversation"
    )
    dialogue: str = Field(
        default="corpus:mattern/dialogue.toml", description="the conversation of the dialogue setting"
    )
    instruction_place: Literal["own-line", "in-question"] = Field(
        default="own-line",
        description="plain setting: before the question's line (OccuGender) or inside it (Mattern)",
    )
    instruction_position: Literal["prompt", "system"] = Field(
        default="prompt", description="in the prompt or the system role"
    )
    system_prompt: str | None = Field(
        default=None, description="a system prompt's text (--system-prompt FILE)"
    )
    articles: Literal["as-published", "grammatical"] = Field(
        default="as-published", description="'a electrician' as the papers print it, or 'an electrician'"
    )
    prompt_form: Literal["auto", "raw", "chat-prefill", "chat-continue"] = Field(
        default="auto", description="auto: the first that every model can take"
    )
    estimator: Literal["auto", "exact"] = Field(default="auto", description="local models are exact")
    word_boundary: Literal["token", "word"] = Field(
        default="token", description="token: as the papers; word: times P(the word ends there)"
    )
    on_prefix: Literal["exclusive", "refuse"] = Field(
        default="exclusive",
        description="an expression that begins another group's: count without it, or stop",
    )

    coverage_floor: float = Field(
        default=0.01, ge=0, le=1, description="cells below it are flagged and counted"
    )
    interval: Literal["crossed", "bootstrap"] = Field(
        default="crossed", description="over jobs and templates"
    )
    contrast: tuple[str, str] | None = Field(
        default=None, description="two groups; default female, male or the first two"
    )
    margin: dict[str, float] = Field(
        default={"share": 0.05}, description="margin.QUANTITY for 'equivalent within'"
    )
    seed: int = Field(default=1, ge=0, description="of bootstrap intervals")
    table: TableTitles = Field(default=TableTitles(), description="titles of the rendered tables")

    skip_bad_lines: bool = Field(default=False, description="leave out unreadable rows and count them")
    lock: Literal["os", "none"] = Field(default="os", description="none: for file systems without locks")


ANALYSIS_KEYS = frozenset(
    {
        "coverage_floor",
        "interval",
        "contrast",
        "margin",
        "seed",
        "table",
        "skip_bad_lines",
        "lock",
    }
    | {"on_prefix", "summary", "papers"}
)
"""Keys that change what is made of the rows, not the rows: what `analyze` takes."""


def study_names() -> list[str]:
    """The shipped studies."""
    return sorted(path.stem for path in data_dir("configs").glob("*.toml"))


def read_study_file(name: str) -> dict[str, Any]:
    """A study's file as written, paths made relative to it; `name` is shipped or a path."""
    path = Path(name).expanduser()
    if not is_path(name):
        path = data_dir("configs") / f"{name}.toml"
        known = study_names()
        if name not in known:
            raise StudyError(
                f"There is no study {name!r}.{nearest(name, known)} Shipped: {', '.join(known)};"
                " or give a path."
            )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: the study file cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"{path} is no valid TOML: {error}.") from error
    for where in _sources(content):
        where[0][where[1]] = _beside(path.parent, where[0][where[1]])
    return content


def _sources(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for table in ("jobs", "templates", "instructions", "expressions"):
        if isinstance(content.get(table), dict) and isinstance(content[table].get("source"), str):
            yield content[table], "source"
    if isinstance(content.get("dialogue"), str):
        yield content, "dialogue"


def _beside(folder: Path, source: str) -> str:
    return source if source.startswith("corpus:") else str(folder / Path(source).expanduser())


def is_path(text: str) -> bool:
    """Whether an option's value is a file rather than names (DESIGN §3)."""
    return "/" in text or text.endswith((".csv", ".txt", ".toml"))


def build_study(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> ProbeStudy:
    """Defaults, then `content`, then `overrides` (dotted keys); validated."""
    merged: dict[str, Any] = {key: dict(v) if isinstance(v, dict) else v for key, v in content.items()}
    for dotted, value in overrides.items():
        _put(merged, dotted.split("."), value, dotted)
    try:
        return ProbeStudy.model_validate(merged)
    except ValidationError as error:
        raise StudyError(_explain(error, where)) from error


def load_study(name: str, overrides: Mapping[str, Any] | None = None) -> ProbeStudy:
    """A study by shipped name or path, with overrides by dotted key."""
    return build_study(read_study_file(name), overrides or {}, name)


def parse_setting(text: str) -> tuple[str, Any]:
    """`key.sub=value` of `--set`: the value is read as TOML where the key takes more than text."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise StudyError(f"--set {text}: write --set key.sub=value.")
    try:
        parsed = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        return key, value
    # jobs.select=3 and name=2024 are texts, whatever TOML makes of them.
    return key, value if _takes_text(key) and not isinstance(parsed, list | str) else parsed


def _takes_text(dotted: str) -> bool:
    *path, last = dotted.split(".")
    fields = ProbeStudy.model_fields
    for part in path:
        nested = _nested(fields[part].annotation) if part in fields else None
        if nested is None:
            return False
        fields = nested.model_fields
    annotation = fields[last].annotation if last in fields else None
    return annotation is str or str in getattr(annotation, "__args__", ())


def _put(target: dict[str, Any], path: Sequence[str], value: Any, dotted: str) -> None:
    for name in path[:-1]:
        inner = target.setdefault(name, {})
        if not isinstance(inner, dict):
            raise StudyError(f"{dotted}: {name} is a value, not a table.")
        target = inner
    target[path[-1]] = value


def _explain(error: ValidationError, where: str) -> str:
    """The first problem, in one line; the others are counted."""
    problems = error.errors()
    first = problems[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _keys_at(first["loc"][:-1])
        said = f"{where}: unknown key {key!r}.{nearest(str(first['loc'][-1]), known)}"
        if "Did you mean" not in said:
            said += f" Known: {', '.join(sorted(known))}."
    elif first["type"] == "missing":
        said = f"{where}: the key {key!r} is missing."
    else:
        shown = str(first["input"])
        said = f"{where}: {key} = {shown[:60]}: {first['msg'].lower()}."
    return said + (f" ({len(problems) - 1} more problems)" if len(problems) > 1 else "")


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    model: Any = ProbeStudy
    for part in location:
        if isinstance(part, int):
            continue
        found = _nested(model.model_fields[part].annotation) if part in model.model_fields else None
        if found is None:
            return []
        model = found
    return list(model.model_fields)


def _nested(annotation: Any) -> Any:
    """The model inside an annotation such as `Choice | None` or `tuple[Pair, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    return None


def describe_keys(model: type[BaseModel] = ProbeStudy, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(dotted key, default, description) of every key a study can set."""
    for name, field in model.model_fields.items():
        nested = _nested(field.annotation)
        if nested is not None and name != "pairs":
            yield from describe_keys(nested, f"{prefix}{name}.")
        else:
            default = (
                "(required)" if field.is_required() else _shown(field.get_default(call_default_factory=True))
            )
            yield f"{prefix}{name}", default, field.description or ""


def _shown(value: object) -> str:
    if value is None:
        return "(none)"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


T = TypeVar("T")


def parts_of(choice: str | Sequence[str]) -> list[str]:
    """What a choice lists: the entries of a list, or a text's parts between commas."""
    return [part.strip() for part in (choice.split(",") if isinstance(choice, str) else choice)]


def select(
    choice: str | Sequence[str], names: Sequence[str], ids: Sequence[int], entries: Sequence[T], what: str
) -> list[T]:
    """The entries that `choice` picks, in list order: all, none, names, ids, ranges.

    A name goes before an id, so an item called "7" can be chosen by its name.
    """
    if choice in ("all", "none"):
        return list(entries) if choice == "all" else []
    # A single name may hold a comma.
    parts = [choice] if isinstance(choice, str) and choice in names else parts_of(choice)
    chosen: set[int] = set()
    for part in parts:
        if part in names:
            chosen |= {i for i, name in enumerate(names) if name == part}
        elif found := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            low, high = int(found[1]), int(found[2] or found[1])
            if not ids or not min(ids) <= low <= high <= max(ids):
                raise StudyError(
                    f"There are no {what} {part}: the ids are {min(ids, default=0)} to {max(ids, default=0)}."
                )
            chosen |= {i for i, number in enumerate(ids) if low <= number <= high}
        else:
            raise StudyError(f"There is no {what.removesuffix('s')} {part!r}.{nearest(part, names)}")
    return [entry for i, entry in enumerate(entries) if i in chosen]
