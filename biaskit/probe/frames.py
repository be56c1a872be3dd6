"""Which templates ask the same thing, in which wording or framing (docs/studies.md#frames)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from biaskit.records import Template
from biaskit.stats.arms import CellValues, CrossedCells, complete_in_all, mean_of
from biaskit.stats.crossed import joined

Levels = tuple[str, ...]
"""An arm of a study with factors: the level of each factor, in their order."""


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """The templates of one bias type by frame, and by arm where they have factors."""

    templates: Mapping[str, tuple[int, ...]]  # frame → its templates, in order
    factors: tuple[tuple[str, Levels], ...] = ()  # factor → its two levels, the first is the baseline
    arms: Mapping[Levels, Mapping[str, int]] | None = None  # arm → frame → template; with factors alone

    def name_of(self, arm: Levels) -> str:
        """An arm as tables name it."""
        return ", ".join(f"{name}={level}" for (name, _), level in zip(self.factors, arm, strict=True))


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """A difference between arms as mean of `plus` minus mean of `minus`, each arm with the same frames.

    An interaction takes that difference at one level of another factor minus the same at its baseline.
    """

    contrast: str  # factors, interactions
    name_a: str
    name_b: str
    at_a: tuple[Sequence[Levels], Sequence[Levels]]  # plus, minus
    at_b: tuple[Sequence[Levels], Sequence[Levels]] | None = None  # None: a main effect, plus against minus


def frame_layouts(templates: Sequence[Template]) -> dict[str, FrameLayout]:
    """The layout of each bias type whose templates have frames."""
    found: dict[str, FrameLayout] = {}
    for bias_type in dict.fromkeys(t.bias_type for t in templates):
        own = [t for t in templates if t.bias_type == bias_type and t.frame]
        if not own:
            continue
        frames: dict[str, list[int]] = {}
        levels: dict[str, dict[str, None]] = {}
        for t in own:
            frames.setdefault(str(t.frame), []).append(t.id)
            for name, level in t.factors:
                levels.setdefault(name, {})[level] = None
        of = {frame: tuple(ids) for frame, ids in frames.items()}
        factors = tuple((name, tuple(found_levels)) for name, found_levels in levels.items())
        arms = None
        if factors and all(len(found_levels) == 2 for _, found_levels in factors):
            arms = {arm: _of_arm(own, factors, arm) for arm in product(*(ls for _, ls in factors))}
        found[bias_type] = FrameLayout(of, factors, arms)
    return found


def _of_arm(
    templates: Sequence[Template], factors: Sequence[tuple[str, Levels]], arm: Levels
) -> dict[str, int]:
    wanted = dict(zip((name for name, _ in factors), arm, strict=True))
    return {str(t.frame): t.id for t in templates if dict(t.factors) == wanted}


def effects_of(layout: FrameLayout) -> list[FactorEffect]:
    """Each factor's main effect, over the other factors' levels alike, then each pair's interaction."""
    arms = list(layout.arms or ())

    place = {name: i for i, (name, _) in enumerate(layout.factors)}

    def at(wanted: Mapping[str, str]) -> list[Levels]:
        return [arm for arm in arms if all(arm[place[name]] == level for name, level in wanted.items())]

    found = [
        FactorEffect("factors", f"{name}={other}", f"{name}={base}", (at({name: other}), at({name: base})))
        for name, (base, other) in layout.factors
    ]
    for i, (first, (base, other)) in enumerate(layout.factors):
        for second, seconds in layout.factors[i + 1 :]:
            parts = [
                (at({first: other, second: level}), at({first: base, second: level}))
                for level in reversed(seconds)
            ]
            name_b, name_a = (f"{first} where {second}={level}" for level in seconds)
            found.append(FactorEffect("interactions", name_a, name_b, *parts))
    return found


def shares_of_arms(
    block: CrossedCells, layout: FrameLayout
) -> tuple[dict[Levels, CellValues], tuple[str, ...], str | None]:
    """The shares of each arm, `[groups, I, F]` on the same F frames in the same order, and what is left out.

    A frame counts where it is complete for every job in every arm: its arms differ in their framing alone.
    """
    arms = layout.arms or {}
    whole, note = complete_in_all([block])
    kept = [
        frame
        for frame in sorted(layout.templates)
        if all(frame in own and own[frame] in whole for own in arms.values())
    ]
    out = [frame for frame in sorted(layout.templates) if frame not in kept]
    lacking = f"frame{'s' if len(out) > 1 else ''} {', '.join(out)} left out: not complete in every arm"
    shares = {arm: block.shares_at([own[frame] for frame in kept]) for arm, own in arms.items()}
    return shares, tuple(kept), joined([note, lacking if out else None])


def sides_of(
    effect: FactorEffect, shares: Mapping[Levels, CellValues]
) -> tuple[CellValues, CellValues, float]:
    """Both sides of an effect as cells `[groups, I, F]`, and the largest value that a side can have."""
    plus, minus = (mean_of([shares[arm] for arm in arms]) for arms in effect.at_a)
    if effect.at_b is None:
        return plus, minus, 1.0
    plus_b, minus_b = (mean_of([shares[arm] for arm in arms]) for arms in effect.at_b)
    return plus - minus, plus_b - minus_b, 2.0


def notes_of_frames(layouts: Mapping[str, FrameLayout]) -> list[str]:
    """What a reader of the other tables must know of templates that stand in frames; each line once."""
    return list(dict.fromkeys(_note(bias_type, layout) for bias_type, layout in layouts.items()))


def _note(bias_type: str, layout: FrameLayout) -> str:
    if layout.factors and layout.arms is None:
        return f"the {bias_type} templates chosen leave a factor with one level: no factors are compared"
    if layout.arms is not None:
        return (
            f"probe_groups.csv holds means over the {len(layout.arms)} framings ({bias_type} prompts), and"
            " probe_factors.csv each of them"
        )
    return (
        "the intervals of probe_groups.csv and tests.csv take each wording as drawn by itself, though"
        f" {len(layout.templates)} frames hold them: they are too short where frames differ"
        " (probe_wording.csv: var_frame)"
    )
