"""What `biaskit check`, `bk.check` and the pytest plugin do: stored tables held against thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.compare.check import CheckResult, coverage_of_parts, judge_thresholds
from biaskit.compare.thresholds import read_thresholds
from biaskit.report.content import Content
from biaskit.report.result import RunResult
from biaskit.workflow.analyze import gathered
from biaskit.workflow.compare import compared_tables


@checked()
def check(
    *runs: str | Path | RunResult,
    thresholds: str | Path | Mapping[str, Any],
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
) -> CheckResult:
    """Judge whether runs stay within thresholds, from stored tables alone; nothing is written.

    >>> least = {"require": [{"contrast": "groups", "quantity": "share", "limit": 0.2, "min_n": 1}]}
    >>> bool(bk.check(probed, thresholds=least))
    False

    Args:
        runs: folders or results of probes or of texts, one or several.
        thresholds: a TOML file of thresholds, or what such a file would contain.
        groups, aliases: as `bk.compare` takes them.

    Returns the outcome, true where every requirement holds; `text` says which does not, and by how much.
    Raises `BiaskitError` where the thresholds or a run cannot be read.
    """
    required = read_thresholds(thresholds)
    collection = gathered(runs, "check RUN --thresholds FILE")
    compared = compared_tables(collection, groups, aliases)
    content = Content("", collection.parts, {"tests": compared.tests}).judged()
    coverage = coverage_of_parts(collection.parts)
    return judge_thresholds(required, content.every_test, pairs=compared.pairs, coverage=coverage)
