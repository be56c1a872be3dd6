"""The kinds of measurement: each is a folder of `measures/`, found here by its name (architecture#kinds).

What lower layers need of a kind is data, its tables.toml (`specs`); what it does is asked by name when it is
needed (`Measurement`), so that `--help` and a small report import no kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from biaskit.errors import RunError, UsageError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from biaskit.compare.comparison import Comparison
    from biaskit.compare.validity import Measure
    from biaskit.exchange.card import CardTable
    from biaskit.exchange.lm_eval_task import Asked
    from biaskit.exchange.results import Named
    from biaskit.models.entry import ModelEntry
    from biaskit.progress import Watcher
    from biaskit.records import SampleRequest, ScoreRequest
    from biaskit.report.content import Content, Shown
    from biaskit.report.figures import FigureKind
    from biaskit.report.findings.sentence import Sentence
    from biaskit.report.findings.workforce import Slope
    from biaskit.report.questions import QuestionId
    from biaskit.report.render.document import PaperTable, TitledTable
    from biaskit.report.result import RunResult
    from biaskit.runs.collection import Part, StoredRun
    from biaskit.runs.designs import Design
    from biaskit.runs.manifest import Manifest
    from biaskit.runs.session import Outcome, Session
    from biaskit.runs.start import Open
    from biaskit.study.keys import Study
    from biaskit.tables.query import Row, Tables
    from biaskit.tables.sets import TableSet

KINDS = (  # folders of measures/, in the order of commands, pages and tables; a new kind is a line here
    "probe",
    "pairs",
    "decisions",
    "personas",
)
ACROSS = ("agree",)
"""Folders that ask nothing: they relate what the kinds found."""
FOLDERS = (*KINDS, *ACROSS)
"""Every folder of measures/, in the order of tables and pages."""

Found = tuple[str, "ScoreRequest | SampleRequest"]
"""A model's label, and the request that a row of it answers."""
F = TypeVar("F", bound=Callable[..., Any])


def in_file(file: str) -> Callable[[F], F]:
    """Let a method be the function of its name in measures/NAME/FILE.py; without one the body counts."""

    def decorate(default: F) -> F:
        @functools.wraps(default)
        def member(self: Measurement, *args: Any, **kwargs: Any) -> Any:
            function = getattr(self.file(file), default.__name__, None)
            return default(self, *args, **kwargs) if function is None else function(*args, **kwargs)

        return cast("F", member)

    return decorate


