"""Which folder a run lies in: by default one of a name that a person can type, and never somebody else's.

A run of ours is known by its manifest. Rows, tables or a page without one are somebody else's, or of a run
that lost its manifest: neither is written to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from biaskit.common.files import check_file, check_folder, refusal, refuse_link
from biaskit.common.inputs import expanded
from biaskit.common.provenance import digest
from biaskit.errors import RunError
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.shards import WHOLE, Shard
from biaskit.runs.store import DEFAULT_PARENT, LOCK, plain_name, rows_names
from biaskit.runs.usage import USAGE

FOLDERS = ("tables", "figures", "latex")
PAGE, NOTES = "report.html", "notes.txt"
CLAIM = ".name"
"""In a folder that was named by default: the digest of what is asked there."""
MOST_NAMED = 3


def folder_name(study: str, labels: Sequence[str]) -> str:
    """Name a study and its models as a person types them: of a spec no kind, folder, revision or URL."""
    specs = (re.sub(r"^[a-z]+:|@.*|[\\/]+$|\.(gguf|jsonl)$", "", label) for label in labels)
    models = [re.split(r"[\\/]", spec)[-1] for spec in specs]
    if len(models) > MOST_NAMED:
        models[MOST_NAMED - 1 :] = [f"and-{len(models) - MOST_NAMED + 1}-more"]
    return plain_name(re.sub("[^A-Za-z0-9]*-[^A-Za-z0-9]*", "-", "-".join([study, *models])))


@contextmanager
def run_folder(
    study: str,
    labels: Sequence[str],
    asked: object,
    out: str | Path | None = None,
    *,
    dry_run: bool = False,
    shard: Shard = WHOLE,
) -> Iterator[Path]:
    """Choose a run's folder: `out`, else biaskit-runs/STUDY-MODEL, with a digest where another run has that.

    The digest is of what is `asked`, so the same question finds its folder again. The name is taken at once:
    two starts never meet; one that stores nothing gives it back. Shards, which may be of several machines,
    have the digest always.
    """
    if out is not None:
        yield expanded(out)
        return
    name, mark = folder_name(study, labels), digest(asked)[:8]
    plain, apart = DEFAULT_PARENT / name, DEFAULT_PARENT / f"{name}-{mark}"
    claim, made = plain / CLAIM, False
    if shard.whole and not dry_run and not apart.exists():
        with suppress(OSError):  # another run has it; or said where rows are written
            plain.mkdir(parents=True)
            made = bool(claim.write_text(mark, "ascii"))
    ours = claim.is_file() and claim.read_bytes() == mark.encode()
    free = not plain.exists() and not apart.exists()
    try:
        yield plain if shard.whole and (ours or free) else apart
    finally:
        with suppress(OSError):
            if made and list(plain.iterdir()) == [claim]:
                claim.unlink()
                plain.rmdir()
                DEFAULT_PARENT.rmdir()  # where it is empty


def check_run_folder(run: Path) -> None:
    """Refuse a folder that biaskit must not write a run to, before anything is read, asked or written there.

    Raises `RunError` for a path that is no folder, for rows, tables or a page without our manifest, for a
    manifest that is not ours, and for links and folders in the place of a run's files.
    """
    try:
        if not run.exists():
            refuse_link(run)  # a link that leads nowhere
        elif not run.is_dir():
            raise RunError(f"{run} is not a folder: choose another --out.")
        for name in FOLDERS:
            check_folder(run / name)
        rows = [f"{name}{packed}" for name in rows_names() for packed in ("", ".gz")]
        for path in (run / name for name in (MANIFEST, *rows, USAGE, LOCK, PAGE, NOTES)):
            check_file(path)
        if (run / MANIFEST).exists():
            read_manifest(run)
            return
        for path in (run / name for name in (*rows, *FOLDERS, PAGE)):
            # Empty ones are what a start that was killed early leaves.
            if path.exists() and (any(path.iterdir()) if path.is_dir() else path.stat().st_size):
                raise RunError(
                    f"{path} exists, but {run} has no {MANIFEST}: it is not a run, or lost its manifest."
                    " Choose another --out."
                )
    except OSError as error:
        raise refusal(f"{run} cannot be used as a run's folder", error) from error
