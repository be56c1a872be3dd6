"""How rows of the public tables are picked: by their values, in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from biaskit.common.wording import count, joined
from biaskit.records import ALL

Row = Mapping[str, Any]
AnyRow = TypeVar("AnyRow", bound=Row)
Tables = Mapping[str, Sequence[Row]]
"""Public tables by name, rows as `tables.io` gives them: an undefined number is None."""
CORRECTED = "shares of women are corrected by a person's labels"
"""Begins a reason of rows whose shares are so; sentences on them say it too."""


def where(rows: Iterable[AnyRow], **values: object) -> list[AnyRow]:
    """Pick the rows with these values."""
    picked = list(rows)
    for name, value in values.items():  # column by column: a tenth of the time of row by row
        picked = [row for row in picked if row.get(name) == value]
    return picked


def first(rows: Iterable[AnyRow], **values: object) -> AnyRow | None:
    """Find the first row with these values; None without one."""
    return next(iter(where(rows, **values)), None)


def defined(rows: Iterable[AnyRow], *names: str) -> list[AnyRow]:
    """Pick the rows that have a number in each of these columns."""
    return [row for row in rows if _is_defined(row, names)]


def undefined(rows: Iterable[AnyRow], *names: str) -> list[AnyRow]:
    """Pick the rows that lack a number in at least one of these columns."""
    return [row for row in rows if not _is_defined(row, names)]


def _is_defined(row: Row, names: Sequence[str]) -> bool:
    return all(row[name] is not None for name in names)


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """List the values of a column, each once, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def named(rows: Iterable[Row], name: str) -> list[Any]:
    """List the values of a column that are not empty, each once, in order of appearance."""
    return list(filter(None, distinct(rows, name)))


def column(rows: Iterable[Row], name: str) -> list[Any]:
    """List the values of a column, one for each row."""
    return [row[name] for row in rows]


def apart_from(rows: Iterable[Row], **values: object) -> list[Row]:
    """Pick the rows with none of these values."""
    picked = list(rows)
    for name, value in values.items():
        picked = [row for row in picked if row[name] != value]
    return picked


def total(rows: Iterable[Row], name: str) -> Any:
    """Sum a column of counts; an undefined one adds nothing."""
    return sum(row[name] or 0 for row in rows)


def lookup(rows: Iterable[Row], key: str, name: str) -> dict[Any, Any]:
    """Map the values of one column to those of another."""
    return {row[key]: row[name] for row in rows}


def grouped(rows: Iterable[AnyRow], *names: str) -> dict[tuple[Any, ...], list[AnyRow]]:
    """Group rows by their values in these columns, in order of appearance."""
    groups: dict[tuple[Any, ...], list[AnyRow]] = {}
    listed = list(rows)
    columns = []
    for name in names:  # column by column, as in `where`
        columns.append([row[name] for row in listed])
    for key, row in zip(zip(*columns, strict=True), listed, strict=True):
        groups.setdefault(key, []).append(row)
    return groups


def among(rows: Iterable[Row], name: str, values: Collection[object]) -> list[Row]:
    """Pick the rows with one of these values in a column."""
    return [row for row in rows if row[name] in values]


def without_debiasing(rows: Iterable[Row]) -> list[Row]:
    """Pick rows without a debiasing prompt; shares that labels of a person correct replace the rules'."""
    return [_corrected(row) for row in rows if row.get("debiasing_id") in (None, 0)]


def mean_over_prompts(rows: Iterable[Row]) -> list[Row]:
    """Pick the rows of representation.csv that are means over prompts, without a debiasing prompt."""
    return without_debiasing(where(rows, template_id=ALL))


def _corrected(row: Row) -> Row:
    if (share := row.get("share_corrected")) is None:
        return row
    ends = {"ci_low": row["corrected_low"], "ci_high": row["corrected_high"], "se": row["corrected_se"]}
    bounds = dict.fromkeys(("share_if_dropped_female", "share_if_dropped_male"), share)
    return {**row, "female_share": share, **ends, **bounds, "n_not_inferred": 0}  # no text is left out


