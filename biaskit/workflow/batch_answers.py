"""What `biaskit import` does: the answers that a batch service gave become rows (docs/large-models.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import PATH, checked
from biaskit.errors import RunError, UsageError
from biaskit.foreign import visible
from biaskit.inputs import expanded
from biaskit.models.options import Account, LocalOptions
from biaskit.models.spec import open_generator, open_scorer
from biaskit.personas.sampling.draws import draw_texts
from biaskit.personas.sampling.merging import what_is_open as open_draws
from biaskit.personas.sampling.stored_design import read_design as read_personas
from biaskit.probe.merging import n_open as open_cells
from biaskit.probe.stored_design import read_design as read_probe
from biaskit.progress import Watcher, watching
from biaskit.runs.manifest import read_manifest
from biaskit.runs.session import Outcome, Session
from biaskit.runs.shards import shard_of
from biaskit.runs.store import count_rows, read_rows, rows_file
from biaskit.wording import count
from biaskit.workflow.batch_requests import form_of
from biaskit.workflow.probe import fill_probe, scoring_of
from biaskit.workflow.result import RunResult, run_path

if TYPE_CHECKING:
    from biaskit.models.api.answer_files import AnswerFiles


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of some files of answers.

    Attributes:
        path: the run's folder.
        added: rows that it has now and had not before.
        stored: answers whose row was there before.
        refused: why an answer is no row → how many.
        unknown: names of answers that are to no question of the run.
        left: questions that are still to be asked, at least.
        short: answers that hold fewer texts than were asked for; `--batch-size 1` asks for one at a time.
        notes: all of it in sentences.
    """

    path: Path
    added: int
    stored: int
    refused: Mapping[str, int]
    unknown: tuple[str, ...]
    left: int
    short: int
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every answer was used, now or before."""
        return not self.refused and not self.unknown and not self.short


@checked(answers=PATH)
def import_answers(
    run: str | Path | RunResult,
    *answers: str | Path,
    accept_drift: bool = False,
    watcher: Watcher | None = None,
) -> Imported:
    """Put the answers to a run's requests (`write_requests`) in, through the same checks as live answers.

    Args:
        run: the run's folder, or its result.
        answers: JSON Lines, plain or .gz: OpenAI's output and error files, vLLM's run-batch output, rows of
            Ray's processors, or answers with `custom_id` beside them.
        accept_drift: take answers of several models.
        watcher: sees the progress; by default it is shown on stderr.

    Returns what became of them. An answer that is missing, failed or not to be believed is no row, and the
    next `write_requests` asks it again. Raises `UsageError` for a file that cannot be read, `RunError` for a
    run that asked no API.
    """
    if not answers:
        raise UsageError("Name at least one file of answers.")
    from biaskit.models.api.answer_files import AnswerFiles

    path = run_path(run)
    manifest = read_manifest(path)
    models = {label: entry for label, entry in manifest["models"].items() if entry.get("where") == "api"}
    if not models:
        raise RunError(f"{path} asked no model behind an API: there is nothing to import into it.")
    files = AnswerFiles.of([expanded(one) for one in answers])
    known = _answered_by(path, manifest["engine"])
    files.any_model = accept_drift
    files.choose_names({name for label in models for name in known.names.get(label, ())})
    with watching(watcher) as seen:
        outcome = _fill(path, manifest, models, files, accept_drift=accept_drift)
        for label, why in outcome.failed_models.items():
            seen.note(f"{label}: {why}")
    return _imported(path, manifest, files, known)


def _fill(
    path: Path,
    manifest: Mapping[str, Any],
    models: Mapping[str, Mapping[str, Any]],
    files: AnswerFiles,
    *,
    accept_drift: bool,
) -> Outcome:
    from biaskit.models.api.offline import Offline
    from biaskit.models.api.options import ApiOptions

    probe = manifest["engine"] == "probe"
    resolved = manifest["resolved"]
    design: Any = read_probe(resolved) if probe else read_personas(resolved)
    usual: dict[str, Any] = {"scoring": scoring_of(design)} if probe else {}
    offline = Offline(files, form_of(design.study))

    def open_one(label: str, spec: str, known: Mapping[str, Any], account: Account, **how: Any) -> Any:  # noqa: ARG001
        # Continuations open the model anew, as a plain sampler: the endpoint is the same.
        name = models[label]["details"]["endpoint"]
        api = ApiOptions(endpoint_name=name, offline=offline)
        local = LocalOptions(batch_size=known.get("batch_size"))
        opener: Any = open_scorer if probe else open_generator
        return opener(spec, label=label, local=local, api=api, known=known, **(usual | how))

    specs = {label: entry["spec"] for label, entry in models.items()}
    session: Session[Any] = Session(path, specs, open_one, accept_drift=accept_drift)
    session.command, session.shard, session.reuse = manifest["command"], shard_of(manifest), False
    session.outcome.offline = offline
    if probe:
        return fill_probe(design, dict(resolved), session)
    return draw_texts(design, session, dict(resolved))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a run had stored before an import."""

    n_rows: int
    names: Mapping[str, set[str]]  # label → models that answered
    keys: Collection[str]


