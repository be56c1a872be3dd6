"""What a run hands back: its tables as DataFrames, and what a careful reader must know about them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from biaskit.arguments import PATH, as_called, fits
from biaskit.common.foreign import visible
from biaskit.common.wording import count, short
from biaskit.errors import COST_CAP, RunError, TableError, UsageError, nearest
from biaskit.progress import ModelPlan
from biaskit.report.content import Content
from biaskit.report.findings import BETWEEN, first_about
from biaskit.report.render.document import Document
from biaskit.report.render.generic import tables_of
from biaskit.report.render.html import Printed
from biaskit.report.stored import stored_content
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.shards import refuse_shard
from biaskit.runs.store import find_run
from biaskit.tables.io import empty_table
from biaskit.tables.schema import SCHEMAS
from biaskit.tables.sets import read_set

if TYPE_CHECKING:
    import pandas as pd


SHOWN_MODELS = 3
MOST_SHOWN = 3


def table_property(name: str) -> pd.DataFrame:
    """Make a public table an attribute of a result (for type checkers its value), read when asked for.

    Its text is `read` of tables.toml, with the columns between what its numbers are and the example.
    """
    about, _, example = SCHEMAS[name].read.partition("\n")
    columns = [column for part in SCHEMAS[name].parts for column in part.names]
    doc = f"{about}\n\nColumns: {', '.join(columns)}.\n\n{example}"
    return cast("pd.DataFrame", property(lambda result: result.table(name), doc=doc))


@dataclass(frozen=True, repr=False)
class RunResult(Printed):
    """Holds a run's tables and what a careful reader must know about them.

    Every table is a DataFrame with one row per combination of its first columns, read from
    `path / "tables"` when it is asked for. Shares, probabilities and coverage (probability on the target
    words) are fractions from 0 to 1; `ci_low` and `ci_high` are a 95 % interval; a difference is the first
    minus the second of its name (`female_minus_male`). An undefined number is NaN, with the reason in the
    column `reason`. A table that the study does not make has no rows. A missing or changed table is a
    `RunError`. A notebook shows the printed tables.

    Attributes:
        path: the run's folder.
        warnings: what a careful reader must know about the numbers, a sentence each.
        failed_models: model label → why it was not queried, or not to the end.
        failed: model label → reason → number of prompts without an answer.
        plans: what each model was still to be sent.
    """

    path: Path
    warnings: tuple[str, ...] = ()
    failed_models: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    plans: tuple[ModelPlan, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "warnings", tuple(map(as_called, self.warnings)))

    headline = ""  # the table that `--format csv` prints

    def table(self, name: str) -> pd.DataFrame:
        """Read a public table by its name; it has no rows where the study does not make it.

        Raises `TableError` for a name that no table has, and `RunError` where there is no run (any more).

        >>> probed.table("probe_prompts").shape
        (8, 34)
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
            refuse_shard(self.path, read_manifest(self.path).shard)
            raise
        if table is not None:
            return table
        manifest = read_manifest(self.path)
        resolved = manifest.resolved
        if "contrast" in resolved:
            first, second = self.analysis()["choices"].get("contrast") or resolved["contrast"]
            return empty_table(name, groups=resolved["groups"], contrast=(first, second))
        return empty_table(name, scoped=bool(resolved.get("templates")))

    tests = table_property("tests")

    @property
    def complete(self) -> bool:
        """Tell whether everything that this call sent was answered and stored.

        >>> probed.complete
        True
        """
        return not self.failed_models and not self.failed

    @property
    def capped(self) -> bool:
        """Tell whether the cost limit stopped a model: a higher one goes on.

        >>> probed.capped
        False
        """
        return any(why.startswith(COST_CAP) for why in self.failed_models.values())

    def analysis(self) -> dict[str, Any]:
        """Read how the stored tables were made (analysis.json): choices, signature, digest of the rows.

        >>> probed.analysis()["signature"].split(" | ")[1]
        'study=occugender'
        """
        return read_set(self.path, ()).analysis

    def document(self) -> Document:
        """Lay out what the command prints: the tables that are `printed`, notes and the signature."""
        shown = read_set(self.path)
        tables = tables_of(read_manifest(self.path).measurement, shown.rows())
        return Document(tuple(tables), self.warnings, str(shown.analysis["signature"]))

    def screen(self) -> Content:
        """Read what findings and figures are made of, from the stored tables.

        >>> [part.measurement for part in probed.screen().parts]
        ['probe']
        """
        return stored_content(self.path)

    def __repr__(self) -> str:
        return visible(f"{type(self).__name__}({str(self.path)!r}: {', '.join(self._summary())})")

    def _lines(self) -> tuple[str, ...]:
        said = first_about(BETWEEN, self.screen()) if (self.path / MANIFEST).is_file() else ()
        return (repr(self), *(finding.text for finding in said[:MOST_SHOWN]))

    def _figure(self) -> bytes:
        from biaskit.report.figures import draw_all

        return next((figure.svg for figure in draw_all(self.screen())), b"")

    def _summary(self) -> Iterator[str]:
        """Yield what a line says of the run: its models, how much was analysed, what to look at."""
        try:
            manifest, analysis = read_manifest(self.path), self.analysis()
        except RunError:
            yield "no tables"
        else:
            models = list(manifest.models)
            yield ", ".join(models) if len(models) <= SHOWN_MODELS else f"{len(models)} models"
            n = analysis.get("n_prompts", analysis.get("n_texts"))
            if n is not None:
                yield count(n, manifest.kind.unit)
        if self.warnings:
            yield count(len(self.warnings), "warning")
            yield from ["weak evidence"] * any(": weak evidence, " in note for note in self.warnings)
        if not self.complete:
            yield "incomplete"


def run_path(run: str | Path | RunResult) -> Path:
    """Find the folder of a run, which is named by it or by a result. Raises `RunError`, `UsageError`."""
    if isinstance(run, RunResult):
        return run.path
    if not fits(run, PATH):
        raise UsageError(
            f"{short(repr(run))} is not a run: give a result, or a run's folder as text or path."
        )
    return find_run(os.fspath(run))
