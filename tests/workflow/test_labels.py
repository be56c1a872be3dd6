"""Labels of a person: the sample, the sheet, what they correct, and every slip of the hand.

See methods/representation#corrected.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.command import Cli
from places import BENCHMARKS, module_of

import biaskit as bk
from biaskit.errors import BiaskitError, CorpusError, RunError, UsageError
from biaskit.measures.personas.labels.correction import Labels
from biaskit.measures.personas.labels.drawing import Drawn
from biaskit.measures.personas.labels.sheets import agreement, read_sheet, short_id
from biaskit.report.findings import findings
from biaskit.report.stored import stored_content

FAST: dict[str, Any] = {"permutations": 19, "clusters": False, "vectors": "marked-lists"}
Truth = dict[str, str]  # id of a text → what a person says of it


def texts(n: int = 400, seed: int = 3, jobs: tuple[str, ...] = ("nurse", "cook")) -> pd.DataFrame:
    """Texts that the rules can read in three of five; the silent ones are women's in seven of ten."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        silent = rng.random() < 0.4
        women = rng.random() < (0.7 if silent else 0.4)
        words = " ".join(rng.choice([f"word{k}" for k in range(400)], 12))
        who = "" if silent else ("she " if women else "he ")
        rows.append(
            {"text": f"{who}{words}", "job": jobs[i % len(jobs)], "truth": "women" if women else "men"}
        )
    return pd.DataFrame(rows)


def drawn(frame: pd.DataFrame, run: Path, n: int = 120, **options: Any) -> tuple[Path, Truth]:
    """Analyse the texts, draw a sheet, and look up what a person would say of each of its texts."""
    made = bk.analyze_texts(frame, occupation="job", settings=FAST, out=run, watcher=bk.Silent(), **options)
    truth_of = dict(zip(frame["text"], frame["truth"], strict=True))
    sheet = bk.label(made, n=n)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        return sheet, {row["id"]: truth_of[row["text"].strip()] for row in csv.DictReader(file)}


def filled(path: Path, truth: Truth) -> Path:
    path.write_text("id,person_gender\n" + "".join(f"{key},{word}\n" for key, word in truth.items()))
    return path


def load(run: Path, *sheets: Path | str, **options: Any) -> Any:
    return bk.load(run, labels=sheets, settings=FAST, watcher=bk.Silent(), **options)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """A run with a sheet that is drawn and not used."""
    run = tmp_path_factory.mktemp("labels") / "run"
    return run, drawn(texts(), run)[1]


@pytest.fixture
def run(labelled: tuple[Path, Truth], tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(labelled[0], tmp_path / "run"))


@pytest.fixture
def truth(labelled: tuple[Path, Truth]) -> Truth:
    return dict(labelled[1])


# --- the sample ---------------------------------------------------------------------------------------------


def test_a_sample_is_random_within_strata_and_reads_more_where_the_rules_are_silent(
    run: Path, truth: Truth
) -> None:
    record = Drawn.stored_in(run)
    rows = bk.load(run, settings=FAST, watcher=bk.Silent()).genders
    assert 120 == len(record.probability) == len(truth)
    assert {("texts", "nurse", 200), ("texts", "cook", 200)} == set(record.n_texts)
    rows = rows[rows["gender"] != "nonbinary"]
    for (job, gender), of_stratum in rows.groupby(["occupation", "gender"]):
        keys = [key for key in of_stratum["key"] if key in record.probability]
        assert {len(keys) / len(of_stratum)} == {record.probability[key] for key in keys}, (job, gender)
        assert (len(keys) / len(of_stratum) > 0.35) is (gender == "")


def test_a_sample_follows_its_seed_and_its_order_says_nothing(tmp_path: Path) -> None:
    ids = []
    for seed in (1, 1, 2):
        run = tmp_path / str(len(ids))
        made = bk.analyze_texts(texts(60), occupation="job", settings=FAST, out=run, watcher=bk.Silent())
        sheet = bk.label(made, n=30, seed=seed).read_text("utf-8-sig")
        ids.append([line.split(",")[0] for line in sheet.splitlines()[1:]])
    assert ids[0] == ids[1] != ids[2]
    assert sorted(ids[0]) != ids[0]


@pytest.mark.parametrize("n", [19, 401, 0])
def test_too_few_and_too_many_are_refused(n: int, labelled: tuple[Path, Truth], tmp_path: Path) -> None:
    made = bk.analyze_texts(texts(), occupation="job", settings=FAST, out=tmp_path / "r", watcher=bk.Silent())
    with pytest.raises(UsageError, match=r"n=.* does not fit: this run has 400 texts .* at least 20"):
        bk.label(made, n=n)
    assert not (tmp_path / "r" / "labels").exists()


