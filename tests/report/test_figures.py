"""Figures of a report: what they plot is what the tables say, whatever the labels, whatever is undefined."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from places import TESTS

from biaskit.report.content import Content
from biaskit.report.figures import Figure, draw_all, files_of, groups, probe, srb, transfer
from biaskit.report.figures import between_models as models
from biaskit.report.figures import items as item_by_item
from biaskit.report.figures import labour as against_labour
from biaskit.report.figures.lettering import BOX_NOTE, clean, shorten, text_width
from biaskit.report.figures.sheet import rules
from biaskit.report.figures.style import PAPER
from biaskit.report.figures.view import views
from biaskit.runs.collection import Model, Part

Row = dict[str, Any]
GROUPS = ("male", "female", "diverse")
BLOCK = {"instruction_id": 0, "setting": "plain", "prompt_form": "raw"}


def model(label: str, form: str = "raw") -> Model:
    return Model(label, f"scripted:{label}", "0", "unknown", "scripted", form, "exact", "run")


def items(n: int) -> list[tuple[str, str, float]]:
    """Names, groups and labour shares, not in the order of the shares."""
    shares = [round(0.02 + 0.96 * i / max(n - 1, 1), 4) for i in range(n)]
    random.Random(5).shuffle(shares)
    return [
        (f"occupation {i}", "female-dominated" if s >= 0.5 else "male-dominated", s)
        for i, s in enumerate(shares)
    ]


def around(value: float | None, half: float, low: float = 0.0, high: float = 1.0) -> tuple[Any, Any]:
    return (None, None) if value is None else (max(low, value - half), min(high, value + half))


def probe_tables(
    labels: Sequence[str],
    jobs: Sequence[tuple[str, str, float]],
    *,
    undefined: bool = False,
    instructions: int = 0,
    settings: Sequence[str] = ("plain",),
) -> dict[str, list[Row]]:
    rnd = random.Random(1)
    tables: dict[str, list[Row]] = {
        name: [] for name in ("probe_jobs", "probe_groups", "probe_variance", "tests")
    }
    for label in labels:
        tilt = rnd.uniform(-0.2, 0.5)
        for bias_type in ("explicit", "implicit"):
            for setting in settings:
                for instruction in range(instructions + 1):
                    block = {**BLOCK, "setting": setting, "instruction_id": instruction}
                    head = {"model": label, "bias_type": bias_type, **block, "estimator": "exact"}
                    for job, group, labour in jobs:
                        female = (
                            0.4 + tilt * (labour - 0.5) * (1 - 0.12 * instruction) + rnd.uniform(-0.12, 0.12)
                        )
                        female = min(0.8, max(0.02, female))
                        shares: dict[str, float | None] = {
                            "female": female,
                            "diverse": 0.15,
                            "male": 0.85 - female,
                        }
                        if undefined:
                            shares = dict.fromkeys(shares)
                        row = {**head, "job": job, "job_group": group, "labour_female_share": labour}
                        for g in GROUPS:
                            low, high = around(shares[g], 0.06)
                            row |= {
                                f"{g}_share": shares[g],
                                f"{g}_share_ci_low": low,
                                f"{g}_share_ci_high": high,
                            }
                        row |= {"coverage": 0.2, "n_templates": 25, "reason": ""}
                        tables["probe_jobs"].append(row)
                    _groups(tables, head, jobs, undefined)
    _contrasts(tables, labels, jobs, undefined)
    return tables


def _groups(tables: dict[str, list[Row]], head: Row, jobs: Sequence[Any], undefined: bool) -> None:
    for group in dict.fromkeys(group for _, group, _ in jobs):
        of_jobs = [
            r
            for r in tables["probe_jobs"]
            if r["job_group"] == group and all(r[k] == v for k, v in head.items())
        ]
        for g in GROUPS:
            share = None if undefined else float(np.mean([r[f"{g}_share"] for r in of_jobs]))
            low, high = around(share, 0.05)
            tables["probe_groups"].append(
                {
                    **head,
                    "job_group": group,
                    "gender": g,
                    "share": share,
                    "ci_low": low,
                    "ci_high": high,
                    "coverage": None if undefined else 0.2,
                    "share_low": None,
                    "share_high": None,
                    "coverage_median": 0.004 if head["model"].endswith("1") else 0.2,
                    "n_jobs": len(of_jobs),
                    "n_templates": 25,
                    "reason": "",
                }
            )
            variances: tuple[Any, Any, Any] = (None, None, None) if undefined else (0.03, 0.01, 0.005)
            names = ("var_job", "var_template", "var_residual")
            tables["probe_variance"].append(
                {**head, "job_group": group, "gender": g, **dict(zip(names, variances, strict=True))}
            )


def contrast_row(**given: Any) -> Row:
    names = (
        "engine family quantity gender model_a model_b bias_type setting prompt_form "
        "instruction_a instruction_b group_a group_b kind unit reason"
    )
    numbers = (
        "estimate effect_size statistic dof p_value p_adjusted ci_low ci_high n_a n_b ci90_low ci90_high "
        "margin"
    )
    return {**dict.fromkeys(names.split(), ""), **dict.fromkeys(numbers.split()), "equivalent": None, **given}


def _contrasts(
    tables: dict[str, list[Row]], labels: Sequence[str], jobs: Sequence[Any], undefined: bool
) -> None:
    """Rows of tests for instructions against none, made of the groups' means."""
    shares = {
        (r["model"], r["bias_type"], r["setting"], r["job_group"], r["gender"], r["instruction_id"]): r
        for r in tables["probe_groups"]
    }
    for (label, bias_type, setting, group, gender, instruction), row in shares.items():
        if not instruction:
            continue
        bare = shares[label, bias_type, setting, group, gender, 0]
        estimate = None if undefined else row["share"] - bare["share"]
        low, high = around(estimate, 0.03, -1)
        tables["tests"].append(
            contrast_row(
                engine="probe",
                family="probe/share/crossed/instructions",
                quantity="share",
                gender=gender,
                model_a=label,
                model_b=label,
                bias_type=bias_type,
                setting=setting,
                prompt_form="raw",
                instruction_a=str(instruction),
                instruction_b="0",
                group_a=group,
                group_b=group,
                kind="crossed",
                unit="job",
                estimate=estimate,
                ci_low=low,
                ci_high=high,
                n_a=row["n_jobs"],
                margin=0.05,
                equivalent=None if estimate is None else abs(estimate) < 0.02,
            )
        )


