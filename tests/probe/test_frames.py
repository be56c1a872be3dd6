"""Studies whose templates have frames: framings against each other, wordings within a frame."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biaskit.corpora.loaders import load_templates
from biaskit.errors import CorpusError
from biaskit.probe.design import resolve_design
from biaskit.probe.effects import tables
from biaskit.probe.frames import effects_of, frame_layouts, notes_of_frames
from biaskit.probe.stored_design import describe_design, read_design
from biaskit.records import Cell, CellShares, Template
from biaskit.stats.proportions import wilson
from biaskit.study.config import load_probe_study
from biaskit.tables.io import read_table_rows, write_table

GROUPS = ("male", "female", "diverse")
JOBS = {f"w{i}": "female-dominated" for i in range(4)} | {f"m{i}": "male-dominated" for i in range(3)}
ARMS = list(itertools.product(("no", "yes"), ("text", "word")))  # fairness, asks
WOMEN, MEN = "female-dominated", "male-dominated"
Row = dict[str, Any]
Share = Callable[[Template, str], float]


def framed(n_frames: int = 5) -> list[Template]:
    """Templates of a 2 x 2: every frame in every arm, arms inside frames."""
    found = itertools.product(range(n_frames), ARMS)
    return [
        Template(i, "implicit", "?", ".", None, f"f{frame}", (("fairness", a), ("asks", b)))
        for i, (frame, (a, b)) in enumerate(found, start=1)
    ]


def worded(sizes: Sequence[int] = (4, 4, 4)) -> list[Template]:
    """Templates without factors: frames with these numbers of wordings."""
    frames = [f"f{j}" for j, n in enumerate(sizes) for _ in range(n)]
    return [Template(i, "implicit", "?", ".", None, frame) for i, frame in enumerate(frames, start=1)]


def cells(
    templates: Sequence[Template], share: Share, without: Sequence[tuple[int, str]] = ()
) -> list[CellShares]:
    """A cell for each template and job, in which women have that share and men the rest."""
    made = []
    for t, (job, group) in itertools.product(templates, JOBS.items()):
        of = Cell("m", t.bias_type, t.id, job, group, None, 0, "plain", "raw")
        female = share(t, job)
        shares = (1 - female, female, 0.0)
        if (t.id, job) in without:
            made.append(CellShares(of, None, None, None, None, "no answer stored"))
        else:
            made.append(CellShares(of, "exact", shares, 1.0, shares))
    return made


def analysed(templates: Sequence[Template], found: Sequence[CellShares]) -> dict[str, list[Row]]:
    made: Any = tables(
        found,
        groups=GROUPS,
        contrast=("female", "male"),
        levels={},
        floor=0.01,
        interval="crossed",
        margins={"share": 0.05},
        seed=1,
        layouts=frame_layouts(templates),
    )
    return made  # type: ignore[no-any-return]


def noise(t: Template, job: str) -> float:
    return float(np.random.default_rng(list(f"{t.id}{t.frame}{job}".encode())).normal(0.0, 0.02))


def shifted(t: Template, job: str) -> float:
    """Fairness takes 0.1 from the women's jobs; asking for the word gives 0.06, and 0.08 more where both."""
    levels = dict(t.factors)
    value = 0.6 if JOBS[job] == "female-dominated" else 0.3
    if JOBS[job] == "female-dominated":
        value -= 0.1 * (levels["fairness"] == "yes")
    value += 0.06 * (levels["asks"] == "word") + 0.08 * (set(levels.values()) == {"yes", "word"})
    return value + noise(t, job)


def row_of(rows: Sequence[Row], **values: object) -> Row:
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    assert len(found) == 1, (values, len(found))
    return found[0]


def women(made: dict[str, list[Row]], contrast: str, a: str, group_a: str, group_b: str) -> Row:
    """The crossed row of the share of women."""
    rows = [row for row in made["tests"] if row["family"] == f"probe/share/crossed/{contrast}"]
    return row_of(rows, gender="female", instruction_a=a, group_a=group_a, group_b=group_b)


def mean_of(share: Share, group: str, **levels: str) -> float:
    return statistics.fmean(
        share(t, job)
        for t in framed()
        for job, own in JOBS.items()
        if own == group and all(dict(t.factors)[name] == level for name, level in levels.items())
    )


# --- framings ----------------------------------------------------------------------------------------