def test_a_small_occupation_gives_all_it_has(tmp_path: Path) -> None:
    frame = texts(64)
    frame.loc[:2, "job"] = "poet"
    record_of, truth = tmp_path / "r", drawn(frame, tmp_path / "r", n=40)[1]
    assert 40 == len(truth)
    made = load(record_of, filled(tmp_path / "a.csv", truth)).representation.set_index("occupation")
    poet = made.loc["poet"]
    poet = poet[poet["template_id"] == "all"].iloc[0] if isinstance(poet, pd.DataFrame) else poet
    assert 3 == poet["n_labelled"]
    assert "3 labels: a corrected share needs 10" in poet["reason"]


def test_texts_with_a_requested_gender_and_empty_ones_are_not_drawn(tmp_path: Path) -> None:
    frame = texts(80)
    frame["asked"] = ["F", "", "M", ""] * 20
    frame.loc[[1, 3], "text"] = ""
    made = bk.analyze_texts(frame, gender="asked", settings=FAST, out=tmp_path / "r", watcher=bk.Silent())
    with pytest.raises(UsageError, match="this run has 38 texts"):
        bk.label(made, n=39)
    assert 39 == len(bk.label(made, n=38).read_text("utf-8-sig").splitlines())


# --- the sheet ---------------------------------------------------------------------------------------------


def test_a_sheet_hints_at_nothing_and_its_page_is_one_file(tmp_path: Path) -> None:
    odd = ["=1+1 she", "a\rb\nc she", 'say "hi" she', "</script><b>she", "ä\u2028she\ud800", "x,y;z she"]
    frame = pd.DataFrame({"text": [f"{text} {i}" for i in range(4) for text in odd]}, dtype=object)
    made = bk.analyze_texts(frame, settings=FAST, out=tmp_path / "r", watcher=bk.Silent())
    sheet = bk.label(made, n=12)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert 12 == len(rows)
    for row in rows:
        assert {"id", "person_gender", "text"} == row.keys()
        assert "" == row["person_gender"]
        assert row["text"].lstrip().replace("?", "\ud800") in {*frame["text"]}
        assert not row["text"].startswith("=")
    page = sheet.with_suffix(".html").read_text("utf-8")
    assert 1 == page.count("</script>")
    inside = page.partition("const texts = ")[2].partition(";\n")[0]
    assert {row["id"] for row in rows} == {name for name, _ in json.loads(inside)}
    assert {text for _, text in json.loads(inside)} <= {*frame["text"]}
    assert "http" not in page.replace("http-equiv", "")
    before, _, fold = page.partition("<details")
    assert "Read this page first" in fold
    assert (before + fold.partition("</details>")[2]).count("\n") < 120
    guide = sheet.with_name("instructions.md").read_text("utf-8")
    assert all(f"| {word} |" in guide for word in ("women", "men", "non-binary", "none", "unclear"))


def test_a_second_draw_is_refused_and_nothing_is_lost(run: Path) -> None:
    before = (run / "labels" / "sheet.csv").read_bytes()
    with pytest.raises(
        UsageError, match=r"sheet.csv is of an earlier draw of 120 texts: fill it, or move .*labels away"
    ):
        bk.label(run, n=40)
    assert before == (run / "labels" / "sheet.csv").read_bytes()
    every = bk.label(run, every=True)
    with pytest.raises(UsageError, match=r"all.csv is there already: use it, or remove it to write it"):
        bk.label(run, every=True)
    # Killed between the record and the sheet: the sheet is written, of the texts that were drawn.
    (run / "labels" / "instructions.md").write_text("ours")
    (run / "labels" / "sheet.csv").unlink()
    with pytest.raises(UsageError, match="is of an earlier draw of 120 texts"):
        bk.label(run, n=40)
    assert before == bk.label(run, n=120, seed=9).read_bytes()
    assert "ours" == (run / "labels" / "instructions.md").read_text()
    assert every.exists()


def test_a_linked_folder_is_not_written_to(run: Path, tmp_path: Path) -> None:
    (run / "labels").rename(tmp_path / "elsewhere")
    (run / "labels").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="labels is a symbolic link"):
        bk.label(run, every=True)


