"""Logs of other tools: what is read of them, and what is refused in one line."""

from __future__ import annotations

import json
import os
import random
import sys
import zipfile
from pathlib import Path

import pytest
from fakes.logs import eval_log, header, lm_eval_log, marks, sample

from biaskit.errors import UsageError
from biaskit.exchange.logs import archive
from biaskit.exchange.logs.files import is_log, read_logs
from biaskit.exchange.logs.inspect_samples import read_eval, read_json
from biaskit.exchange.logs.lm_eval_samples import read_samples


def test_values_of_every_form_become_numbers(tmp_path: Path) -> None:
    given = ["C", "I", "P", "N", True, 0, 0.25, "yes", "0.5"]
    found = read_eval(marks(tmp_path / "a.eval", given)).numbers["match"]
    assert list(found.values()) == [1, 0, 0.5, 0, 1, 0, 0.25, 1, 0.5]


def test_scores_of_several_values_are_several_scores(tmp_path: Path) -> None:
    log = read_eval(eval_log(tmp_path / "a.eval", [sample(1, {"judge": {"tone": 3, "truth": None}})]))
    assert log.numbers == {"judge/tone": {"1": 3.0}, "judge/truth": {}}
    assert log.missing["judge/truth"] == {"1": "no score"}


def test_epochs_are_averaged_within_a_sample(tmp_path: Path) -> None:
    samples = [sample("x", {"m": v}, epoch=e) for e, v in ((1, "C"), (2, "I"), (3, "C"))]
    samples += [sample("y", {"m": "I"}), sample("y", {}, epoch=2, error="boom")]
    log = read_eval(eval_log(tmp_path / "a.eval", samples))
    assert log.numbers["m"] == {"x": pytest.approx(2 / 3), "y": 0.0}
    assert any("2 scores of epochs are missing" in note for note in log.notes)


def test_samples_without_a_number_have_a_reason(tmp_path: Path) -> None:
    samples = [
        sample("nan", {"m": float("nan")}),
        sample("none", {}),
        sample("failed", {}, error="boom"),
        sample("other", {"m": 1}),
    ]
    log = read_eval(eval_log(tmp_path / "a.eval", samples))
    assert log.numbers["m"] == {"other": 1.0}
    assert log.missing["m"] == {
        "nan": "its score is not a finite number",
        "none": "no score",
        "failed": "failed",
    }


def test_scores_that_are_no_numbers_are_refused_by_name(tmp_path: Path) -> None:
    log = read_eval(eval_log(tmp_path / "a.eval", [sample("q", {"grade": "B+", "m": 1, "list": [1, 2]})]))
    assert log.refused["grade"] == "sample q has 'B+', which is no number"
    assert "list" in log.refused
    assert log.numbers == {"m": {"q": 1.0}}


def test_a_sample_that_was_run_again_counts_once(tmp_path: Path) -> None:
    log = read_eval(eval_log(tmp_path / "a.eval", [sample(1, {"m": "I"}), sample(1, {"m": "C"})]))
    assert log.numbers["m"] == {"1": 1.0}
    assert any("1 sample was run again" in note for note in log.notes)


def test_two_ids_that_read_alike_are_no_sample(tmp_path: Path) -> None:
    log = read_eval(eval_log(tmp_path / "a.eval", [sample(1, {"m": "I"}), sample("1", {"m": "C"})]))
    assert log.missing["m"] == {"1": "stands in the log more than once"}


def test_ids_of_messages_do_not_make_another_input(tmp_path: Path) -> None:
    def asked(name: str, text: str) -> list[dict[str, object]]:
        return [{"id": name, "role": "user", "content": [{"type": "text", "text": text}]}]

    logs = [
        read_eval(eval_log(tmp_path / f"{n}.eval", [{**sample(1, {"m": 1}), "input": asked(str(n), text)}]))
        for n, text in enumerate(("same", "same", "other"))
    ]
    first, second, third = (log.inputs["1"] for log in logs)
    assert first == second != third


def test_a_shortened_input_is_read_whole(tmp_path: Path) -> None:
    digests = []
    for end in ("one", "two"):
        path = tmp_path / f"{end}.eval"
        short = {**sample(1, {"m": 1}), "input": "Long...\n(content truncated)"}
        eval_log(path, [short])
        with zipfile.ZipFile(path, "a") as packed:
            packed.writestr("samples/1_epoch_1.json", json.dumps({**short, "input": f"Long {end}"}))
        digests.append(read_eval(path).inputs["1"])
    assert digests[0] != digests[1]


