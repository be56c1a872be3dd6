"""What is done with stored runs of any kind: analyse, load, merge, describe, list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import PATH, checked
from biaskit.common.inputs import expanded
from biaskit.corpora.sources import list_corpora
from biaskit.errors import BiaskitError, RunError, StudyError, UsageError
from biaskit.measurement import KINDS
from biaskit.progress import LineWatcher, Watcher
from biaskit.report.result import RunResult, run_path
from biaskit.runs.collection import Collection, gather
from biaskit.runs.manifest import COMPARISON, MANIFEST, read_manifest
from biaskit.runs.merge import merge
from biaskit.runs.shards import refuse_shard
from biaskit.runs.store import DEFAULT_PARENT, count_rows, list_runs, rows_file
from biaskit.study.config import build_study, load_study, read_study_file, study_names
from biaskit.tables.sets import UnfitError, read_set

if TYPE_CHECKING:
    import pandas as pd


def rebuild_tables(
    run: Path, overrides: Mapping[str, Any] | None = None, *, watcher: Watcher | None = None
) -> list[str]:
    """Write every table of a run from its rows, rows between models included; returns the notes."""
    manifest = read_manifest(run)
    kind = manifest.kind
    refuse_shard(run, manifest.shard)
    return kind.tables(run, overrides, watcher).write()


def make_fit(runs: Sequence[Path], watcher: Watcher) -> None:
    """Make tables again that are not as they were written, from the rows and with the stored choices.

    Raises `UnfitError` where there are no rows or the choices cannot be trusted, and `RunError` where the
    tables cannot be made.
    """
    for run in runs:
        manifest = read_manifest(run)
        refuse_shard(run, manifest.shard)
        try:
            read_set(run)
        except UnfitError as unfit:
            if manifest.measurement not in KINDS or unfit.analysis is None:
                raise
            fault = unfit.fault
            if not rows_file(run, manifest.measurement).is_file():
                raise RunError(
                    f"{fault}, and there are no rows to rebuild it from: restore {run} from a copy."
                ) from unfit
            watcher.note(
                f"{fault}. All tables are rebuilt from the rows; edited files are kept as NAME.changed-N."
            )
            try:
                rebuild_tables(run, unfit.analysis.get("choices"), watcher=watcher)
            except BiaskitError as error:
                raise RunError(f"{fault}, and the tables cannot be rebuilt: {error}") from error


def gathered(
    runs: Sequence[str | Path | RunResult], command: str, watcher: Watcher | None = None
) -> Collection:
    """Read the stored tables of runs, made again where they do not fit. Raises `UsageError` without a run."""
    if not runs:
        raise UsageError(f"Name a run, or several: biaskit {command}.")
    paths = list(map(run_path, runs))
    make_fit(paths, watcher or LineWatcher())
    return gather(paths)


def result_of(run: Path, notes: Sequence[str] = ()) -> RunResult:
    """Make the result object of a run's kind."""
    return read_manifest(run).kind.result(run, tuple(notes))


