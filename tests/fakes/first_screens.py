"""Contents shaped as real runs, of every kind of page that has a first screen of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from biaskit.report.content import Content
from biaskit.runs.collection import Part
from fakes.findings_rows import row as a_row
from fakes.report_content import content

Row = dict[str, Any]
DAY = "2026-03-04"
USUAL: Mapping[str, Row] = {
    "representation": {"n_not_inferred": 40, "n_refused": 0},
    "probe_prompts": {"coverage": 0.2, "low_coverage": False},
}
SAID_UNASKED = ("representation", "srb", "text_transfer")


def screens() -> Mapping[str, Content]:
    """By kind, as `bk.report` would hand them to figures and findings."""
    many = tuple(f"org/model-{i}-instruct" for i in range(10))
    made = {
        "probe": _one_kind(content(("demo",), 40, debiasing_prompts=0), "probe"),
        "texts": _one_kind(content(("demo",), 8), "personas"),
        "both": content(("demo",), 12, debiasing_prompts=0),
        "ten models": content(many, 12, debiasing_prompts=0),
        "own texts": own_texts(),
    }
    titles = {
        kind: f"How {'10 models treat' if kind == 'ten models' else 'demo treats'} gender" for kind in made
    }
    return {
        kind: _whole(replace(one, title=titles[kind], command="biaskit report RUN")).judged()
        for kind, one in made.items()
    }


def own_texts() -> Content:
    """Texts of one topic that all name a gender: words on request, and nothing that texts say unasked."""
    made = _one_kind(content(("text-davinci-003",), 1, names=["texts"]), "personas")
    [part] = made.parts
    tables = {name: rows for name, rows in part.tables.items() if name not in SAID_UNASKED}
    for name in ("word_lists", "marked_words"):
        tables[name] = [row for row in tables[name] if row["origin"] == "requested"]
    tables["word_lists"] = [
        {**row, "n_marked_beyond": 60, "p_value_beyond": 0.001} for row in tables["word_lists"]
    ]
    tables["marked_words"] = [
        {**row, "word": f"{row['word']}{letter}", "z": row["z"] - 0.1 * i}
        for row in tables["marked_words"]
        for i, letter in enumerate("abcdefghij")
    ]
    of_file = {"source": "letters.csv"}
    return replace(made, parts=(replace(part, study="texts", tables=tables, imported=of_file),))


def _one_kind(made: Content, kind_name: str) -> Content:
    return replace(
        made, parts=tuple(part for part in made.parts if part.measurement == kind_name), between={}
    )


def _whole(made: Content) -> Content:
    """With every column, days, and how many answers there are."""
    between = {name: [_full(name, row) for row in rows] for name, rows in made.between.items()}
    return replace(made, parts=tuple(_part(part) for part in made.parts), between=between)


def _part(part: Part) -> Part:
    answered = "probe_prompts" if part.measurement == "probe" else "genders"
    answers = [{"model": model.label} for model in part.models for _ in range(200)]
    tables = {
        name: [_full(name, row) for row in rows] for name, rows in {**part.tables, answered: answers}.items()
    }
    models = tuple(replace(one, first_answered=DAY, last_answered=DAY) for one in part.models)
    return replace(part, tables=tables, models=models)


def _full(table: str, row: Row) -> Row:
    inner = _inner(row) if table == "tests" else {}
    return a_row(table, **{**USUAL.get(table, {}), **row, **inner})


def _inner(row: Row) -> Row:
    """The 90 % interval inside the one of 95 %."""
    if row["ci_low"] is None:
        return {}
    by = 0.08 * (row["ci_high"] - row["ci_low"])
    return {"ci90_low": row["ci_low"] + by, "ci90_high": row["ci_high"] - by}