def test_ids_are_no_numbers_for_a_spreadsheet(truth: Truth) -> None:
    assert all(name.startswith("t-") for name in truth)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("KEY,wommen", r"a.csv, line 2: 'wommen' is no label. Did you mean 'women'\?"),
        ("KEY,women\nKEY,men", "a.csv, line 3: the text 'KEY' has another label above"),
        ("KEY,", "a.csv has no label yet: fill its column person_gender"),
        ("0123,women", r"a.csv is a sheet of another run, or .* has no text '0123' \(1 of 1 label"),
        ("KEY,women\n1E5,men", r"or its ids were changed: .* no text '1E5' \(1 of 2 labels"),
    ],
)
def test_slips_in_a_sheet_are_one_line(
    run: Path, truth: Truth, tmp_path: Path, lines: str, message: str
) -> None:
    key = next(iter(truth))
    path = tmp_path / "a.csv"
    path.write_text(f"id,person_gender\n{lines.replace('KEY', key)}\n")
    with pytest.raises(BiaskitError, match=message.replace("KEY", key)):
        load(run, path)
    assert not (run / "labels" / "used.json").exists()
    with pytest.raises(CorpusError, match="has no column 'person_gender'"):
        path.write_text("id,gender\n")
        load(run, path)


def test_sheets_that_cannot_be_what_they_are_named_as_are_refused(
    run: Path, truth: Truth, tmp_path: Path
) -> None:
    a = filled(tmp_path / "a.csv", truth)
    for sheets, gold in (((a, tmp_path / "x" / ".." / "a.csv"), None), ((a,), a)):
        with pytest.raises(UsageError, match="One sheet is named twice in labels= and gold="):
            load(run, *sheets, gold=gold)
    with pytest.raises(UsageError, match="gold= wants one labels="):
        load(run, "none", gold=a)
    with pytest.raises(BiaskitError):
        load(run, a, gold="")
    everything = bk.label(run, every=True).read_text("utf-8-sig")
    ids = [row["id"] for row in csv.DictReader(everything.splitlines())]
    of_all = filled(tmp_path / "all.csv", dict.fromkeys(ids, "men"))
    with pytest.raises(UsageError, match=r"One sheet labels all 400 texts, and 120 were drawn: .* gold="):
        load(run, of_all)
    assert not (run / "labels" / "used.json").exists()
    (run / "labels" / "drawn.json").unlink()
    with pytest.raises(RunError, match=r"drawn.json is not there, and labels need it: draw texts with"):
        load(run, a)
    assert not (run / "labels" / "used.json").exists()


@pytest.mark.parametrize("word", ["Women", " w ", "F", "female", "WOMAN"])
def test_words_are_read_as_people_write_them(word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"\ufeffid;text;person_gender\na;x;{word}\nb;y;\nc;z;?\n", encoding="utf-8")
    assert {"a": "female", "c": "unclear"} == read_sheet(path)


# --- what labels correct -----------------------------------------------------------------------------------


def test_labels_correct_shares_and_everything_that_uses_them(run: Path, truth: Truth, tmp_path: Path) -> None:
    frame = texts()
    true = {job: (of["truth"] == "women").mean() for job, of in frame.groupby("job")}
    plain = bk.load(run, settings=FAST, watcher=bk.Silent())
    assert "share_corrected" not in plain.representation
    made = load(run, filled(tmp_path / "a.csv", truth))
    rows = made.representation.query("template_id == 'all'").set_index("occupation")
    for job, row in rows.iterrows():
        assert row["corrected_low"] < true[str(job)] < row["corrected_high"]
        assert abs(row["share_corrected"] - true[str(job)]) < abs(row["female_share"] - true[str(job)])
        assert row["corrected_high"] - row["corrected_low"] < 0.6 * (
            row["share_if_dropped_female"] - row["share_if_dropped_male"]
        )
        assert 0 == row["nonbinary_corrected"]
        assert row["labelled_low"] < row["share_labelled"] < row["labelled_high"]
    assert 120 == rows["n_labelled"].sum()
    said = next(one for one in findings(stored_content(run)) if "labour statistics" in one.text)
    assert "(too few occupations" in said.text
    assert 1 == said.measured_with.count("corrected by a person's labels of 120 texts")
    assert "without a gender left out" not in said.measured_with
    # The labels stay with the run, and go when they are told to.
    again = bk.load(run, settings=FAST, watcher=bk.Silent())
    pd.testing.assert_frame_equal(made.representation, again.representation)
    forgotten = load(run, "none")
    pd.testing.assert_frame_equal(plain.representation, forgotten.representation)
    assert forgotten.table("label_validation").empty


