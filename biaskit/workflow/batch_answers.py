"""What `biaskit import` does: the answers that a batch service gave become rows (howto/large-models)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import PATH, checked
from biaskit.common.foreign import visible
from biaskit.common.inputs import expanded
from biaskit.common.wording import count, first_words
from biaskit.errors import RunError, UsageError
from biaskit.measurement import Measurement
from biaskit.models.entry import ModelEntry
from biaskit.models.options import Account, LocalOptions
from biaskit.models.spec import is_api
from biaskit.progress import LineWatcher, Watcher
from biaskit.report.result import RunResult, run_path
from biaskit.runs.drift import model_of
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import read_rows, rows_file

if TYPE_CHECKING:
    from biaskit.models.api.answer_files import AnswerFiles

MOST_NAMED = 3  # lines that a message names by their place


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of some files of answers."""

    path: Path  # the run's folder
    added: int  # rows that it has now and had not before
    stored: int  # answers whose row was there before
    refused: Mapping[str, int]  # why lines or answers are not used → how many
    unknown: tuple[str, ...]  # names of answers to no question of the run
    left: int  # questions that are still to be asked, at least
    notes: tuple[str, ...]  # all of it in sentences

    @property
    def complete(self) -> bool:
        """Whether every answer was used, now or before."""
        return not self.refused and not self.unknown


@checked(answers=PATH)
def import_answers(
    run: str | Path | RunResult,
    *answers: str | Path,
    accept_model_change: bool = False,
    watcher: Watcher | None = None,
) -> Imported:
    """Add the answers of a batch service to a run, with the same checks as live answers.

    >>> bk.import_answers(probed, "answers.jsonl")
    Traceback (most recent call last):
    ...
    biaskit.errors.RunError: probed ...

    Args:
        run: the folder or the result of a run that was made with `write_requests`.
        answers: files of JSON Lines, plain or .gz: OpenAI's output and error files, vLLM's run-batch output,
            rows of Ray's processors, or answers with `custom_id` beside them.
        accept_model_change: True takes answers of several models.
        watcher: sees the progress; by default it is shown on stderr.

    Returns counts of what became of the answers: `added`, `stored`, `refused`, `unknown`, `left`. A missing,
    failed or implausible answer makes no row, and the next `write_requests` sends its request again. Raises
    `UsageError` for a file that cannot be read, `RunError` for a run that queried no API.
    """
    from biaskit.models.api.answer_files import AnswerFiles

    if not answers:
        raise UsageError("Name at least one file of answers.")
    path = run_path(run)
    manifest = read_manifest(path)
    kind = manifest.kind
    if not any(is_api(entry.spec) for entry in manifest.models.values()):
        raise RunError(f"{path} has no API model: there is nothing to import into it.")
    files = AnswerFiles.read(list(map(expanded, answers)))
    keys_before, names = _stored(path, kind)
    if not accept_model_change:  # of the models stored, or of the one that gave most answers
        of_answers = Counter(line.model for line in files.lines.values() if line.model)
        files.names = frozenset(names or dict(of_answers.most_common(1)))
    seen = watcher or LineWatcher()
    for label, why in _fill(path, kind, manifest, files, accept_model_change).failed_models.items():
        seen.note(f"{label}: {why}")
    return _imported(path, kind, files, keys_before)


def _fill(path: Path, kind: Measurement, manifest: Manifest, files: AnswerFiles, mixed: bool) -> Outcome:
    """Run the command of a run once more, with the files in the place of its server."""
    from biaskit.models.api.offline import Offline
    from biaskit.models.api.options import ApiOptions

    design = manifest.design()
    offline = Offline(files, design.study.sent_as)

    def open_one(label: str, spec: str, known: ModelEntry | None, _: Account, **how: Any) -> Any:
        # Continuations open the model anew, as a plain sampler: the endpoint is the same.
        api = ApiOptions(endpoint_name=str(manifest.models[label].details["endpoint"]), offline=offline)
        local = LocalOptions(batch_size=known.batch_size if known else None)
        return kind.open_model(design, spec, label=label, local=local, api=api, known=known, **how)

    specs = {label: entry.spec for label, entry in manifest.models.items() if is_api(entry.spec)}
    session: Session[Any] = Session(path, specs, open_one, accept_model_change=mixed)
    session.command, session.shard, session.reuse = manifest.command, manifest.shard, False
    session.outcome.offline = offline
    return kind.ask(design, session)


def _stored(run: Path, kind: Measurement) -> tuple[set[str], set[str]]:
    """Read the keys of a run's rows, and the names of the models that answered them."""
    keys, names = set(), set()
    for name in (kind.name, *kind.beside):
        path = rows_file(run, name)
        for row in read_rows(path, skip_bad=True) if path.exists() else ():
            keys.add(row["key"])
            if isinstance(by := row.get("answered_by"), str):
                names.add(model_of(by))
    return keys, names


def _imported(path: Path, kind: Measurement, files: AnswerFiles, keys_before: set[str]) -> Imported:
    added = len(_stored(path, kind)[0] - keys_before)
    unasked = [name for name in files.lines if name not in files.asked_for]
    # A call is named after the row that comes of it: its key, or the key and a number.
    unknown = tuple(name for name in unasked if name[:32] not in keys_before)
    n_stored = len(unasked) - len(unknown)
    notes = [
        f"{count(files.n_lines, 'line')} read: {count(added, 'row')} added to {path},"
        f" {count(n_stored, 'answer')} stored before"
    ]
    for why, places in files.problems.items():
        named = first_words(list(places), MOST_NAMED, "; ")
        notes.append(f"{count(len(places), 'line')} not used, {why}: {named}")
    if unknown:
        n = count(len(unknown), "answer")
        notes.append(f"{n} to no request of this run (custom_id {first_words(unknown, MOST_NAMED, '; ')})")
    manifest = read_manifest(path)
    still = kind.what_is_open(path, manifest, manifest.design(), skip_bad=True)
    if still.left:
        notes.append(f"{count(still.left, kind.unit)} still open: rerun the command with --write-requests")
        if still.later:
            notes.append(f"and up to {still.later:,} more may follow (Algorithm 5)")
    else:
        notes.append(f"all requests are answered: biaskit analyze {path}")
    refused = {why: len(places) for why, places in files.problems.items()}
    return Imported(path, added, n_stored, refused, unknown, still.left, tuple(map(visible, notes)))
