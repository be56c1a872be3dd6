"""What `biaskit verify` and `bk.verify` do: a stored run held against itself and against its model."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from biaskit.arguments import TEXT, TEXT_OR_TEXTS, checked
from biaskit.errors import RunError, UsageError
from biaskit.files import may_write
from biaskit.inputs import digest_of_file, expanded
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.options import Dtype
from biaskit.models.spec import split_label
from biaskit.progress import Watcher, watching
from biaskit.provenance import versions
from biaskit.runs.manifest import COMPARISON, MANIFEST, read_manifest
from biaskit.runs.store import rows_file
from biaskit.runs.verification import FILE, Verification, check_place, write_verification
from biaskit.study.keys import ANALYSIS_KEYS
from biaskit.tables.sets import TABLES
from biaskit.workflow.ask_again import Asking
from biaskit.workflow.calls import CallOptions
from biaskit.workflow.result import RunResult, run_path
from biaskit.workflow.stored_checks import Tables, check_corpora, check_question
from biaskit.workflow.verified_rows import engine_of, look_at_rows

CELLS = 50


@checked(model=TEXT_OR_TEXTS, by=TEXT)
def verify(
    run: str | Path | RunResult,
    *,
    cells: int = CELLS,
    seed: int | None = None,
    ask: bool = True,
    model: str | Sequence[str] = (),
    by: str = "",
    out: str | Path | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    api_key_env: str | Sequence[str] | None = None,
    endpoint_name: str | None = None,
    max_cost: float | None = None,
    price: str | None = None,
    tokenizer: str | None = None,
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
        by: who verifies, as they want to be called; no name is taken from the machine.
        out: another file for verification.json, where the run's folder is not to be written.
        device, dtype: how local models run; by default with the dtype of the run.
        api_key_env, endpoint_name, max_cost, price, tokenizer: as `probe` takes them.
        watcher: sees the progress.

    Returns the verification: `outcome` is agrees, differs or not-checked, `checks` say of what
    (docs/reading.md#verify). Raises `BiaskitError` with one line to act on.
    """
    given = locals()
    path = run_path(run)
    manifest = read_manifest(path)
    if manifest["engine"] not in ANALYSIS_KEYS:
        what = "a comparison" if manifest["engine"] == COMPARISON else "no run of an engine"
        raise RunError(f"{path} is {what}, which holds no rows: name one of its runs.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    specs = _specs(manifest, [model] if isinstance(model, str) else model)
    target = expanded(out) if out is not None else path / FILE
    check_place(target)
    if out is None and not may_write(path):
        raise RunError(f"{path} cannot be written: name a file for the verification, --out FILE.json.")
    with watching(watcher) as seen:
        if ask:
            _agreed_to(manifest, specs, seen)
        files = dict(_digests(path, manifest))
        engine = engine_of(manifest)
        tables = Tables.of(path, manifest, engine.design)
        looked = look_at_rows(path, manifest, engine, cells if ask else 0, seed)
        found = [*looked.checks(imported=bool(manifest["resolved"].get("imported")))]
        found += [check_question(manifest), check_corpora(manifest), *tables.check(seen)]
        if ask:
            call = replace(CallOptions.of(given), watcher=None)
            found += Asking(manifest, engine, call, specs, seed, seen).checks(looked)
    digest = str(tables.made.analysis.get("rows_digest", "")) if tables.made else ""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    whole = Verification(
        tuple(found), seed, cells if ask else 0, now, by, machine(), versions(), files, digest
    )
    write_verification(target, whole)
    return whole


def _agreed_to(manifest: Mapping[str, Any], specs: Mapping[str, str], watcher: Watcher) -> None:
    """A folder from somebody else may name any file or server as its model: that needs a yes."""
    if manifest["resolved"].get("imported"):
        return
    named = {label: str(entry["spec"]) for label, entry in manifest["models"].items() if label not in specs}
    shown = ", ".join(f"{label} = {hide_urls(spec)}" for label, spec in named.items() if spec != "demo")
    if shown:
        watcher.confirm(f"The run names its models itself: {shown}.")


def _specs(manifest: Mapping[str, Any], given: Sequence[str]) -> dict[str, str]:
    """Label → the spec that stands for the manifest's. Raises `UsageError`."""
    labels, found = list(manifest["models"]), {}
    for text in given:
        label, spec = split_label(text)
        if label == hide_urls(text) and len(labels) == 1:
            label = labels[0]
        if label not in labels:
            raise UsageError(f"--model {hide_urls(text)}: write LABEL=SPEC with one of {', '.join(labels)}.")
        found[label] = spec
    return found


def _digests(run: Path, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """SHA-256 of the files that are verified."""
    rows = rows_file(run, manifest["engine"])
    for file in (run / MANIFEST, rows, *sorted((run / TABLES).glob("*.csv")), run / TABLES / "analysis.json"):
        if file.is_file():
            yield file.relative_to(run).as_posix(), digest_of_file(file)


def machine() -> dict[str, Any]:
    """The kind of this machine: no name of it, none of its user."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
