"""Write the pages of the reference that code and data already say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from biaskit.common.files import write_atomically
from biaskit.measurement import Measurement, measurements
from biaskit.study.config import describe_keys, read_study_file, study_names
from biaskit.tables.schema import SCHEMAS

HERE = Path(__file__).resolve().parent


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _values(study: type[BaseModel], name: str) -> str:
    """Name the values that a key takes: the words of a choice, or the ends of a range."""
    whole = study.model_json_schema()
    found: Any = whole
    for part in name.split("."):
        found = found["properties"][part]
        found = whole["$defs"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found
    found = next((one for one in found.get("anyOf", ()) if one.get("type") in ("integer", "number")), found)
    if "enum" in found:
        return ", ".join(f"`{value}`" for value in found["enum"])
    low = found.get("minimum", found.get("exclusiveMinimum"))
    high = found.get("maximum", found.get("exclusiveMaximum"))
    if low is None:
        return ""
    return f"{'over ' * ('minimum' not in found)}{low:,} to {'under ' * ('maximum' not in found)}{high:,}"


def keys() -> str:
    """Name the shipped studies, and the page of each measurement, which has its keys."""
    shipped = [(name, read_study_file(name)) for name in study_names()]
    studies = ((f"`{name}`", study.get("measurement", "probe"), study["summary"]) for name, study in shipped)
    pages = (f"[{kind.name}]({kind.name}.md#keys)" for kind in measurements())
    return KEYS.format(pages=", ".join(pages)) + _table(("study", "measurement", "what it is"), studies)


def keys_of(kind: Measurement) -> str:
    """Describe every key of a measurement's studies: default, values, meaning."""
    rows = (
        (
            f'<a id="{kind.name}-{key.replace(".", "-")}"></a>`{key}`'
            + " ¹" * (key.partition(".")[0] in kind.study.analysis_keys),
            {"(required)": "required", "(none)": "unset", "": "empty", "{}": "empty"}.get(
                default, f"`{default}`"
            ),
            _values(kind.study, key),
            meaning,
        )
        for key, default, meaning in describe_keys(kind.study)
    )
    return _table(("key", "default", "values", "meaning"), rows)


def tables() -> str:
    """List every table with a link and what a row is, then describe those that belong to no measurement."""
    kinds = {kind.name for kind in measurements()}
    rows = []
    for name, table in SCHEMAS.items():
        page = f"{table.owner}.md" if table.owner in kinds else ""
        rows.append((f"[{name}.csv]({page}#table-{_slug(name)})", table.owner or "all", table.rows))
    shared = [name for name, table in SCHEMAS.items() if table.owner not in kinds]
    listed = _table(("table", "measurement", "one row for each"), iter(rows))
    return TABLES + listed + "".join(map(table_of, shared))


def table_of(name: str) -> str:
    """Describe a table: what a row is, its keys, its columns."""
    table = SCHEMAS[name]
    columns = ((column, part.kind) for part in table.parts for column in part.names)
    rows = ((f"`{column}`", kind, table.says[column]) for column, kind in columns)
    return (
        f'\n<a id="table-{_slug(name)}"></a>\n## {name}.csv\n\nOne row for each '
        f"{table.rows}\nKeys: {', '.join(f'`{key}`' for key in table.keys)}.\n\n"
        + _table(("column", "kind", "meaning"), rows)
    )


def measurement(kind: Measurement) -> str:
    """Describe a measurement: its tables, then the keys of its studies, after a table of contents."""
    names = [name for name, table in SCHEMAS.items() if table.owner == kind.name]
    links = [f"[{name}.csv](#table-{_slug(name)})" for name in names]
    text = MEASUREMENT.format(name=kind.name, tables=" · ".join(links))
    return text + "".join(map(table_of, names)) + KEYS_OF.format(name=kind.name) + keys_of(kind)


def _slug(name: str) -> str:
    return name.replace("_", "-")


def servers() -> str:
    """Describe what to expect of each server, and what was tried."""
    data = tomllib.loads((HERE / "servers.toml").read_text(encoding="utf-8"))
    of_servers = ("name", "url", "key", "routes", "estimators", "tried", "source")
    heads = ("server", "base URL", "key variable", "routes", "estimators to expect", "tried", "source")
    rows = [[one.get(part, "no" if part == "tried" else "") for part in of_servers] for one in data["server"]]
    of_providers = ("name", "models", "variables", "package", "also")
    text = SERVERS + _table(heads, iter(rows)) + PROVIDERS
    heads = ("provider", "models", "variables: key; address", "package", "also by")
    return text + _table(heads, ([one.get(part, "") for part in of_providers] for one in data["provider"]))


KEYS = """# Studies and their keys

`biaskit corpora STUDY` prints a study's keys with its own values; `--set KEY=VALUE` sets one. Every key:
{pages}.

## Shipped studies

"""
KEYS_OF = """
<a id="keys"></a>
## Keys of studies of `biaskit {name}`

Keys marked ¹ change the analysis only: `biaskit analyze RUN --set KEY=VALUE` applies them to stored answers.

"""
MEASUREMENT = """# {name}: tables and keys

{tables} · [keys](#keys) · [options](cli.md) · [tests.csv, and how to read a table](tables.md)
"""
TABLES = """# Tables and columns

The tables of a run are CSV files in its folder `tables/`: UTF-8, comma, one header line. Shares,
probabilities, coverages and differences of shares are fractions, p- and q-values are in [0, 1], `n_…` are
counts, booleans are `yes` and `no`, and an undefined value is an empty field. GROUP is each gender group of
the study, by default male, female and diverse. The keys name a row: no two rows have the same.

"""
SERVERS = """# Servers

What to expect of a server, by its documentation and by bug reports. We tried only those marked **tried**;
`biaskit doctor` measures yours. Base URLs and key variables go into `api:MODEL@URL` and `--api-key-env`.

"""
PROVIDERS = """
<a id="inspect"></a>
## Providers through Inspect

`inspect:PROVIDER/MODEL` sends prompts through Inspect, which gives texts only (`sampling`).
`openai-api/SERVICE/MODEL` is any other server with OpenAI's interface. How it is used: [models behind an
API](../howto/api.md).

"""
COMMANDS = """# Commands

```{eval-rst}
.. click:: biaskit.cli:cli
   :prog: biaskit
   :nested: full
```
"""
FACE = """# Python

```{eval-rst}
.. automodule:: biaskit
   :members:
   :imported-members:

.. autoclass:: biaskit.report.result.RunResult
   :members:

.. autoclass:: biaskit.workflow.compare.ComparisonResult
   :members:
```
"""


def write(folder: Path) -> None:
    """Write every page that is generated into a folder, if it changed."""
    pages = {"cli": COMMANDS, "python": FACE, "keys": keys(), "tables": tables(), "servers": servers()}
    pages |= {kind.name: measurement(kind) for kind in measurements()}
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.is_file() or text != path.read_text(encoding="utf-8"):
            write_atomically(path, text.encode())  # processes of a test run write side by side