def test_a_sentence_says_shares_by_labels(tmp_path: Path) -> None:
    frame = texts(jobs=("alpha", "beta"))
    _, truth = drawn(frame, tmp_path / "r")
    rows = load(tmp_path / "r", filled(tmp_path / "a.csv", truth)).representation.query(
        "template_id == 'all'"
    )
    low, high = (100 * rows["share_corrected"].agg(f) for f in ("min", "max"))
    said = next(one for one in findings(stored_content(tmp_path / "r")) if "are about women" in one.text)
    assert said.text.startswith("Corrected by labels: of your texts")
    ends = rows.set_index("share_corrected")[["corrected_low", "corrected_high"]].mul(100).round()
    for share, (least, most) in zip(ends.index, ends.values.astype(int), strict=True):
        assert f"{100 * share:.0f} % [{least}–{most}] (" in said.text
    assert low < high
    assert "shares of women are corrected by a person's labels of 120 texts" in said.measured_with
    assert not any(
        "name no gender and are left out" in one.text for one in findings(stored_content(tmp_path / "r"))
    )


def test_precision_and_recall_are_of_all_texts(run: Path, truth: Truth, tmp_path: Path) -> None:
    table = load(run, filled(tmp_path / "a.csv", truth)).table("label_validation").set_index("gender")
    assert ["none", "female", "male", "nonbinary"] == table.index.tolist()
    assert 120 == table[[name for name in table if name.startswith("n_")]].to_numpy().sum()
    women = table.loc["female"]
    assert 1.0 == women["precision"] == women["precision_high"] > women["precision_low"] > 0.8
    rules = bk.load(run, settings=FAST, watcher=bk.Silent()).genders.set_index("key")["gender"]
    record = Drawn.stored_in(run)
    weights = {key: 1 / p for key, p in record.probability.items()}
    of_women = {key: w for key, w in weights.items() if truth[short_id(key)] == "women"}
    recalled = sum(w for key, w in of_women.items() if rules[key] == "female") / sum(of_women.values())
    assert pytest.approx(recalled) == women["recall"]
    assert women["recall_low"] < recalled < women["recall_high"]
    assert table.loc["nonbinary", "reason"] == "no labelled text for precision; no labelled text for recall"


def test_a_reader_may_stop_halfway(run: Path, truth: Truth, tmp_path: Path) -> None:
    half = dict([*truth.items()][:60])
    rows = load(run, filled(tmp_path / "a.csv", half)).representation.query("template_id == 'all'")
    assert 60 == rows["n_labelled"].sum()
    assert rows["share_corrected"].notna().all()


