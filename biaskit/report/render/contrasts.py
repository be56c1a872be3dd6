"""What a difference between two models comes to, in words, and the tables of contrasts and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.report.render.document import Heading, TitledTable
from biaskit.tables.verdict import verdict_of

Row = Mapping[str, Any]
KIND_OF = {"probe": "crossed", "personas": "paired", "compare": "paired"}
"""The kind of row that carries interval and verdict of a difference, by engine."""
GENDERS = {"female": "women", "male": "men"}
QUANTITIES = {
    "represented_share": "share of women in texts",
    "srb": "SRB",
    "probe_gap": "gap in the prober (women - men)",
    "represented_gap": "gap in texts (women - men)",
    "labour_gap": "gap in the labour force (women - men)",
    "srb_spread": "SRB spread (men - women)",
}
FEW_PAIRS = 3
"""With more pairs of models than this, only the rows of women's share are laid out."""


def verdict(row: Row) -> str:
    """A difference in words: equivalent, higher or lower by, no clear difference, or not measured.

    See docs/methods.md#verdicts.
    """
    found = verdict_of(row)
    if found == "not-measured":
        return f"not measured ({row['reason'] or 'no interval'})"
    if found == "equivalent":
        return f"equivalent within ±{row['margin']:g}"
    if found == "no-clear-difference":
        return "no clear difference"
    low, high = sorted((abs(row["ci_low"]), abs(row["ci_high"])))
    return f"{found} by {abs(row['estimate']):.2f} [{low:.2f}, {high:.2f}]"


def with_interval(row: Row) -> str:
    """An estimate with its 95 % interval, signed."""
    if row["estimate"] is None:
        return "–"
    if row["ci_low"] is None:
        return f"{row['estimate']:+.2f}"
    return f"{row['estimate']:+.2f} [{row['ci_low']:+.2f}, {row['ci_high']:+.2f}]"


def contrast_table(tests: Sequence[Row]) -> TitledTable | None:
    """Every difference between two models or groups with interval, verdict and Holm-adjusted p."""
    rows = [
        row
        for row in tests
        if _contrast(row) == "models" and row["kind"] == KIND_OF[row["engine"]] and _plain(row)
    ]
    if not rows:
        return None
    n_pairs = len({(row["model_a"], row["model_b"]) for row in rows})
    shown = [r for r in rows if n_pairs <= FEW_PAIRS or r["quantity"] != "share" or r["gender"] == "female"]
    adjusted = {_key(row): row["p_adjusted"] for row in tests if row["kind"] == "paired"}
    lines = [
        (
            f"{row['model_a']} - {row['model_b']}",
            _what(row),
            verdict(row),
            with_interval(row),
            _p(adjusted.get(_key(row))),
        )
        for row in shown
    ]
    left = sum(_contrast(r) == "models" and r["kind"] == KIND_OF[r["engine"]] for r in tests) - len(shown)
    header = ("Difference", "Of what", "Verdict", "Estimate [95 % interval]", "p (paired, Holm)")
    return TitledTable(
        title="Differences between models (later named - earlier named)",
        header=(tuple(Heading(text) for text in header),),
        rows=tuple(lines),
        note="Shares are fractions; intervals of the prober's are over jobs and templates, of texts over"
        " occupations. 'Equivalent': the 90 % interval lies inside the margin."
        + (f" {left} more rows (other genders, instructions) are in tests.csv." if left else ""),
        n_text=3,
    )


def relation_table(tests: Sequence[Row]) -> TitledTable | None:
    """Slope and rank correlation of the gaps over occupations, one line per model and relation."""
    rows = [row for row in tests if row["engine"] == "compare" and row["kind"] in ("slope", "spearman")]
    if not rows:
        return None
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        key = (row["model_a"], row["quantity"], row["bias_type"], row["prompt_form"])
        found.setdefault(key, {})[row["kind"]] = row
    lines = []
    for (model, quantity, bias_type, _), kinds in found.items():
        y, _, x = quantity.partition("~")
        named = f"{y} ~ {x}" + (f", {bias_type}" if bias_type else "")
        first = next(iter(kinds.values()))
        numbers = [with_interval(kinds[kind]) if kind in kinds else "–" for kind in ("slope", "spearman")]
        if first["estimate"] is None:
            numbers = ["–", "–"]
        lines.append((model, named, *numbers, str(first["n_a"])))
    header = ("Model", "Relation over occupations", "Slope [95 %]", "Spearman [95 %]", "n")
    few = any(row["estimate"] is None for row in rows)
    return TitledTable(
        title="How the gaps go together over occupations",
        header=(tuple(Heading(text) for text in header),),
        rows=tuple(lines),
        note="probe_gap: share of women - share of men of a job; represented_gap: the same in texts;"
        " labour_gap: 2 · labour share - 1; srb_spread: SRB(men) - SRB(women)."
        + (" –: too few occupations with both (at least 10), or no spread; see tests.csv." if few else ""),
        n_text=2,
    )


def _contrast(row: Row) -> str:
    return str(row["family"]).rpartition("/")[2]


def _plain(row: Row) -> bool:
    """Rows of no instruction, in the plain setting where there is one."""
    return row["instruction_a"] in ("", None, "0") and row["setting"] in ("", None, "plain")


def _key(row: Row) -> tuple[object, ...]:
    names = ("engine", "quantity", "gender", "model_a", "model_b", "bias_type", "setting", "prompt_form")
    return tuple(row[name] or "" for name in (*names, "instruction_a", "group_a"))


def _what(row: Row) -> str:
    gender = GENDERS.get(row["gender"], row["gender"] or "")
    if row["quantity"] == "share":
        where = f"{row['bias_type']}, {row['group_a']}" if row["group_a"] else row["bias_type"]
        return f"{where}: share of {gender}"
    named = QUANTITIES.get(row["quantity"], row["quantity"])
    if row["quantity"] == "srb":
        return f"{named} of {gender}"
    return f"{named}, {row['bias_type']}" if row["bias_type"] else str(named)


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
