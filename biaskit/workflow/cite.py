"""What `biaskit cite` and `bk.cite` do: what to name in a publication."""

from __future__ import annotations

from pathlib import Path

from biaskit.corpora.sources import list_corpora, load_corpus
from biaskit.runs.manifest import read_manifest
from biaskit.workflow.result import RunResult, run_path


def cite(run: str | Path | RunResult | None = None) -> str:
    """The signature line of a run, and BibTeX of the papers whose instruments it used.

    Args:
        run: a result or a run's folder; without one, BibTeX of every shipped corpus.

    Returns text: the signature, an empty line, and one entry per paper. Raises `RunError` where there is no
    run. Example: `print(bk.cite(result))`.
    """
    signature, bibtex = references(run)
    return "\n\n".join(([signature] if signature is not None else []) + list(dict.fromkeys(bibtex.values())))


def references(run: str | Path | RunResult | None) -> tuple[str | None, dict[str, str]]:
    """The signature of a run, None without one, and corpus → BibTeX of its paper."""
    if run is None:
        names = [corpus.name for corpus in list_corpora() if corpus.bibtex.strip()]
        return None, _bibtex(names)
    manifest = read_manifest(run_path(run))
    return str(manifest["signature"]), _bibtex(manifest["resolved"]["study"]["papers"])


def _bibtex(names: list[str]) -> dict[str, str]:
    return {name: load_corpus(name).bibtex.strip() for name in names}
