"""Beside the engines: pairs stored tables and tests one model against another (DESIGN §4, tests.csv)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from biaskit.errors import TableError
from biaskit.stats.contrasts import Row, Scope, adjust, within_jobs, within_units
from biaskit.stats.crossed import joined
from biaskit.stats.design import Arm, Block, complete_in_all, lay_out, rows_of_groups
from biaskit.stats.swaps import percent_change
from biaskit.tables import read_rows, read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

CONTRAST = "models"


def between_models(
    run_tables_dir: Path, *, groups: Sequence[str], models: Sequence[str], margins: Mapping[str, float]
) -> tuple[list[Row], list[str]]:
    """Rows paired and crossed for every pair of models, later named minus earlier named, and notes.

    Read from the stored probe_cells.csv: each bias type, instruction, setting and prompt form apart, every
    job group and gender, on the (job, template) cells that both models have complete. Two prompt forms are
    never compared: such a pair has no row and a sentence in the notes. p_adjusted is Holm's over these
    rows, which are whole families.
    """
    path = run_tables_dir / "probe_cells.csv"
    frame = read_table(path)
    group_of = dict(zip(frame["job"], frame["job_group"], strict=True))
    blocks = _blocks(path, frame, groups)
    present = {arm.model for arm in blocks}
    notes = [f"{model} has no cell in {path.name}." for model in models if model not in present]
    rows: list[Row] = []
    named = [model for model in dict.fromkeys(models) if model in present]
    for i, later in enumerate(named):
        for earlier in named[:i]:
            pairs = _pairs(blocks, later, earlier)
            notes += _forms_apart(blocks, later, earlier, pairs)
            for a, b in pairs:
                rows += _rows(a, b, groups, group_of, margins)
    return adjust(rows), notes


def merge_tests(path: Path, rows: Sequence[Row]) -> None:
    """Put the rows between models into a tests.csv, in place of those of an earlier comparison.

    The rows of single models stay as they are, and Holm is done anew over the whole file.
    """
    stored = read_rows(path) if path.exists() else []
    kept = [row for row in stored if not str(row["family"]).endswith(f"/{CONTRAST}")]
    write_table(path, "tests", adjust([*kept, *rows]), groups=(), contrast=("", ""))


def _blocks(path: Path, frame: pd.DataFrame, groups: Sequence[str]) -> dict[Arm, Block]:
    wanted = [*(f"{group}_mass" for group in groups), *(f"{group}_share" for group in groups), "coverage"]
    unknown = [name for name in wanted if name not in frame]
    if unknown:
        raise TableError(f"{path}: no column {unknown[0]!r}; the run has other gender groups.")
    arms = zip(*(frame[name] for name in Arm._fields), strict=True)
    try:
        return lay_out(
            [Arm(model, bias_type, int(i), setting, form) for model, bias_type, i, setting, form in arms],
            frame["job"].tolist(),
            frame["template_id"].astype(int).tolist(),
            [estimator or None for estimator in frame["estimator"]],
            frame[wanted].to_numpy(dtype=np.float64),
        )
    except ValueError as error:
        raise TableError(f"{path}: {error}. `biaskit analyze` makes the tables again.") from error


def _pairs(blocks: Mapping[Arm, Block], later: str, earlier: str) -> list[tuple[Block, Block]]:
    return [
        (block, other)
        for arm, block in blocks.items()
        if arm.model == later and (other := blocks.get(arm._replace(model=earlier))) is not None
    ]


def _forms_apart(
    blocks: Mapping[Arm, Block], later: str, earlier: str, pairs: Sequence[tuple[Block, Block]]
) -> Iterator[str]:
    """Say where two models have the same cells in different prompt forms, or nothing in common."""
    compared = {a.arm._replace(model="", prompt_form="") for a, _ in pairs}
    forms: list[dict[Arm, list[str]]] = [{}, {}]
    for arm in blocks:
        if arm.model in (later, earlier):
            of_model = forms[arm.model == earlier]
            of_model.setdefault(arm._replace(model="", prompt_form=""), []).append(arm.prompt_form)
    both = [arm for arm in forms[0] if arm in forms[1] and arm not in compared]
    of_later = " and ".join(dict.fromkeys(form for arm in both for form in forms[0][arm]))
    of_earlier = " and ".join(dict.fromkeys(form for arm in both for form in forms[1][arm]))
    if both:
        yield (
            f"{later} ({of_later}) and {earlier} ({of_earlier}) have different prompt forms, "
            "so there is no test between them."
        )
    elif not pairs:
        yield f"{later} and {earlier} have no cell in common, so there is no test between them."


def _rows(
    a: Block, b: Block, groups: Sequence[str], group_of: Mapping[str, str], margins: Mapping[str, float]
) -> Iterator[Row]:
    common = sorted(set(a.jobs) & set(b.jobs))
    alone = len(set(a.jobs) ^ set(b.jobs))
    a_common, b_common = a.with_jobs(common), b.with_jobs(common)
    templates, left_out = complete_in_all([a_common, b_common])
    how = f"estimators differ: {a.estimator} against {b.estimator}" if a.estimator != b.estimator else None
    note = joined([f"{alone} jobs that one model alone has left out" if alone else None, left_out, how])
    shares_a, shares_b = a_common.shares_at(templates), b_common.shares_at(templates)
    for job_group, rows in rows_of_groups(common, group_of).items():
        for k, gender in enumerate(groups):
            scope = Scope(
                engine="probe",
                contrast=CONTRAST,
                gender=gender,
                model_a=a.arm.model,
                model_b=b.arm.model,
                bias_type=a.arm.bias_type,
                setting=a.arm.setting,
                prompt_form=a.arm.prompt_form,
                instruction_a=str(a.arm.instruction_id),
                instruction_b=str(b.arm.instruction_id),
                group_a=job_group,
                group_b=job_group,
            )
            yield from within_jobs(
                shares_a[k, rows], shares_b[k, rows], scope=scope, margins=margins, note=note
            )


# --- the generation engine ----------------------------------------------------------------------------


def between_persona_models(
    run_tables_dir: Path, *, forms: Mapping[str, str], margins: Mapping[str, float], seed: int
) -> tuple[list[Row], list[str]]:
    """Rows welch and paired for every pair of models over common occupations, later named minus earlier.

    Read from the stored srb.csv (women and men apart, GAS(P) Table 14) and representation.csv (share of
    women, template `all`); writes srb_change.csv, old = named first. `forms`: model → prompt form; two
    forms are never compared.
    """
    srb = _stored(run_tables_dir / "srb.csv")
    shares = [row for row in _stored(run_tables_dir / "representation.csv") if row["template_id"] == "all"]
    rows: list[Row] = []
    changes: list[Row] = []
    notes: list[str] = []
    for i, later in enumerate(forms):
        for earlier in list(forms)[:i]:
            if forms[later] != forms[earlier]:
                notes.append(
                    f"{later} ({forms[later]}) and {earlier} ({forms[earlier]}) have different prompt forms,"
                    " so there is no test between them."
                )
                continue
            for gender in ("female", "male"):
                of_gender = [row for row in srb if row["gender"] == gender]
                rows += _persona_rows(of_gender, "srb", "srb", gender, later, earlier, margins, seed)
                changes += _changes(of_gender, gender, earlier, later)
            plain = [row for row in shares if row.get("instruction_id") in (None, 0)]
            if plain:
                rows += _persona_rows(
                    plain, "female_share", "represented_share", "female", later, earlier, margins, seed
                )
    if changes:
        write_table(run_tables_dir / "srb_change.csv", "srb_change", changes)
    return adjust(rows), notes


def _stored(path: Path) -> list[Row]:
    return read_rows(path) if path.exists() else []


def _of_model(rows: Sequence[Row], column: str, model: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for row in rows:
        if row["model"] == model:
            value = row[column]
            found[str(row["occupation"])] = float(value) if isinstance(value, int | float) else None
    return found


def _persona_rows(
    stored: Sequence[Row],
    column: str,
    quantity: str,
    gender: str,
    later: str,
    earlier: str,
    margins: Mapping[str, float],
    seed: int,
) -> list[Row]:
    a, b = _of_model(stored, column, later), _of_model(stored, column, earlier)
    common = sorted(o for o in a if a[o] is not None and b.get(o) is not None)
    n_out = len(a.keys() | b.keys()) - len(common)
    if not a and not b:
        return []
    return within_units(
        np.array([a[o] for o in common], dtype=np.float64),
        np.array([b[o] for o in common], dtype=np.float64),
        scope=Scope(
            engine="personas",
            contrast=CONTRAST,
            model_a=later,
            model_b=earlier,
            quantity=quantity,
            gender=gender,
            unit="occupation",
        ),
        kinds=("welch", "paired"),
        margins=margins,
        seed=seed,
        note=f"{n_out} occupations that not both models have left out" if n_out else None,
    )


def _changes(stored: Sequence[Row], gender: str, old: str, new: str) -> Iterator[Row]:
    """srb_change.csv (GAS(P) Figure 4): one row per occupation that either model has."""
    before, after = _of_model(stored, "srb", old), _of_model(stored, "srb", new)
    for occupation in dict.fromkeys([*before, *after]):
        change = percent_change(before.get(occupation), after.get(occupation), gender)
        yield {
            "model_old": old,
            "model_new": new,
            "occupation": occupation,
            "gender": gender,
            "srb_old": before.get(occupation),
            "srb_new": after.get(occupation),
            "percent_change": change.value,
            "reason": change.reason,
        }
