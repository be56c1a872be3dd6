"""What `biaskit pairs` and `bk.pairs` do: score pairs of sentences, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from biaskit.arguments import checked
from biaskit.corpora.rows import given_list
from biaskit.measures.pairs.design import resolve
from biaskit.measures.pairs.printing import pair_document
from biaskit.measures.pairs.study import PairsStudy
from biaskit.report.render.document import Document
from biaskit.report.result import RunResult, table_property
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, RunArguments, overrides_of, run_study
from biaskit.study.config import load_as
from biaskit.tables.sets import read_set

if TYPE_CHECKING:
    import pandas as pd

_PRINTED = ("pair_groups", "tests")


@dataclass(frozen=True, repr=False)
class PairsResult(RunResult):
    """Read a run of `pairs`: which of two sentences that differ in gender a model finds more probable.

    >>> paired
    PairsResult('paired': mine, 2 pairs)
    """

    headline = "pair_groups"

    pair_scores = table_property("pair_scores")
    pair_groups = table_property("pair_groups")

    def document(self) -> Document:
        """Make what the command prints: a table of languages, one of stereotypes, notes, the signature.

        >>> len(paired.document().tables)
        1
        """
        tables = read_set(self.path, _PRINTED).rows()
        return pair_document(tables, self.warnings, self.analysis()["signature"])


class PairsArguments(RunArguments, total=False):
    """How probabilities are obtained.

    What is measured:
        estimator: auto, or exact; of API models selected-ids or echo.
    """

    estimator: str | None


@lending
@checked(PairsArguments, *OF_RUNS)
def pairs(
    *models: Any,
    study: str = "pairs",
    pairs: str | Path | pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    out: str | Path | None = None,
    **options: Unpack[PairsArguments],
) -> PairsResult:
    """Measure which sentence of each pair a model finds more probable: two that differ in gender alone.

    >>> import json
    >>> from pathlib import Path
    >>> said = {"She nurses.": -9.0, "He nurses.": -10.0, "She welds.": -12.0, "He welds.": -10.5}
    >>> _ = Path("pairs.jsonl").write_text(json.dumps({"log_probs": said}))
    >>> listed = [{"female": "She nurses.", "male": "He nurses.", "direction": "female"}]
    >>> listed += [{"female": "She welds.", "male": "He welds.", "direction": "male"}]
    >>> paired = bk.pairs("mine=scripted:pairs.jsonl", pairs=listed, out="paired", watcher=bk.Silent())
    >>> paired.pair_scores["log_ratio"].tolist()
    [1.0, -1.5]

    Args:
        models: as `bk.probe` takes them; each must give the probability of a whole sentence.
        study: a shipped study or a path to a TOML file.
        pairs: in place of the study's list a file, a DataFrame or a list of dicts with female and male and,
            where there are any, item, diverse, stereotype, direction, language and prefix.
        out: the run's folder; by default one named after the question. The same call continues a run.

    Returns a `PairsResult`, whose tables are DataFrames and files of the run's folder. Raises `BiaskitError`
    where a model, a study or an argument does not exist or fit; its message says what to do.
    """
    given, keys = None, dict(options.get("settings") or {})
    if pairs is not None:
        source = given_list(pairs, "pairs")
        named, given = (source, None) if isinstance(source, str) else ("in memory", source)
        keys = {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": "", "pairs": named, **keys}
    overrides = overrides_of(PairsStudy, study, {"estimator": options.get("estimator")})
    loaded = load_as(PairsStudy, study, {**overrides, **keys})
    result: PairsResult = run_study(resolve(loaded, given), models, out, options)
    return result


RESULT = PairsResult