@checked(shards=PATH)
def load(
    run: str | Path | RunResult,
    *shards: str | Path,
    settings: Mapping[str, Any] | None = None,
    labels: str | Path | Sequence[str | Path] = (),
    gold: str | Path | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> RunResult:
    """Make a stored run's tables again from its rows (`biaskit analyze`); needs no model.

    >>> bk.load("probed", watcher=bk.Silent()).groups.equals(probed.groups)
    True

    Args:
        run: a run's folder, an earlier result, or recorded:demo-base, texts that biaskit ships.
        shards: other runs of the same study; the rows of all go to `out`.
        settings: keys of the analysis that replace the study's, such as `{"variant": "released"}`.
        labels: sheets that people filled (`bk.label`), which correct shares of women, also in later calls;
            "none" takes them out again.
        gold: a sheet that a person filled; `labels` is then a file of a model's labels.
        out: the folder of the merged or recorded rows.
        watcher: sees the progress; by default it is shown on stderr, with `bk.Silent()` nothing is.

    Returns the result of its kind, such as a `ProbeResult`. Raises `RunError` where the folder has no run,
    or its rows were changed.
    """
    from biaskit.measures.personas.recordings import RECORDED, recorded_run

    keys, seen = settings or {}, watcher or LineWatcher()
    if isinstance(run, str) and run.startswith(RECORDED):
        path = recorded_run(run, *shards, out=out)
    elif out is not None:
        paths, lock = [run_path(each) for each in (run, *shards)], keys.get("lock", "os")
        skip_bad = bool(keys.get("skip_bad_lines", False))
        path = merge(paths, expanded(out), lock=lock, skip_bad=skip_bad, note=seen.note)
    elif shards:
        raise UsageError("Several runs need --out: the folder their merged rows go to.")
    else:
        path = run_path(run)
    sheets = [labels] if isinstance(labels, str | Path) else list(labels)
    if sheets or gold is not None:
        from biaskit.measures.personas.label import use_labels

        use_labels(path, sheets, gold)
    return result_of(path, rebuild_tables(path, keys, watcher=seen))


def analysis_keys(study: str, run: Path) -> dict[str, Any]:
    """Return the analysis keys that a study file states; `StudyError` if another is not as the run has it."""
    manifest, stated = read_manifest(run), read_study_file(study)
    stored = manifest.resolved["study"]
    completed = dict(stated)  # what a file leaves out of a table is as the run has it
    for name, value in stated.items():
        if isinstance(value, dict) and isinstance(stored.get(name), dict):
            completed[name] = {**stored[name], **value}
    of_file = build_study({**stored, **completed}, {}, study).model_dump(mode="json")
    analysis, chosen = manifest.kind.study.analysis_keys, {}
    for key, value in stated.items():
        if key in analysis:
            chosen[key] = of_file[key]
        elif key not in ("name", "models") and (pair := _difference(value, of_file[key], stored.get(key))):
            raise StudyError(f"{study}: {key} is {pair[0]!r}, the run's is {pair[1]!r}: start a new run.")
    return chosen


def _difference(stated: Any, of_file: Any, stored: Any) -> tuple[Any, Any] | None:
    """Find (the file's, the run's) value where they differ in what is `stated`; `of_file`: with defaults."""
    if isinstance(stated, dict) and isinstance(of_file, dict) and isinstance(stored, dict):
        pairs = (_difference(stated[name], of_file[name], stored.get(name)) for name in stated)
        return next(filter(None, pairs), None)
    return None if of_file == stored else (of_file, stored)


def describe_run(path: Path) -> dict[str, Any]:
    """Describe a run as `biaskit runs` shows it: study, models, rows stored of planned, last write."""
    manifest = read_manifest(path)
    about: dict[str, Any] = {"run": str(path), "study": manifest.study, "models": list(manifest.models)}
    about |= {"rows": None, "planned": None}
    written = path / MANIFEST
    if manifest.measurement == COMPARISON:
        about["study"] = f"comparison of {len(manifest.resolved['runs'])} runs"
    else:
        written = rows_file(path, manifest.measurement)
        about["rows"] = count_rows(written)
    if manifest.measurement in KINDS:
        about["rows"], about["planned"] = manifest.kind.progress(path, manifest, manifest.design())
    return about | {"last_write": written.stat().st_mtime if written.is_file() else None}


def describe_runs(folder: Path) -> Iterator[dict[str, Any]]:
    """Describe every run of a folder; one that cannot be read has a `reason`."""
    for path in list_runs(folder):
        try:
            yield describe_run(path)
        except BiaskitError as error:
            yield {"run": str(path), "models": [], "reason": str(error)}


@checked(folder=PATH)
def runs(folder: str | Path = str(DEFAULT_PARENT)) -> pd.DataFrame:
    """List the stored runs of a folder, the one written last at the end.

    >>> bk.runs(".")[["run", "models", "rows", "planned"]].values.tolist()[0]
    ['probed', 'mine', 8, 8]

    Args:
        folder: with the runs; by default biaskit-runs.

    Returns one row per run: run (its folder), study, models (separated by commas), rows (stored) and planned
    (missing for a comparison), last_write (UTC), reason (why a folder cannot be read, else missing).
    """
    import pandas as pd

    columns = ["run", "study", "models", "rows", "planned", "last_write", "reason"]
    listed = pd.DataFrame(describe_runs(Path(folder)), columns=columns).astype(
        {"rows": "Int64", "planned": "Int64"}
    )
    last_write = pd.to_datetime(listed["last_write"], unit="s", utc=True)
    return listed.assign(models=listed["models"].map(", ".join), last_write=last_write)


def corpora() -> pd.DataFrame:
    """List the shipped corpora and studies; `biaskit corpora NAME` shows all of one.

    >>> bk.corpora().query("kind == 'study'")["name"].tolist()[:3]
    ['fields-of-study', 'framing', 'gasp']

    Returns one row per corpus and study: name, kind (corpus or study), year of its paper and files (both of
    a corpus alone), title.
    """
    import pandas as pd

    shipped: list[tuple[object, ...]] = []
    for corpus in list_corpora():
        files = ", ".join(file.path for file in corpus.files)
        shipped.append((corpus.name, "corpus", corpus.year, files, corpus.title))
    shipped += [(name, "study", None, "", load_study(name).summary) for name in study_names()]
    listed = pd.DataFrame(shipped, columns=["name", "kind", "year", "files", "title"])
    return listed.astype({"year": "Int64"})