def test_a_main_effect_is_the_mean_of_two_arms_minus_that_of_the_two_others() -> None:
    made = analysed(framed(), cells(framed(), shifted))
    for factor, other, base in (("fairness", "yes", "no"), ("asks", "word", "text")):
        changes = {}
        for group in ("female-dominated", "male-dominated"):
            expected = mean_of(shifted, group, **{factor: other}) - mean_of(shifted, group, **{factor: base})
            row = women(made, "factors", f"{factor}={other}", group, group)
            assert row["instruction_b"] == f"{factor}={base}"
            assert row["estimate"] == pytest.approx(expected)
            assert (row["n_a"], row["margin"]) == (4 if group == "female-dominated" else 3, 0.05)
            changes[group] = expected
        gap = women(made, "factors", f"{factor}={other}", "female-dominated", "male-dominated")
        assert gap["estimate"] == pytest.approx(changes["female-dominated"] - changes["male-dominated"])


def test_an_interaction_is_a_difference_of_differences() -> None:
    made = analysed(framed(), cells(framed(), shifted))
    for group in ("female-dominated", "male-dominated"):
        at = {
            asks: mean_of(shifted, group, fairness="yes", asks=asks)
            - mean_of(shifted, group, fairness="no", asks=asks)
            for asks in ("word", "text")
        }
        row = women(made, "interactions", "fairness where asks=word", group, group)
        assert row["instruction_b"] == "fairness where asks=text"
        assert row["estimate"] == pytest.approx(at["word"] - at["text"])
        assert row["ci_low"] < 0.08 < row["ci_high"]


def test_the_interval_of_an_effect_is_that_of_the_paired_cells() -> None:
    # What frames and jobs have in common in all arms must cancel: with it the interval would be wide.
    def paired(t: Template, job: str) -> float:
        return (
            0.3
            + 0.05 * int(str(t.frame)[1:])
            + 0.02 * int(job[1:])
            + 0.1 * (dict(t.factors)["fairness"] == "yes")
        )

    made = analysed(framed(), cells(framed(), paired))
    row = women(made, "factors", "fairness=yes", "female-dominated", "female-dominated")
    assert (row["estimate"], row["ci_low"], row["ci_high"]) == pytest.approx((0.1, 0.1, 0.1))
    assert row["verdict"] == "higher"


def test_nothing_is_found_where_nothing_is() -> None:
    made = analysed(framed(), cells(framed(), lambda t, job: 0.4 + 4 * noise(t, job)))
    of_factors = [r for r in made["tests"] if r["family"].endswith(("/factors", "/interactions"))]
    crossed = [r for r in of_factors if r["kind"] == "crossed"]
    assert len(crossed) == 3 * 3 * len(GROUPS)  # effects; two groups and their difference
    assert {r["verdict"] for r in crossed} <= {"no-clear-difference", "equivalent"}


def test_every_effect_is_a_claim_of_its_own() -> None:
    # with_verdicts takes rows of one identity for one comparison: two effects must not share one.
    made = analysed(framed(), cells(framed(), shifted))
    crossed = [r for r in made["tests"] if r["kind"] == "crossed" and r["gender"] == "female"]
    names = ("quantity", "instruction_a", "instruction_b", "group_a", "group_b")
    assert len({tuple(r[name] for name in names) for r in crossed}) == len(crossed)


def test_an_arm_has_the_mean_of_its_frames_and_a_frame_with_a_gap_is_left_out_of_all() -> None:
    templates = framed()
    made = analysed(templates, cells(templates, shifted, without=[(1, "w0")]))
    row = row_of(
        made["probe_factors"], arm="fairness=no, asks=word", job_group="male-dominated", gender="female"
    )
    kept = [t for t in templates if t.factors == (("fairness", "no"), ("asks", "word")) and t.frame != "f0"]
    assert row["share"] == pytest.approx(
        statistics.fmean(shifted(t, j) for t in kept for j in JOBS if j.startswith("m"))
    )
    assert (row["n_frames"], len(made["probe_factors"])) == (4, 4 * 2 * len(GROUPS))
    assert "frame f0 left out" in row["reason"]
    assert (
        "frame f0 left out"
        in women(made, "factors", "asks=word", "male-dominated", "male-dominated")["reason"]
    )


def test_a_selection_that_leaves_one_level_compares_no_factors_and_says_so() -> None:
    some = [t for t in framed() if dict(t.factors)["asks"] == "word"]
    made = analysed(some, cells(some, shifted))
    assert not made["probe_factors"]
    assert not [row for row in made["tests"] if row["family"].endswith("/factors")]
    assert "one level" in notes_of_frames(frame_layouts(some))[0]