def test_two_readers_a_third_and_what_is_said_of_them(run: Path, truth: Truth, tmp_path: Path) -> None:
    other = {key: "men" if i % 10 == 0 else word for i, (key, word) in enumerate(truth.items())}
    n = sum(other[key] != truth[key] for key in truth)
    a, b = filled(tmp_path / "a.csv", truth), filled(tmp_path / "b.csv", other)
    made = load(run, a, b)
    notes = " ".join(made.warnings)
    assert f"the readers agree on {120 - n} of 120 texts: Cohen's kappa 0." in notes
    (again,) = (run / "labels").glob("differing-*.csv")
    assert (
        f"readers differ on {n} texts, where one of the labels counts, by lot: let a third fill"
        f" labels/{again.name} of the run" in notes
    )
    assert str(run) not in (run / "labels" / "used.json").read_text()
    of_both = made.table("label_validation").filter(regex="^n_").to_numpy().sum()
    assert 120 == of_both
    with again.open(encoding="utf-8-sig", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    assert {key for key in truth if other[key] != truth[key]} == {*ids}
    shares = [load(run, *sheets).representation["share_corrected"].max() for sheets in ([a], [a, b], [b])]
    assert sorted(shares) == shares[::-1]
    third = filled(again, {key: truth[key] for key in ids})
    decided = load(run, a, b, third)
    pd.testing.assert_frame_equal(load(run, a).representation, decided.representation)
    assert "by lot" not in " ".join(decided.warnings)
    everywhere = filled(tmp_path / "c.csv", dict.fromkeys(truth, "none") | {key: truth[key] for key in ids})
    pd.testing.assert_frame_equal(decided.representation, load(run, a, b, everywhere).representation)
    # Other readers, another set: what the third wrote stays as it is.
    load(run, b, filled(tmp_path / "d.csv", dict.fromkeys(truth, "none")))
    assert 2 == len([*(run / "labels").glob("differing-*.csv")])
    assert again.read_text().startswith("id,person_gender\n")  # what the third wrote is not written over


def test_readers_who_never_agree_leave_a_wide_interval(run: Path, truth: Truth, tmp_path: Path) -> None:
    # A text whose label is by lot varies as any other: two halves of it would hide how much.
    sheets = [filled(tmp_path / f"{word}.csv", dict.fromkeys(truth, word)) for word in ("women", "men")]
    rows = load(run, *sheets).representation.query("template_id == 'all'")
    assert (rows["corrected_low"] < 0.42).all()
    assert (rows["corrected_high"] > 0.58).all()


def test_a_third_sheet_decides_where_the_first_two_differ_and_nowhere_else() -> None:
    first, second, third = {"a": "female", "b": "female", "c": "male"}, {"a": "male", "b": "female"}, {}
    assert ["a"] == Labels(readers=(first, second, third)).settled()[1]
    for word in ("female", "none"):
        third = dict.fromkeys("abcd", word)
        decided = {"a": word, "b": "female", "c": "male", "d": word}
        assert (decided, []) == Labels(readers=(first, second, third)).settled()


def test_few_labels_of_one_gender_have_the_interval_of_their_number(tmp_path: Path) -> None:
    # A reader once met 0.0 [0.0 to 12.9] from twelve labels, of which four named men and none women.
    _, truth = drawn(texts(200), tmp_path / "r", n=30)
    some = {"men": 0, "none": 0}
    for key in truth:
        truth[key] = "men" if some["men"] < 8 else "none"
        some[truth[key]] += 1
    rows = load(tmp_path / "r", filled(tmp_path / "a.csv", truth)).representation
    rows = rows[(rows["template_id"] == "all") & rows["share_corrected"].notna()]
    assert not rows.empty
    assert (rows["share_corrected"] == 0).all()
    assert (rows["corrected_high"] > 0.3).all()  # Wilson: 0 of 8 is up to 32 %, of fewer up to more
    assert (rows["corrected_se"] > 0.08).all()


def test_how_much_of_the_sheet_is_filled_is_said(run: Path, truth: Truth, tmp_path: Path) -> None:
    keys = [*truth]
    half = {key: truth[key] for i, key in enumerate(keys[:60]) if i not in (3, 20)}
    made = load(run, filled(tmp_path / "a.csv", half))
    assert "58 of 120 texts of the sheet are labelled" in made.warnings
    assert any("2 texts of the sheet skipped" in note for note in made.warnings)
    assert not any("skipped" in note for note in load(run, filled(tmp_path / "a.csv", truth)).warnings)


def test_sheets_as_programs_save_them(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": "t-a", "person_gender": 0}\n{"id": "t-b", "person_gender": null}\n'
    )
    assert {"t-a": "none"} == read_sheet(tmp_path / "a.jsonl")
    (tmp_path / "a.csv").write_text("id;person_gender;text\nt-a;women;Bäckerin\n", encoding="cp1252")
    assert {"t-a": "female"} == read_sheet(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("encoding", "delimiter"),
    [("cp932", ","), ("cp1250", ";"), ("gbk", ","), ("cp1251", ";"), ("utf-16", "\t"), ("mac_roman", ",")],
)
def test_ids_and_labels_are_read_whatever_the_texts_are_written_in(
    encoding: str, delimiter: str, tmp_path: Path
) -> None:
    # A second byte of cp932 (the last of 表 and 能) and of GBK may be a backslash, never a quote or a comma.
    texts = ["plain", 'she said “no”, "表" – 能', "Łódź ťava", "Наука", "naïve…"]
    lines = [
        {"id": f"t-{n}", "person_gender": label, "text": text}
        for n, (label, text) in enumerate(zip(["women", "men", "", "none", "?"], texts, strict=True))
    ]
    with (tmp_path / "a.csv").open("w", newline="", encoding=encoding, errors="replace") as file:
        writer = csv.DictWriter(file, list(lines[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(lines)
    expected = {"t-0": "female", "t-1": "male", "t-3": "none", "t-4": "unclear"}
    assert expected == read_sheet(tmp_path / "a.csv")


def test_a_sheet_that_begins_with_a_mark_of_utf_8_may_hold_other_bytes(tmp_path: Path) -> None:
    content = "\ufeffid,person_gender,text\nt-0,ｗｏｍｅｎ,".encode() + "Łódź\nt-1,？,x\n".encode(
        "cp1250", "replace"
    )
    (tmp_path / "a.csv").write_bytes(content)
    assert {"t-0": "female", "t-1": "unclear"} == read_sheet(tmp_path / "a.csv")


def test_labels_are_found_on_whatever_sheet_of_a_workbook(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "a.xlsx"
    book.active.append(["How to label"])
    empty, one, two = (book.create_sheet(name) for name in ("Empty", "One", "Two"))
    assert empty.title == "Empty"
    for sheet in (one, two):
        sheet.append([" ID", "Person_Gender", "Text"])
    for n in range(4):
        one.append([f"t-{n}", None, "x"])
        two.append([f"t-{n}", "women" if n == 0 else None, "x"])
    two.merge_cells("B2:B4")
    book.save(path)
    assert {"t-0": "female", "t-1": "female", "t-2": "female"} == read_sheet(path)
    assert {"t-0": "female", "t-1": "female", "t-2": "female"} == read_sheet(f"{path}#Two")
    with pytest.raises(CorpusError, match="has no label yet"):
        read_sheet(f"{path}#One")
    one["B3"] = "men"
    book.save(path)
    with pytest.raises(CorpusError, match=r"a.xlsx, row 3: the text 't-1' has another label above. Keep one"):
        read_sheet(path)
    one["B3"] = '=IF(1,"men","")'
    book.save(path)
    with pytest.raises(CorpusError, match=r"sheet 'One', row 3: Person_Gender is a formula without a result"):
        read_sheet(path)


def test_labels_without_a_share_are_said_to_be_unused(run: Path, truth: Truth, tmp_path: Path) -> None:
    load(run, filled(tmp_path / "a.csv", truth))
    held = bk.load(run, settings={**FAST, "hold_out": 0.5}, watcher=bk.Silent())
    assert any("labels are not used" in note for note in held.warnings)


def test_kappa_is_that_of_cohen() -> None:
    # By hand (Cohen 1960): p_o = 45/50, p_e = 0.6·0.5 + 0.4·0.5. The interval is statsmodels' (Fleiss, Cohen
    # and Everitt 1969).
    first = {str(i): "female" if i < 30 else "male" for i in range(50)}
    second = {str(i): "female" if i < 25 else "male" for i in range(50)}
    said = agreement(first, second)
    assert "agree on 45 of 50 texts: Cohen's kappa 0.80 [0.64 to 0.96]; no interval holds what" in said
    assert "agree on 50 of 50 texts: Cohen's kappa 1.00 [1.00 to 1.00]" in agreement(first, first)
    alike = dict.fromkeys(first, "male")
    assert "agree on 50 of 50 texts; kappa needs two labels of each" in agreement(alike, alike)
    assert "no text in common" in agreement(first, {"x": "male"})


def test_texts_that_were_not_drawn_are_counted_and_correct_nothing(
    run: Path, truth: Truth, tmp_path: Path
) -> None:
    before = load(run, filled(tmp_path / "a.csv", truth))
    keys = [short_id(key) for key in before.genders["key"]]
    more = dict.fromkeys([key for key in keys if key not in truth][1:], "women")
    made = load(run, filled(tmp_path / "b.csv", truth | more))
    assert f"{len(more)} labels of texts that were not drawn: counted, but correct nothing" in made.warnings
    pd.testing.assert_frame_equal(before.representation, made.representation)
    counts = [name for name in made.table("label_validation") if name.startswith("n_")]
    assert len(truth) + len(more) == made.table("label_validation")[counts].to_numpy().sum()
    same = ["precision", "recall", "recall_low"]
    pd.testing.assert_frame_equal(
        before.table("label_validation")[same], made.table("label_validation")[same]
    )


def test_few_labels_pool_strata_and_the_reason_says_so(tmp_path: Path) -> None:
    _, truth = drawn(texts(200), tmp_path / "r", n=30)
    rows = load(tmp_path / "r", filled(tmp_path / "a.csv", truth)).representation
    rows = rows[rows["template_id"] == "all"]
    assert rows["reason"].str.contains("classes of texts with fewer than 5 labels pooled").all()
    assert rows["share_corrected"].notna().all()


def test_labels_of_a_model_take_the_rules_place(run: Path, truth: Truth, tmp_path: Path) -> None:
    everything = bk.label(run, every=True)
    of_text = dict(zip(texts()["text"], texts()["truth"], strict=True))
    with everything.open(encoding="utf-8-sig", newline="") as file:
        judged = {row["id"]: of_text[row["text"].strip()] for row in csv.DictReader(file)}
    wrong = {key: "men" if i % 20 == 0 else word for i, (key, word) in enumerate(judged.items())}
    gold, judge = filled(tmp_path / "gold.csv", truth), filled(tmp_path / "judge.csv", wrong)
    by_rules = load(run, gold).representation.set_index(["occupation", "template_id"])
    made = load(run, judge, gold=gold)
    by_judge = made.representation.set_index(["occupation", "template_id"])
    for job in ("nurse", "cook"):
        rules, judged_row = by_rules.loc[(job, "all")], by_judge.loc[(job, "all")]
        width = judged_row["corrected_high"] - judged_row["corrected_low"]
        assert width < 0.8 * (judged_row["labelled_high"] - judged_row["labelled_low"])
        assert rules["share_corrected"] != judged_row["share_corrected"]
        true = (texts().query("job == @job")["truth"] == "women").mean()
        assert judged_row["corrected_low"] < true < judged_row["corrected_high"]
        assert rules["female_share"] == judged_row["female_share"]  # that of the rules, as before
    assert 0 == made.table("label_validation").set_index("gender").loc["none"].filter(like="n_").sum()
    unsure = {key: "unclear" if i % 4 == 0 else word for i, (key, word) in enumerate(wrong.items())}
    table = load(run, filled(judge, unsure), gold=gold).table("label_validation")
    assert ["none", "female", "male", "nonbinary", "unclear"] == table["gender"].tolist()
    assert 120 == table.filter(regex="^n_").to_numpy().sum()
    wrong.pop(next(iter(wrong)))
    with pytest.raises(
        UsageError, match=r"judge.csv lacks 1 text, first .*: label every row of the sheet from"
    ):
        load(run, filled(judge, wrong), gold=gold)
    for sheets in ((), (judge, gold)):
        with pytest.raises(UsageError, match="gold= wants one labels=, the labels of a model"):
            load(run, *sheets, gold=gold)


def standardised(rows: pd.DataFrame, share: str) -> float:
    """The share of two less that of one, in occupations that weigh as among two's texts with a gender."""
    one, two = (rows[rows["model"] == model].set_index("occupation") for model in ("one", "two"))
    n = two[["n_female", "n_male", "n_nonbinary"]].sum(axis=1)
    return float((n / n.sum() * (two[share] - one[share])).sum())


def test_own_groups_and_models_are_corrected_alike(tmp_path: Path) -> None:
    frame = texts(480)
    frame["race"] = ["a", "b", "c"] * 160
    frame["by"] = np.where(np.arange(480) % 4 < 2, "one", "two")
    _, truth = drawn(frame, tmp_path / "r", n=240, group_col="race", model="by")
    made = load(tmp_path / "r", filled(tmp_path / "a.csv", truth))
    rows = made.representation.query("template_id == 'all'")
    assert 4 == len(rows) == rows["share_corrected"].notna().sum()
    assert not made.group_lists.empty
    tests = made.table("tests")
    between = tests[(tests["quantity"] == "represented_share") & (tests["kind"] == "standardised")].iloc[0]
    assert pytest.approx(standardised(rows, "share_corrected")) == between["estimate"]
    assert "shares of women are corrected by" in between["reason"]
    assert (
        between["bound_low"] == between["bound_high"]
        or between["bound_low"] is None
        or pd.isna(between["bound_low"])
    )
    # Labels of one model alone would make a difference of the rules' errors.
    by_one = {short_id(key) for key in made.genders.query("model == 'one'")["key"]}
    some = {key: word for key, word in truth.items() if key in by_one}
    made = load(tmp_path / "r", filled(tmp_path / "b.csv", some))
    tests, rows = made.table("tests"), made.representation.query("template_id == 'all'")
    between = tests[(tests["quantity"] == "represented_share") & (tests["kind"] == "standardised")].iloc[0]
    assert 2 == rows["share_corrected"].notna().sum()
    assert pytest.approx(standardised(rows, "female_share")) == between["estimate"]
    assert "a person's labels are not used: not all these models and occupations" in between["reason"]


def test_texts_in_a_language_that_the_rules_do_not_read_get_a_share(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = [
        "el",
        "los",
        "del",
        "que",
        "muy",
        "una",
        "por",
        "con",
        "para",
        "hasta",
        "su",
        "como",
        "más",
        "pero",
        "también",
    ]
    rows = [
        {
            "text": f"{' '.join(rng.choice(words, 30))} {i}",
            "job": "Koch",
            "truth": "women" if i % 4 else "men",
        }
        for i in range(80)
    ]
    _, truth = drawn(pd.DataFrame(rows), tmp_path / "r", n=40)
    row = load(tmp_path / "r", filled(tmp_path / "a.csv", truth)).representation.iloc[-1]
    assert pd.isna(row["female_share"])
    assert row["corrected_low"] < 0.75 < row["corrected_high"]
    assert "no gender is inferred" in row["reason"]
    # With a second reason beside it, the texts are still not some that the rules left without a gender.
    made = load(tmp_path / "r", filled(tmp_path / "a.csv", dict([*truth.items()][:5])))
    row = made.representation.iloc[-1]
    assert "; 5 labels: a corrected share needs 10" in row["reason"]
    assert not any("name no gender" in note for note in made.warnings)
    assert not any(
        "without a gender left out" in one.measured_with for one in findings(stored_content(tmp_path / "r"))
    )


def test_texts_added_after_the_sample_are_noticed(run: Path, truth: Truth, tmp_path: Path) -> None:
    record = json.loads((run / "labels" / "drawn.json").read_text())
    record["n_texts"][0][2] -= 1
    (run / "labels" / "drawn.json").write_text(json.dumps(record))
    rows = load(run, filled(tmp_path / "a.csv", truth)).representation.query("template_id == 'all'")
    assert 1 == rows["share_corrected"].isna().sum()
    assert rows["reason"].str.contains("labels were drawn of 199 texts, now there are 200").sum() == 1
    (run / "labels" / "drawn.json").write_text("{}x")
    with pytest.raises(RunError, match=r"drawn.json is not as biaskit wrote it: restore it, or move it away"):
        bk.load(run, settings=FAST, watcher=bk.Silent())


def test_other_runs_are_refused(tmp_path: Path) -> None:
    model = bk.writer("mine", lambda prompts: ["x"] * len(prompts))
    probed = bk.probe(model, jobs="nurse", estimator="sampling", out=tmp_path / "p", watcher=bk.Silent())
    with pytest.raises(UsageError, match="is a run of biaskit probe: labels are for texts"):
        bk.label(probed)
    frame = texts(40).assign(asked="F")
    made = bk.analyze_texts(frame, gender="asked", settings=FAST, out=tmp_path / "r", watcher=bk.Silent())
    with pytest.raises(UsageError, match="has no texts without a gender in the prompt"):
        bk.label(made)


def test_the_commands_do_it(run: Path, truth: Truth, tmp_path: Path, console: Cli) -> None:
    other = tmp_path / "other"
    bk.analyze_texts(texts(60, seed=5), occupation="job", settings=FAST, out=other, watcher=bk.Silent())
    said = console("label", other, "--n", "30", "--seed", "7")
    assert f"Sheet: {other}/labels/sheet.csv" in said.out
    assert f"biaskit analyze {other} --labels {other}/labels/sheet.csv" in said.out
    assert 0 == said.code
    sheet = filled(tmp_path / "a.csv", truth)
    made = console(
        "analyze", run, "--labels", sheet, *[x for k, v in FAST.items() for x in ("--set", f"{k}={v}")]
    )
    assert 0 == made.code
    assert "corrected" in made.out
    assert "precision" in made.out
    slip = console("analyze", "--texts", sheet, "--labels", sheet)
    assert 2 == slip.code
    assert "Labels are for a run" in slip.err


# --- worlds ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_intervals_contain_the_truth_in_worlds_whose_rules_are_wrong(tmp_path: Path) -> None:
    worlds = module_of(BENCHMARKS / "label_worlds.py")
    for world in worlds.WORLDS[:2]:
        coverage, width, _, alone, bias, of_rules = map(
            float, worlds.run(world, 100, 200, tmp_path).split()[1:]
        )
        assert 91 < coverage < 99
        assert width < 0.7 * alone
        assert abs(bias) < 1 < 4 < abs(of_rules)


def test_worlds_are_what_they_say() -> None:
    worlds = module_of(BENCHMARKS / "label_worlds.py")
    for world in worlds.WORLDS:
        sampled_texts = [world.texts(np.random.default_rng(seed)) for seed in range(20)]
        shares = []
        for i, prompt in enumerate(world.prompts):
            seen, silent = Counter(), []
            for texts, truth in sampled_texts:
                of_prompt = [text for text in texts if text.template_id == f"prompt {i}"]
                seen.update(truth[text.key] for text in of_prompt)
                silent += [text.gender is None for text in of_prompt]
            shares.append(seen["female"] / (seen["female"] + seen["male"]))
            assert pytest.approx(prompt.silent, abs=0.02) == np.mean(silent)
        assert pytest.approx(world.truth, abs=0.02) == np.mean(shares)


@pytest.mark.slow
@pytest.mark.parametrize("n", [16, 64, 200])
def test_intervals_contain_the_mean_of_prompts_that_name_people_in_95_and_40_percent(
    n: int, tmp_path: Path
) -> None:
    worlds = module_of(BENCHMARKS / "label_worlds.py")
    for world in worlds.WORLDS[5:]:
        coverage, _, _, _, bias, _ = map(float, worlds.run(world, n, 200, tmp_path).split()[1:])
        assert 91 < coverage < 99.5
        assert abs(bias) < 2


@pytest.mark.slow
def test_a_labelled_model_is_held_against_an_unlabelled_one_by_the_rules_of_both(tmp_path: Path) -> None:
    # By labels on one side alone, the rules' errors were a difference: found in 14 of 25 worlds without one.
    worlds = module_of(BENCHMARKS / "label_worlds.py")
    for labelled in ((True, False), (True, True)):
        assert worlds.false_directions(labelled, 25, tmp_path) <= 0.16
