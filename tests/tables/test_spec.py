"""What tables.toml states, of all kinds and of each: nothing is missing, nothing is stated in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from biaskit.measurement import specs
from biaskit.report.questions import QUESTIONS
from biaskit.stats.contrast import JUDGED
from biaskit.stats.verdict import ROLES
from biaskit.tables.quantities import QUANTITIES
from biaskit.tables.schema import HEADS, SCHEMAS, SHARED, Kind, TableSchema

SPECS = {**specs(), "": SHARED}
LISTED = {"id", "opening", "unrequested", "requested"}
"""Columns of the lists of prompts on the page, which are no tables."""


def columns_of(table: TableSchema) -> set[str]:
    return {name for part in table.parts for name in part.names}


def said() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every file, column, and what is said of it there."""
    for owner, spec in SPECS.items():
        tables = spec.get("tables", {}).values()
        for columns in (spec.get("columns", {}), *(table.get("own", {}) for table in tables)):
            for column, fields in columns.items():
                yield owner, column, fields


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_says_something(name: str) -> None:
    table = SCHEMAS[name]
    assert columns_of(table) == {column for column, meaning in table.says.items() if meaning}
    assert {*SPECS[table.owner]["tables"][name].get("own", {})} <= columns_of(table)
    assert {*table.keys} <= columns_of(table)
    assert bool(table.title) is bool(table.what) is not bool(table.not_on_page)
    assert table.question in QUESTIONS


def test_nothing_is_said_of_a_column_that_no_table_has() -> None:
    for owner, column, fields in said():
        tables = [table for table in SCHEMAS.values() if owner in ("", table.owner)]
        assert fields.keys() <= {"kind", "says", "head"}
        assert fields.get("kind", "text") in get_args(Kind)
        if column in LISTED:
            assert {"head"} == fields.keys()
        else:
            assert any(column in columns_of(table) for table in tables), (owner, column)


def test_what_is_said_for_all_tables_is_used_by_one() -> None:
    """A meaning under [columns] that each of its tables replaces would be read by nobody."""
    for owner, spec in SPECS.items():
        columns = spec.get("columns", {}).items()
        tables = [table for table in SCHEMAS.values() if owner in ("", table.owner)]
        for column, fields in columns:
            used = any(table.says.get(column) == fields.get("says") for table in tables)
            assert used or "says" not in fields, (owner, column)


def test_a_column_has_one_head_and_a_table_one_file() -> None:
    assert all(HEADS[column] == fields["head"] for _, column, fields in said() if "head" in fields)
    assert len(SCHEMAS) == sum(len(spec.get("tables", {})) for spec in SPECS.values())


def test_roles_are_of_judged_rows_and_of_questions_and_margins_of_quantities() -> None:
    for (kind_name, kind, _, _), role in ROLES.items():
        assert (kind_name, kind) in JUDGED
        assert role.question in QUESTIONS
        assert {*role.subject} <= columns_of(SCHEMAS["tests"])
    assert "sure" not in {role.question for role in ROLES.values()}
    assert len(QUANTITIES) == len({*QUANTITIES})