def between_models(
    tables: Mapping[str, list[Row]], labels: Sequence[str], setting: str = "plain"
) -> list[Row]:
    shares = {
        (r["model"], r["bias_type"], r["job_group"], r["gender"]): r
        for r in tables["probe_groups"]
        if r["instruction_id"] == 0 and r["setting"] == setting
    }
    rows = []
    for i, later in enumerate(labels):
        for earlier in labels[:i]:
            for (label, bias_type, group, gender), row in shares.items():
                if label != later:
                    continue
                other = shares[earlier, bias_type, group, gender]
                estimate = None if row["share"] is None else row["share"] - other["share"]
                low, high = around(estimate, 0.04, -1)
                rows.append(
                    contrast_row(
                        engine="probe",
                        family="probe/share/crossed/models",
                        quantity="share",
                        gender=gender,
                        model_a=later,
                        model_b=earlier,
                        bias_type=bias_type,
                        setting="plain",
                        prompt_form="raw",
                        instruction_a="0",
                        instruction_b="0",
                        group_a=group,
                        group_b=group,
                        kind="crossed",
                        unit="job",
                        estimate=estimate,
                        ci_low=low,
                        ci_high=high,
                        n_a=row["n_jobs"],
                        margin=0.05,
                        equivalent=None if estimate is None else abs(estimate) < 0.02,
                    )
                )
    return rows


def words_of(lists: Sequence[Row], label: str) -> list[Row]:
    """Three words of each list of a model, one of them a gender word."""
    scope = ("model", "occupation", "origin", "gender", "against", "method")
    return [
        {
            **{name: one[name] for name in scope},
            "rank": rank,
            "word": word if rank == 1 else f"{word}{i}",
            "z": 9.0 - rank - 0.01 * i,
            "count_target": 30,
            "documents_target": 20 + i,
            "is_name": False,
            "is_gender_word": rank == 1,
        }
        for i, one in enumerate(lists)
        if one["model"] == label
        for rank, word in enumerate(("she", "kind", "strict"), 1)
    ]


def personas_tables(
    labels: Sequence[str],
    jobs: Sequence[tuple[str, str, float]],
    *,
    undefined: bool = False,
    word: str = "word",
) -> dict[str, list[Row]]:
    rnd = random.Random(2)
    names = ("representation", "deciles", "srb", "text_transfer", "word_lists", "clusters", "silhouette")
    names = (*names, "marked_words")
    tables: dict[str, list[Row]] = {name: [] for name in names}
    for label in labels:
        tilt = rnd.uniform(0, 0.8)
        for occupation, _, labour in jobs:
            share = (
                None
                if undefined
                else min(0.97, max(0.03, 0.5 + tilt * (labour - 0.5) + rnd.uniform(-0.1, 0.1)))
            )
            other = None if undefined else rnd.uniform(0, 0.06)
            (low, high), (nb_low, nb_high) = around(share, 0.07), around(other, 0.02)
            tables["representation"].append(
                {
                    "model": label,
                    "occupation": occupation,
                    "template_id": "all",
                    "n_texts": 200,
                    **dict.fromkeys(("n_female", "n_male", "n_nonbinary"), 40),
                    "female_share": share,
                    "ci_low": low,
                    "ci_high": high,
                    "nonbinary_share": other,
                    "nonbinary_ci_low": nb_low,
                    "nonbinary_ci_high": nb_high,
                    "labour_female_share": labour,
                    "reason": "",
                }
            )
            for gender, sign in (("female", -1), ("male", 1)):
                gone = undefined or rnd.random() < 0.1
                tables["srb"].append(
                    {
                        "model": label,
                        "occupation": occupation,
                        "gender": gender,
                        "srb": None if gone else sign * rnd.uniform(-0.05, 0.4),
                        "p_value": None if gone else rnd.random() * 0.2,
                        "vectors": "corpus:1234",
                        "reason": "empty" if gone else "",
                    }
                )
                for origin in ("associated", "specified"):
                    for against in ("male" if gender == "female" else "female",):
                        tables["word_lists"].append(
                            {
                                "model": label,
                                "occupation": occupation,
                                "origin": origin,
                                "gender": gender,
                                "against": against,
                                "method": "calibrated",
                                "n_marked_beyond": None if undefined else rnd.randrange(0, 40),
                                "null_p95_beyond": None if undefined else rnd.uniform(0, 9),
                                "p_value_beyond": None
                                if undefined
                                else {"female": 0.0001, "male": 0.4}[gender],
                                "n_target": 100,
                            }
                        )
        tables["marked_words"] += words_of(tables["word_lists"], label)
        tables["text_transfer"] += areas_of(label, [name for name, *_ in jobs], undefined, rnd)
        for side in ("female-dominated", "male-dominated"):
            for decile in range(10):
                inside = [
                    r
                    for r in tables["representation"]
                    if r["model"] == label
                    and r["female_share"] is not None
                    and (r["labour_female_share"] >= 0.5) == (side == "female-dominated")
                    and int(r["female_share"] * 10) == decile
                ]
                row = {
                    "model": label,
                    "template_id": "all",
                    "labour_side": side,
                    "n_occupations": len(inside),
                }
                tables["deciles"].append({**row, "decile_low": decile / 10, "decile_high": decile / 10 + 0.1})
    for label in [*labels, "all"]:
        for cluster in range(1, 13):
            n_f, n_m = cluster, 13 - cluster
            tables["clusters"].append(
                {
                    "model": label,
                    "cluster": cluster,
                    "words": " ".join(f"{word}{cluster}{i}" for i in "abcdefgh"),
                    "n_occupations_female": n_f,
                    "n_occupations_male": n_m,
                    "female_share": None
                    if undefined
                    else min(1.0, n_f / 13 + (label != "all") * rnd.uniform(0, 0.1)),
                    "kept": abs(n_f - n_m) > 3,
                    "category": "",
                }
            )
    for k in range(2, 40, 2):
        tables["silhouette"].append(
            {"k": k, "silhouette": None if undefined else 0.1 + 0.08 * np.sin(k / 9), "chosen": k == 14}
        )
    return tables


