"""What `biaskit verify` and `bk.verify` do: a stored run held against itself and against its model."""

from __future__ import annotations

import io
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.arguments import TEXT_OR_TEXTS, checked
from biaskit.common.files import digest_of, files_of, is_intact, read_record
from biaskit.common.inputs import expanded
from biaskit.common.provenance import versions
from biaskit.common.wording import count
from biaskit.corpora.sources import list_corpora, source_digest
from biaskit.errors import BiaskitError, CorpusError, RunError, UsageError
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import closing_stream
from biaskit.models.options import Dtype, LocalOptions
from biaskit.models.spec import is_api, open_generator, open_scorer, split_label
from biaskit.personas.sampling.open_draws import draw_finder
from biaskit.personas.sampling.stored_design import read_design as read_texts
from biaskit.personas.texts.documents import why_not
from biaskit.probe.requests import cell_finder
from biaskit.probe.rows import fault_of
from biaskit.probe.stored_design import read_design as read_cells
from biaskit.progress import Watcher, watching
from biaskit.records import Draw, DrawRequest, Failed, Scored, ScoreRequest
from biaskit.runs.designs import design_digest
from biaskit.runs.manifest import read_manifest
from biaskit.runs.shards import shard_of
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.runs.verification import FILE, Check, Outcome, Verification, check_place, write_verification
from biaskit.stats.same_counts import p_of_same_counts
from biaskit.study.keys import ANALYSIS_KEYS
from biaskit.tables.sets import ANALYSIS, TABLES, TableSet
from biaskit.workflow.calls import CallOptions
from biaskit.workflow.personas import tables_of_texts
from biaskit.workflow.probe import scoring_of, tables_of_probe_run
from biaskit.workflow.result import RunResult, run_path

CELLS = 50
MOST_NAMED = 3
ROUNDING = 1e-9
"""Relative difference of a number of a table that another processor or library may make."""
TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.25, "server": 0.25, "script": 1e-9}
"""How far a log-probability may move with processor, batch and library, by the dtype of the weights.

Batch shapes alone move float32 by up to 6e-5, two machines by less than 1e-3; the others keep 11 and 8 bits.
"""
NEGLIGIBLE = math.log(1e-9)
"""Below a probability of 1e-9 the difference of two logarithms says nothing of a share."""
ALPHA = 0.05
"""How often draws of one distribution may be called different, over all cells of a model together."""

Row = Mapping[str, Any]
Request = ScoreRequest | DrawRequest
Finder = Callable[[Row], tuple[str, Request] | None]


