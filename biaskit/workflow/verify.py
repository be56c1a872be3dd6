"""What `biaskit verify` and `bk.verify` do: a stored run held against itself and against its model."""

from __future__ import annotations

import io
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from biaskit.arguments import POSITIVE, TEXT_OR_TEXTS, checked
from biaskit.common.files import digest_of, files_of, is_intact, read_record, write_or_refuse
from biaskit.common.inputs import expanded
from biaskit.common.provenance import versions
from biaskit.common.wording import count
from biaskit.corpora.sources import list_corpora, source_digest
from biaskit.errors import BiaskitError, CorpusError, UsageError
from biaskit.measurement import Measurement
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import closing_stream
from biaskit.models.entry import ModelEntry
from biaskit.models.options import IN_MEMORY
from biaskit.models.spec import is_api, split_label
from biaskit.progress import LineWatcher, Watcher
from biaskit.records import Failed, Sample, SampleRequest, Scored
from biaskit.report.result import RunResult, run_path
from biaskit.runs.designs import Design, design_digest
from biaskit.runs.manifest import read_manifest
from biaskit.runs.objects import lending
from biaskit.runs.start import ApiArguments, LocalArguments, api_options, local_options
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.runs.verification import FILE, Check, Outcome, Verification, check_place
from biaskit.stats.same_counts import p_of_same_counts
from biaskit.tables.query import Row
from biaskit.tables.sets import ANALYSIS, TABLES

PROMPTS = 50
MOST_NAMED = 3
ROUNDING = 1e-9
"""Relative difference of a number of a table that another processor or library may make."""
TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.25, "server": 0.25, "script": 1e-9}
"""How far a log-probability may move with processor, batch and library, by the dtype of the weights.

Batch shapes alone move float32 by up to 6e-5, two machines by less than 1e-3; the others keep 11 and 8 bits.
"""
ROUNDED = ("bfloat16", "float16", "server")
"""Where sums depend on processor and batch so far that they may turn a sample."""
NEGLIGIBLE = math.log(1e-9)
"""Below a probability of 1e-9 the difference of two logarithms says nothing of a share."""
ALPHA = 0.05
"""How often samples of one distribution may be called different, over all cells of a model together."""

Pair = tuple[Row, Any]  # a stored row and the request that it answers


class VerifyArguments(LocalArguments, ApiArguments, total=False):
    """How the models of a run are reached once more."""


@lending
@checked(LocalArguments, ApiArguments, model=TEXT_OR_TEXTS, prompts=POSITIVE)
def verify(
    run: str | Path | RunResult,
    *,
    prompts: int = PROMPTS,
    seed: int | None = None,
    ask: bool = True,
    model: Any = (),
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    **options: Unpack[VerifyArguments],
) -> Verification:
    """Check a stored run, and query its models again for a random sample of its answers.

    >>> bk.verify(probed, ask=False, watcher=bk.Silent()).outcome
    'agrees'

    Args:
        run: a run's folder, or a result; no row is added or changed.
        prompts: prompts or texts of each model to query again, chosen at random.
        seed: of the choice; by default another one each time, which the result names.
        ask: False queries no model.
        model: a spec or `bk.model(...)` that replaces the run's only model; LABEL=SPEC for one of several.
        out: another file for the result than verification.json in the run's folder.
        watcher: sees the progress.

    Returns the verification: `outcome` (agrees, differs, not-checked) and `checks`, the same for rows, lists,
    tables, models and answers. Raises `BiaskitError` where there is no run or an argument does not fit.
    """
    path = run_path(run)
    manifest = read_manifest(path)
    kind, models = manifest.kind, manifest.models
    seed = secrets.randbelow(2**31) if seed is None else seed
    specs = _specs(list(models), [model] if isinstance(model, str) else model)
    target = expanded(out) if out is not None else path / FILE
    check_place(target)
    imported, seen = bool(manifest.imported), watcher or LineWatcher()
    if ask and not imported:
        _confirm({label: entry.spec for label, entry in models.items() if label not in specs}, seen)
    design = manifest.design()
    row_check, drawn = _check_rows(path, kind, kind.finder(manifest, design), prompts if ask else 0, seed)
    table_checks, rows_digest = _check_tables(path, kind, seen) if manifest.shard.whole else ([], "")
    checks = [row_check, _check_lists(manifest.resolved), *table_checks]
    if ask and imported:
        checks.append(_not_checked("texts", "imported texts: no model to query"))
    elif ask:
        again = _Again(kind, design, options, seen, seed)
        for label, entry in models.items():
            checks += again.checks(label, specs.get(label, entry.spec), entry, drawn.get(label, ()))
    verification = Verification(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
        prompts=prompts if ask else 0,
        versions=versions(),
        rows_digest=rows_digest,
        checks=tuple(checks),
    )
    check_place(target)  # again: a model may have answered for an hour
    write_or_refuse(target, (verification.model_dump_json(indent=1) + "\n").encode("utf-8"))
    return verification


