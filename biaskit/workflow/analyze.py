"""What is done with stored runs of either engine: analyse, load, merge, describe, list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import PATH, checked
from biaskit.common.inputs import expanded
from biaskit.corpora.sources import list_corpora
from biaskit.errors import BiaskitError, RunError, StudyError, UsageError
from biaskit.measurement import KINDS, Measurement, measurement
from biaskit.progress import LineWatcher, Silent, Watcher
from biaskit.report.result import RunResult, run_path
from biaskit.runs.manifest import COMPARISON, MANIFEST, read_manifest
from biaskit.runs.merge import merge_runs
from biaskit.runs.shards import refuse_shard
from biaskit.runs.store import DEFAULT_PARENT, count_rows, list_runs, rows_file
from biaskit.study.config import build_study, load_study, read_study_file, study_names
from biaskit.tables.sets import UnfitError, read_set

if TYPE_CHECKING:
    import pandas as pd


def analyse(
    run: Path, overrides: Mapping[str, Any] | None = None, *, watcher: Watcher | None = None
) -> list[str]:
    """Write every table of a run from its rows, rows between models included; returns the notes."""
    kind = _kind(run)
    refuse_shard(run, read_manifest(run))
    return kind.tables(run, overrides, watcher).write()


def make_fit(runs: Sequence[Path], watcher: Watcher) -> None:
    """Make tables again that are not as they were written, from the rows and with the stored choices.

    Raises `UnfitError` where there are no rows or the choices cannot be trusted, and `RunError` where the
    tables cannot be made.
    """
    for run in runs:
        refuse_shard(run, read_manifest(run))
        try:
            read_set(run)
        except UnfitError as unfit:
            engine = read_manifest(run)["engine"]
            if engine not in KINDS or unfit.analysis is None:
                raise
            if not rows_file(run, engine).is_file():
                raise RunError(
                    f"{unfit.fault}, and there are no rows to rebuild it from: restore {run} from a copy."
                ) from unfit
            watcher.note(
                f"{unfit.fault}. All tables are rebuilt from the rows; edited files are kept as"
                " NAME.changed-N."
            )
            try:
                analyse(run, unfit.analysis.get("choices"), watcher=watcher)
            except BiaskitError as error:
                raise RunError(f"{unfit.fault}, and the tables cannot be rebuilt: {error}") from error


def result_of(run: Path, notes: Sequence[str] = ()) -> RunResult:
    """Make the result object of a run's kind."""
    return _kind(run).result(run, tuple(notes))


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

    Returns a `ProbeResult` or a `PersonasResult`. Raises `RunError` where the folder has no run, or its
    rows were changed.
    """
    from biaskit.measures.personas.recordings import RECORDED, recorded_run

    keys, seen = settings or {}, watcher or LineWatcher()
    if isinstance(run, str) and run.startswith(RECORDED):
        path = recorded_run(run, *shards, out=out)
    elif out is None and not shards:
        path = run_path(run)
    elif out is None:
        raise UsageError("Several runs need --out: the folder their merged rows go to.")
    else:
        how: Any = {"lock": keys.get("lock", "os"), "skip_bad": bool(keys.get("skip_bad_lines", False))}
        path = merge([run_path(each) for each in (run, *shards)], expanded(out), **how, watcher=seen)
    sheets = [labels] if isinstance(labels, str | Path) else list(labels)
    if sheets or gold is not None:
        from biaskit.measures.personas.label import use_labels

        use_labels(path, sheets, gold)
    return result_of(path, analyse(path, keys, watcher=seen))


def merge(
    runs: Sequence[Path],
    out: Path,
    *,
    lock: str = "os",
    skip_bad: bool = False,
    watcher: Watcher | None = None,
) -> Path:
    """Put rows of several runs, or shards, of one engine and one study into a folder of their own."""
    kinds = {_kind(run) for run in runs}
    if len(kinds) > 1:
        raise RunError("Runs of two engines are not merged: `biaskit compare` puts them side by side.")
    if any(read_manifest(run)["resolved"].get("imported") for run in runs):
        raise RunError(
            "Runs of imported texts cannot be merged: put the texts into one file with a model column."
        )
    note = (watcher or Silent()).note
    return merge_runs(runs, out, kinds.pop(), lock=lock, skip_bad=skip_bad, note=note)


def _kind(run: Path) -> Measurement:
    engine = read_manifest(run)["engine"]
    if engine == COMPARISON:
        raise RunError(f"{run} is a comparison, which has no rows: name one of its runs.")
    if engine not in KINDS:
        raise RunError(f"{run} is a run of the engine {engine!r}, unknown to this version of biaskit.")
    return measurement(engine)


def analysis_keys(study: str, run: Path) -> dict[str, Any]:
    """Return the analysis keys that a study file states; `StudyError` if another is not as the run has it."""
    stated = read_study_file(study)
    manifest = read_manifest(run)
    stored = manifest["resolved"]["study"]
    completed = {
        name: {**stored[name], **value}
        if isinstance(value, dict) and isinstance(stored.get(name), dict)
        else value
        for name, value in stated.items()
    }
    of_file = build_study({**stored, **completed}, {}, study).model_dump(mode="json")
    analysis = _kind(run).study.analysis_keys
    for key in (key for key in stated if key not in analysis | {"name", "models"}):
        if (difference := _stated_otherwise(stated[key], of_file[key], stored.get(key))) is not None:
            raise StudyError(
                f"{study}: {key} is {difference[0]!r}, the run's is {difference[1]!r}: start a new run."
            )
    return {key: of_file[key] for key in stated if key in analysis}


def _stated_otherwise(stated: Any, of_file: Any, stored: Any) -> tuple[Any, Any] | None:
    """Find (the file's, the run's) value where they differ in what is `stated`; `of_file`: with defaults."""
    if isinstance(stated, dict) and isinstance(of_file, dict) and isinstance(stored, dict):
        pairs = (_stated_otherwise(stated[name], of_file[name], stored.get(name)) for name in stated)
        return next((pair for pair in pairs if pair is not None), None)
    return None if of_file == stored else (of_file, stored)


def describe_run(path: Path) -> dict[str, Any]:
    """Describe a run as `biaskit runs` shows it: study, models, rows stored of planned, last write."""
    manifest = read_manifest(path)
    engine, models = manifest["engine"], list(manifest["models"])
    about = {"run": str(path), "study": manifest["study"], "models": models, "rows": None, "planned": None}
    if engine == COMPARISON:
        about["study"] = f"comparison of {len(manifest['resolved']['runs'])} runs"
        return about | {"last_write": (path / MANIFEST).stat().st_mtime}
    rows = rows_file(path, engine)
    if engine in KINDS:
        kind, resolved = measurement(engine), manifest["resolved"]
        about["rows"], about["planned"] = kind.progress(path, manifest, kind.read(resolved))
    else:
        about["rows"] = count_rows(rows)
    return about | {"last_write": rows.stat().st_mtime if rows.is_file() else None}


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

    found = []
    for path in list_runs(Path(folder)):
        try:
            found.append(describe_run(path))
        except BiaskitError as error:
            found.append({"run": str(path), "models": [], "reason": str(error)})
    columns = ["run", "study", "models", "rows", "planned", "last_write", "reason"]
    listed = pd.DataFrame(found, columns=columns).astype({"rows": "Int64", "planned": "Int64"})
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

    shipped = [
        (c.name, "corpus", c.year, ", ".join(f.path for f in c.files), c.title) for c in list_corpora()
    ]
    studies = [(name, "study", None, "", load_study(name).summary) for name in study_names()]
    listed = pd.DataFrame([*shipped, *studies], columns=["name", "kind", "year", "files", "title"])
    return listed.astype({"year": "Int64"})
