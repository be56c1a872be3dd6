"""`recorded:demo-base`: the shipped texts are a run like any other, and enough to show every measure."""

from __future__ import annotations

import json
import re
from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from places import GOLDEN, ROOT

from biaskit.common.files import data_dir
from biaskit.errors import RunError, UsageError
from biaskit.measures.personas.label import _who_counts, label
from biaskit.measures.personas.labels.drawing import CELL, Drawn
from biaskit.measures.personas.labels.sheets import short_id
from biaskit.measures.personas.recordings import recorded_run
from biaskit.progress import Silent
from biaskit.report.render.text import render_text
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import read_rows
from biaskit.workflow.analyze import load, rebuild_tables, result_of

pytestmark = pytest.mark.slow

FOLDER = data_dir("corpora") / "recorded" / "demo-base"
FAST: dict[str, Any] = {"srb_seeds": "1", "clusters": False}
"""One seed of word vectors: a seventh of the time."""
STRATUM = attrgetter("model", "occupation", "gender")
QUICK: dict[str, Any] = {"permutations": 19, "clusters": False, "vectors": "marked-lists"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = recorded_run("recorded:demo-base", out=tmp_path_factory.mktemp("recorded") / "run")
    rebuild_tables(path, FAST)
    return path


def test_the_shipped_files_are_small_and_hold_no_path() -> None:
    packed = FOLDER / "personas.jsonl.gz"
    assert packed.stat().st_size < 2_000_000
    manifest = (FOLDER / "manifest.json").read_text(encoding="ascii")
    assert "/home" not in manifest
    assert "/tmp" not in manifest
    assert "demo-base" == read_manifest(FOLDER).models["demo-base"].spec


def test_rows_are_copied_as_they_are(run: Path) -> None:
    copied = {row["key"]: row for row in read_rows(run / "personas.jsonl")}
    shipped = {row["key"]: row for row in read_rows(FOLDER / "personas.jsonl.gz")}
    assert shipped == copied
    assert len(shipped) > 3000
    assert max(row["n_tokens"] for row in shipped.values()) <= 120


def test_every_occupation_is_eligible_and_rests_on_forty_texts_a_prompt(run: Path) -> None:
    lists = result_of(run).table("word_lists")
    assert 4 <= lists["occupation"].nunique()
    own = lists[(lists["origin"] == "inferred") & (lists["against"] != "all")]
    assert {80} == set(own[own["occupation"] != "all"]["n_target"])
    assert own["n_marked"].notna().all()


def test_two_occupations_at_least_have_words_of_both_genders_and_a_score(run: Path) -> None:
    made = result_of(run)
    lists = made.table("word_lists")
    own = lists[(lists["origin"] == "inferred") & (lists["method"] == "calibrated")]
    own = own[own["against"].isin(["female", "male"])]
    both = own[own["n_marked"] > 0].groupby("occupation")["gender"].nunique()
    assert 2 <= (both == 2).sum()
    scores = made.table("srb").dropna(subset="srb").groupby("occupation")["gender"].nunique()
    assert 2 <= (scores == 2).sum()


def test_an_unknown_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="demo-base"):
        recorded_run("recorded:demo-bsae", out=tmp_path / "r")


def test_another_runs_folder_is_refused(run: Path, tmp_path: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text(encoding="ascii"))
    manifest["question"]["seed"] = 7
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="ascii")
    with pytest.raises(RunError, match="another study"):
        recorded_run("recorded:demo-base", out=other)


def test_labels_by_hand_correct_the_shares_as_the_documentation_prints(tmp_path: Path) -> None:
    # 200 texts, drawn at random within occupation and rule label (seed 1; before prompts were strata), and
    # read by two readers with instructions.md, each in one pass, neither seeing the rules' genders or the
    # other's labels.
    path = recorded_run("recorded:demo-base", out=tmp_path / "run")
    sheets = [GOLDEN / f"recorded-labels-reader-{n}.csv" for n in (1, 2)]
    ids = [line.split(",")[0] for line in sheets[0].read_text().splitlines()[1:]]
    texts = _who_counts(path)[1]
    strata, cells = Counter(map(STRATUM, texts)), Counter(map(CELL, texts))
    read = {short_id(text.key): text for text in texts}
    n_read = Counter(STRATUM(read[one]) for one in ids)
    probability = {read[one].key: n_read[STRATUM(read[one])] / strata[STRATUM(read[one])] for one in ids}
    Drawn(probability=probability, n_texts=tuple((*cell, n) for cell, n in cells.items())).store(path)
    made = load(path, labels=sheets, settings=QUICK, watcher=Silent())
    assert any("agree on 195 of 200 texts: Cohen's kappa 0.96 [0.93 to 0.99]" in one for one in made.warnings)
    assert not any("name no gender and are left out" in one for one in made.warnings)
    printed = render_text(made.document(), 80)
    (shown,) = re.findall(r"```\n(Who is .*?)```", (ROOT / "docs/howto/labels.md").read_text("utf-8"), re.S)
    assert shown in printed
    rules = made.table("label_validation").set_index("gender")
    found = [round(100 * rules.loc[gender, "recall"]) for gender in ("female", "male")]
    assert [62, 79] == found


def test_labels_that_say_what_the_rules_say_leave_every_share_as_it_is(tmp_path: Path) -> None:
    # Weighed by texts, a doctor's share fell from 35.2 to 29.9 % by that alone: 95 and 40 % of the two
    # prompts' texts name a gender.
    path = recorded_run("recorded:demo-base", out=tmp_path / "run")
    texts = _who_counts(path)[1]
    label(path, n=len(texts))
    word = {"female": "women", "male": "men", "nonbinary": "non-binary", None: "none"}
    sheet = tmp_path / "all.csv"
    lines = [f"{short_id(text.key)},{word[text.gender]}" for text in texts]
    sheet.write_text("\n".join(["id,person_gender", *lines]))
    rows = load(path, labels=[sheet], settings=QUICK, watcher=Silent()).representation
    means = rows[rows["template_id"] == "all"]
    assert 4 == len(means)
    assert pytest.approx(means["female_share"].tolist(), abs=1e-12) == means["share_corrected"].tolist()
    assert (
        pytest.approx(means["nonbinary_share"].tolist(), abs=1e-12) == means["nonbinary_corrected"].tolist()
    )
