"""A stored row is held against its study: what does not fit is named by its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biaskit as bk
from biaskit.errors import RunError
from biaskit.records import TargetWord
from biaskit.runs.rows import row_line
from biaskit.runs.score_rows import fault_of
from biaskit.workflow.analyze import rebuild_tables, result_of

Row = dict[str, Any]
Change = Callable[[Row], Row]


def first(row: Row, **more: Any) -> Row:
    """The row with its first target word changed."""
    return {**row, "target_words": [{**row["target_words"][0], **more}, *row["target_words"][1:]]}


def swapped(row: Row) -> Row:
    turn = {"female": "male", "male": "female"}
    return {
        **row,
        "target_words": [{**e, "group": turn.get(e["group"], e["group"])} for e in row["target_words"]],
    }


CHANGES: dict[str, Change] = {
    "a null in place of the list": lambda row: {**row, "target_words": None},
    "no list": lambda row: {k: v for k, v in row.items() if k != "target_words"},
    "a text in the list": lambda row: {**row, "target_words": ["she"]},
    "a target word less": lambda row: {**row, "target_words": row["target_words"][1:]},
    "a target word twice": lambda row: row | {"target_words": [*row["target_words"], row["target_words"][0]]},
    "groups swapped": swapped,
    "another group": lambda row: first(row, group="people"),
    "another text": lambda row: first(row, text=" Nobody"),
    "no text": lambda row: first(row, text=None),
    "a text for a number": lambda row: first(row, log_prob="-1.5"),
    "a probability above one": lambda row: first(row, log_prob=3.5),
    "a list for a number": lambda row: first(row, log_prob=[-1.0]),
    "a truth for a number": lambda row: first(row, log_prob=True),
    "no number": lambda row: {**row, "target_words": [{k: v for k, v in e.items() if k != "log_prob"}
                                                     for e in row["target_words"]]},
    "tokens that are none": lambda row: first(row, token_ids="1 2"),
    "another estimator": lambda row: {**row, "estimator": "guess"},
    "an estimator without its lists": lambda row: {**row, "estimator": "top-k"},
    "an estimator without its counts": lambda row: {**row, "estimator": "sampling"},
    "no prompt": lambda row: {k: v for k, v in row.items() if k != "prompt"},
    "an estimator that is a list": lambda row: {**row, "estimator": ["exact"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("believed")
    line = {"contains": "", "log_probs": {" She": -0.5, " He": -1.5}}
    (home / "m.jsonl").write_text(json.dumps(line) + "\n", "ascii")
    asked: dict[str, Any] = {"jobs": ["nurse", "plumber"], "templates": "1-2", "watcher": bk.Silent()}
    return bk.probe(f"a=scripted:{home / 'm.jsonl'}", **asked, out=home / "run").path


def changed(stored: Path, run: Path, change: Change, number: int = 3) -> list[Row]:
    """A copy of the run with one row changed and summed anew, as a hostile hand would."""
    run.mkdir()
    (run / "manifest.json").write_bytes((stored / "manifest.json").read_bytes())
    rows = [json.loads(line) for line in (stored / "probe.jsonl").read_text("ascii").splitlines()]
    rows[number - 1] = change(rows[number - 1])
    (run / "probe.jsonl").write_text("".join(row_line(row) + "\n" for row in rows), "ascii")
    return rows


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_does_not_fit_is_named_by_its_line(stored: Path, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    rows = changed(stored, run, CHANGES[name])
    with pytest.raises(RunError, match=r"probe\.jsonl, line 3: .*skip_bad_lines=true"):
        rebuild_tables(run)
    notes = rebuild_tables(run, {"skip_bad_lines": True})
    assert any("rows left out as not fitting the study: 1" in note for note in notes)
    made = result_of(run).prompts  # type: ignore[attr-defined]
    assert len(rows) - 1 == made["coverage"].notna().sum()


def test_two_rows_of_one_cell_are_not_both_believed(stored: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    rows = changed(stored, run, lambda row: row)
    labels = {name: rows[0][name] for name in ("bias_type", "template_id", "job", "job_group")}
    with (run / "probe.jsonl").open("a", encoding="ascii") as file:
        file.write(row_line({**rows[1], **labels, "key": "e" * 32}) + "\n")
    with pytest.raises(RunError, match="another row answers the same prompt"):
        rebuild_tables(run)


def test_an_untouched_run_is_believed_and_so_are_forms_with_and_without_the_space(stored: Path) -> None:
    rebuild_tables(stored)
    both = [TargetWord("female", "She"), TargetWord("male", "He")]
    forms = [(one.group, space + one.text) for one in both for space in ("", " ")]
    target_words = [{"group": group, "text": text, "log_prob": -1.0} for group, text in forms]
    assert fault_of({"prompt": "", "estimator": "exact", "target_words": target_words}, both) is None
    assert fault_of({"prompt": "", "estimator": "exact", "target_words": target_words[:3]}, both) is not None


def test_labels_of_odd_kinds_answer_no_cell(stored: Path, tmp_path: Path) -> None:
    changed(stored, tmp_path / "run", lambda row: {**row, "job": ["nurse"], "template_id": {"a": 1}})
    assert any("not part of this study" in note for note in rebuild_tables(tmp_path / "run"))


@pytest.mark.parametrize(("count", "fits"), [(10, True), (11, False)])
def test_no_more_samples_say_a_word_than_were_drawn(count: int, fits: bool) -> None:
    target_words = [{"group": "female", "text": " She", "log_prob": None}]
    row = {"prompt": "", "estimator": "sampling", "target_words": target_words, "samples": 10}
    fault = fault_of({**row, "counts": {" She": count}}, [TargetWord("female", "She")])
    assert fits == (fault is None)
