"""What a run hands back: its tables as DataFrames, and what a careful reader must know about them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from biaskit.arguments import PATH, as_called, fits
from biaskit.common.foreign import visible
from biaskit.common.wording import count, short
from biaskit.errors import RunError, TableError, UsageError, nearest
from biaskit.progress import ModelPlan
from biaskit.report.render.document import Document
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.shards import refuse_shard
from biaskit.runs.store import find_run
from biaskit.tables.io import empty_table
from biaskit.tables.schema import SCHEMAS
from biaskit.tables.sets import read_set

if TYPE_CHECKING:
    import pandas as pd


SHOWN_ROWS = 20  # rows of a table that a notebook shows
SHOWN_MODELS = 3


def table_property(name: str, doc: str) -> pd.DataFrame:
    """Make a public table an attribute of a result (for type checkers its value), read when asked for."""
    return cast("pd.DataFrame", property(lambda result: result.table(name), doc=doc))


@dataclass(frozen=True, repr=False)
class RunResult(ABC):
    """A run's tables and what a careful reader must know about them.

    Every table is a DataFrame, read from `path / "tables"` when it is asked for. Shares and probabilities are
    fractions in [0, 1]; the sign of a difference is in its name (`female_minus_male`); an undefined number is
    NaN, with the reason in the column `reason` beside it. A table that the study does not make is a DataFrame
    without rows.

    Attributes:
        path: the run's folder.
        warnings: what a careful reader must know about the numbers, a sentence each.
        failed_models: model label → why it was not asked, or not to the end.
        failed: model label → reason → number of questions without an answer.
        plans: what each model was still to be asked.
    """

    path: Path
    warnings: tuple[str, ...] = ()
    failed_models: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    plans: tuple[ModelPlan, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "warnings", tuple(map(as_called, self.warnings)))

    headline = ""  # the table that `--format csv` prints and a notebook shows

    def table(self, name: str) -> pd.DataFrame:
        """Read a public table by its name, such as `tests`; without rows where the study does not make it.

        Raises `TableError` for a name that no table has, and `RunError` where there is no run (any more).
        """
        if name not in SCHEMAS:
            raise TableError(f"There is no table {name!r}.{nearest(str(name), SCHEMAS)}")
        # An empty table says that a run does not make it. Where there is no run, that would be wrong.
        if not (self.path / MANIFEST).is_file():
            raise RunError(
                f"There is no run in {self.path}: a dry run writes nothing, and relative paths start at the"
                f" current folder, {Path.cwd()}."
            )
        try:
            table = read_set(self.path, (name,)).frame(name)
        except RunError:
            refuse_shard(self.path, read_manifest(self.path))
            raise
        if table is not None:
            return table
        manifest = read_manifest(self.path)
        resolved = manifest["resolved"]
        if manifest["engine"] == "probe":
            first, second = self.analysis()["choices"].get("contrast") or resolved["contrast"]
            return empty_table(name, groups=resolved["groups"], contrast=(first, second))
        return empty_table(name, scoped=bool(resolved.get("templates")))

    tests = table_property(
        "tests", "Every contrast with its interval, effect size, p-value and Holm-adjusted p-value."
    )

    @property
    def complete(self) -> bool:
        """Whether everything that this call asked was answered and stored."""
        return not self.failed_models and not self.failed

    def analysis(self) -> dict[str, Any]:
        """Read how the stored tables were made (analysis.json): choices, signature, digest of the rows."""
        return read_set(self.path, ()).analysis

    @abstractmethod
    def document(self) -> Document:
        """Lay out the paper's tables with notes and signature, for a renderer."""

    def __repr__(self) -> str:
        return visible(f"{type(self).__name__}({str(self.path)!r}: {', '.join(self._summary())})")

    def _summary(self) -> Iterator[str]:
        """Yield what a line says of the run: its models, how much was analysed, what to look at."""
        try:
            models, analysis = list(read_manifest(self.path)["models"]), self.analysis()
        except RunError:
            yield "no tables"
        else:
            yield ", ".join(models) if len(models) <= SHOWN_MODELS else f"{len(models)} models"
            sizes = ((analysis.get(f"n_{unit}s"), unit) for unit in ("cell", "text"))
            yield from (count(n, unit) for n, unit in sizes if n is not None)
        if self.warnings:
            yield count(len(self.warnings), "warning")
            yield from ["weak evidence"] * any(": weak evidence, " in note for note in self.warnings)
        if not self.complete:
            yield "incomplete"

    def _repr_html_(self) -> str:
        """Show the line of `repr`, the warnings, and the first rows of the headline table."""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.warnings)
        lines = f"<p>{escape(repr(self))}</p><ul>{notes}</ul>"
        try:
            table = self.table(self.headline)
        except RunError:
            return lines
        rows = table.head(SHOWN_ROWS).to_html(index=False, na_rep="–", float_format="{:.4g}".format)
        part = f"the first {SHOWN_ROWS} of " if len(table) > SHOWN_ROWS else ""
        return f"{lines}{rows}<p>{self.headline}: {part}{count(len(table), 'row')}</p>"


def run_path(run: str | Path | RunResult) -> Path:
    """Find the folder of a run, which is named by it or by a result. Raises `RunError`, `UsageError`."""
    if isinstance(run, RunResult):
        return run.path
    if not fits(run, PATH):
        raise UsageError(
            f"{short(repr(run))} is not a run: give a result, or a run's folder as text or path."
        )
    return find_run(os.fspath(run))
