"""What `biaskit cite` and `bk.cite` do: what to name in a publication."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from biaskit import __version__
from biaskit.corpora.sources import list_corpora, load_corpus
from biaskit.report.result import RunResult, run_path
from biaskit.runs.claims import papers_of
from biaskit.runs.manifest import read_manifest

BIASKIT = f"""@software{{biaskit,
  author = {{{{biaskit contributors}}}},
  title = {{biaskit: how a language model treats gender, and how sure that is}},
  year = {{2026}},
  version = {{{__version__}}},
  url = {{https://github.com/biaskit/biaskit}},
}}"""


def cite(run: str | Path | RunResult | None = None) -> str:
    """Give the signature line of a run, and BibTeX of biaskit and of the papers whose instruments it used.

    >>> print(bk.cite(probed))  # doctest: +ELLIPSIS
    biaskit=... | study=occugender | ...
    <BLANKLINE>
    @...

    Args:
        run: a result or a run's folder; without one, BibTeX of biaskit and of every shipped corpus.

    Returns text: the signature, biaskit's entry, and one per paper, with empty lines between. Raises
    `RunError` where there is no run.
    """
    signature, bibtex = references(run)
    return "\n\n".join(([signature] if signature is not None else []) + list(bibtex.values()))


def references(run: str | Path | RunResult | None) -> tuple[str | None, dict[str, str]]:
    """Return the signature of a run, None without one; BibTeX of biaskit, and by corpus that of its paper."""
    if run is None:
        signature, names = None, [corpus.name for corpus in list_corpora() if corpus.bibtex.strip()]
    else:
        manifest = read_manifest(run_path(run))
        signature, names = manifest.signature, [*papers_of(manifest.resolved)]
    return signature, {"biaskit": BIASKIT, **bibtex_of(names)}


def bibtex_of(names: Iterable[str]) -> dict[str, str]:
    """Map corpus to BibTeX; an entry that several corpora have stands at the first of them alone."""
    bibtex: dict[str, str] = {}
    cited: set[str] = set()
    for name in names:
        entries = [entry.strip() for entry in re.split(r"\n(?=@)", load_corpus(name).bibtex.strip())]
        if new := [entry for entry in entries if entry not in cited]:
            bibtex[name] = "\n\n".join(new)
            cited.update(new)
    return bibtex
