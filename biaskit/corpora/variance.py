"""How much shares vary in the demos' own runs: what a plan reckons with before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Label, ListEntry
from biaskit.records import BiasType

OF_CELLS = "corpus:variance/probe.csv"
Fraction = Annotated[float, Field(strict=False, ge=0, le=1)]


class CellVariance(ListEntry):
    """How one gender's share varies over the cells of a group of jobs; variances are squared fractions."""

    bias_type: BiasType
    group: Label
    gender: Label
    share: Fraction
    coverage: Fraction  # mean over cells
    var_job: Fraction
    var_template: Fraction
    var_residual: Fraction  # without the noise of samples
    var_difference: Fraction  # between templates, of the first minus the second group's share


class TextVariance(ListEntry):
    """How the share of women in a model's texts varies about their share in the workforce."""

    model: Label
    share: Fraction
    inferred_share: Fraction  # texts that speak of a gender
    var_occupation: Fraction  # of the difference between occupations, without the noise of samples
    n_occupations: Annotated[int, Field(strict=False, ge=1)]


class DecisionVariance(ListEntry):
    """How P(yes) varies over people of one sex and race and over cases; variances are squared fractions."""

    model: Label
    p_yes: Fraction
    var_person: Fraction
    var_cell: Fraction
    var_case: Fraction  # between cases, of the difference women − men


_CELLS = SourceLayout("variance of cells", "group", CellVariance, csv=True)
_TEXTS = SourceLayout("variance of texts", "model", TextVariance, csv=True)
_DECISIONS = SourceLayout("variance of decisions", "model", DecisionVariance, csv=True)


def load_cell_variance(source: str | Path = OF_CELLS) -> tuple[CellVariance, ...]:
    """Read a row for each bias type and group of jobs, of a run without debiasing prompts."""
    return tuple(entry for _, entry in read_list(source, _CELLS).entries)


def load_text_variance() -> tuple[TextVariance, ...]:
    """Read a row for each model."""
    return tuple(entry for _, entry in read_list("corpus:variance/texts.csv", _TEXTS).entries)


def load_decision_variance() -> DecisionVariance:
    """Read the demo's row."""
    [(_, entry)] = read_list("corpus:variance/decisions.csv", _DECISIONS).entries
    return entry
