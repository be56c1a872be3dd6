"""What `biaskit analyze recorded:NAME` does: copy a recorded corpus into a run."""

from __future__ import annotations

from pathlib import Path

from biaskit.common.files import data_dir
from biaskit.corpora.sources import load_corpus
from biaskit.errors import UsageError, nearest
from biaskit.runs.folder import run_folder
from biaskit.runs.manifest import read_manifest
from biaskit.runs.merge import store_rows
from biaskit.runs.store import read_rows, rows_file

RECORDED = "recorded:"  # what the name of a recorded corpus begins with: `recorded:demo-base`


def recorded_run(spec: str, *others: object, out: str | Path | None = None) -> Path:
    """Copy the rows and the manifest of `recorded:NAME` into a run of one's own, ready to be analysed."""
    if others:
        raise UsageError(f"{spec} cannot be merged with other runs: analyze it alone.")
    name = spec.removeprefix(RECORDED)
    shipped = load_corpus("recorded")  # held against its digests
    known = sorted({Path(file.path).parent.name for file in shipped.files})
    if name not in known:
        raise UsageError(
            f"There is no recorded corpus {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    source = data_dir("corpora") / "recorded" / name
    manifest = read_manifest(source)
    question = [manifest.resolved["digest"], list(manifest.models)]
    with run_folder("recorded", [name], question, out) as run:
        # What was shipped was not asked here: it is no answer that another run takes over.
        manifest.recorded = name
        store_rows(run, manifest, read_rows(rows_file(source, "personas")))
        return run
