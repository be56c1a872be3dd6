"""Mass, coverage and share of each group, from the log-probabilities of its words.

Written by `biaskit export --to lm-eval`; lm-evaluation-harness calls it, and it needs nothing of biaskit's.
A line of a .jsonl file beside this one is a cell: a prompt, the words that may follow it (`choices`, each
with its space) and the group that each counts for (`group_of`). No choice is the right one.
"""

import json
import math
from pathlib import Path
from typing import Any


def cells(file: str, **_: Any) -> dict[str, Any]:
    """Read the cells of a task as the split `test`; `file` lies beside this one."""
    from datasets import Dataset

    lines = (Path(__file__).resolve().parent / file).read_text(encoding="ascii").splitlines()
    return {"test": Dataset.from_list([json.loads(line) for line in lines])}


def process_results(doc: dict[str, Any], results: list[tuple[float, bool]]) -> dict[str, float]:
    """Score one cell: each group's mass and share, and the coverage; a share is NaN where no word has mass.

    `boundary`: the prompt ended in white space, which the harness would move into every choice. So it stands
    there, and the first choice is the white space alone: the others are divided by its probability.
    `longer_of`: for each word the words whose tokens go on from its own; they are taken off, so that a text
    counts once, under its longest word.
    """
    logs = [log_prob for log_prob, _ in results]
    before = logs.pop(0) if doc["boundary"] else 0.0
    peak = max(logs)
    # Relative to the largest, so that shares keep their digits where masses are near 1e-308.
    relative = [math.exp(log - peak) if log > -math.inf else 0.0 for log in logs]
    sums = dict.fromkeys(doc["group_of"], 0.0)
    for value, group, longer in zip(relative, doc["group_of"], doc["longer_of"], strict=True):
        sums[group] += max(0.0, value - math.fsum(relative[i] for i in longer))
    total = math.fsum(sums.values())
    scale = math.exp(peak - before) if total else 0.0
    numbers = {"coverage": total * scale}
    for group, value in sums.items():
        numbers[f"{group}_mass"] = value * scale
        numbers[f"{group}_share"] = value / total if numbers["coverage"] else math.nan
    return numbers


def crossed_mean(values: list[float]) -> float:
    """Take the mean over the full product of jobs and templates; cells without a share are left out.

    Not the harness's own mean: that would come with a standard error for independent cells, and cells that
    share a job or a template are not.
    """
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan
