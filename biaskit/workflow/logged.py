"""What `biaskit import RUN LOG.eval` does: logs of Inspect as a run of one's own (docs/integrations.md)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from biaskit.arguments import PATH, checked
from biaskit.errors import RunError, UsageError
from biaskit.exchange.inspect_import import LoggedRun, is_log, read_logs
from biaskit.inputs import expanded
from biaskit.progress import Watcher, watching
from biaskit.runs.folder import check_run_folder
from biaskit.runs.merge import store_rows
from biaskit.runs.store import RowWriter
from biaskit.workflow.analyze import analyse, result_of
from biaskit.workflow.result import RunResult


def are_logs(files: Sequence[str | Path]) -> bool:
    """Whether files are logs of Inspect and not answers of a batch service, by their content.

    What is no file is no log: whoever reads the answers says so.
    """
    found = [expanded(file).is_file() and is_log(expanded(file)) for file in files]
    if any(found) and not all(found):
        raise UsageError(
            "Some of the files are logs of Inspect and some are not: import them one after another."
        )
    return bool(found) and all(found)


@checked(logs=PATH)
def import_log(run: str | Path, *logs: str | Path, watcher: Watcher | None = None) -> RunResult:
    """Make a run of logs of Inspect that `biaskit export --to inspect` or a task `biaskit/…` wrote.

    Args:
        run: a new folder.
        logs: .eval or .json; of one run: its models and bias types.
        watcher: sees the progress; by default it is shown on stderr.

    Returns the run's result; its warnings begin with what the logs do not hold. Raises `RunError` with one
    line for a log that is broken, of another task or of another run, and for a folder that is there already.
    """
    if not logs:
        raise UsageError("Name at least one log.")
    path = expanded(run)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(f"{path} is there already: logs become a run in a new folder.")
    check_run_folder(path)
    with watching(watcher) as seen:
        logged = read_logs([expanded(log) for log in logs])
        was_there = path.exists()
        try:
            _store(path, logged)
            notes = analyse(path, logged.choices, watcher=seen)
        except BaseException:
            # A run that was not made leaves nothing: all that is in a new folder is this import's.
            shutil.rmtree(path, ignore_errors=True)
            if was_there:
                path.mkdir()
            raise
    return result_of(path, [*logged.notes, *notes])


def _store(path: Path, logged: LoggedRun) -> None:
    engine = logged.manifest["engine"]
    skip_bad = bool(logged.manifest["resolved"]["study"].get("skip_bad_lines", False))
    store_rows(path, logged.manifest, logged.rows[engine], skip_bad=skip_bad)
    if logged.rows["continuations"]:
        with RowWriter(path, "continuations", skip_bad=skip_bad) as writer:
            writer.append_all(logged.rows["continuations"])