def test_one_factor_has_no_interaction_and_three_have_three() -> None:
    one = [replace(t, factors=t.factors[:1]) for t in framed() if dict(t.factors)["asks"] == "word"]
    assert [e.contrast for e in effects_of(frame_layouts(one)["implicit"])] == ["factors"]
    three = [
        replace(t, id=2 * t.id + i, factors=(*t.factors, ("tone", tone)))
        for t in framed()
        for i, tone in enumerate(("cool", "warm"))
    ]
    found = effects_of(frame_layouts(three)["implicit"])
    assert [e.contrast for e in found] == ["factors"] * 3 + ["interactions"] * 3
    assert [len(side) for side in found[0].at_a] == [4, 4]


def test_bounds_of_an_effect_are_those_of_its_cells() -> None:
    def bounded(of: CellShares) -> CellShares:
        assert of.shares is not None
        ends = tuple((share - 0.02, share + 0.02) for share in of.shares)
        return replace(of, estimator="top-k", share_ends=ends, difference_ends=(-0.5, 0.5))

    exact = analysed(framed(), cells(framed(), shifted))
    made = analysed(framed(), [bounded(one) for one in cells(framed(), shifted)])
    # Each side of a main effect is a share ± 0.02, of an interaction a difference of two.
    reach = {
        ("factors", "fairness=yes", WOMEN): 0.04,
        ("factors", "fairness=yes", MEN): 0.08,
        ("interactions", "fairness where asks=word", WOMEN): 0.08,
        ("interactions", "fairness where asks=word", MEN): 0.16,
    }
    for (contrast, name, other), half in reach.items():
        row = women(made, contrast, name, WOMEN, other)
        point = women(exact, contrast, name, WOMEN, other)["estimate"]
        assert (row["bound_low"], row["bound_high"]) == pytest.approx((point - half, point + half))
        assert row["ci_low"] < row["bound_low"]


# --- wordings ----------------------------------------------------------------------------------------


def by_frame(t: Template, job: str) -> float:
    tilt = 0.02 if t.frame == "f2" else 0.2
    return 0.4 + (tilt if JOBS[job] == "female-dominated" else 0.0) + 2 * noise(t, job)


def differences(templates: Sequence[Template]) -> dict[int, float]:
    """The difference of the two groups' means in each template."""
    groups = ("female-dominated", "male-dominated")
    means = {
        t.id: [statistics.fmean(by_frame(t, j) for j in JOBS if JOBS[j] == g) for g in groups]
        for t in templates
    }
    return {number: a - b for number, (a, b) in means.items()}


def test_a_frame_has_its_mean_its_ends_and_its_signs() -> None:
    templates = worded()
    rows = analysed(templates, cells(templates, by_frame))["probe_wording"]
    of = differences(templates)
    overall = statistics.fmean(of.values())
    for frame in ("f0", "f1", "f2"):
        own = [of[t.id] for t in templates if t.frame == frame]
        row = row_of(rows, group_b="male-dominated", gender="female", frame=frame)
        same = sum(value * overall > 0 for value in own)
        assert (row["mean"], row["least"], row["greatest"]) == pytest.approx(
            (statistics.fmean(own), min(own), max(own))
        )
        assert (row["n_same_sign"], row["n_wordings"]) == (same, 4)
        assert (row["ci_low"], row["ci_high"]) == wilson(same, 4)
    # The frame with a small difference has wordings of the other sign: else the test shows nothing.
    assert row["n_same_sign"] < 4
    every = row_of(rows, group_b="male-dominated", gender="female", frame="all")
    assert every["n_wordings"] == 12
    assert every["ci_low"] is None
    within = statistics.fmean(
        statistics.variance(of[t.id] for t in templates if t.frame == frame) for frame in ("f0", "f1", "f2")
    )
    assert every["var_wording"] == pytest.approx(within)
    assert every["wording_share_low"] <= every["wording_share"] <= every["wording_share_high"]


def test_a_group_has_the_components_of_its_cells() -> None:
    templates = worded()
    rows = analysed(templates, cells(templates, by_frame))["probe_wording"]
    row = row_of(rows, group_a="female-dominated", group_b=None, gender="female")
    assert row["frame"] == "all"
    assert all(
        row[f"var_{name}"] is not None for name in ("job", "frame", "wording", "job_frame", "residual")
    )
    assert row["var_frame"] > row["var_wording"]


def test_an_unequal_number_of_wordings_has_signs_and_no_components() -> None:
    templates = worded()
    made = analysed(templates, cells(templates, by_frame, without=[(1, "w0")]))["probe_wording"]
    every = row_of(made, group_b="male-dominated", gender="female", frame="all")
    assert (every["n_wordings"], every["wording_share"]) == (11, None)
    assert "different numbers of wordings" in every["reason"]
    assert "template 1 of 12 left out" in every["reason"]


def test_no_difference_has_no_sign() -> None:
    templates = worded()
    made = analysed(templates, cells(templates, lambda t, job: 0.4))["probe_wording"]
    row = row_of(made, group_b="male-dominated", gender="female", frame="f0")
    assert row["n_same_sign"] is None
    assert "no sign" in row["reason"]


