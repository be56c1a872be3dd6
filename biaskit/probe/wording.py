"""How much of what a study says hangs on the wording of a frame: rows of probe_wording.csv.

See docs/methods.md#wording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from biaskit.probe.contrasts import Choices
from biaskit.stats.arms import BOUNDED, Arm, CrossedCells, complete_in_all, group_pairs, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Row
from biaskit.stats.crossed import joined
from biaskit.stats.nested import nested_components, wording_share
from biaskit.stats.proportions import wilson
from biaskit.wording import ROUNDING

EVERY_FRAME = "all"
UNEQUAL = "the frames have different numbers of wordings: no components"
POINTS = "by points between bounds"
_EMPTY: Row = dict.fromkeys(
    (
        *("mean", "least", "greatest", "n_wordings", "n_same_sign", "same_sign_share", "ci_low", "ci_high"),
        *("var_job", "var_frame", "var_wording", "var_job_frame", "var_residual", "n_jobs", "n_frames"),
        *("wording_share", "wording_share_low", "wording_share_high"),
    )
)
"""A row holds what its kind has; everything else in it is empty."""
Frames = Mapping[str, list[int]]
"""Frame → the places of its complete templates in an array."""


def wording_rows(
    blocks: Mapping[Arm, CrossedCells], group_of: Mapping[str, str], choices: Choices
) -> list[Row]:
    """Rows of each block whose templates are wordings of frames, by gender: none for a study without frames.

    - One job group (`group_b` empty), frame "all": the components of the cells' shares.
    - Two of them, each frame: the difference of their means in each wording, and in how many it has the
      sign that it has over all wordings of all frames; frame "all": that, and the share of wording.
    """
    made: list[Row] = []
    for block in blocks.values():
        layout = choices.layouts.get(block.arm.bias_type)
        if layout is None or layout.factors or all(len(ids) < 2 for ids in layout.templates.values()):
            continue
        templates, note = complete_in_all([block])
        place = {template: j for j, template in enumerate(templates)}
        frames = {
            frame: kept
            for frame, ids in layout.templates.items()
            if (kept := [place[t] for t in ids if t in place])
        }
        note = joined([note, _draws(block)])
        rows_of = rows_of_groups(block.jobs, group_of)
        shares = block.shares_at(templates).point
        scope: Row = {**_EMPTY, **block.arm._asdict(), "estimator": block.estimator}
        for k, gender in enumerate(choices.groups):
            for group, rows in rows_of.items():
                named = {**scope, "group_a": group, "group_b": None, "gender": gender}
                made.append(_components(named, shares[k, rows], frames, note))
            for a, b in group_pairs(list(rows_of)):
                difference = shares[k, rows_of[a]].mean(axis=0) - shares[k, rows_of[b]].mean(axis=0)
                named = {**scope, "group_a": a, "group_b": b, "gender": gender}
                named["n_jobs"] = len(rows_of[a]) + len(rows_of[b])
                made += _signs(named, difference, frames, note)
    return made


def _draws(block: CrossedCells) -> str | None:
    """What else varies between wordings where an estimator does not give the number itself."""
    if block.estimator == "sampling":
        return "the draws' own noise is in the spread of the wordings"
    return POINTS if block.estimator == BOUNDED else None


def _components(named: Row, cells: FloatArray, frames: Frames, note: str | None) -> Row:
    """Components of one group's cells `[I, J K]`."""
    row = {
        **named,
        "frame": EVERY_FRAME,
        "n_jobs": cells.shape[0],
        "n_frames": len(frames),
        "n_wordings": sum(map(len, frames.values())),
    }
    if not row["n_wordings"] or np.isnan(cells).any():
        return {**row, "reason": note or "a job has no share in any template"}
    own = [cells[:, places] for places in frames.values()]
    row["mean"] = float(np.concatenate(own, axis=1).mean())
    if len({part.shape[1] for part in own}) > 1:
        return {**row, "reason": joined([note, UNEQUAL])}
    found = nested_components(np.stack(own, axis=1))
    names = ("job", "frame", "wording", "job_frame", "residual")
    components = {f"var_{name}": getattr(found, name) for name in names}
    return {**row, **components, "reason": joined([note, found.reason])}


def _signs(named: Row, difference: FloatArray, frames: Frames, note: str | None) -> Iterator[Row]:
    """Rows of the difference between two groups, `[J K]`: of each frame, then of all."""
    parts = {frame: difference[places] for frame, places in frames.items()}
    every = np.concatenate(list(parts.values())) if parts else difference[:0]
    if not every.size or np.isnan(every).any():
        yield {**named, "frame": EVERY_FRAME, "reason": note or "a job has no share in any template"}
        return
    sign = _sign(float(every.mean()))
    for frame, values in parts.items():
        ends = None if sign == 0 else wilson(_same(values, sign), values.size)
        low, high = ends or (None, None)
        row = {**named, "frame": frame, "n_frames": 1, **_summary(values, sign)}
        yield {**row, "ci_low": low, "ci_high": high, "reason": joined([note, _none(sign)])}
    row = {**named, "frame": EVERY_FRAME, "n_frames": len(parts), **_summary(every, sign)}
    if len({values.size for values in parts.values()}) > 1:
        yield {**row, "reason": joined([note, _none(sign), UNEQUAL])}
        return
    share = wording_share(np.stack(list(parts.values())))
    low, high = share.ci95 or (None, None)
    yield {
        **row,
        "var_frame": share.frame,
        "var_wording": share.wording,
        "wording_share": share.share,
        "wording_share_low": low,
        "wording_share_high": high,
        "reason": joined([note, _none(sign), share.reason]),
    }


def _summary(values: FloatArray, sign: int) -> Row:
    same = None if sign == 0 else _same(values, sign)
    return {
        "mean": float(values.mean()),
        "least": float(values.min()),
        "greatest": float(values.max()),
        "n_wordings": values.size,
        "n_same_sign": same,
        "same_sign_share": None if same is None else same / values.size,
    }


def _sign(value: float) -> int:
    """1 or −1; 0 for what rounding leaves of no difference."""
    return 0 if abs(value) <= ROUNDING else 1 if value > 0 else -1


def _same(values: FloatArray, sign: int) -> int:
    return int((sign * values > ROUNDING).sum())


def _none(sign: int) -> str | None:
    return "no difference over all wordings: no sign" if sign == 0 else None
