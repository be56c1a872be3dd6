"""What `biaskit analyze recorded:NAME` does: copy a recorded corpus into a run."""

from __future__ import annotations

from pathlib import Path

from biaskit.corpora.sources import load_corpus
from biaskit.errors import UsageError, nearest
from biaskit.files import data_dir
from biaskit.runs.manifest import MANIFEST, merge_compatible, read_manifest, write_manifest
from biaskit.runs.store import RowWriter, default_run_path, read_rows, rows_file

RECORDED = "recorded:"
"""What a recorded corpus is called with: `recorded:demo`."""


def recorded_run(spec: str, out: str | Path | None = None) -> Path:
    """`recorded:NAME` as a run of one's own: its rows and manifest copied, ready to be analysed."""
    name = spec.removeprefix(RECORDED)
    shipped = load_corpus("recorded")  # held against its digests
    known = sorted({Path(file.path).parent.name for file in shipped.files})
    if name not in known:
        raise UsageError(
            f"There is no recorded corpus {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    source = data_dir("corpora") / "recorded" / name
    manifest = read_manifest(source)
    question = [manifest["resolved"]["digest"], list(manifest["models"])]
    run = Path(out) if out is not None else default_run_path("personas", f"recorded-{name}", question)
    with RowWriter(run, "personas") as writer:
        if (run / MANIFEST).exists():
            merge_compatible(run, read_manifest(run)["question"], manifest["question"])
        write_manifest(run, manifest)
        writer.append_all(read_rows(rows_file(source, "personas")))
    return run