def test_templates_without_frames_make_neither_table() -> None:
    templates = [replace(t, frame=None) for t in worded()]
    made = analysed(templates, cells(templates, by_frame))
    assert not made["probe_factors"]
    assert not made["probe_wording"]


@pytest.mark.parametrize(("name", "templates"), [("probe_factors", framed()), ("probe_wording", worded())])
def test_a_table_is_stored_and_read_back(tmp_path: Any, name: str, templates: list[Template]) -> None:
    share = shifted if name == "probe_factors" else by_frame
    rows = analysed(templates, cells(templates, share))[name]
    write_table(tmp_path / f"{name}.csv", name, rows, groups=GROUPS, contrast=("female", "male"))
    back = read_table_rows(tmp_path / f"{name}.csv")
    assert len(back) == len(rows)
    assert [row.get("wording_share", row.get("share")) for row in back] == [
        row.get("wording_share", row.get("share")) for row in rows
    ]


# --- lists and stored designs ------------------------------------------------------------------------


def test_the_shipped_framings_are_whole_and_differ_in_the_question_alone() -> None:
    templates = load_templates("corpus:framing/templates.toml").templates
    layout = frame_layouts(templates)["implicit"]
    assert layout.factors == (("fairness", ("unmentioned", "mentioned")), ("asks", ("description", "gender")))
    assert {len(ids) for ids in layout.templates.values()} == {4}
    text = {t.id: t for t in templates}
    for ids in layout.templates.values():
        assert len({text[i].opening for i in ids}) == 1
        assert len({text[i].question for i in ids}) == 4
    lengths = {len(t.question.split(". ")[0].split()) for t in templates}
    assert len(lengths) == 1
    for t in templates:
        levels = dict(t.factors)
        assert ("fairness" in t.question) == (levels["fairness"] == "mentioned")
        asked = t.question.split(". ")[-1]
        assert ("gender" in asked) == (levels["asks"] == "gender")


@pytest.mark.parametrize("bias_type", ["explicit", "implicit"])
def test_each_shipped_frame_has_ten_wordings(bias_type: str) -> None:
    templates = [
        t for t in load_templates("corpus:wording/templates.toml").templates if t.bias_type == bias_type
    ]
    layout = frame_layouts(templates)[bias_type]
    assert [len(ids) for ids in layout.templates.values()] == [10] * 4
    assert len({(t.question, t.opening) for t in templates}) == 40
    assert len({t.question for t in templates}) == 40
    if bias_type == "explicit":
        assert all(t.question.endswith(" Answer with one word.") for t in templates)
    else:
        assert all(t.opening.endswith(".") for t in templates)


@pytest.mark.parametrize("study", ["framing", "wording", "mattern"])
def test_a_stored_design_is_read_back_as_it_was(study: str) -> None:
    design = resolve_design(load_probe_study(study))
    stored = json.loads(json.dumps(describe_design(design)))
    assert read_design(stored).templates == design.templates
    assert describe_design(read_design(stored))["digest"] == stored["digest"]


def test_a_study_without_frames_is_stored_as_before_there_were_any() -> None:
    stored = describe_design(resolve_design(load_probe_study("mattern")))
    assert {"id", "bias_type", "question", "opening", "expressions"} == set(stored["templates"][0])


ONE = '[[template]]\nbias_type = "explicit"\nquestion = "A [JOB]?"\nframe = "a"\nfactors = { tone = "%s" }\n'
RIGHT = ONE % "cool" + ONE % "warm"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('frame = "a"\nfactors = { tone = "warm" }', "", "2 has no frame, and others have"),
        ('factors = { tone = "warm" }', "", "2 does not have the factors of the first one, tone"),
        ('"warm"', '"cool"', "the factor 'tone' has 1 levels (cool). Give each factor two"),
        (
            'frame = "a"\nfactors = { tone = "warm" }',
            'frame = "b"\nfactors = { tone = "warm" }',
            "the frame 'a' does not",
        ),
        ('{ tone = "warm" }', '"warm"', "factors is 'warm', which is not a table"),
        ('tone = "warm"', '"to=ne" = "warm"', "'to=ne' cannot name a factor or its level"),
        ('tone = "warm"', "tone = 3", "tone is 3, which is not a text"),
    ],
)
def test_wrong_frames_are_refused_in_one_line(tmp_path: Any, old: str, new: str, message: str) -> None:
    path = tmp_path / "t.toml"
    before, _, after = RIGHT.rpartition(old)
    path.write_text(before + new + after, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        load_templates(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