@checked(model=TEXT_OR_TEXTS)
def verify(
    run: str | Path | RunResult,
    *,
    cells: int = CELLS,
    seed: int | None = None,
    ask: bool = True,
    model: str | Sequence[str] = (),
    out: str | Path | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    api_key_env: str | Sequence[str] | None = None,
    endpoint_name: str | None = None,
    max_cost: float | None = None,
    price: str | None = None,
    watcher: Watcher | None = None,
) -> Verification:
    """Hold a stored run against itself, and ask its models some of its cells or texts again.

    No row is added or changed; what is found goes to verification.json in the run's folder.

    Args:
        run: a run's folder, or a result.
        cells: cells or texts of each model that are asked again, drawn at random.
        seed: of the draw; by default another one each time, which the result holds.
        ask: False asks no model.
        model: a spec that stands for the run's only model, or LABEL=SPEC for one of several.
        out: another file for verification.json, where the run's folder is not to be written.
        device, dtype: how local models run; by default with the dtype of the run.
        api_key_env, endpoint_name, max_cost, price: as `probe` takes them.
        watcher: sees the progress.

    Returns the verification: `outcome` is agrees, differs or not-checked, `checks` say of what
    (docs/reading.md#verify). Raises `BiaskitError` with one line to act on.
    """
    call = CallOptions(
        device=device,
        dtype=dtype,
        api_key_env=api_key_env,
        endpoint_name=endpoint_name,
        max_cost=max_cost,
        price=price,
    )
    path = run_path(run)
    manifest = read_manifest(path)
    if manifest["engine"] not in ANALYSIS_KEYS:
        raise RunError(f"{path} is a comparison, which holds no rows: name one of its runs.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    specs = _specs(manifest, [model] if isinstance(model, str) else model)
    target = expanded(out) if out is not None else path / FILE
    check_place(target)
    imported = bool(manifest["resolved"].get("imported"))
    with watching(watcher) as seen:
        # A folder from somebody else may name any file or server as its model: that needs a yes.
        named = {label: str(entry["spec"]) for label, entry in manifest["models"].items()}
        own = [f"{k} = {hide_urls(spec)}" for k, spec in named.items() if k not in specs and spec != "demo"]
        if ask and not imported and own:
            seen.confirm(f"The run names its models itself: {', '.join(own)}.")
        texts = manifest["engine"] == "personas"
        design: Any = read_texts(manifest["resolved"]) if texts else read_cells(manifest["resolved"])
        find = draw_finder(manifest, design) if texts else cell_finder(manifest, design)
        of_rows, drawn = _check_rows(path, manifest, None if imported else find, cells if ask else 0, seed)
        of_tables, rows_digest = _check_tables(path, manifest, seen)
        checks = [of_rows, _check_lists(manifest), *of_tables]
        if ask and imported:
            checks.append(_not_checked("texts", "imported texts: nobody can be asked for them again"))
        elif ask:
            for label in manifest["models"]:
                checks += _ask(
                    manifest, design, label, specs.get(label), drawn.get(label, ()), call, seen, seed
                )
    verification = Verification(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
        cells=cells if ask else 0,
        versions=versions(),
        rows_digest=rows_digest,
        checks=tuple(checks),
    )
    write_verification(target, verification)
    return verification


def _specs(manifest: Mapping[str, Any], given: Sequence[str]) -> dict[str, str]:
    """Label → the spec that stands for the manifest's. Raises `UsageError`."""
    labels, specs = list(manifest["models"]), {}
    for text in given:
        label, spec = split_label(text)
        if label == hide_urls(text) and len(labels) == 1:
            label = labels[0]
        if label not in labels:
            raise UsageError(f"--model {hide_urls(text)}: write LABEL=SPEC with one of {', '.join(labels)}.")
        specs[label] = spec
    return specs


def _checked(name: Any, faults: Sequence[str], fine: str) -> Check:
    """A check that differs where anything is at fault: the first faults by name, the others counted."""
    more = f"; and {len(faults) - MOST_NAMED:,} more" if len(faults) > MOST_NAMED else ""
    text = "; ".join(faults[:MOST_NAMED]) + more if faults else fine
    return Check(name=name, outcome="differs" if faults else "agrees", text=text)


def _not_checked(name: Any, text: str, label: str = "") -> Check:
    return Check(name=name, outcome="not-checked", text=text, model=label)


# --- without a model ---------------------------------------------------------------------------------------


def _check_rows(
    run: Path, manifest: Mapping[str, Any], find: Finder | None, cells: int, seed: int
) -> tuple[Check, dict[str, list[tuple[Row, Any]]]]:
    """Each row against its checksum, its study and its key; and by model those drawn to be asked again.

    The draw follows from the seed and the keys, whatever the order of the rows. `find`: None for imported
    texts, which answer no request.
    """
    path = rows_file(run, manifest["engine"])
    if not path.is_file():
        return _checked("rows", [f"there is no {path.name}"], ""), {}
    reading, faults, unknown = Reading(), list[str](), 0
    keys: dict[str, list[str]] = {}
    for row in read_rows(path, skip_bad=True, reading=reading) if find else ():
        known = find(row) if find else None
        if known is None:
            unknown += 1
            continue
        label, request = known
        fault = fault_of(row, request.expressions) if isinstance(request, ScoreRequest) else why_not(row)
        if fault is None and row["key"] != request.key:
            fault = "its prompt, words or model were others when it was asked"
        if fault is None:
            keys.setdefault(label, []).append(row["key"])
        else:
            faults.append(f"line {reading.line}: {fault}")
    if find is None:
        faults += [why for row in read_rows(path, skip_bad=True, reading=reading) if (why := why_not(row))]
    broken = [f"{count(reading.n_skipped, 'line')} not as written"] if reading.n_skipped else []
    broken += [f"{count(reading.n_twice, 'row')} there twice"] if reading.n_twice else []
    fine = f"{count(reading.n_rows, 'row')}, each as written and with the key of what it answers"
    fine += f"; {unknown:,} not part of the question" if unknown else ""
    wanted: set[str] = set()
    for own in keys.values():
        own.sort()
        places = np.random.default_rng(seed).choice(len(own), min(cells, len(own)), replace=False)
        wanted |= {own[place] for place in places}
    pairs: dict[str, list[tuple[Row, Any]]] = {}
    for row in read_rows(path, skip_bad=True) if find and wanted else ():
        if row["key"] in wanted and find is not None and (known := find(row)) is not None:
            pairs.setdefault(known[0], []).append((row, known[1]))
    return _checked("rows", [*broken, *faults], fine), pairs


def _check_lists(manifest: Mapping[str, Any]) -> Check:
    """The study in the manifest against its digest, and its lists against the files they were read from."""
    resolved, faults, away = manifest["resolved"], [], []
    asked = {name: value for name, value in resolved.items() if name != "imported"}
    if design_digest(asked) != resolved["digest"]:
        faults.append("the manifest's study was changed: its digest is that of another")
    try:
        list_corpora()  # each file held against its digest
    except CorpusError as error:
        faults.append(str(error))
    for source, stated in resolved["sources"].items():
        try:
            if source_digest(source) != stated:
                faults.append(f"{source} is another list here")
        except CorpusError:
            away.append(source)
    if away and not faults:
        return _not_checked("lists", f"not on this machine: {', '.join(away)}")
    return _checked("lists", faults, f"{count(len(resolved['sources']), 'list')} as in the manifest")


def _check_tables(run: Path, manifest: Mapping[str, Any], watcher: Watcher) -> tuple[list[Check], str]:
    """The tables as they were written, and beside those that the rows give; with the digest of the rows."""
    if not shard_of(manifest).whole:
        return [], ""
    record: Mapping[str, Any] | None = read_record(run / TABLES / ANALYSIS)
    if record is None:
        return [_not_checked("tables", "the run has no tables yet: `biaskit analyze` makes them")], ""
    make: Callable[[], TableSet] = (
        (lambda: tables_of_texts(run, record["choices"], watcher=watcher))
        if manifest["engine"] == "personas"
        else (lambda: tables_of_probe_run(run, record["choices"]))
    )
    try:
        made = make()
    except (BiaskitError, LookupError, TypeError) as error:
        return [_not_checked("tables", f"they cannot be made again: {error}")], ""
    if record.get("methods") != made.analysis["methods"]:
        return [_not_checked("tables", "another version of the methods made the stored tables")], ""
    faults = [] if is_intact(record) else [f"{ANALYSIS} was changed after the analysis"]
    if record.get("rows_digest") != made.analysis["rows_digest"]:
        faults.append("the rows are not those that the tables were made of")
    if _choices(record.get("signature")) != _choices(made.analysis["signature"]):
        faults.append(f"{ANALYSIS} has another signature than its choices give")
    stated = files_of(record) or {}
    made_now = {f"{name}.csv": content for name, content in made.content.items()}
    for name in sorted({*stated, *made_now}):
        file = run / TABLES / name
        stored = file.read_bytes() if file.is_file() else None
        if stored is not None and digest_of(stored) != stated.get(name):
            faults.append(f"{name} is not as it was written")
        faults += _differences(name, stored, made_now.get(name))
    fine = f"{count(len(made_now), 'table')} as written, and the same when made again from the rows"
    return [_checked("tables", faults, fine)], str(made.analysis["rows_digest"])


def _choices(signature: object) -> str:
    """A signature without the version of biaskit, which is the reader's and not the run's."""
    return str(signature).partition(" | ")[2]


def _differences(name: str, stored: bytes | None, made: bytes | None) -> list[str]:
    """The first value in which a stored table and the one that the rows give differ by more than rounding."""
    import pandas as pd

    if stored == made:
        return []
    if stored is None or made is None:
        return [f"{name} {'is missing' if stored is None else 'does not follow from the rows'}"]
    try:
        before = pd.read_csv(io.BytesIO(stored), dtype=str, keep_default_na=False)
    except ValueError:
        return [f"{name} is no table"]
    after = pd.read_csv(io.BytesIO(made), dtype=str, keep_default_na=False)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return [f"{name} has other rows or columns than the rows give"]
    for column in after.columns:
        was, now = (pd.to_numeric(table[column], errors="coerce").to_numpy() for table in (before, after))
        same = (before[column] == after[column]) | np.isclose(was, now, rtol=ROUNDING, atol=0.0)
        for row in np.flatnonzero(~same):
            values = f"{before[column][row]!r} stored, {after[column][row]!r} from the rows"
            return [f"{name}, row {row + 1}, {column}: {values}"]
    return []


# --- by asking again ---------------------------------------------------------------------------------------


def _ask(
    manifest: Mapping[str, Any],
    design: Any,
    label: str,
    spec: str | None,
    drawn: Sequence[tuple[Row, Any]],
    call: CallOptions,
    watcher: Watcher,
    seed: int,
) -> Iterator[Check]:
    """Whether a model is the run's, and whether it answers again as the drawn rows say."""
    entry = manifest["models"][label]
    texts = manifest["engine"] == "personas"
    name = "texts" if texts else "cells"
    if texts and entry["where"] != "scripted":
        drawn = [(row, request) for row, request in drawn if row["seed"] is not None]
    if not drawn:
        yield _not_checked(name, "it has no row that could be asked again", label)
        return
    try:
        model = _open(design, label, spec or entry["spec"], entry, call, watcher, texts=texts)
        try:
            same = model.identity.fingerprint == entry["fingerprint"]
            said = "the same" if same else "another model than the run's"
            details = model.identity.details.items()
            others = [f"{key} {value}" for key, value in details if value != entry["details"].get(key)]
            said += "" if same else f": {', '.join(others) or model.identity.fingerprint[:12]}"
            outcome: Outcome = "agrees" if same else "differs"
            yield Check(name="model", outcome=outcome, text=said, model=label)
            requests = [request for _, request in drawn]
            batches = (model.plan_draws if texts else model.plan_scores)(requests).batches
            answers: dict[str, Any] = {}
            watcher.progress(label, 0, len(requests))
            with closing_stream((model.generate if texts else model.score)(batches)) as groups:
                for group in groups:
                    answers |= {answer.key: answer for answer in group}
                    watcher.progress(label, len(answers), len(requests))
        finally:
            model.close()
    except BiaskitError as error:
        yield _not_checked("model", f"it cannot be asked here: {error}", label)
        return
    pairs: list[tuple[Row, Any]] = [
        (row, answers[r.key]) for row, r in drawn if isinstance(answers.get(r.key), Draw | Scored)
    ]
    if not pairs:
        reason = next((one.reason for one in answers.values() if isinstance(one, Failed)), "no answer came")
        yield _not_checked(name, f"none was answered: {reason}", label)
        return
    dtype = {"api": "server", "scripted": "script"}.get(entry["where"], str(entry["details"].get("dtype")))
    if texts:
        check = _compare_texts(pairs, dtype)
    elif "counts" in pairs[0][0]:
        check = _compare_draws(pairs, dtype, design.groups, seed)
    else:
        check = _compare_points(pairs, dtype)
    unanswered = len(drawn) - len(pairs)
    if unanswered and check.outcome == "agrees":
        check = check.model_copy(update={"outcome": "not-checked"})
    said = f"{check.text}; {unanswered:,} not answered" if unanswered else check.text
    yield check.model_copy(update={"model": label, "text": said})


def _open(
    design: Any,
    label: str,
    spec: str,
    entry: Mapping[str, Any],
    call: CallOptions,
    watcher: Watcher,
    *,
    texts: bool,
) -> Any:
    """The model as the run had it: its dtype, its estimator, its template's date."""
    batch_size = entry["batch_size"] if texts else None
    local = LocalOptions(call.device, call.dtype, batch_size, template_date=design.study.template_date)
    more: dict[str, Any] = {"label": label, "local": local.as_before(entry)}
    if is_api(spec):
        more |= {"api": call.api({label: spec}, watcher), "known": entry}
    if texts:
        return open_generator(spec, **more)
    scoring, how = replace(scoring_of(design), next_tokens=0, estimator="auto"), entry["estimator"]
    if isinstance(how, Mapping):
        scoring = replace(scoring, estimator=how["name"], k=how.get("k", scoring.k))
        scoring = replace(scoring, draws=how.get("draws", scoring.draws))
    return open_scorer(spec, **more, scoring=scoring)


def _compare_texts(pairs: Sequence[tuple[Row, Draw]], dtype: str) -> Check:
    """Byte for byte; sums of 16-bit weights depend on processor and batch, and may turn a draw."""
    wrong = [
        f"{row['template_id']}, {row['occupation']}, draw {row['draw']}"
        for row, answer in pairs
        if (row["prompt"], row["text"], row["finish_reason"]) != (answer.prompt, answer.text, answer.finish)
    ]
    rounds = dtype in ("bfloat16", "float16", "server")
    outcome: Outcome = "agrees" if not wrong else "not-checked" if rounds else "differs"
    said = f"{len(pairs):,} asked again, " + (
        f"{len(wrong):,} are others: {wrong[0]}" if wrong else "the same"
    )
    said += f" ({dtype}: a sum that rounds otherwise may turn a draw)" if wrong and rounds else ""
    return Check(name="texts", outcome=outcome, text=said, asked=len(pairs), beyond=len(wrong))


def _compare_draws(
    pairs: Sequence[tuple[Row, Scored]], dtype: str, groups: Sequence[str], seed: int
) -> Check:
    """Draws of a cell one by one where its seed repeats them; else their counts, by one permutation test."""
    if dtype in ("float32", "script"):
        others = [row for row, one in pairs if [*map(tuple, row["answers"])] != list(one.answers or ())]
        beyond = len(others)
        said = f"{len(pairs):,} asked again, the draws of {beyond or 'none'} are others"
    else:
        counted = []
        for row, answer in pairs:
            group_of = {e.text: e.group for e in answer.log_probs}
            both = []
            for counts, draws in ((row["counts"], row["draws"]), (answer.counts or {}, answer.draws or 0)):
                by_group = [sum(n for text, n in counts.items() if group_of[text] == g) for g in groups]
                both.append([*by_group, draws - sum(by_group)])
            counted.append((both[0], both[1]))
        p = p_of_same_counts(counted, seed)
        beyond = len(pairs) if p < ALPHA else 0
        said = f"{len(pairs):,} asked again, p = {p:.2g} that their draws are of one distribution"
    outcome: Outcome = "differs" if beyond else "agrees"
    return Check(name="cells", outcome=outcome, text=said, asked=len(pairs), beyond=beyond)


def _compare_points(pairs: Sequence[tuple[Row, Scored]], dtype: str) -> Check:
    """Log-probabilities, or lists of them, within the tolerance of the run's dtype."""
    tolerance = TOLERANCES.get(dtype, TOLERANCES["bfloat16"])
    far = [max(_distances(row, answer), default=(0.0, "")) for row, answer in pairs]
    largest, where = max(far)
    beyond = sum(distance > tolerance for distance, _ in far)
    said = f"{len(pairs):,} asked again, largest difference {largest:.1e}, tolerance {tolerance:g} ({dtype})"
    said += f"; {beyond:,} beyond it, most {where}" if beyond else ""
    return Check(
        name="cells",
        outcome="differs" if beyond else "agrees",
        text=said,
        asked=len(pairs),
        beyond=beyond,
        largest=largest if math.isfinite(largest) else None,
        tolerance=tolerance,
    )


def _distances(row: Row, answer: Scored) -> Iterator[tuple[float, str]]:
    """How far each log-probability of a row is from today's, and where that is."""
    where = f"{row['bias_type']} template {row['template_id']}, {row['job']}"
    if row["prompt"] != answer.prompt:
        yield math.inf, f"{where}: the prompt is another one now"
    elif answer.listed is not None:
        for before in {*row["listed"], *answer.listed}:
            then, now = (dict(listed.get(before, ())) for listed in (row["listed"], answer.listed))
            # A token that only one list has stands at the end of the other's.
            ends = [min(listed.values(), default=-math.inf) for listed in (then, now)]
            for token in {*then, *now}:
                yield _distance(then.get(token, ends[0]), now.get(token, ends[1])), f"{where}: {token!r}"
    else:
        stored = {(e["group"], e["text"]): e["log_prob"] for e in row["expressions"]}
        for e in answer.log_probs:
            yield _distance(stored.get((e.group, e.text)), e.high), f"{where}: {e.text!r}"


def _distance(before: float | None, after: float | None) -> float:
    low, high = sorted(-math.inf if one is None else one for one in (before, after))
    return 0.0 if high < NEGLIGIBLE else high - low
