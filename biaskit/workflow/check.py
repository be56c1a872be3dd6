"""What `biaskit check`, `bk.check` and the pytest plugin do: stored tables held against thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.compare.changes import CHANGES
from biaskit.compare.check import CheckResult, coverage_of_parts, judge_thresholds
from biaskit.compare.thresholds import read_thresholds, requirement
from biaskit.errors import UsageError
from biaskit.report.content import Content
from biaskit.report.result import RunResult
from biaskit.workflow.analyze import gathered
from biaskit.workflow.compare import compared_tables


@checked()
def check(
    *runs: str | Path | RunResult,
    thresholds: str | Path | Mapping[str, Any] | None = None,
    baseline: str | Path | RunResult | None = None,
    max_flips: float | None = None,
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
        baseline: the run before a change; only its models are compared with those of `runs`.
        max_flips: at most this part of the prompts may have another most probable group.
        groups, aliases: as `bk.compare` takes them.

    Returns the outcome, true where every requirement holds; `text` says which does not, and by how much.
    Raises `BiaskitError` where the thresholds or a run cannot be read.
    """
    required = [] if thresholds is None else read_thresholds(thresholds)
    if max_flips is not None:
        required.append(requirement({"max_flips": max_flips}, "--max-flips"))
    if not required:
        raise UsageError("Nothing is required: name --thresholds FILE, or --max-flips 0.05 with --baseline.")
    named = runs if baseline is None else (baseline, *runs)
    collection = gathered(named, "check RUN --thresholds FILE")
    compared = compared_tables(collection, groups, aliases)
    content = Content("", collection.parts, {"tests": compared.tests}).judged()
    coverage, pairs, changes = coverage_of_parts(collection.parts), compared.pairs, dict(compared.rows)
    if baseline is not None:
        # Each model with the baseline's of the same label in its own run; without one, with every one.
        own = {here: label for run in collection.runs for label, here in run.names.items()}
        old = {*collection.runs[0].names.values()}
        crossing = [pair for pair in pairs if pair[2] in old and pair[1] not in old]
        pairs = [pair for pair in crossing if own[pair[1]] == own[pair[2]]]
        found = {after for _, after, _ in pairs}
        pairs += [pair for pair in crossing if pair[1] not in found]
        kept = {(before, after) for _, after, before in pairs}
        for name in CHANGES:
            changes[name] = [row for row in changes.get(name, ()) if (row["before"], row["after"]) in kept]
    return judge_thresholds(required, content.every_test, pairs=pairs, coverage=coverage, changes=changes)


def example(*runs: str | Path) -> str:
    """Write the shortest file of thresholds for runs: on models where some were tested, else on what was."""
    collection = gathered(runs, "check RUN --thresholds FILE")
    tests = Content("", collection.parts, {"tests": compared_tables(collection, (), None).tests}).every_test
    tests.sort(key=lambda row: (row.contrast != "models", row.margin is None, row.quantity != "binary_share"))
    contrast, quantity, margin = "models", "binary_share", ""
    if tests:
        contrast, quantity = tests[0].contrast, tests[0].quantity
        margin = "\nmargin = 0.1" if tests[0].margin is None else ""
    return f'[[require]]\ncontrast = "{contrast}"\nquantity = "{quantity}"{margin}'