def gaps_of(labels: Sequence[str], jobs: Sequence[tuple[str, str, float]]) -> tuple[list[Row], list[Row]]:
    rnd = random.Random(3)
    rows, tests = [], []
    for label in labels:
        for bias_type in ("explicit", "implicit"):
            for occupation, _, labour in jobs:
                gap = 2 * labour - 1
                rows.append(
                    {
                        "model": label,
                        "occupation": occupation,
                        "bias_type": bias_type,
                        "prompt_form": "raw",
                        "probe_gap": 0.5 * gap + rnd.uniform(-0.3, 0.3),
                        "represented_gap": 0.7 * gap + rnd.uniform(-0.3, 0.3),
                        "srb_spread": None if rnd.random() < 0.2 else 0.2 + rnd.uniform(-0.3, 0.3),
                        "labour_gap": gap,
                        "vectors": "corpus:1234",
                        "reason": "",
                    }
                )
            for quantity in (
                "represented_gap~probe_gap",
                "srb_spread~probe_gap",
                "srb_spread~represented_gap",
            ):
                tests.append(
                    contrast_row(
                        engine="both",
                        quantity=quantity,
                        kind="spearman",
                        model_a=label,
                        model_b=label,
                        bias_type=bias_type,
                        estimate=0.62,
                        ci_low=0.31,
                        ci_high=0.83,
                        n_a=len(jobs),
                    )
                )
    return rows, tests


def areas_of(label: str, jobs: Sequence[str], undefined: bool, rnd: random.Random) -> list[Row]:
    rows = []
    for cell in transfer.CELLS:
        for job in (*jobs, "all"):
            auc = None if undefined else rnd.uniform(0.4, 0.9)
            low, high = around(auc if job == "all" else None, 0.08)
            scope = {"model": label, "occupation": job, "trained_on": cell[0], "tested_on": cell[1]}
            numbers = {"auc": auc, "ci_low": low, "ci_high": high, "p_value": auc and 0.1}
            rows.append(
                {**scope, **numbers, "n_female": 20, "n_male": 20, "reason": "few" if undefined else ""}
            )
    return rows


def content(
    labels: Sequence[str] = ("A", "B"),
    n_items: int = 6,
    *,
    undefined: bool = False,
    instructions: int = 2,
    settings: Sequence[str] = ("plain",),
    rename: str = "",
    word: str = "word",
) -> Content:
    """Both engines on the same models and occupations."""
    jobs = [(f"{rename}{name}", group, share) for name, group, share in items(n_items)]
    probed = probe_tables(labels, jobs, undefined=undefined, instructions=instructions, settings=settings)
    drawn = personas_tables(labels, jobs, undefined=undefined, word=word)
    tests = between_models(probed, labels)
    between: dict[str, list[Row]] = {"tests": tests}
    if not undefined:
        gaps, relations = gaps_of(labels, jobs)
        between = {"tests": [*tests, *relations], "gaps": gaps}
        between["srb_change"] = changes_of(drawn["srb"], labels)
    models = tuple(model(label) for label in labels)
    told = tuple({"id": i, "text": f"Instruction number {i} {rename}", "level": None} for i in range(1, 7))
    common: dict[str, Any] = {
        "summary": "",
        "models": models,
        "runs": ("run",),
        "signatures": ("s",),
        "notes": (),
    }
    return Content(
        "title",
        (
            Part(
                "probe",
                "gasp-occupations",
                tables=probed,
                analyses=({},),
                groups=GROUPS,
                contrast=("female", "male"),
                instructions=told,
                **common,
            ),
            Part("personas", "gasp", tables=drawn, analyses=({},), **common),
        ),
        between,
    )


def changes_of(srb: Sequence[Row], labels: Sequence[str]) -> list[Row]:
    of = {(r["model"], r["occupation"], r["gender"]): r["srb"] for r in srb}
    rows = []
    for i, new in enumerate(labels):
        for old in labels[:i]:
            for (label, occupation, gender), after in of.items():
                if label != new:
                    continue
                before = of[old, occupation, gender]
                change = (
                    None if before is None or after is None or abs(before) < 0.01 else 100 * (after - before)
                )
                rows.append(
                    {
                        "model_old": old,
                        "model_new": new,
                        "occupation": occupation,
                        "gender": gender,
                        "srb_old": before,
                        "srb_new": after,
                        "percent_change": change,
                        "reason": "",
                    }
                )
    return rows


def only(maker: Any, made: Content, engine: str = "probe") -> dict[str, Figure]:
    """The figures of one maker alone, where a test needs no other."""
    with rules():
        return named([figure for view in views(made, engine) for figure in maker(view)])