def test_a_log_that_is_not_finished_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("_journal/start.json", json.dumps({**header(), "status": "started"}))
        for n in (10, 9):
            packed.writestr(f"_journal/summaries/{n}.json", json.dumps([sample(n, {"m": 1})]))
    log = read_eval(path)
    assert list(log.inputs) == ["9", "10"]
    assert log.notes == ("not finished (status started): 2 of 4 samples are in the log",)


def test_inspects_json_is_the_same_log(tmp_path: Path) -> None:
    samples = [sample(1, {"m": "C"}), sample(2, {"m": float("nan")})]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**header(), "samples": samples}))
    packed = read_eval(eval_log(tmp_path / "a.eval", samples))
    assert read_json(path).numbers == packed.numbers
    assert read_json(path).missing == packed.missing


def test_sample_files_hold_a_metric_for_each_filter(tmp_path: Path) -> None:
    rows = [{"doc_id": 0, "filter": f, "exact_match": v} for f, v in (("strict", 0), ("flexible", 1))]
    log = read_samples(lm_eval_log(tmp_path, rows, model="org/m"))
    assert log.model == "org/m"
    assert log.numbers == {"exact_match,strict": {"0": 0.0}, "exact_match,flexible": {"0": 1.0}}


def test_a_metric_that_is_no_mean_is_named(tmp_path: Path) -> None:
    rows = [{"acc": 1, "f1": [1, 0]}, {"acc": 0, "f1": [0, 0]}]
    right = read_samples(lm_eval_log(tmp_path / "right", rows, results={"acc,none": 0.5}))
    other = read_samples(lm_eval_log(tmp_path / "other", rows, results={"acc,none": 0.7}))
    assert "no number" in right.refused["f1,none"]
    assert right.notes == ()
    assert "acc,none is 0.7 in lm-eval's results and 0.5" in other.notes[0]


def test_without_results_the_folder_is_the_model(tmp_path: Path) -> None:
    path = lm_eval_log(tmp_path / "org__m", [{"acc": 1}])
    next(path.parent.glob("results_*")).unlink()
    log = read_samples(path)
    assert log.model == "org__m"
    assert "no results file" in log.notes[0]


def test_of_one_task_and_model_in_a_folder_the_newest_is_taken(tmp_path: Path) -> None:
    for month in (1, 3, 2):
        marks(tmp_path / f"{month}.eval", ["C"] * month, created=f"2026-0{month}-01T00:00:00")
    logs, notes = read_logs([tmp_path])
    assert [log.path.name for log in logs] == ["3.eval"]
    assert "of 3 logs the newest is taken" in notes[0]


def test_one_task_with_two_sets_of_arguments_is_refused_in_a_folder(tmp_path: Path) -> None:
    for n in (1, 2):
        marks(tmp_path / f"{n}.eval", ["C"], task_args={"subject": n}, created=f"2026-0{n}-01")
    with pytest.raises(UsageError, match="other arguments: name the files"):
        read_logs([tmp_path])


def test_two_logs_of_one_model_get_their_files(tmp_path: Path) -> None:
    paths = [marks(tmp_path / name, ["C"]) for name in ("old.eval", "new.eval")]
    assert [log.model for log in read_logs(paths)[0]] == ["org/one (old.eval)", "org/one (new.eval)"]
    with pytest.raises(UsageError, match="named twice"):
        read_logs([paths[0], paths[0]])