class Measurement:
    """What the frame asks a kind; a folder must have what is marked *, the rest has a default here."""

    def __init__(self, name: str, about: Mapping[str, Any]) -> None:
        """`about`: the facts of its tables.toml."""
        self.name = name
        self.about: str = about.get("about", "")  # its line in --help
        self.help: str = about.get("help", self.about)  # the first sentence of its command's help
        self.examples_of_use: tuple[str, ...] = tuple(about.get("examples", ()))  # command lines
        self.standard: str = about.get("study", name)  # the study where none is named
        self.unit: str = about.get("unit", "prompt")  # what a row answers
        self.each: str = about.get("each", "")  # the table with a row for each of these
        self.question: str = about.get("question", "say")  # where the page lists what was asked
        self.asked: str = about.get("asked", "templates")  # the list of the manifest that this is
        self.listed: str = about.get("listed", self.asked)  # what the page calls these
        self.published: tuple[str, str] = tuple(about.get("published", ("", "")))
        """The table and the column of the share that cards and other formats take."""
        self.over: str = about.get("over", "")  # what the interval of that share is over
        self.beside: tuple[str, ...] = tuple(about.get("beside", ()))  # its other files of rows
        self.prompts: bool = about.get("prompts", True)  # whether the page shows prompts
        self.lacking: str = about.get("lacking", "")  # what a page without it lacks
        self.shows_missing: bool = about.get("shows_missing", False)  # whether tables list what has no row

    def file(self, name: str) -> ModuleType | None:
        """Import a file of the folder; None where it has none."""
        module = f"biaskit.measures.{self.name}.{name}"
        return import_module(module) if find_spec(module) else None

    def _lacks(self, function: str, file: str) -> NotImplementedError:
        return NotImplementedError(f"measures/{self.name}/{file}.py needs {function}(): every kind has it.")

    @property
    def study(self) -> type[Study]:
        """The class of its studies: STUDY of study.py."""  # *
        study: type[Study] = import_module(f"biaskit.measures.{self.name}.study").STUDY
        return study

    @property
    def result(self) -> type[RunResult]:
        """The class of its results: RESULT of command.py."""
        from biaskit.report.result import RunResult

        result: Any = getattr(self.file("command"), "RESULT", RunResult)
        return cast("type[RunResult]", result)

    # --- asking ---------------------------------------------------------------------------------------

    @in_file("design")
    def resolve(self, study: Any) -> Design:
        """Read and check the lists that a study names."""  # *
        raise self._lacks("resolve", "design")

    @in_file("design")
    def read(self, resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Design:
        """Read the design that a manifest describes; `overrides` may set analysis keys only."""  # *
        raise self._lacks("read", "design")

    @property
    def stored(self) -> type[BaseModel]:
        """The form of a design in a manifest: Stored of design.py."""
        stored: type[BaseModel] = import_module(f"biaskit.measures.{self.name}.design").Stored
        return stored

    @in_file("design")
    def unite(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
        """Make one of two stored designs of a study, in the first's order. Raises `RunError`."""
        raise RunError(f"Runs of `biaskit {self.name}` cannot be merged.")

    @in_file("design")
    def one_part(self, run: StoredRun, other: StoredRun) -> bool:
        """Tell whether two runs of one study asked the same, so that a page shows them together."""
        return False

    @in_file("ask")
    def open_model(self, design: Design, spec: str, *, asked_as: ModelEntry | None = None, **how: Any) -> Any:
        """Open a model as a design needs it, or as its entry in a manifest says it was asked."""  # *
        raise self._lacks("open_model", "ask")

    @in_file("ask")
    def ask(self, design: Design, session: Session[Any]) -> Outcome:
        """Ask what has no row yet."""  # *
        raise self._lacks("ask", "ask")

    @in_file("ask")
    def finder(self, manifest: Manifest, design: Design) -> Callable[[Row], Found | None] | None:
        """Map a stored row to the model and the request that it answers; None: rows answer no request."""
        return None

    @in_file("ask")
    def fault(self, row: Row, request: ScoreRequest | SampleRequest | None) -> str | None:
        """Say what is wrong with a row of a request (None: of texts that were at hand); None: nothing."""
        return None

    @in_file("ask")
    def named(self, row: Row) -> str:
        """Name what a row answers, for a message."""
        return str(row["key"])

    @in_file("ask")
    def what_is_open(self, run: Path, manifest: Manifest, design: Design, *, skip_bad: bool = False) -> Open:
        """Count what a stored run still has to ask."""
        raise RunError(f"Runs of `biaskit {self.name}` take no files of answers.")

    @in_file("ask")
    def progress(self, run: Path, manifest: Manifest, design: Design) -> tuple[int, int | None]:
        """Count what a run has asked, and what it plans (None: nobody knows)."""
        from biaskit.runs.store import count_rows, rows_file

        return count_rows(rows_file(run, self.name)), None

    # --- tables ---------------------------------------------------------------------------------------

    @in_file("analysis")
    def tables(
        self, run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None
    ) -> TableSet:
        """Make every table of a run from its rows, rows between its models included."""  # *
        raise self._lacks("tables", "analysis")

    @in_file("compare")
    def compare(self, comparison: Comparison) -> None:
        """Add tests between the models of several runs, and notes, to the comparison's tables."""

    @in_file("validity")
    def of_jobs(self, tables: Tables, model: str) -> Iterator[Measure]:
        """Yield what its tables measure of a model's jobs, to be held against what others measure."""
        return iter(())

    # --- the page -------------------------------------------------------------------------------------

    @in_file("findings")
    def findings(self, content: Content) -> Iterator[Sentence]:
        """Yield the sentences that its tables allow."""
        return iter(())

    @in_file("findings")
    def measured(self, part: Part) -> Iterator[str]:
        """Yield what stands under a page's title, in place of study and number of answers."""
        return iter(())

    @in_file("findings")
    def slopes(self, content: Content) -> Iterator[Slope]:
        """Yield its slopes on labour statistics: a page judges those of all kinds together."""
        return iter(())

    @in_file("findings")
    def limits(self, parts: Sequence[Part]) -> Iterator[str]:
        """Yield what its numbers cannot show; `parts`: all of a page."""
        return iter(())

    @in_file("findings")
    def not_measured(self, parts: Sequence[Part]) -> Iterator[str]:
        """Yield what its runs could measure too, each with its command; `parts`: all of a page."""
        return iter(())

    @in_file("figures")
    def figures(self) -> Mapping[QuestionId, Sequence[FigureKind]]:
        """Name its kinds of figures under the questions that they answer."""
        return {}

    @in_file("printing")
    def headline(self, part: Part) -> Iterator[TitledTable]:
        """Yield the tables that stand models side by side; without a printing.py those that are `printed`."""
        from biaskit.report.render.generic import tables_of

        return tables_of(self.name, part.tables, part.study)

    @in_file("printing")
    def papers(self, part: Part, between: Mapping[str, Sequence[Row]]) -> Sequence[PaperTable]:
        """Make the LaTeX tables that a paper prints."""
        return ()

    # --- other formats --------------------------------------------------------------------------------

    @in_file("publish")
    def publish(self, run: StoredRun, row: Row) -> Named:
        """Name a share of its table `published`; by the table's keys."""
        from biaskit.exchange.results import Named
        from biaskit.tables.schema import SCHEMAS

        keys = [str(row[key]) for key in SCHEMAS[self.published[0]].keys if key != "model" and row.get(key)]
        return Named(str(row.get("gender") or "female"), "/".join([self.name, *keys]), None, "")

    @in_file("publish")
    def card(self, part: Part) -> CardTable | None:
        """Make the table of a model card; None: it shows what stands models side by side."""
        return None

    @in_file("publish")
    def samples(self, run: StoredRun) -> Iterator[tuple[str, str, Sequence[Row], Row]]:
        """Yield what was answered: model, name of a log, stored rows, and their row of the table `each`."""
        row_of = {row["key"]: row for row in run.tables.get(self.each, ()) if "key" in row}
        for stored in run.rows():
            if stored["key"] in row_of:
                row = row_of[stored["key"]]
                yield row["model"], self.name, [stored], row

    @in_file("lm_eval")
    def tasks(self, run: StoredRun, notes: list[str]) -> Iterator[Asked]:
        """Yield what each model was asked, as tasks of lm-evaluation-harness."""
        return iter(())

    @in_file("examples")
    def examples(self, rows: Iterator[Row], run: StoredRun) -> Shown | None:
        """Choose texts of a run to read; None where it has none."""
        return None


# --- lookup -----------------------------------------------------------------------------------------------


def measurement(name: str) -> Measurement:
    """Find a kind by its name. Raises `UsageError` for another name."""
    if name not in KINDS:
        raise UsageError(f"There is no measurement {str(name)[:60]!r}.{nearest(str(name), KINDS)}")
    return _measurement(name)


def measurements() -> Iterator[Measurement]:
    """Yield every kind, in the order of `KINDS`."""
    return map(_measurement, KINDS)


def folders() -> Iterator[Measurement]:
    """Yield every kind, then what relates them."""
    return map(_measurement, FOLDERS)


def specs() -> Mapping[str, Mapping[str, Any]]:
    """Map each folder to its tables.toml; imports no code."""
    return {name: _spec(name) for name in FOLDERS}


def stated(name: str) -> dict[str, Any]:
    """Unite the tables of one name of every tables.toml, such as [openings]."""
    united: dict[str, Any] = {}
    for spec in specs().values():
        united |= spec.get(name, {})
    return united


@cache
def words(name: str) -> Mapping[str, Any]:
    """Read the words.toml of a folder: what it says, and words that decide its numbers; imports no code."""
    return _toml(name, "words.toml")


@cache
def _spec(name: str) -> Mapping[str, Any]:
    return _toml(name, "tables.toml")


def _toml(name: str, file_name: str) -> Mapping[str, Any]:
    import tomllib
    from pathlib import Path

    found = find_spec(f"biaskit.measures.{name}")
    places = list(found.submodule_search_locations or ()) if found else []
    file = Path(places[0]) / file_name if places else None
    return tomllib.loads(file.read_text("utf-8")) if file and file.is_file() else {}


@cache
def _measurement(name: str) -> Measurement:
    return Measurement(name, _spec(name).get("about", {}))
