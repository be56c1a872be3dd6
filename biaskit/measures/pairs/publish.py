"""Shares of sentence pairs in other formats (`exchange/`): their names, a model card's table, rows."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.common.wording import share_with_interval
from biaskit.exchange.card import CardTable
from biaskit.exchange.results import Named
from biaskit.measurement import words
from biaskit.measures.pairs.design import read
from biaskit.runs.collection import Part, StoredRun
from biaskit.tables.query import Row, where


def publish(run: StoredRun, row: Row) -> Named:  # noqa: ARG001 (every kind's arguments)
    """Name a share of pair_groups.csv."""
    asked = f"pairs/{row['language']}/{row['stereotype']}/female"
    return Named("female", asked, row["n_pairs"], words("pairs")["interval"])


def card(part: Part) -> CardTable:
    """Make the table of a model card: shares and expected rates of every language and stereotype."""
    rows = []
    for row in part.tables["pair_groups"]:
        share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
        expected = share_with_interval(row["expected_rate"], row["expected_low"], row["expected_high"])
        where = row["model"], row["language"], row["stereotype"]
        rows.append([*where, share, expected, str(row["n_pairs"])])
    says = words("pairs")["card"]
    return CardTable(says["title"], says["about"], tuple(says["heads"]), rows)


def samples(run: StoredRun) -> Iterator[tuple[str, str, list[Row], Row]]:
    """Yield every answered pair: its model, the kind, its stored row, and its row of pair_scores.csv.

    A row that two labels of one model share comes twice; rows of other pairs are passed over.
    """
    design = read(run.manifest.resolved)
    scores: dict[str, list[Row]] = {}  # by the key of their request
    for label, entry in run.manifest.models.items():
        requests = design.requests(entry.fingerprint, entry.estimator_key)
        rows = where(run.tables.get("pair_scores", ()), model=label)
        for request, row in zip(requests, rows, strict=True):
            scores.setdefault(request.key, []).append(row)
    for stored in run.rows():
        for row in scores.get(stored["key"], ()):
            yield row["model"], "pairs", [stored], row
