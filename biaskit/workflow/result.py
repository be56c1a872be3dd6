"""What a run hands back: its tables as DataFrames, and what a careful reader must know about them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.errors import RunError
from biaskit.progress import ModelPlan
from biaskit.report.render.document import Document
from biaskit.tables.io import read_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunResult(ABC):
    """A run's tables and what a careful reader must know about them.

    The DataFrames are the files in `path / "tables"`: shares and probabilities are fractions in [0, 1],
    differences are signed as their names say, an undefined number is NaN with its `reason` beside it.
    """

    path: Path
    warnings: tuple[str, ...] = ()
    failed_models: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # label → reason → number
    plans: tuple[ModelPlan, ...] = ()

    headline = ""
    """The table that `--format csv` prints and a notebook shows."""

    def table(self, name: str) -> pd.DataFrame:
        """A public table by name, such as `tests`; an error where the run has none of it."""
        file = self.path / "tables" / f"{name}.csv"
        if not file.exists():
            raise RunError(f"{self.path} has no table {name}: this study does not make it.")
        return read_table(file)

    @property
    def tests(self) -> pd.DataFrame:
        """Every named contrast with interval, effect size, p-value and Holm-adjusted p-value."""
        return self.table("tests")

    @property
    def complete(self) -> bool:
        """Whether everything that was asked in this call has its row."""
        return not self.failed_models and not self.failed

    def analysis(self) -> dict[str, Any]:
        """How the stored tables were made: choices, signature, digest of the rows (analysis.json)."""
        made: dict[str, Any] = json.loads((self.path / "tables" / "analysis.json").read_text("ascii"))
        return made

    @abstractmethod
    def document(self) -> Document:
        """The paper's tables with notes and signature, for a renderer."""

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.warnings)
        shown = self.table(self.headline).to_html()
        return f"<p>{escape(str(self.path))}</p><ul>{notes}</ul>{shown}"
