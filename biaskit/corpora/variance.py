"""How much shares vary in the demo model's own runs: what a plan reckons with before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from biaskit.corpora.rows import SourceLayout, read_source_rows
from biaskit.corpora.sources import SourceRow, label_of, one_of, shown
from biaskit.errors import CorpusError
from biaskit.records import BiasType

OF_CELLS = "corpus:variance/probe.csv"
OF_TEXTS = "corpus:variance/texts.csv"

_CELLS = SourceLayout(
    kind="variance of cells",
    table="group",
    required=(
        *("bias_type", "group", "gender", "share", "coverage"),
        *("var_job", "var_template", "var_residual", "var_difference"),
    ),
    csv=True,
)
_TEXTS = SourceLayout(
    kind="variance of texts",
    table="model",
    required=("model", "share", "associated_share", "var_occupation", "n_occupations"),
    csv=True,
)


@dataclass(frozen=True, slots=True)
class CellVariance:
    """How one gender's share varies over the cells of a group of jobs; variances are squared fractions."""

    bias_type: BiasType
    group: str
    gender: str
    share: float
    coverage: float  # mean over cells
    var_job: float
    var_template: float
    var_residual: float  # without the noise of draws
    var_difference: float  # between templates, of the first minus the second group's share


@dataclass(frozen=True, slots=True)
class TextVariance:
    """How the share of women in a model's texts varies about their share in the labour force."""

    model: str
    share: float
    associated_share: float  # texts that speak of a gender
    var_occupation: float  # of the difference between occupations, without the noise of draws
    n_occupations: int


def load_cell_variance(source: str | Path = OF_CELLS) -> tuple[CellVariance, ...]:
    """One row for each bias type and group of jobs, of a run without instructions."""
    return tuple(
        CellVariance(
            one_of(row, "bias_type", ("explicit", "implicit")),
            label_of(row, "group"),
            label_of(row, "gender"),
            share=_number(row, "share"),
            coverage=_number(row, "coverage"),
            var_job=_number(row, "var_job"),
            var_template=_number(row, "var_template"),
            var_residual=_number(row, "var_residual"),
            var_difference=_number(row, "var_difference"),
        )
        for row in read_source_rows(source, _CELLS).rows
    )


def load_text_variance(source: str | Path = OF_TEXTS) -> tuple[TextVariance, ...]:
    """One row for each model."""
    return tuple(
        TextVariance(
            label_of(row, "model"),
            share=_number(row, "share"),
            associated_share=_number(row, "associated_share"),
            var_occupation=_number(row, "var_occupation"),
            n_occupations=int(_number(row, "n_occupations", most=math.inf)),
        )
        for row in read_source_rows(source, _TEXTS).rows
    )


def _number(row: SourceRow, name: str, *, most: float = 1.0) -> float:
    try:
        number = float(str(row.values.get(name)))
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= most:
        raise CorpusError(
            f"{row.where}: {name} {shown(row.values.get(name))} is no number from 0 to {most:g}."
        )
    return number
