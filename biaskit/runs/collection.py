"""Stored tables of several runs side by side, with models told apart; reads tables, makes none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from biaskit.errors import RunError, UsageError
from biaskit.measurement import KINDS
from biaskit.records import OWN_SYSTEM
from biaskit.runs.claims import Claim, claims_of, papers_of, summary_of, together
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.store import read_rows, rows_file
from biaskit.stats.contrast import Contrast
from biaskit.stats.verdict import Rule, one_rule
from biaskit.tables.quantities import ANSWERS_OF_MODELS
from biaskit.tables.query import Row, Tables
from biaskit.tables.sets import read_set

BETWEEN_MODELS = ("models", ANSWERS_OF_MODELS)
"""Contrasts of the tests between models."""
MODEL_COLUMNS = ("model", "model_a", "model_b", "model_old", "model_new")


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a run, as its manifest and rows tell it."""

    label: str  # as the tables of the report name it
    spec: str
    fingerprint: str
    tuning: str  # base | instruct | unknown
    where: str  # local | api | scripted | texts
    prompt_format: str  # "" for imported texts
    estimator: str  # "exact", "top-k(k=20)", …; "" in personas
    run: str  # folder of its rows, as the user named it
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of the manifest
    answered_by: tuple[str, ...] = ()  # who really answered, where the rows tell
    first_answered: str | None = None  # UTC date of the first and of the last row
    last_answered: str | None = None
    language: Mapping[str, Any] = field(default_factory=dict, hash=False)  # that its texts are read in
    own_system: str = ""  # beginning of the chat template's own system prompt, where it was in force

    @property
    def weights(self) -> str:
        """What tells its weights apart: their digest; of an API its spec."""
        return str(self.details.get("weights") or self.spec)