def named(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


@pytest.fixture(scope="module")
def usual() -> Content:
    return content(("A", "B"), 6, settings=("plain", "dialogue"))


@pytest.fixture(scope="module")
def drawn(usual: Content) -> dict[str, Figure]:
    return named(draw_all(usual))


KINDS = {
    *("answer", "labour", "words-1", "words-2"),
    *("jobs", "groups", "variance", "debiasing", "models", "scatter"),
    *("srb", "transfer", "gaps-explicit", "gaps-implicit"),
}


def panels(figure: Figure) -> list[Any]:
    """The axes with data."""
    return list(figure.sheet.figure.axes)


def markers(axes: Any) -> list[tuple[str, str, list[float], list[float]]]:
    """Marker, edge colour and places of every row of markers."""
    found = []
    for line in axes.lines:
        if line.get_linestyle() == "None" and line.get_marker() != "None":
            x, y = (np.asarray(each, dtype=float).tolist() for each in line.get_data())
            found.append((line.get_marker(), line.get_markeredgecolor(), x, y))
    return found


def texts(figure: Figure) -> list[str]:
    """Every text of a figure."""
    from matplotlib.text import Text

    return [found.get_text() for found in figure.sheet.figure.findobj(Text)]


# --- what is drawn is what the tables say --------------------------------------------------------------


@pytest.mark.slow
def test_every_kind_is_drawn_in_two_widths(usual: Content) -> None:
    made = named(draw_all(usual))
    assert KINDS == set(made)
    for name, figure in made.items():
        assert figure.column is not None
        assert f"{name}-column" == figure.column.name
        assert 2 * figure.column.sheet.width < figure.sheet.width


def test_jobs_stand_sorted_by_labour_share_at_their_shares(usual: Content, drawn: dict[str, Figure]) -> None:
    rows = [
        r for r in usual.parts[0].tables["probe_jobs"] if r["instruction_id"] == 0 and r["setting"] == "plain"
    ]
    order = sorted({(r["job"], r["labour_female_share"]) for r in rows}, key=lambda pair: -pair[1])
    figure = drawn["jobs"]
    labels = [text for text in texts(figure) if text.startswith("occupation")]
    assert [job for job, _ in order] == labels
    for axes, bias_type in zip(panels(figure), ("explicit", "implicit"), strict=True):
        dots = markers(axes)
        for label, marker in (("A", "o"), ("B", "s")):
            expected = [
                next(
                    r["female_share"]
                    for r in rows
                    if (r["job"], r["model"], r["bias_type"]) == (job, label, bias_type)
                )
                for job, _ in order
            ]
            assert [expected] == [x for kind, _, x, _ in dots if kind == marker]
        assert [[share for _, share in order]] == [x for kind, _, x, _ in dots if kind == "d"]


def test_intervals_are_those_of_the_table(usual: Content, drawn: dict[str, Figure]) -> None:
    rows = [
        r
        for r in usual.parts[0].tables["probe_jobs"]
        if (r["instruction_id"], r["setting"], r["bias_type"], r["model"]) == (0, "plain", "explicit", "B")
    ]
    rows.sort(key=lambda row: -row["labour_female_share"])
    expected = [end for r in rows for end in (r["female_share_ci_low"], r["female_share_ci_high"])]
    ends = [
        [x for x in np.asarray(line.get_xdata(), dtype=float) if x == x]
        for line in panels(drawn["jobs"])[0].lines
        if line.get_color() == "#d55e00" and line.get_linestyle() == "-"
    ]
    assert [expected] == ends


def test_positions_in_the_svg_are_the_numbers(usual: Content, drawn: dict[str, Figure]) -> None:
    """The first panel's frame is found by its first and last tick, then places are read back as shares."""
    root = ElementTree.fromstring(drawn["jobs"].svg)
    namespace = "{http://www.w3.org/2000/svg}"
    ticks = {
        text.text: float(text.get("x") or "nan") for text in reversed(list(root.iter(f"{namespace}text")))
    }
    zero, one = ticks["0"], ticks["100\u00a0%"]
    places = []
    for parent in root.iter():
        colour = parent.get("fill")
        for use in parent.findall(f"{namespace}use"):
            if (use.get("fill") or colour) == "#0072b2":
                places.append((float(use.get("x") or "nan") - zero) / (one - zero))
    rows = [
        r["female_share"]
        for r in usual.parts[0].tables["probe_jobs"]
        if (r["instruction_id"], r["setting"], r["bias_type"], r["model"]) == (0, "plain", "explicit", "A")
    ]
    inside = sorted(place for place in places if 0 <= place <= 1)
    assert len(rows) == len(inside)
    assert np.allclose(sorted(rows), inside, atol=0.002)


def test_stacked_bars_have_the_shares_as_lengths(usual: Content, drawn: dict[str, Figure]) -> None:
    rows = {
        (r["model"], r["gender"]): r["share"]
        for r in usual.parts[0].tables["probe_groups"]
        if (r["instruction_id"], r["setting"], r["bias_type"], r["job_group"])
        == (0, "plain", "explicit", "female-dominated")
    }
    bars = panels(drawn["groups"])[0].patches
    of_a = [bar for bar in bars if bar.get_y() < 0.5]
    assert ["#e69f00", "#8f84b0", "#009e73"] == [hexed(bar.get_facecolor()) for bar in of_a]
    assert np.allclose(
        [rows["A", g] for g in ("female", "diverse", "male")], [bar.get_width() for bar in of_a]
    )
    assert 3 == len({bar.get_hatch() for bar in of_a})


def hexed(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def test_little_coverage_stands_in_brackets() -> None:
    figure = only(probe.groups, content(("M0", "M1"), 4))["groups"]
    assert "[0.2]" in texts(figure)
    assert "0.2" in texts(figure)


def test_effects_stand_at_their_estimates_with_settings_apart(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    found = {
        (r["setting"], r["instruction_a"]): r["estimate"]
        for r in usual.parts[0].tables["tests"]
        if (r["model_a"], r["bias_type"], r["group_a"], r["gender"])
        == ("A", "explicit", "female-dominated", "female")
    }
    dots = [(x, y) for kind, _, x, y in markers(panels(drawn["debiasing"])[0]) if kind == "o"]
    plain, dialogue = dots
    assert plain[0] == [found["plain", "1"], found["plain", "2"]]
    assert dialogue[0] == [found["dialogue", "1"], found["dialogue", "2"]]
    assert plain[1][0] < dialogue[1][0]


@pytest.mark.parametrize(
    ("ci", "equivalent", "marker"),
    [
        ((0.01, 0.2), False, "o"),
        ((-0.02, 0.03), True, "s"),
        ((0.01, 0.03), True, "D"),
        ((-0.1, 0.1), False, "o"),
    ],
)
def test_the_shape_of_a_difference_tells_its_verdict(
    ci: tuple[float, float], equivalent: bool, marker: str
) -> None:
    made = content(("A", "B"), 4)
    tests = [
        {
            **r,
            "estimate": sum(ci) / 2,
            "ci_low": ci[0],
            "ci_high": ci[1],
            "equivalent": equivalent,
            "verdict": None,
            "p_value": None,
        }
        for r in made.between["tests"]
        if r["engine"] == "probe"
    ]
    figure = only(models.models, replace(made, between={"tests": tests}))["models"]
    shapes = {(kind, hollow(line)) for line in data_lines(panels(figure)[0]) for kind in [line.get_marker()]}
    expected_hollow = (not equivalent and ci[0] < 0) or (equivalent and ci[0] > 0)
    assert {(marker, expected_hollow)} == shapes


def data_lines(axes: Any) -> list[Any]:
    return [line for line in axes.lines if line.get_marker() not in ("None", None, "")]


def hollow(line: Any) -> bool:
    return line.get_markerfacecolor() in ("none", PAPER)


def test_the_margin_is_a_band_in_the_forest(drawn: dict[str, Figure]) -> None:
    axes = panels(drawn["models"])[0]
    uprights = {
        round(float(line.get_xdata()[0]), 6) for line in axes.lines if len(set(line.get_xdata())) == 1
    }
    assert {-0.05, 0.05, 0.0} <= uprights


def test_many_pairs_become_a_row_for_each_model() -> None:
    labels = [f"M{i}" for i in range(9)]
    made = content(labels, 4, instructions=0)
    figure = only(models.models, made)["models"]
    for axes, bias_type in zip(panels(figure), ("explicit", "implicit"), strict=True):
        rows = [
            row
            for row in made.parts[0].tables["probe_groups"]
            if (row["gender"], row["bias_type"]) == ("female", bias_type)
        ]
        expected = {(row["share"], labels.index(row["model"])) for row in rows}
        assert expected == {(x, y) for line in data_lines(axes) for x, y in line.get_xydata()}
    assert not only(models.models, content(labels[:7], 2, instructions=0)), (
        "the first picture has all of them"
    )


def test_scores_stand_at_their_numbers_full_where_they_lie_outside_their_null(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    rows = usual.parts[1].tables["srb"]
    for axes, label in zip(panels(drawn["srb"]), "AB", strict=True):
        for gender, marker in (("female", "o"), ("male", "s")):
            own = [row for row in rows if (row["model"], row["gender"]) == (label, gender)]
            lines = [line for line in data_lines(axes) if line.get_marker() == marker]
            for full in (True, False):
                expected = {
                    row["srb"] for row in own if row["srb"] is not None and (row["p_value"] < 0.05) == full
                }
                found = {x for line in lines if hollow(line) != full for x in line.get_xdata() if x == x}
                assert expected == found
        undefined = [row for row in rows if row["model"] == label and row["srb"] is None]
        assert len(undefined) == sum(len(x) for kind, _, x, _ in markers(axes) if kind == "_")
    assert any(row["srb"] is None for row in rows)


def test_areas_stand_at_their_means_with_single_occupations_behind(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    figure, rows = drawn["transfer"], usual.parts[1].tables["text_transfer"]
    axes = panels(figure)[0]
    found = {x for kind, _, xs, _ in markers(axes) if kind in "os" for x in xs}
    assert found == {row["auc"] for row in rows if row["occupation"] == "all"}
    ends = {end for row in rows for end in (row["ci_low"], row["ci_high"]) if row["occupation"] == "all"}
    lines = {round(float(x), 9) for line in axes.lines for x in line.get_xdata() if x == x}
    assert {round(end, 9) for end in ends} <= lines
    assert {round(row["auc"], 9) for row in rows} <= lines  # single occupations too
    assert 0.5 in lines
    assert "no verdict" in figure.alt
    assert "learnt with, tested without" in texts(figure)


def test_the_words_of_an_area_are_those_of_its_verdict() -> None:
    made = content(("A",), 3)
    part = made.parts[1]
    row = contrast_row(
        engine="personas", family="personas/auc_transfer/paired/genders", quantity="auc_transfer",
        model_a="A", model_b="A", kind="paired", estimate=0.2, ci_low=0.1, ci_high=0.3, p_value=0.001,
    )  # fmt: skip
    for verdict, words in transfer.VERDICTS.items():
        tables = {**part.tables, "tests": [{**row, "verdict": verdict}]}
        shown = replace(made, parts=(made.parts[0], replace(part, tables=tables)))
        assert f", {words}); A, learnt without" in only(transfer.areas, shown, "personas")["transfer"].alt
    control = [{**one, "reason": "hold-out: a positive control"} for one in part.tables["text_transfer"]]
    shown = replace(made, parts=(replace(part, tables={**part.tables, "text_transfer": control}),))
    assert (
        "Positive control (hold-out): no result."
        in only(transfer.areas, shown, "personas")["transfer"].caption
    )


def test_scatter_and_gaps_plot_the_tables(usual: Content, drawn: dict[str, Figure]) -> None:
    of_a = [r for r in usual.parts[1].tables["representation"] if r["model"] == "A"]
    (dots,) = markers(panels(drawn["scatter"])[0])
    assert ([r["labour_female_share"] for r in of_a], [r["female_share"] for r in of_a]) == (dots[2], dots[3])
    gaps = [r for r in usual.between["gaps"] if (r["model"], r["bias_type"]) == ("B", "implicit")]
    dots = next(each for each in markers(panels(drawn["gaps-implicit"])[0]) if each[0] == "s")
    assert ([r["probe_gap"] for r in gaps], [r["represented_gap"] for r in gaps]) == dots[2:]
    assert sum("ρ 0.62 [0.31, 0.83], n = 6" in text for text in texts(drawn["gaps-implicit"])) == 6


def test_every_mark_says_what_it_is(drawn: dict[str, Figure]) -> None:
    """Each point and each part of a bar, in both widths, with a number."""
    for name, figure in drawn.items():
        for one in (figure, figure.column):
            assert one is not None
            said = re.findall(r"<title>([^<]*)</title>", one.svg.decode())
            points = sum(
                sum(x == x and y == y for x, y in line.get_xydata())
                for axes in panels(one)
                for line in data_lines(axes)
                if line.get_marker() not in ("_", "|")
            )
            bars = sum(len(axes.patches) for axes in panels(one) if name in ("groups", "variance"))
            assert len(said) == points + bars, one.name
            assert all(re.search(r"\d", text) for text in said)


# --- what it says in words -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(KINDS))
def test_captions_state_n_interval_unit_and_table(name: str, drawn: dict[str, Figure]) -> None:
    caption = drawn[name].caption
    assert re.search(r"n = \d", caption)
    assert re.search(r"interval", caption)
    assert re.search(r"unit|0 to 1|−1 to 1|percent", caption)
    assert re.search(r"Tables?: \w+", caption)
    assert drawn[name].alt
    assert drawn[name].title


def test_the_text_alternative_tells_the_direction_with_numbers() -> None:
    made = content(("A", "B"), 4)
    rows = []
    for row in made.parts[0].tables["probe_jobs"]:
        share = 0.9 if row["job_group"] == "male-dominated" else 0.2
        rows.append({**row, "female_share": share})
    part = replace(made.parts[0], tables={**made.parts[0].tables, "probe_jobs": rows})
    alt = only(item_by_item.jobs, replace(made, parts=(part,)))["jobs"].alt
    assert "mean 20 % in female-dominated jobs; asked outright, mean 90 % in male-dominated jobs" in alt
    alt = named(draw_all(replace(made, parts=())))["gaps-explicit"].alt
    assert "they rise together, rank correlation 0.62 [0.31, 0.83]" in alt


def test_a_difference_names_who_is_higher() -> None:
    made = content(("A", "B"), 4)
    one = next(r for r in made.between["tests"] if r["engine"] == "probe")
    row = {**one, "estimate": -0.3, "ci_low": -0.4, "ci_high": -0.2, "equivalent": False, "gender": "female"}
    alt = only(models.models, replace(made, between={"tests": [row]}))["models"].alt
    assert "is 30 points higher for A than for B" in alt


def test_absent_tables_give_no_figure() -> None:
    made = content(("A",), 4, instructions=0)
    bare = tuple(replace(part, tables={}) for part in made.parts)
    assert () == draw_all(replace(made, parts=bare, between={}))
    alone = named(draw_all(replace(made, parts=made.parts[:1], between={})))
    assert {"answer", "groups", "labour", "variance"} == set(alone)


# --- undefined, few and many ---------------------------------------------------------------------------


def test_what_is_undefined_is_shown_as_such_and_never_at_zero() -> None:
    figures = named(draw_all(content(("A", "B"), 5, undefined=True)))
    assert {"srb", "transfer", "words-1"}.isdisjoint(figures)
    for name in ("jobs", "debiasing"):
        for axes in panels(figures[name]):
            for kind, _, x, _y in markers(axes):
                if kind in "os":
                    assert not np.isfinite(x).any(), name
                elif kind == "_":
                    assert min(x) > 1 or name == "debiasing"  # beside the panel
            assert any(kind == "_" for kind, *_ in markers(axes)), name
        assert "not measured" in texts(figures[name])
    assert not any(axes.patches for axes in panels(figures["groups"]))
    assert 8 == texts(figures["groups"]).count("–")


def test_one_model_and_one_job_have_no_figure_that_repeats_the_first() -> None:
    made = named(draw_all(content(("only",), 1)))
    several = {"models", "words-1", "words-2", "jobs", "scatter"}
    assert (KINDS - several) | {"words"} == set(made)


@pytest.mark.slow
def test_twenty_models_over_sixty_three_occupations_are_told_apart() -> None:
    labels = [f"model {i}" for i in range(20)]
    jobs = items(63)
    probed = probe_tables(labels, jobs)
    part = replace(content(("A",), 2).parts[0], tables=probed, models=tuple(model(label) for label in labels))
    whole = Content("t", (part,), {"tests": between_models(probed, labels)})
    made = {**only(item_by_item.jobs, whole), **only(models.models, whole)}
    assert {"jobs", "jobs-2", "jobs-3", "jobs-4", "models"} == set(made)
    looks = set()
    for name in ("jobs", "jobs-2", "jobs-3", "jobs-4"):
        assert "63 jobs" in made[name].caption
        assert [f"occupation {i}" for i in range(63)] == sorted(
            (text for text in texts(made[name]) if text.startswith("occupation")),
            key=lambda t: int(t.split()[1]),
        )
        looks |= {(kind, colour) for kind, colour, *_ in markers(panels(made[name])[0]) if kind not in "d_"}
    assert 20 == len(looks)
    assert len(made["jobs"].svg) < 200_000


def placed_texts(svg: bytes) -> list[tuple[str, float, float, float]]:
    """Level texts of a figure: text, points, left and right end in points."""
    found = []

    def walk(element: Any, inherited: dict[str, str]) -> None:
        own = {**inherited, **element.attrib}
        if element.tag.endswith("text") and "rotate" not in own.get("transform", ""):
            size = float(own["font-size"])
            moved = re.match(r"translate\(([-\d.]+)", own.get("transform", ""))
            x = float(moved[1]) if moved else float(own["x"])
            bold = own.get("font-weight") == "700"
            width = 72 * text_width(element.text, size=size, bold=bold)
            left = x - {"middle": width / 2, "end": width}.get(own.get("text-anchor", ""), 0.0)
            found.append((element.text, size, left, left + width))
        for child in element:
            walk(child, {k: v for k, v in own.items() if k in ("font-size", "text-anchor", "font-weight")})

    walk(ElementTree.fromstring(svg), {})
    return found


def test_no_text_is_smaller_than_eight_points_or_leaves_the_sheet(drawn: dict[str, Figure]) -> None:
    for name, figure in drawn.items():
        placed = placed_texts(figure.svg)
        assert len(placed) > 8
        for text, size, left, right in placed:
            assert size >= 8, (name, text)
            assert left > -1, (name, text)
            assert right < 7 * 72 + 1, (name, text)


# --- parts that must not meet --------------------------------------------------------------------------


def test_two_prompt_forms_never_share_a_figure() -> None:
    made = content(("A", "B"), 4)
    part = made.parts[0]
    tables = {
        name: [
            {**r, "prompt_form": "chat-prefill"} if r.get("model", r.get("model_a")) == "B" else r
            for r in rows
        ]
        for name, rows in part.tables.items()
    }
    forms = replace(part, tables=tables, models=(model("A"), model("B", "chat-prefill")))
    figures = only(item_by_item.jobs, replace(made, parts=(forms,)))
    assert {"raw-jobs", "chat-prefill-jobs"} == set(figures)
    assert {"o"} == {kind for kind, *_ in markers(panels(figures["raw-jobs"])[0]) if kind in "os"}
    assert {"s"} == {kind for kind, *_ in markers(panels(figures["chat-prefill-jobs"])[0]) if kind in "os"}
    assert "prompt form raw" in figures["raw-jobs"].title


def test_texts_of_two_prompt_forms_never_share_a_figure() -> None:
    made = content(("A", "B"), 4)
    part = replace(made.parts[1], models=(model("A", "completion"), model("B", "chat")))
    figures = only(against_labour.scatter, replace(made, parts=(part,)), "personas")
    assert ["completion-scatter", "chat-scatter"] == list(figures)
    for name, marker in (("completion-scatter", "o"), ("chat-scatter", "s")):
        assert {marker} == {kind for kind, *_ in markers(panels(figures[name])[0])}


def test_scores_of_two_vector_models_never_share_a_figure() -> None:
    made = content(("A", "B"), 4)
    part = made.parts[1]
    rows = [
        {**r, "vectors": "pretrained:x" if r["model"] == "B" else r["vectors"]} for r in part.tables["srb"]
    ]
    part = replace(part, tables={**part.tables, "srb": rows})
    figures = only(srb.scores, replace(made, parts=(part,)), "personas")
    assert {"srb-vectors-1", "srb-vectors-2"} == set(figures)
    assert "B" not in texts(figures["srb-vectors-1"])


def test_two_studies_of_one_engine_have_names_of_their_own() -> None:
    made = content(("A",), 2, instructions=0)
    other = replace(made.parts[0], study="Mattern & al.")
    names = [
        figure.name for figure in draw_all(replace(made, parts=(made.parts[0], other, other), between={}))
    ]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9.-]+|[A-Za-z0-9.-]+", name) for name in names)
    assert "gasp-occupations-groups" in names


# --- hostile texts -------------------------------------------------------------------------------------

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>&amp;\"'",
    r"$\frac{1$ \input{/etc/passwd} \textbf{x}",
    "\u202eesrun\u2066",
    "\x1b[31mred\x07\x00",
    "\ud800lone",
    "日本語の看護師",
    "w" * 60,
    "_hidden label",
    "long " * 200_000,
    "a" + "\u0301" * 90,
    "line\nbreak\ttab",
)


def hostile() -> Content:
    """Models, jobs, instructions, words, groups and a study with hostile names."""
    jobs = [
        (name, "female-dominated" if i % 2 else HOSTILE[0], 0.9 - i / 20) for i, name in enumerate(HOSTILE)
    ]
    labels = (HOSTILE[8], HOSTILE[9])
    probed = probe_tables(labels, jobs, instructions=1, settings=(HOSTILE[3],))
    drawn = personas_tables(labels, jobs, word=HOSTILE[7] + HOSTILE[2])
    gaps, relations = gaps_of(labels, jobs)
    made = content(("A",), 1)
    models = tuple(model(label) for label in labels)
    told = ({"id": 1, "text": HOSTILE[2] + HOSTILE[9], "level": None},)
    parts = (
        replace(made.parts[0], tables=probed, models=models, study=HOSTILE[3], instructions=told),
        replace(made.parts[1], tables=drawn, models=models, study=HOSTILE[1]),
    )
    tests = [{**r, "setting": HOSTILE[3]} for r in between_models(probed, labels, HOSTILE[3])]
    between = {"tests": [*tests, *relations], "gaps": gaps, "srb_change": changes_of(drawn["srb"], labels)}
    return replace(made, parts=parts, between=between)


@pytest.mark.slow
def test_hostile_labels_words_and_instructions_are_only_shown() -> None:
    figures = named(draw_all(hostile()))
    assert KINDS <= set(figures)
    for figure in figures.values():
        root = ElementTree.fromstring(figure.svg)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "g", "path", "use", "text", "title", "defs", "clipPath", "rect", "pattern"}
        assert not any(key.lower().startswith("on") for element in root.iter() for key in element.attrib)
        for said in (figure.caption, figure.alt, figure.title, *texts(figure)):
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x1f\x7f\ud800-\udfff]", said)
            assert len(said) < 6_000
        assert len(figure.svg) < 200_000
        for text, _, left, right in placed_texts(figure.svg):
            assert -1 < left < right < 7 * 72 + 1, (figure.name, text)
    assert any(r"$\frac{1$" in text for text in texts(figures["jobs"]))
    figures["jobs"].png(40)
    figures["jobs"].pdf()


def test_characters_that_the_font_lacks_are_boxes_with_one_note() -> None:
    figures = only(item_by_item.jobs, content(("日本", "B"), 2))
    assert any("□□" in text for text in texts(figures["jobs"]))
    assert 1 == figures["jobs"].caption.count(BOX_NOTE)
    assert BOX_NOTE not in only(item_by_item.jobs, content(("A", "B"), 2))["jobs"].caption


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\u202eab", r"\u202eab"),
        ("a\x1b[0m", r"a\x1b[0m"),
        ("\ud83d", r"\ud83d"),
        ("a\nb", r"a\nb"),
        ("نرس", "نرس"),
        ("é–ñ", "é–ñ"),
        ("漢", "□"),
        ("x\u0301\u0302\u0303", "x\u0301\u0302"),
        (r"$\frac{1$", r"$\frac{1$"),
    ],
)
def test_clean(given: str, shown: str) -> None:
    assert shown == clean(given)