def test_what_a_log_is(tmp_path: Path) -> None:
    marks(tmp_path / "logs.eval", ["C"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    (tmp_path / "run" / "x.eval").write_text("")
    assert is_log(tmp_path)
    assert is_log(tmp_path / "gone.eval")
    assert not is_log(tmp_path / "empty")
    assert not is_log(tmp_path / "run")
    assert not is_log(tmp_path / "gone")


# --- broken and hostile files ----------------------------------------------------------------------------


def zipped(path: Path, **members: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.json", content)
    return path


HEAD = json.dumps(header())
BROKEN = {
    "no zip": (b"hello", "is no .eval log"),
    "no header": ({"summaries": "[]"}, "has no header.json"),
    "no table": ({"header": "[]"}, "no table eval"),
    "no model": ({"header": '{"eval": {"task": "x"}}', "summaries": "[]"}, "names no task and model"),
    "no list": ({"header": HEAD, "summaries": "{}"}, "no list of samples"),
    "no json": ({"header": HEAD, "summaries": "[{"}, "summaries.json is not valid JSON"),
    "no utf-8": ({"header": HEAD, "summaries": b"[\xff]"}, "summaries.json is not valid JSON"),
    "deep": ({"header": HEAD, "summaries": "[" * 5000 + "]" * 5000}, "nested"),
    "no table of a sample": ({"header": HEAD, "summaries": "[3]"}, "no table"),
    "no id": ({"header": HEAD, "summaries": "[{}]"}, "has no id"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_log_is_one_line(name: str, tmp_path: Path) -> None:
    content, said = BROKEN[name]
    path = tmp_path / "a.eval"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        zipped(path, **content)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said) as raised:
        read_eval(path)
    assert "\n" not in str(raised.value)
    assert "a.eval" in str(raised.value)


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.99])
def test_a_log_that_is_cut_off_is_one_line(keep: float, tmp_path: Path) -> None:
    path = marks(tmp_path / "a.eval", ["C"] * 50)
    os.truncate(path, int(path.stat().st_size * keep))
    with pytest.raises(UsageError, match="only a part of one"):
        read_eval(path)


def test_bytes_that_changed_are_found(tmp_path: Path) -> None:
    path = marks(tmp_path / "a.eval", ["C"] * 50)
    content = bytearray(path.read_bytes())
    content[content.index(b"summaries.json") + 30] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be unpacked"):
        read_eval(path)


def test_a_member_larger_than_any_log_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST", 10_000)
    path = marks(tmp_path / "a.eval", ["C"] * 1000)
    with pytest.raises(UsageError, match="at most 10,000 are read"):
        read_eval(path)


def test_zstandard_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = marks(tmp_path / "a.eval", ["C"])
    content = path.read_bytes().replace(b"\x08\x00", bytes([archive.ZSTANDARD, 0]))
    path.write_bytes(content)
    monkeypatch.setattr(archive, "_has_zstandard", lambda: False)
    monkeypatch.setitem(sys.modules, "zipfile_zstd", None)
    with pytest.raises(UsageError, match=r"biaskit\[inspect\]"):
        read_eval(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is not valid JSON"),
        ("[]", "has no doc_id"),
        ('{"doc_id": 1, "acc": ' + "[" * 3000 + "]" * 3000 + "}", "nested"),
    ],
)
def test_a_broken_sample_file_is_one_line(line: str, said: str, tmp_path: Path) -> None:
    path = lm_eval_log(tmp_path, [{"acc": 1}])
    path.write_text(path.read_text() + line)
    with pytest.raises(UsageError, match=said) as raised:
        read_samples(path)
    assert "\n" not in str(raised.value)


def test_broken_results_are_one_line(tmp_path: Path) -> None:
    path = lm_eval_log(tmp_path, [{"acc": 1}])
    next(tmp_path.glob("results_*")).write_text("[")
    with pytest.raises(UsageError, match="Move it away"):
        read_samples(path)


@pytest.mark.parametrize("name", ["a.eval", "a.json", "samples_x.jsonl"])
def test_pipes_folders_and_what_is_not_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(UsageError, match="There is no file"):
        read_logs([path])
    os.mkfifo(path)
    with pytest.raises(UsageError, match="a pipe"):
        read_logs([path])


def test_bytes_that_changed_anywhere_are_one_line_or_do_not_matter(tmp_path: Path) -> None:
    path = marks(tmp_path / "a.eval", ["C", "I"] * 20)
    whole, rng = path.read_bytes(), random.Random(17)
    refused: list[str] = []
    for _ in range(100):
        broken = bytearray(whole)
        for _ in range(rng.choice((1, 5, 40))):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        path.write_bytes(broken)
        try:
            log = read_eval(path)
        except UsageError as error:
            refused.append(str(error))
        else:
            assert log.numbers["match"]["1"] == 1.0
    assert len(refused) > 50
    assert not any("\n" in line for line in refused)