@dataclass(frozen=True, slots=True)
class Part:
    """One kind's study with the tables of every run that asked it; models are unique in it."""

    measurement: str
    study: str
    summary: str
    tables: Tables
    models: tuple[Model, ...]
    runs: tuple[str, ...]
    signatures: tuple[str, ...]  # one per run
    notes: tuple[str, ...]  # what a careful reader must know, from the runs' analyses
    papers: tuple[str, ...] = ()  # corpora whose papers are cited
    groups: tuple[str, ...] = ()  # gender groups of the prober
    contrast: tuple[str, str] = ("", "")
    min_coverage: float = 0.01  # of coverage
    rule: Rule = field(default_factory=Rule)  # of verdicts; all parts of a page have one
    templates: tuple[Row, ...] = ()  # as asked: id, bias_type, question, opening
    debiasing_prompts: tuple[Row, ...] = ()  # as asked: id, text, level; without 0
    commands: tuple[str, ...] = ()  # how each run was made
    imported: Mapping[str, str] = field(default_factory=dict)  # of texts at hand: `source`, `read`
    claims: Mapping[str, Claim] = field(default_factory=dict)  # by name of a paper's table; absent: none
    is_alone: bool = True  # no other part is of its kind and study

    @property
    def tests(self) -> list[Contrast]:
        """Its rows of tests.csv."""
        return list(map(Contrast.of, self.tables.get("tests", ())))

    def claim(self, table: str) -> Claim:
        """Tell whether this part's table is a paper's (`runs/claims.py`)."""
        return self.claims.get(table, Claim.NONE)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with its tables; its models are named as in the whole collection."""

    path: Path
    manifest: Manifest
    analysis: Mapping[str, Any]
    tables: Tables  # without tests between models: most of a run of many, and a comparison makes its own
    names: Mapping[str, str]  # label in the run's rows → label in the collection

    @property
    def measurement(self) -> str:
        """Which kind of measurement it is."""
        return self.manifest.measurement

    @property
    def study(self) -> str:
        """The name of its study."""
        return self.manifest.study

    @property
    def question(self) -> Mapping[str, Any]:
        """What was asked, as far as two runs could differ in it."""
        return self.manifest.question

    def rows(self) -> Iterator[dict[str, Any]]:
        """Read its rows in the order in which they were stored; none where the file is gone."""
        file = rows_file(self.path, self.measurement)
        skip = bool(self.manifest.resolved["study"].get("skip_bad_lines", False))
        return read_rows(file, skip_bad=skip) if file.is_file() else iter(())


@dataclass(frozen=True, slots=True)
class Collection:
    """Runs in the order they were named, and their tables by measurement and study."""

    runs: tuple[StoredRun, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    def runs_of(self, part: Part) -> tuple[StoredRun, ...]:
        """Find the runs whose tables a part holds."""
        return tuple(
            run for run in self.runs if run.measurement == part.measurement and str(run.path) in part.runs
        )


def gather(paths: Sequence[Path]) -> Collection:
    """Read the stored tables of runs of any measurement; nothing is computed.

    A label that stands in two runs of one measurement becomes `label (folder)`, so that two versions of a
    model can be held against each other. Runs that asked one study become one part where their kind says so:
    every run of texts is a part of its own, since its word vectors are (methods/srb#vector-models).
    """
    stored = list(map(_read, paths))
    twice = [path for path, n in Counter(map(Path.resolve, paths)).items() if n > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice: a run is compared with another one.")
    notes, runs = [], []
    for run, names in zip(stored, _names(stored), strict=True):
        for label, new in names.items():
            if label != new:
                notes.append(f"{label} is in several runs and is called {new} in the tables of {run.path}")
        runs.append(_renamed(run, names))
    parts = tuple(_parts(runs))
    rule = rule_of(parts)
    return Collection(tuple(runs), tuple(replace(part, rule=rule) for part in parts), tuple(notes))


# --- one run -----------------------------------------------------------------------------------------


def _read(path: Path) -> StoredRun:
    """Read a run of a measurement. Raises `RunError` for another folder."""
    manifest = read_manifest(path)
    if manifest.measurement not in KINDS:
        raise RunError(
            f"{path} is not a run of a measurement ({manifest.measurement!r}): name the runs themselves."
        )
    stored = read_set(path)
    tables: dict[str, Sequence[Row]] = {**stored.rows()}
    if tests := tables.get("tests"):
        own = [row for row in map(Contrast.of, tests) if row.contrast not in BETWEEN_MODELS]
        tables["tests"] = own
    return StoredRun(path, manifest, stored.analysis, tables, {label: label for label in manifest.models})


def _names(stored: Sequence[StoredRun]) -> list[dict[str, str]]:
    """Map, for each run, its labels to those in the collection."""
    counts = Counter((run.measurement, label) for run in stored for label in run.manifest.models)
    folders = _folders([run.path for run in stored])
    names_of_runs = []
    for run, folder in zip(stored, folders, strict=True):
        names = {}
        for label in run.manifest.models:
            new = label if counts[run.measurement, label] == 1 else f"{label} ({folder})"
            if new != label and (run.measurement, new) in counts:
                raise UsageError(f"Two models would be called {new!r}: give one of them another label.")
            names[label] = new
        names_of_runs.append(names)
    return names_of_runs


def _folders(paths: Sequence[Path]) -> list[str]:
    """Find the shortest ends of the paths that tell all of them apart."""
    parts = [path.resolve().parts for path in paths]
    longest = max(map(len, parts), default=1)
    for n in range(1, longest + 1):
        ends = ["/".join(names[-n:]) for names in parts]
        if len(set(ends)) == len(ends):
            break
    return ends


def _renamed(run: StoredRun, names: Mapping[str, str]) -> StoredRun:
    if all(label == new for label, new in names.items()):
        return run
    models = {names[label]: entry for label, entry in run.manifest.models.items()}
    tables: dict[str, list[Row]] = {}
    for name, rows in run.tables.items():
        columns = [column for column in MODEL_COLUMNS if rows and column in rows[0]]
        tables[name] = []
        for row in rows:
            new = {column: names.get(row[column], row[column]) for column in columns}
            tables[name].append({**row, **new})
    analysis = dict(run.analysis)
    for part in ("answered", "languages"):
        if isinstance(of_models := analysis.get(part), Mapping):
            analysis[part] = {names.get(label, label): entry for label, entry in of_models.items()}
    manifest = run.manifest.model_copy(update={"models": models})
    return replace(run, manifest=manifest, analysis=analysis, tables=tables, names=names)


# --- parts -------------------------------------------------------------------------------------------


def _parts(runs: Sequence[StoredRun]) -> Iterator[Part]:
    groups: list[list[StoredRun]] = []
    for run in runs:
        for group in groups:
            same = (run.measurement, run.study) == (group[0].measurement, group[0].study)
            if same and all(other.manifest.kind.one_part(other, run) for other in group):
                group.append(run)
                break
        else:
            groups.append([run])
    folders = _folders([run.path for run in runs])
    folder_of = dict(zip((run.path for run in runs), folders, strict=True))
    counts = Counter((group[0].measurement, group[0].study) for group in groups)
    for group in groups:
        first = group[0]
        alone = counts[first.measurement, first.study] == 1
        study = first.study if alone else f"{first.study} ({folder_of[first.path]})"
        yield replace(_part(group, study), is_alone=alone)


def differ(a: StoredRun, b: StoredRun, name: str) -> bool:
    """Tell whether an entry that both questions have differs."""
    entries_a, entries_b = a.question.get(name, {}), b.question.get(name, {})
    return any(entry in entries_b and value != entries_b[entry] for entry, value in entries_a.items())


def contrast_of(run: StoredRun) -> tuple[str, str]:
    """Read the two groups that a run's analysis, or else its study, contrasts; empty where it has none."""
    chosen = run.analysis.get("choices", {}).get("contrast")
    one, other = chosen or run.manifest.resolved.get("contrast") or ("", "")
    return str(one), str(other)


def _part(group: Sequence[StoredRun], study: str) -> Part:
    first = group[0]
    resolved, choices = first.manifest.resolved, first.analysis.get("choices", {})
    groups = tuple(resolved.get("groups", ()))
    min_coverage = choices.get("min_coverage", resolved["study"].get("min_coverage", 0.01))
    templates = _entries(group, first.manifest.kind.asked) or _entries(group, "templates")
    claims = [claims_of(run.manifest.resolved) for run in group]
    tables: dict[str, list[Row]] = {}  # a table that only some runs have holds theirs
    models: list[Model] = []
    notes: dict[str, None] = {}
    papers: dict[str, None] = {}
    runs, commands, signatures, rules = [], [], [], []
    for run in group:
        runs.append(str(run.path))
        commands.append(run.manifest.command)
        signatures.append(str(run.analysis.get("signature", "")))
        for name, rows in run.tables.items():
            if rows and name not in ("srb_change", "gaps"):
                tables.setdefault(name, []).extend(rows)
        models += _models(run)
        notes |= dict.fromkeys(map(str, run.analysis.get("notes", ())))
        papers |= dict.fromkeys(papers_of(run.manifest.resolved))
        asked = run.analysis.get("choices", {}).get("conclusion") or {}
        is_strict, of_all = asked.get("rule") == "strict", asked.get("share") == "of-all"
        rules.append(Rule((contrast_of(run)[0] or "female",), is_strict, not of_all))
    part = Part(
        measurement=first.measurement,
        study=study,
        summary=summary_of(resolved),
        tables=tables,
        models=tuple(models),
        runs=tuple(runs),
        signatures=tuple(signatures),
        notes=tuple(notes),
        papers=tuple(papers),
    )
    return replace(
        part,
        groups=groups,
        contrast=contrast_of(first),
        min_coverage=float(min_coverage),
        rule=one_rule(rules),
        templates=templates,
        debiasing_prompts=_entries(group, "debiasing_prompts"),
        commands=tuple(commands),
        imported=first.manifest.imported or {},
        claims=together(claims),
    )


def rule_of(parts: Sequence[Part]) -> Rule:
    """Find the rule by which the parts of a page are judged."""
    return one_rule(part.rule for part in parts)


def _entries(group: Sequence[StoredRun], name: str) -> tuple[Row, ...]:
    """List a kind of entries of what the runs asked, each once, in order of appearance; a text is a name."""
    entries: list[Row] = []
    for run in group:
        for stated in run.manifest.resolved.get(name, ()):
            entry = {"name": stated} if isinstance(stated, str) else stated
            if entry and entry not in entries:
                entries.append(entry)
    return tuple(entries)


def _models(run: StoredRun) -> Iterator[Model]:
    answered, languages = (run.analysis.get(part) or {} for part in ("answered", "languages"))
    for label, entry in run.manifest.models.items():
        in_force = entry.prompt_format.startswith("chat") and not run.question.get("system_prompt")
        own_system = str(entry.details.get(OWN_SYSTEM, "")) if in_force else ""
        seen = answered.get(label) or {}
        stated = {name: getattr(entry, name) for name in _OF_ENTRY}
        first, last = (str(seen.get(end) or "")[:10] or None for end in ("first", "last"))
        yield Model(
            label,
            **stated,
            estimator=entry.estimator_name,
            run=str(run.path),
            answered_by=tuple(seen.get("by", ())),
            first_answered=first,
            last_answered=last,
            language=languages.get(label) or {},
            own_system=own_system,
        )


_OF_ENTRY = ("spec", "fingerprint", "tuning", "where", "prompt_format", "details")