def _answered_by(run: Path, engine: str) -> _Known:
    from biaskit.runs.drift import model_of

    names: dict[str, set[str]] = {}
    keys = set()
    for name in _files_of(engine):
        path = rows_file(run, name)
        for row in read_rows(path, skip_bad=True) if path.exists() else ():
            keys.add(row["key"])
            if isinstance(by := row.get("answered_by"), str) and isinstance(label := row.get("model"), str):
                names.setdefault(label, set()).add(model_of(by))
    return _Known(len(keys), names, keys)


def _files_of(engine: str) -> tuple[str, ...]:
    return ("probe", "continuations") if engine == "probe" else (engine,)


def _imported(path: Path, manifest: Mapping[str, Any], files: AnswerFiles, known: _Known) -> Imported:
    from biaskit.models.api.offline import row_of_name

    engine = manifest["engine"]
    added = sum(count_rows(rows_file(path, name)) for name in _files_of(engine)) - known.n_rows
    rest = [one for one in files.identifiers if one not in files.read and one not in files.refused]
    stored = [one for one in rest if row_of_name(one) in known.keys]
    unknown = tuple(one for one in rest if row_of_name(one) not in known.keys)
    left, later, _ = _left(path, engine)
    refused = Counter({why: len(places) for why, places in files.broken.items()})
    refused.update(why.rpartition(" (")[0] for why in files.refused.values())
    notes = [
        f"{count(files.n_lines, 'line')} read: {count(added, 'row')} added to {path},"
        f" {count(len(stored), 'answer')} stored before"
    ]
    notes += _said_of_trouble(files, unknown)
    if left:
        still = count(left, "text" if engine == "personas" else "cell")
        notes.append(f"{still} still to be asked: the same command with --write-requests")
        notes += [f"and up to {later:,} more may follow (Algorithm 5)"] if later else []
    else:
        notes.append(f"every question has its row: biaskit analyze {path}")
    return Imported(
        path,
        added,
        len(stored),
        dict(refused),
        unknown,
        left,
        files.n_short,
        tuple(map(visible, notes)),
    )


def _left(path: Path, engine: str) -> tuple[int, int, int]:
    manifest = read_manifest(path)
    if engine == "probe":
        return open_cells(path, manifest, read_probe(manifest["resolved"]), skip_bad=True), 0, 0
    return open_draws(path, manifest, read_personas(manifest["resolved"]), skip_bad=True)


def _said_of_trouble(files: AnswerFiles, unknown: Sequence[str]) -> list[str]:
    """A sentence for each kind of answer that is no row, with the places of the first."""
    notes = []
    reasons: dict[str, list[str]] = {}
    for said in files.refused.values():
        why, _, where = said.rpartition(" (")
        reasons.setdefault(why, []).append(where.removesuffix(")"))
    for why, places in reasons.items():
        notes.append(f"{count(len(places), 'answer')} not believed, {why}: {_some(places)}")
    for why, places in files.broken.items():
        notes.append(f"{count(len(places), 'line')} left out, {why}: {_some(places)}")
    if files.n_twice:
        notes.append(f"{count(files.n_twice, 'answer')} stood there twice: of each the first good one counts")
    if files.n_short:
        notes.append(
            f"{count(files.n_short, 'answer')} hold fewer texts than were asked for: --batch-size 1, in"
            " another --out, asks for one at a time"
        )
    if files.n_unsaid:
        notes.append(
            f"{count(files.n_unsaid, 'answer')} did not say which model gave them: taken for the one asked"
        )
    if unknown:
        notes.append(
            f"{count(len(unknown), 'answer')} to no question of this run (custom_id {_some(unknown)})"
        )
    return notes


def _some(places: Sequence[str]) -> str:
    from biaskit.models.api.answer_files import MOST_NAMED

    shown = "; ".join(places[:MOST_NAMED])
    return f"{shown} and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else shown