def _specs(labels: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Label → the spec that stands for the manifest's. Raises `UsageError`."""
    specs = {}
    for text in texts:
        label, spec = split_label(text)
        if len(labels) == 1 and (spec == text or spec.startswith(IN_MEMORY)):
            label = labels[0]
        if label not in labels:
            raise UsageError(f"--model {hide_urls(text)}: write LABEL=SPEC with one of {', '.join(labels)}.")
        specs[label] = spec
    return specs


def _confirm(stated: Mapping[str, str], watcher: Watcher) -> None:
    """Ask for a yes: a folder from somebody else may name any file or server as its model."""
    foreign = []
    for label, spec in stated.items():
        if spec not in ("demo", "demo-base") and not spec.startswith(IN_MEMORY):  # what no command opens
            foreign.append(f"{label} = {hide_urls(spec)}")
    if foreign:
        watcher.confirm(f"The run names its models itself: {', '.join(foreign)}.")


def _checked(name: Any, faults: Sequence[str], fine: str, label: str = "") -> Check:
    """Make a check that differs where anything is at fault: first faults are named, the others counted."""
    more = f"; and {len(faults) - MOST_NAMED:,} more" if len(faults) > MOST_NAMED else ""
    text = "; ".join(faults[:MOST_NAMED]) + more if faults else fine
    return Check(name=name, outcome="differs" if faults else "agrees", text=text, model=label)


def _not_checked(name: Any, text: str, label: str = "") -> Check:
    return Check(name=name, outcome="not-checked", text=text, model=label)


# --- without a model ---------------------------------------------------------------------------------------


def _check_rows(
    run: Path, kind: Measurement, find: Any, cells: int, seed: int
) -> tuple[Check, dict[str, list[Pair]]]:
    """Check each row against its checksum, its study and its key, and draw by model those to ask again.

    The draw follows from the seed and the keys, whatever the order of the rows. `find`: the kind's `finder`;
    None for imported texts, which answer no request.
    """
    path = rows_file(run, kind.name)
    if not path.is_file():
        return _checked("rows", [f"there is no {path.name}"], ""), {}
    reading, faults, n_unknown = Reading(), list[str](), 0
    keys: dict[str, list[str]] = {}  # model → its sound rows
    for row in read_rows(path, skip_bad=True, reading=reading):
        label, request = (None, None) if find is None else find(row) or ("", None)
        if label == "":
            n_unknown += 1
            continue
        fault = kind.fault(row, request)
        if fault is None and request is not None and row["key"] != request.key:
            fault = "its prompt, words or model were different when it was sent"
        if fault is not None:
            faults.append(fault if request is None else f"line {reading.line}: {fault}")
        elif label is not None:
            keys.setdefault(label, []).append(row["key"])
    if reading.n_twice:
        faults.insert(0, f"{count(reading.n_twice, 'row')} there twice")
    if reading.n_skipped:
        faults.insert(0, f"{count(reading.n_skipped, 'line')} not as written")
    fine = f"{count(reading.n_rows, 'row')}, each as written and with the key of what it answers"
    if n_unknown:
        fine += f"; {n_unknown:,} not part of the question"
    drawn: set[str] = set()
    for sound in keys.values():
        drawn.update(np.random.default_rng(seed).choice(sorted(sound), min(cells, len(sound)), replace=False))
    pairs: dict[str, list[Pair]] = {}
    for row in read_rows(path, skip_bad=True) if drawn else ():
        if row["key"] in drawn:
            label, request = find(row)
            pairs.setdefault(label, []).append((row, request))
    return _checked("rows", faults, fine), pairs


def _check_lists(resolved: Mapping[str, Any]) -> Check:
    """Check the study in the manifest against its digest, and its lists against the files they come from."""
    faults, away = [], []
    study = {name: value for name, value in resolved.items() if name not in ("imported", "notes")}
    if design_digest(study) != resolved["digest"]:
        faults.append("the manifest's study was changed: its digest does not match")
    try:
        list_corpora()  # checks each file's digest
    except CorpusError as error:
        faults.append(str(error))
    for source, stated in resolved["sources"].items():
        try:
            if source_digest(source) != stated:
                faults.append(f"{source} is a different list here")
        except CorpusError:
            away.append(source)
    if away and not faults:
        return _not_checked("lists", f"not on this machine: {', '.join(away)}")
    return _checked("lists", faults, f"{count(len(resolved['sources']), 'list')} as in the manifest")


def _check_tables(run: Path, kind: Measurement, watcher: Watcher) -> tuple[list[Check], str]:
    """Check the tables against their digests and against those made of the rows; with the rows' digest."""
    record: Mapping[str, Any] | None = read_record(run / TABLES / ANALYSIS)
    if record is None:
        return [_not_checked("tables", "the run has no tables yet: `biaskit analyze` makes them")], ""
    try:
        tables = kind.tables(run, record["choices"], watcher)
    except (BiaskitError, LookupError, TypeError) as error:
        return [_not_checked("tables", f"they cannot be rebuilt: {error}")], ""
    analysis = tables.analysis
    if record.get("methods") != analysis["methods"]:
        return [_not_checked("tables", "another version of the methods made the stored tables")], ""
    faults = [] if is_intact(record) else [f"{ANALYSIS} was changed after the analysis"]
    if record.get("rows_digest") != analysis["rows_digest"]:
        faults.append("the rows are not those that the tables were made from")
    # Without the version of biaskit, which is the reader's and not the run's.
    if str(record.get("signature")).partition(" | ")[2] != str(analysis["signature"]).partition(" | ")[2]:
        faults.append(f"the signature in {ANALYSIS} does not match its choices")
    digests = files_of(record)
    from_rows = {f"{name}.csv": content for name, content in tables.content.items()}
    for name in sorted({*digests, *from_rows}):
        file = run / TABLES / name
        stored = file.read_bytes() if file.is_file() else None
        if stored is not None and digest_of(stored) != digests.get(name):
            faults.append(f"{name} is not as it was written")
        if difference := _difference(name, stored, from_rows.get(name)):
            faults.append(difference)
    fine = f"{count(len(from_rows), 'table')} as written, and the same when rebuilt from the rows"
    return [_checked("tables", faults, fine)], str(analysis["rows_digest"])


def _difference(name: str, stored: bytes | None, from_rows: bytes | None) -> str | None:
    """Name the first value in which a stored table differs from that of the rows by more than rounding."""
    import pandas as pd

    if stored == from_rows:
        return None
    if stored is None or from_rows is None:
        return f"{name} {'is missing' if stored is None else 'does not follow from the rows'}"
    try:
        before = pd.read_csv(io.BytesIO(stored), dtype=str, keep_default_na=False)
    except ValueError:
        return f"{name} is not a table"
    after = pd.read_csv(io.BytesIO(from_rows), dtype=str, keep_default_na=False)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return f"{name}: rows or columns differ from the rebuilt table"
    for column in after.columns:
        was, now = (pd.to_numeric(table[column], errors="coerce").to_numpy() for table in (before, after))
        same = (before[column] == after[column]) | np.isclose(was, now, rtol=ROUNDING, atol=0.0)
        for row in np.flatnonzero(~same):
            values = f"{before[column][row]!r} stored, {after[column][row]!r} rebuilt"
            return f"{name}, row {row + 1}, {column}: {values}"
    return None


# --- with the model ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Again:
    """How the models of a run are queried once more."""

    kind: Measurement
    design: Design
    call: VerifyArguments
    watcher: Watcher
    seed: int

    def checks(self, label: str, spec: str, entry: ModelEntry, drawn: Sequence[Pair]) -> Iterator[Check]:
        """Check whether a model is the run's, and whether it answers again as the drawn rows say."""
        name = f"{self.kind.unit}s"
        if entry.where != "scripted":  # what was drawn without a seed comes out otherwise
            drawn = [
                (row, r) for row, r in drawn if not isinstance(r, SampleRequest) or row["seed"] is not None
            ]
        called = "a callable cannot be queried from a command" if spec.startswith("writer:") else ""
        if called or not drawn:
            yield _not_checked(name, called or "it has no row that could be queried again", label)
            return
        requests = [request for _, request in drawn]
        texts = isinstance(requests[0], SampleRequest)
        answers: dict[str, Any] = {}
        try:
            with closing(self._opened(label, spec, entry, texts=texts)) as model:
                faults, identity = [], model.identity
                if identity.fingerprint != entry.fingerprint:
                    details = identity.details.items()
                    apart = [f"{key} {value}" for key, value in details if value != entry.details.get(key)]
                    faults = [f"not the run's model: {', '.join(apart) or identity.fingerprint[:12]}"]
                yield _checked("model", faults, "the same", label)
                batches = (model.plan_samples if texts else model.plan_scores)(requests).batches
                self.watcher.progress(label, 0, len(requests))
                with closing_stream((model.generate if texts else model.score)(batches)) as groups:
                    for group in groups:
                        answers |= {answer.key: answer for answer in group}
                        self.watcher.progress(label, len(answers), len(requests))
        except BiaskitError as error:
            yield _not_checked("model", f"it cannot be queried here: {error}", label)
            return
        pairs = [(row, answers[r.key]) for row, r in drawn if isinstance(answers.get(r.key), Sample | Scored)]
        if not pairs:
            failed = (answer.reason for answer in answers.values() if isinstance(answer, Failed))
            yield _not_checked(name, f"none was answered: {next(failed, 'no answer came')}", label)
            return
        where = {"api": "server", "scripted": "script"}
        dtype = where.get(entry.where, str(entry.details.get("dtype")))
        if texts:
            found = _compare_texts(self.kind, pairs, dtype)
        elif "counts" in pairs[0][0]:
            found = _compare_samples(pairs, dtype, self.seed)
        else:
            found = _compare_points(self.kind, pairs, dtype)
        n_unanswered = len(drawn) - len(pairs)
        text = f"{len(pairs):,} queried again, {found.pop('text')}"
        if n_unanswered:
            text += f"; {n_unanswered:,} not answered"
        outcome: Outcome = "not-checked" if n_unanswered or found["beyond"] else "agrees"
        if found["beyond"] and not (texts and dtype in ROUNDED):
            outcome = "differs"
        yield Check(name=name, outcome=outcome, text=text, model=label, asked=len(pairs), **found)

    def _opened(self, label: str, spec: str, entry: ModelEntry, *, texts: bool) -> Any:
        """Open a model as the run had it: with its dtype, its estimator, its template's date and thoughts."""
        study = self.design.study
        before = entry.batch_size if texts else None  # a batch's shape may turn a sample
        local = local_options(self.call, study, self.call.get("batch_size") or before).as_before(entry)
        how: dict[str, Any] = {"label": label, "local": local}
        if is_api(spec):
            how |= {"api": api_options(self.call, {label: spec}, self.watcher, study), "known": entry}
        return self.kind.open_model(self.design, spec, asked_as=entry, **how)


def _compare_texts(kind: Measurement, pairs: Sequence[tuple[Row, Sample]], dtype: str) -> dict[str, Any]:
    """Compare texts byte for byte. Returns fields of a `Check`, as the next two do."""
    others = []
    for row, answer in pairs:
        if (row["prompt"], row["text"], row["finish_reason"]) != (answer.prompt, answer.text, answer.finish):
            others.append(kind.named(row))
    if not others:
        return {"text": "the same", "beyond": 0}
    why = f" ({dtype}: rounding may change a sample)" if dtype in ROUNDED else ""
    return {"text": f"{len(others):,} differ: {others[0]}{why}", "beyond": len(others)}


def _compare_samples(pairs: Sequence[tuple[Row, Scored]], dtype: str, seed: int) -> dict[str, Any]:
    """Compare samples one by one where the cell's seed repeats them, else counts by one permutation test."""
    if dtype in ("float32", "script"):
        beyond = sum([*map(tuple, row["answers"])] != list(answer.answers or ()) for row, answer in pairs)
        return {"text": f"the samples of {beyond or 'none'} differ", "beyond": beyond}
    tallies = []
    for row, answer in pairs:
        group_of = {e.text: e.group for e in answer.log_probs}
        before = _tally(group_of, row["counts"], row["samples"])
        tallies.append((before, _tally(group_of, answer.counts or {}, answer.samples or 0)))
    p = p_of_same_counts(tallies, seed)
    text = f"samples compared by a permutation test, p = {p:.2g}"
    return {"text": text, "beyond": len(pairs) if p < ALPHA else 0}


def _tally(group_of: Mapping[str, str], counts: Mapping[str, int], samples: int) -> list[int]:
    """Count samples by gender group, and those that name none."""
    named = dict.fromkeys(group_of.values(), 0)
    for text, n in counts.items():
        named[group_of[text]] += n
    return [*named.values(), samples - sum(named.values())]


def _compare_points(kind: Measurement, pairs: Sequence[tuple[Row, Scored]], dtype: str) -> dict[str, Any]:
    """Compare log-probabilities, or lists of them, within the tolerance of the run's dtype."""
    tolerance = TOLERANCES.get(dtype, TOLERANCES["bfloat16"])
    farthest = [max(_distances(row, answer, kind.named(row)), default=(0.0, "")) for row, answer in pairs]
    largest, where = max(farthest)
    beyond = sum(distance > tolerance for distance, _ in farthest)
    text = f"largest difference {largest:.1e}, tolerance {tolerance:g} ({dtype})"
    if beyond:
        text += f"; {beyond:,} above it, most at {where}"
    known = largest if math.isfinite(largest) else None
    return {"text": text, "beyond": beyond, "largest": known, "tolerance": tolerance}


def _distances(row: Row, answer: Scored, where: str) -> Iterator[tuple[float, str]]:
    """Yield how far each log-probability of a row is from today's, and where that is."""
    if row["prompt"] != answer.prompt:
        yield math.inf, f"{where}: the prompt has changed"
    elif answer.listed is not None:
        for before in {*row["listed"], *answer.listed}:
            then, now = (dict(listed.get(before, ())) for listed in (row["listed"], answer.listed))
            # A token that only one list has stands at the end of the other's.
            ends = [min(listed.values(), default=-math.inf) for listed in (then, now)]
            for token in {*then, *now}:
                yield _distance(then.get(token, ends[0]), now.get(token, ends[1])), f"{where}: {token!r}"
    else:
        stored = {(e["group"], e["text"]): e["log_prob"] for e in row["target_words"]}
        for e in answer.log_probs:
            yield _distance(stored.get((e.group, e.text)), e.high), f"{where}: {e.text!r}"


def _distance(before: float | None, after: float | None) -> float:
    low, high = sorted(-math.inf if log is None else log for log in (before, after))
    return 0.0 if high < NEGLIGIBLE else high - low