def test_labels_are_shortened_in_the_middle_to_their_width() -> None:
    label = "meta-llama/Llama-3.1-70B-Instruct (a very long folder name)"
    short = shorten(label, 1.0)
    assert text_width(short) <= 1.0
    assert short.startswith("meta")
    assert short.endswith("me)")
    assert "…" in short
    assert label == shorten(label, text_width(label))
    assert shorten("Please do not think of gender.", 1.0, sentence=True).endswith("…")


# --- bytes ---------------------------------------------------------------------------------------------


def test_svgs_can_stand_in_one_page(drawn: dict[str, Figure]) -> None:
    ids: list[str] = []
    for name, figure in drawn.items():
        text = figure.svg.decode("utf-8")
        own = re.findall(r'\bid="([^"]+)"', text)
        assert all(each.startswith(f"{name}-") for each in own)
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', text)) == set(own)
        ids += own
        assert text.startswith("<svg ")
        assert not re.search(r"<style|style=|<\?xml|<!DOCTYPE|<metadata|\d{4}-\d\d-\d\d", text)
        assert 'fill="#222222"' in text
        assert 'stroke="#dddddd"' in text or name in ("srb",), name
        assert not re.search(r'fill="(#ffffff|white)"(?! font)[^>]*/>', text)
    assert len(ids) == len(set(ids))


