"""What `biaskit decisions` and `bk.decisions` do: ask for decisions, analyse them, compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from biaskit.arguments import POSITIVE, checked
from biaskit.corpora.rows import Source, given_list
from biaskit.measures.decisions.design import resolve
from biaskit.measures.decisions.printing import tables_of
from biaskit.measures.decisions.study import DecisionsStudy
from biaskit.report.render.document import Document
from biaskit.report.result import RunResult, table_property
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, RunArguments, run_study, stated
from biaskit.study.config import load_as
from biaskit.tables.sets import read_set

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class DecisionsResult(RunResult):
    """Read a run of `decisions`: whether one case gets another decision when the person is another.

    >>> hired
    DecisionsResult('hired': boss, 4 prompts)
    """

    headline = "decision_groups"

    decisions = table_property("decisions")
    groups = table_property("decision_groups")
    gaps = table_property("decision_gaps")
    order = table_property("decision_order")

    def document(self) -> Document:
        """Make what the command prints: groups, gaps and the smallest ratio, notes, the signature.

        >>> len(hired.document().tables)
        1
        """
        tables = read_set(self.path).rows()
        return Document(tuple(tables_of(tables)), tuple(self.warnings), str(self.analysis()["signature"]))


class DecisionsArguments(RunArguments, total=False):
    """What is decided.

    What is measured:
        jobs: of the cases, separated by commas.
        n_cases: cases per job, the first of the list.
        n_people: in all, as many of each sex and race, drawn by the study's seed.
        estimator: auto, or exact, top-k or sampling; of API models selected-ids, echo, top-k or sampling.
    """

    jobs: str | None
    n_cases: int | None
    n_people: int | None
    estimator: str | None


@lending
@checked(DecisionsArguments, *OF_RUNS, n_cases=POSITIVE, n_people=POSITIVE)
def decisions(
    *models: Any,
    study: str = "hiring",
    cases: str | Path | pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    people: str | Path | pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    questions: str | Path | Sequence[Mapping[str, object]] | None = None,
    out: str | Path | None = None,
    **options: Unpack[DecisionsArguments],
) -> DecisionsResult:
    """Measure whether the same case gets another decision when the person is a woman, a man, of another race.

    >>> boss = bk.writer("boss", lambda prompts: ["Yes" if "Ann" in p else "No" for p in prompts])
    >>> cases = [{"case": f"CV {n}", "text": f"{n} years at a mill."} for n in (1, 2)]
    >>> people = [{"sex": "female", "name": "Ann Lee"}, {"sex": "male", "name": "Bob Lee"}]
    >>> asked = [{"name": "hire", "text": "Would you hire [NAME]? Answer Yes or No."}]
    >>> lists = {"cases": cases, "people": people, "questions": asked}
    >>> hired = bk.decisions(boss, **lists, out="hired", watcher=bk.Silent())
    >>> hired.gaps[["contrast", "gap"]].values.tolist()
    [['sex', 1.0]]

    Args:
        models: as `bk.probe` takes them.
        study: a shipped study or a path to a TOML file.
        cases: a file, a DataFrame or a list of dicts with case, text and job; a text may have slots.
        people: the same with sex or race and name; without name people are stated.
        questions: a .toml file of wordings, or a list of dicts.
        out: the run's folder; by default one named after the question. The same call continues a run.

    Returns a `DecisionsResult`, whose tables are DataFrames and files of the run's folder. Raises
    `BiaskitError` where a model, a list or an argument does not exist or fit; its message says what to do.
    """
    keys: dict[str, Any] = {} if people is None else {"n_people": None}  # the study's number is of its list
    keys |= stated(**{name: options.get(name) for name in ("jobs", "n_cases", "n_people", "estimator")})
    given: dict[str, Source] = {}
    for name, listed in stated(cases=cases, people=people, questions=questions).items():
        given[name] = source = given_list(listed, name)
        keys |= {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": ""}
        keys[name] = source if isinstance(source, str) else "in memory"
    overrides = {**keys, **dict(options.get("settings") or {})}
    loaded = load_as(DecisionsStudy, study, overrides)
    result: DecisionsResult = run_study(resolve(loaded, given), models, out, options)
    return result


RESULT = DecisionsResult
