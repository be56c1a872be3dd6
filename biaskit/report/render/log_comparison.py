"""A comparison of logs (docs/methods.md#logs): a table for each task, a sentence for each test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.stats.verdict import LEVEL, verdict_of
from biaskit.tables.query import Row, grouped
from biaskit.wording import MINUS, count, p_value

UNDEFINED = "–"
_VERDICTS = {
    "no-clear-difference": "unclear",
    "not-measured": "–",
    "no-verdict": "–",
}
_NOTE = (
    "n: samples that both logs have a score of. Difference: the model named later minus the earlier one,"
    " with its 95 % interval. p: Holm's, adjusted over all tests of this comparison; below it the verdict"
    " (unclear: no clear difference)."
)
_KINDS = {
    "mcnemar": "McNemar's exact test, Tango's interval",
    "paired": "paired test and t-interval",
    "welch": "Welch's test",
}


def log_document(rows: Sequence[Row], notes: Sequence[str], signature: str) -> Document:
    """A table for each task, with two lines for each test."""
    tables = tuple(_table(tool, task, own) for (tool, task), own in grouped(rows, "tool", "task").items())
    return Document(tables, tuple(notes), signature)


def _table(tool: str, task: str, rows: Sequence[Row]) -> TitledTable:
    heads = ("Score", "Models", "n", "Means", "Difference", "p")
    lines = [line for row in rows for line in _lines(row)]
    kinds = dict.fromkeys(_KINDS[row["kind"]] for row in rows)
    note = f"{_NOTE} {'; '.join(kinds)}."
    return TitledTable(f"{task} ({tool})", (tuple(map(Heading, heads)),), tuple(lines), note, n_text=2)


def _lines(row: Row) -> Iterator[tuple[str, ...]]:
    """The later model with the difference, then the earlier one with the interval."""
    n = f"{row['n_paired']:,}" if row["kind"] != "welch" else f"{row['n_a']:,}"
    n_b = f"{row['n_b']:,}" if row["kind"] == "welch" else ""
    difference = UNDEFINED if row["estimate"] is None else _signed(row["estimate"])
    interval = "" if row["ci_low"] is None else f"[{_signed(row['ci_low'])}, {_signed(row['ci_high'])}]"
    verdict = verdict_of(row)
    yield row["metric"], row["model_a"], n, _mean(row, "a"), difference, _p(row["p_adjusted"])
    shown = _VERDICTS.get(verdict, verdict)
    yield "", f"{MINUS} {row['model_b']}", n_b, _mean(row, "b"), interval, shown


def _p(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return "<0.001" if value < 0.001 else f"{value:.2g}" if value < 0.995 else "1"


def _mean(row: Row, side: str) -> str:
    mean, low, high = (row[f"mean_{side}{end}"] for end in ("", "_low", "_high"))
    if mean is None:
        return UNDEFINED
    return number(mean) if low is None else f"{number(mean)} [{number(low)}, {number(high)}]"


def number(value: float) -> str:
    """A score: three decimals, or four digits where it is large; never 0 of what is not."""
    text = f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"
    if value and float(text) == 0:
        text = f"{value:.1g}"
    return MINUS + text[1:] if text.startswith("-") else text


def _signed(value: float) -> str:
    return number(value) if value <= 0 else f"+{number(value)}"


def sentence(row: Row) -> str:
    """What one test says."""
    where = f"{row['task']}, {row['metric']}" if row["metric"] else row["task"]
    a, b, found = row["model_a"], row["model_b"], verdict_of(row)
    if found in ("not-measured", "no-verdict"):
        return f"{where}: {a} and {b} are not compared: {row['reason'] or 'no interval'}."
    shown = f"{_signed(row['estimate'])} [{_signed(row['ci_low'])}, {_signed(row['ci_high'])}]"
    adjusted = p_value(row["p_adjusted"]).replace("p ", "Holm p ")
    behind = f"{shown}, {adjusted}, {_basis(row)}"
    if found == "equivalent":
        return f"{where}: {a} and {b} are equivalent within ±{row['margin']:g} ({behind})."
    if found in ("higher", "lower"):
        return f"{where}: {a} scores {found} than {b} ({behind})."
    among = ", all comparisons considered" if row["p_value"] < LEVEL <= row["p_adjusted"] else ""
    return f"{where}: no clear difference between {a} and {b}{among} ({behind})."


def _basis(row: Row) -> str:
    if row["kind"] == "welch":
        return f"{row['n_a']:,} and {row['n_b']:,} samples, not paired"
    return count(row["n_paired"], "paired sample")


def unpaired_notes(rows: Sequence[Row]) -> Iterator[str]:
    """What is not paired, with its counts and the first ids; once where it is the same for all scores."""
    for (task, a, b), own in grouped(rows, "task", "model_a", "model_b").items():
        lacking = [row for row in own if _n_left_out(row)]
        for (reason,), some in grouped(lacking, "reason").items():
            which = "" if len(some) == len(own) else f", {', '.join(row['metric'] for row in some)}"
            yield f"{task}{which}, {a} and {b}: {count(_n_left_out(some[0]), 'sample')} not paired: {reason}"


def _n_left_out(row: Row) -> int:
    return sum(row[name] for name in ("n_only_a", "n_only_b", "n_other_input", "n_without_score"))