def digest_of_a_few() -> str:
    made = content(("A",), 2, instructions=1)
    digest = hashlib.sha256()
    for figure in draw_all(made):
        digest.update(figure.svg)
        if figure.name in ("groups", "srb"):
            digest.update(figure.png(40) + figure.pdf())
    return digest.hexdigest()


def test_a_marker_has_its_colour_where_it_is_used(drawn: dict[str, Figure]) -> None:
    """A page that turns #222222 in dark mode does not reach into the shape that <use> copies."""
    for name, figure in drawn.items():
        root = ElementTree.fromstring(figure.svg)
        namespace = "{http://www.w3.org/2000/svg}"
        for defs in root.iter(f"{namespace}defs"):
            assert not any(path.get("stroke") for path in defs.findall(f"{namespace}path")), name
    assert 'stroke="#222222"' in drawn["jobs"].svg.decode().split("<use", 1)[1]


SECOND = """
import sys
sys.path[:0] = {folders!r}
from test_figures import digest_of_a_few
print(digest_of_a_few())
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.process
def test_the_same_tables_give_the_same_bytes_under_another_hash_seed() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "77", "MPLBACKEND": "agg"}
    code = SECOND.format(folders=[str(Path(__file__).parent), str(TESTS)])
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert digest_of_a_few() == run.stdout.strip()


def test_drawing_leaves_the_users_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context(
        {
            "font.size": 30,
            "axes.grid": True,
            "xtick.direction": "in",
            "text.usetex": True,
            "svg.fonttype": "path",
        }
    ):
        figure = only(probe.groups, content(("A",), 2))["groups"]
        assert 30 == matplotlib.rcParams["font.size"]
    assert before == dict(matplotlib.rcParams)
    assert figure.svg == only(probe.groups, content(("A",), 2))["groups"].svg


def test_files_are_what_is_asked() -> None:
    one = content(("A", "B"), 2)
    made = [*only(item_by_item.jobs, one).values(), *only(probe.groups, one).values()]
    files = files_of(made, pdf=True)
    names = [f"{name}{width}" for name in ("jobs", "groups") for width in ("", "-column")]
    assert {f"{name}.{kind}" for name in names for kind in ("svg", "png", "pdf")} == set(files)
    assert files["jobs.png"].startswith(b"\x89PNG")
    assert files["jobs.pdf"].startswith(b"%PDF")
    assert b"CreationDate" not in files["jobs.pdf"]
    assert b"/Type3" not in files["jobs.pdf"]
    column = ["jobs-column.svg", "jobs-column.png"]
    assert ["jobs.svg", "jobs.png", *column] == list(files_of(made[:1], pdf=False))


def test_a_difference_that_is_not_clear_is_not_told_as_a_finding() -> None:
    made = content(("A", "B"), 4)
    one = next(r for r in made.between["tests"] if r["engine"] == "probe")
    row = {**one, "estimate": -0.3, "ci_low": -0.7, "ci_high": 0.1, "equivalent": False, "gender": "female"}
    alt = only(models.models, replace(made, between={"tests": [row]}))["models"].alt
    assert "0 are clear" in alt
    assert "higher" not in alt


def test_names_beside_points_meet_no_bar_of_another() -> None:
    made = content(("A", "B"), 8)
    figure = only(against_labour.scatter, made, "personas")["scatter"]
    rows = [row for row in made.parts[1].tables["representation"] if row["model"] == "A"]
    axes, _ = panels(figure)
    side = axes.get_position().width * 7
    assert axes.texts
    for text in axes.texts:
        left, y = text.get_position()
        right = left + text_width(text.get_text()) / side
        assert not any(
            left < r["labour_female_share"] < right and r["ci_low"] < y < r["ci_high"] for r in rows
        )


def test_estimators_that_differ_are_said() -> None:
    made = content(("A", "B"), 3)
    tables = made.parts[0].tables
    rows = [{**r, "estimator": "top-k(k=20)" if r["model"] == "B" else "exact"} for r in tables["probe_jobs"]]
    part = replace(made.parts[0], tables={**tables, "probe_jobs": rows})
    caption = only(item_by_item.jobs, replace(made, parts=(part,)))["jobs"].caption
    assert "Estimators differ: A exact, B top-k(k=20)." in caption
    assert "Estimators differ" not in only(item_by_item.jobs, made)["jobs"].caption


def test_bounds_of_top_k_are_drawn_where_there_are_some() -> None:
    made = content(("M0",), 4)
    rows = made.parts[0].tables["probe_groups"]
    before = only(probe.groups, made)["groups"]
    assert "top-k" not in before.caption
    bounded = [{**row, "share_low": 0.11, "share_high": 0.93} for row in rows]
    part = replace(made.parts[0], tables={**made.parts[0].tables, "probe_groups": bounded})
    after = only(probe.groups, replace(made, parts=(part, *made.parts[1:])))["groups"]
    assert "the bounds of top-k (thin)" in after.caption
    lines = [tuple(map(float, line.get_xdata())) for axes in panels(after) for line in axes.lines]
    assert len(panels(after)) == lines.count((0.11, 0.93))


def test_groups_of_models_have_their_differences_drawn() -> None:
    made = content(("M0", "M1"), 4)
    tests = made.between["tests"]
    named = [
        {**row, "model_a": "large", "model_b": "small"}
        for row in tests
        if (row["model_a"], row["model_b"]) == ("M1", "M0")
    ]
    figure = only(models.models, replace(made, between={**made.between, "tests": named}))["models"]
    assert "large − small" in " ".join(texts(figure))
    # A model of another engine's part is no group.
    foreign = [{**row, "model_a": "Z", "model_b": "M0"} for row in named]
    assert not only(models.models, replace(made, between={**made.between, "tests": foreign}))


def test_groups_of_jobs_and_groups_of_texts_have_figures_of_two_names() -> None:
    made = content(("A",), 2)
    scope = {"model": "A", "column": "race", "group": "x", "against": "others", "gender": ""}
    row = {**scope, "method": "calibrated", "n_marked_beyond": 9, "null_p95_beyond": 4.0}
    probed, written = made.parts
    both = replace(made, parts=(probed, replace(written, tables={**written.tables, "group_lists": [row]})))
    assert {"groups"} == set(only(probe.groups, both))
    assert {"group-lists"} == set(only(groups.group_lists, both, "personas"))