def by_labels(rows: Iterable[Row]) -> str | None:
    """Say by how many labels shares in rows of representation.csv are corrected; None where none is."""
    means = where(rows, template_id=ALL)
    labels = [row["n_labelled"] for row in means if row.get("share_corrected") is not None]
    if not labels:
        return None
    part = "" if len(labels) == len(means) else f" in {len(labels)} of {len(means)} occupations"
    return f"{CORRECTED} of {count(sum(labels), 'text')}{part}"


def n_known(rows: Iterable[Row]) -> int:
    """Count the texts in rows of representation.csv whose gender a file knows."""
    return sum(row.get("n_known") or 0 for row in where(rows, template_id=ALL))


def by_person(rows: Sequence[Row]) -> str | None:
    """Say what labels of a person or known genders tell of rows of representation.csv; None where nothing."""
    known = None
    if n := n_known(rows):
        texts = count(total(where(rows, template_id=ALL), "n_texts"), "text")
        known = f"genders of {n:,} of {texts} are known, not inferred"
    return joined([by_labels(rows), known])


def finds_nonbinary(tables: Tables, model: str) -> bool:
    """Whether few texts about non-binary people mean that there are few.

    Most genders are known, or the rules find at least half of ten or more such texts, labelled or requested.
    """
    represented = where(tables.get("representation", ()), model=model, template_id=ALL)
    if 2 * n_known(represented) > total(represented, "n_texts"):
        return True
    labelled = where(tables.get("label_validation", ()), model=model)
    requested = where(tables.get("gender_validation", ()), model=model, requested_gender="nonbinary")
    checked = (
        (total(where(labelled, gender="nonbinary"), "n_nonbinary"), total(labelled, "n_nonbinary")),
        (total(requested, "n_correct"), total(requested, "n_texts")),
    )
    return any(n >= 10 and 2 * n_found >= n for n_found, n in checked)


def women_among(genders: Sequence[str], prompts: Sequence[Row]) -> tuple[float, float, float, float] | None:
    """Find women's share among texts of some genders: the share, its two ends, the variance of its counts.

    Formula: means over prompts of F/n, F/(n + U) and (F + U)/(n + U), of n texts of the genders and U that
        name none and are not refused or empty: those are about nobody; variance Σ p (1 − p)/n / prompts², p =
        (F + 1)/(n + 2).
    Rows of representation.csv are of one model and occupation; None where a prompt has no text of these
    genders.
    Reference: methods/representation#workforce-slope. Where labels correct it (#corrected), that is the
        share and its two ends.
    """
    for row in prompts:
        if row.get("share_corrected") is not None:
            if (n := 1.0 - ("nonbinary" not in genders) * row["nonbinary_corrected"]) <= 0:
                return None
            share = min(row["share_corrected"] / n, 1.0)
            return share, share, share, (row["corrected_se"] / n) ** 2
    numbers = []
    for row in [row for row in prompts if row["template_id"] != ALL] or prompts:
        women, n = row["n_female"], sum(row[f"n_{gender}"] for gender in genders)
        if not n:
            return None
        about_nobody = (row["n_refused"] or 0) + (row["n_empty"] or 0)
        of_any = n + (row["n_not_inferred"] or about_nobody) - about_nobody
        p = (women + 1) / (n + 2)
        numbers.append((women / n, women / of_any, (women + of_any - n) / of_any, p * (1 - p) / n))
    share, low, high, noise = (sum(column) / len(numbers) for column in zip(*numbers, strict=True))
    return share, low, high, noise / len(numbers)


def in_main_context(rows: Sequence[AnyRow]) -> list[AnyRow]:
    """Pick the rows in the plain context; where there is none, in the first context."""
    contexts = distinct(rows, "context")
    return where(rows, context="plain" if "plain" in contexts else next(iter(contexts), ""))
