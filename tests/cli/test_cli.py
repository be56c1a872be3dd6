"""The command line as a user meets it: exit codes, resuming, several models, own studies, errors."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli, Said
from fakes.killed import Command
from fakes.run_files import environment, eventually, one_line, rows, script, table, tables
from needs import require_torch

from biaskit.cli.output import first_note
from biaskit.errors import TokenizationError
from biaskit.models.scripted import ScriptedScorer
from biaskit.records import Failed

HEAVY = {"pandas", "scipy", "statsmodels", "nltk", "openai", "torch", "transformers", "gensim"}
HEAVY |= {"sklearn", "matplotlib"}

NURSE = {"contains": "nurse", "log_probs": {" She": -0.5, " she": -1.5, " He": -2.0, " They": -4.0}}
OTHERS = {"log_probs": {" He": -0.6, " She": -2.5, " They": -3.0, " he": -3.5, " her": -4.0}}
SMALL = ("--jobs", "nurse,plumber,carpenter", "--templates", "1-3")
N_SMALL = 3 * (3 + 3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test in a folder of its own, with a scripted model m.jsonl."""
    monkeypatch.chdir(tmp_path)
    script("m.jsonl", NURSE, OTHERS)
    return tmp_path


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from biaskit.cli import main
main()
"""
LOCAL = ("torch", "transformers", "gguf", "accelerate", "tokenizers", "huggingface_hub")


def process(*arguments: str | Path, **more: str) -> Said:
    """The command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "biaskit", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=120,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def python(code: str, *arguments: str | Path, **more: str) -> Said:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=120,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def asked(said: Said) -> list[int]:
    """How many cells each model was asked, from the plans on stderr."""
    return [int(n.replace(",", "")) for n in re.findall(r"stored, ([\d,]+) to run", said.err)]


# --- the first hour ---------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    ["import biaskit", "from biaskit.cli import main; main()", "from biaskit.__main__ import main; main()"],
)
def test_importing_and_asking_for_help_load_nothing_heavy(code: str) -> None:
    watched = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('LOADED', *sorted({m.split('.')[0] for m in sys.modules})))\n"
    )
    said = python(watched + code, "--help")
    assert 0 == said.code
    loaded = set(said.out.split("LOADED")[1].split())
    assert "biaskit" in loaded
    assert set() == HEAVY & loaded
    assert set() == {"numpy"} & loaded


@pytest.mark.process
def test_the_first_hour_of_a_base_install_names_the_install_line() -> None:
    run = WITHOUT.format(names=LOCAL)
    for spec in ("demo", "hf:org/name", "gguf:model.gguf"):
        said = python(run, "probe", spec, *SMALL)
        assert 1 == said.code
        assert re.search(r'pip install "biaskit\[local\]"', one_line(said)), spec
    for arguments in (
        (),
        ("--help",),
        ("corpora",),
        ("runs",),
        ("cite",),
        ("probe", "scripted:m.jsonl", *SMALL),
    ):
        assert 0 == python(run, *arguments).code, arguments


# --- a program without a console ------------------------------------------------------------------------

BEFORE = """\
import os, sys
for name in {names!r}:
    number = dict(stdin=0, stdout=1, stderr=2)[name]
    stream = getattr(sys, name)
    {how}
import biaskit.cli
biaskit.cli.main()
"""
CLOSED = {
    "pythonw": "setattr(sys, name, None)",  # as Python itself starts where a descriptor is closed
    "a closed descriptor": "os.close(number); setattr(sys, name, None)",
    "a closed stream": "stream.close()",
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("names", "output_format"),
    [
        (("stdout",), "text"),
        (("stdout",), "json"),
        (("stderr",), "text"),
        (("stdin", "stdout", "stderr"), "csv"),
    ],
)
@pytest.mark.parametrize("how", CLOSED)
def test_a_run_without_a_console_is_whole(how: str, names: tuple[str, ...], output_format: str) -> None:
    asked = ("probe", "scripted:m.jsonl", *SMALL, "--format", output_format, "--out", "out", "--yes")
    said = python(BEFORE.format(names=names, how=CLOSED[how]), *asked)
    assert 0 == said.code, said.err
    assert "Traceback" not in said.err
    assert Path("out", "tables", "probe_groups.csv").exists()
    assert ("stdout" in names) == (said.out == "")


def test_a_stream_that_cannot_say_whether_it_is_closed_is_written_to() -> None:
    """A program may put an object of its own in the place of stdout."""
    held = "write=stream.write, flush=stream.flush, isatty=stream.isatty, encoding='utf-8'"
    tee = f"type('Tee', (), dict({held}))"
    said = python(BEFORE.format(names=("stdout",), how=f"sys.stdout = {tee}"), "corpora")
    assert 0 == said.code, said.err
    assert said.out


# --- wrong use --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prob",), "Did you mean 'probe'?"),
        (("probe",), "Name a model"),
        (("probe", "scripted:m.jsonl", "--study", "ocugender"), "Did you mean 'occugender'?"),
        (("probe", "scripted:m.jsonl", "--study", "./none.toml"), "none.toml"),
        (("probe", "scripted:m.jsonl", "--jobs", "nurze"), "Did you mean 'nurse'?"),
        (("probe", "scripted:m.jsonl", "--jobs", "41"), "1 to 40"),
        (("probe", "scripted:m.jsonl", "--jobs", "./none.csv"), "none.csv"),
        (("probe", "scripted:m.jsonl", "--templates", "1-99"), "1 to 25"),
        (("probe", "scripted:m.jsonl", "--set", "min_coverag=1"), "Did you mean 'min_coverage'?"),
        (("probe", "scripted:m.jsonl", "--set", "min_coverage"), "key.sub=value"),
        (("probe", "scripted:m.jsonl", "--set", "min_coverage=2"), "min_coverage = 2"),
        (("probe", "scripted:m.jsonl", "--batch-size", "0"), "at least 1"),
        (("probe", "scripted:m.jsonl", "--batch-size", "many"), "auto or a number"),
        (("probe", "scripted:m.jsonl", "--context", "loud"), "loud"),
        (("probe", "scripted:m.jsonl", "--no-such-option"), "--no-such-option"),
        (("probe", "scripted:m.jsonl", "--system-prompt", "none.txt"), "none.txt"),
        (("probe", "scripted:m.jsonl", "scripted:m.jsonl"), "Two models are called"),
        (("probe", "a=scripted:m.jsonl", "a=scripted:n.jsonl"), "Two models are called 'a'"),
        (("probe", "=scripted:m.jsonl"), "LABEL=SPEC"),
        (("probe", "a="), "LABEL=SPEC"),
        (("corpora", "ocugender"), "Did you mean 'occugender'?"),
        (("corpora", "a", "b"), "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_use_exits_2_with_one_line_to_act_on(cli: Cli, arguments: Sequence[str], said: str) -> None:
    found = cli(*arguments)
    assert 2 == found.code
    assert said in one_line(found)
    assert "" == found.out
    assert not Path("biaskit-runs").exists()


# --- a model that cannot be had ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("dmeo", "Did you mean 'demo'?"),
        ("org/name", "hf:org/name"),
        ("hf:justaname", "ORG/NAME"),
        ("hf:./nothing", "nothing"),
        ("gguf:./nothing.gguf", "nothing.gguf"),
        ("scripted:nothing.jsonl", "nothing.jsonl"),
        ("scripted:empty.jsonl", "has no line"),
        ("scripted:bad.jsonl", "line 2"),
        ("scripted:positive.jsonl", "less than or equal to 0"),
        ("openai:gpt-4", "export OPENAI_API_KEY"),
        ("api:name@http://localhost:1/v1", "Is it running"),
        ("mystery:thing", "scripted:FILE"),
    ],
)
def test_a_model_that_cannot_be_had_says_why(cli: Cli, spec: str, said: str) -> None:
    """A word that names no kind of model is wrong use, 2; a model that is not there is a failure, 1."""
    Path("empty.jsonl").write_text("\n\n")
    Path("bad.jsonl").write_text('{"contains": "x"}\n{"contains": \n')
    Path("positive.jsonl").write_text('{"log_probs": {" He": 0.5}}\n')
    found = cli("probe", spec, *SMALL)
    assert (2 if spec in ("dmeo", "org/name", "mystery:thing") else 1) == found.code
    assert said in one_line(found)
    assert not Path("biaskit-runs").exists()


def hub_error(name: str) -> Exception:
    from unittest.mock import Mock

    from huggingface_hub import errors

    kind: type[Exception] = getattr(errors, name)
    if issubclass(kind, errors.HfHubHTTPError):
        return kind("403 Client Error\n\nsecond line", response=Mock(headers={}, status_code=403))
    return kind("refused\nsecond line")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("GatedRepoError", "HF_TOKEN"),
        ("RepositoryNotFoundError", "no such model"),
        ("RevisionNotFoundError", "no revision 'abc'"),
        ("LocalEntryNotFoundError", "cannot be reached"),
        ("HfHubHTTPError", "403 Client Error"),
    ],
)
def test_what_the_hub_refuses_is_told_in_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: str, said: str
) -> None:
    require_torch()
    import huggingface_hub

    def refuse(*_: Any, **__: Any) -> str:
        raise hub_error(error)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    found = cli("probe", "hf:some-org/some-model@abc", *SMALL)
    assert 1 == found.code
    assert said in one_line(found)
    assert "hf:some-org/some-model@abc" in one_line(found)


# --- a run, its plan, its folder ----------------------------------------------------------------------


def test_a_run_prints_its_plan_first_and_its_folder_last(cli: Cli) -> None:
    said = cli("probe", "scripted:m.jsonl", *SMALL)
    assert 0 == said.code
    folder, plan = said.err.splitlines()[:2]
    assert f"{N_SMALL} prompts, 0 stored, {N_SMALL} to run" in plan
    assert "tokens" in plan
    assert "cost 0" in plan
    assert "prompt format raw" in plan
    [run] = Path("biaskit-runs").iterdir()
    assert "occugender-m" == run.name
    assert str(run) in said.out.splitlines()[-1]
    assert f"Run folder: {run}" == folder  # a run that is stopped must be findable
    assert N_SMALL == len(rows(run))


def test_a_dry_run_prints_the_plan_and_writes_nothing(cli: Cli, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    for where in ((), ("--out", "r")):
        said = cli("probe", "scripted:m.jsonl", *SMALL, *where, "--dry-run")
        assert 0 == said.code
        assert [N_SMALL] == asked(said)
        assert "Run folder: " in said.out
        assert before == sorted(folder.rglob("*"))


def test_a_long_plan_needs_a_yes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedScorer, "estimate_seconds", lambda self, batches: 3601.0)
    said = cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r")
    assert 2 == said.code
    assert "--yes" in said.err
    assert f"{N_SMALL} to run" in said.err
    assert not Path("r/probe.jsonl").exists() or not rows("r")
    assert 0 == cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r", "--dry-run").code
    assert 0 == cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r", "--yes").code


def closing(said: Said) -> list[str]:
    """The lines from the first note to the run's folder."""
    notes, _, _ = said.out.partition("\nRun: ")
    return notes[notes.index("\nNote: ") + 1 :].splitlines()


def test_a_screen_of_missing_answers_begins_with_a_sentence_and_ends_with_their_note(cli: Cli) -> None:
    script("half.jsonl", {"contains": "nurse", "fail": "no answer today"}, {"log_probs": {" He": -9.0}})
    models = [f"{label}=scripted:half.jsonl" for label in ("a", "b", "c")]
    said = cli("probe", *models, *SMALL, "--out", "r")
    assert said.out.startswith("12 of 54 prompts answered.\n")
    assert said.out.index("a says ") < said.out.index("Explicit bias: ")
    note = closing(said)  # whole: it says why answers are missing
    assert max(map(len, note)) <= 80
    whole = " ".join(note)
    assert whole.startswith("Note: a: 6 prompts failed (no answer today")
    assert "…" not in whole
    n_notes = re.search(r" \(1 of ([0-9]+): --verbose\)\.$", whole)
    assert n_notes, whole
    everything = Path("r/notes.txt").read_text("utf-8")
    assert everything.count("Note: ") == int(n_notes[1]) + 1, "and how to read the sentences"
    assert "biaskit=" not in said.out
    assert "biaskit=" in everything
    for command in (
        ("probe", *models, *SMALL, "--out", "r"),
        ("analyze", "r"),
        ("compare", "r", "--out", "c"),
    ):
        every = closing(cli(*command, "--verbose"))
        kept = Path(command[-1] if command[0] == "compare" else "r", "notes.txt").read_text("utf-8")
        assert kept.split() == " ".join(every).split()
        assert "biaskit=" in kept


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("n_words", [(), (3,), (3, 3, 3), (30, 3), (200,), (20, 90, 3), (3,) * 40])
def test_one_line_says_the_first_note_and_how_many_there_are(n_words: tuple[int, ...], columns: int) -> None:
    notes = [f"number {n}{' word' * words}" for n, words in enumerate(n_words)]
    shown = first_note(notes, columns)
    assert shown.count("\n") == bool(notes)
    assert len(shown) <= columns + 2
    if notes:
        assert shown.startswith("Note: number 0 word")
        assert ("…" in shown) is (n_words[0] > 10)
        assert ("--verbose)" in shown) is (n_words != (3,))
        whole = first_note(notes, columns, whole=True)
        assert " ".join(whole.split()).startswith(f"Note: {notes[0]}")
        assert max(map(len, whole.splitlines())) <= columns
        assert ("--verbose)" in whole) is (len(notes) > 1)


def test_an_only_note_of_two_lines_is_not_cut() -> None:
    shown = first_note([f"number 0{' word' * 20}"], 80)
    assert shown.count("\n") == 2
    assert " ".join(shown.split()) == f"Note: number 0{' word' * 20}."


# --- going on ---------------------------------------------------------------------------------------


def test_the_same_command_asks_nothing_twice(cli: Cli) -> None:
    first = cli("probe", "scripted:m.jsonl", *SMALL)
    [run] = Path("biaskit-runs").iterdir()
    content, made = (run / "probe.jsonl").read_bytes(), tables(run)
    second = cli("probe", "scripted:m.jsonl", *SMALL)
    assert [0] == asked(second)
    assert (content, made) == ((run / "probe.jsonl").read_bytes(), tables(run))
    assert first.out == second.out


def test_a_resumed_run_asks_only_what_is_missing(cli: Cli) -> None:
    cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r", "--batch-size", "4")
    path = Path("r/probe.jsonl")
    made, lines = tables("r"), path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5] + lines[9:11]))
    said = cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r", "--batch-size", "4")
    assert [N_SMALL - 7] == asked(said)
    assert made == tables("r")
    keys = [row["key"] for row in rows("r")]
    assert N_SMALL == len(keys) == len(set(keys))
    assert path.read_bytes().startswith(b"".join(lines[:5] + lines[9:11]))


def test_a_subset_uses_stored_rows_and_counts_the_others(cli: Cli) -> None:
    cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r")
    content = Path("r/probe.jsonl").read_bytes()
    said = cli(
        "probe", "scripted:m.jsonl", "--jobs", "nurse", "--templates", "1-3", "--out", "r", "--verbose"
    )
    assert [0] == asked(said)
    assert {"nurse"} == {row["job"] for row in table("r", "probe_prompts")}
    assert f"{N_SMALL - 6} stored rows" in said.out
    assert content == Path("r/probe.jsonl").read_bytes()


def test_a_model_joins_a_run_given_by_out(cli: Cli) -> None:
    script("n.jsonl", OTHERS)
    cli("probe", "a=scripted:m.jsonl", *SMALL, "--out", "r")
    said = cli("probe", "b=scripted:n.jsonl", *SMALL, "--out", "r")
    assert (0, [N_SMALL]) == (said.code, asked(said))
    assert ["a", "b"] == list(dict.fromkeys(row["model"] for row in table("r", "probe_prompts")))
    both = cli("probe", "a=scripted:m.jsonl", "b=scripted:n.jsonl", *SMALL, "--out", "both")
    assert 0 == both.code
    assert {k: v for k, v in tables("both").items() if k.endswith(".csv")} == {
        k: v for k, v in tables("r").items() if k.endswith(".csv")
    }


def test_two_labels_of_one_model_share_their_rows(cli: Cli) -> None:
    said = cli("probe", "a=scripted:m.jsonl", "b=scripted:m.jsonl", *SMALL, "--out", "r")
    assert [N_SMALL, 0] == asked(said)
    assert N_SMALL == len(rows("r"))
    found = table("r", "probe_prompts")
    assert [N_SMALL, N_SMALL] == [sum(row["model"] == label for row in found) for label in "ab"]
    assert all(row["coverage"] for row in found)


def test_a_changed_model_is_asked_again_and_its_old_rows_are_counted(cli: Cli) -> None:
    cli("probe", "m=scripted:m.jsonl", *SMALL, "--out", "r")
    script("m.jsonl", OTHERS)
    said = cli("probe", "m=scripted:m.jsonl", *SMALL, "--out", "r", "--verbose")
    assert [N_SMALL] == asked(said)
    assert "has changed" in said.out
    assert f"{N_SMALL} stored rows" in said.out
    cli("probe", "m=scripted:m.jsonl", *SMALL, "--out", "fresh")
    assert tables("fresh")["probe_prompts.csv"] == tables("r")["probe_prompts.csv"]


def test_a_newer_run_is_refused_by_every_command(cli: Cli) -> None:
    cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r")
    path = Path("r/manifest.json")
    path.write_text(path.read_text().replace('"format": 1', '"format": 2', 1))
    for arguments in (("probe", "scripted:m.jsonl", *SMALL, "--out", "r"), ("analyze", "r"), ("cite", "r")):
        said = cli(*arguments)
        assert 1 == said.code
        assert "format" in one_line(said)


def test_a_bad_line_in_the_middle_stops_and_skip_bad_lines_goes_on_in_the_same_folder(cli: Cli) -> None:
    command = ("probe", "scripted:m.jsonl", *SMALL)
    cli(*command)
    [run] = Path("biaskit-runs").iterdir()
    lines = (run / "probe.jsonl").read_bytes().splitlines(keepends=True)
    (run / "probe.jsonl").write_bytes(b"".join([*lines[:3], b"spoiled\n", *lines[4:]]))
    for arguments in (command, ("analyze", str(run))):
        said = cli(*arguments)
        assert 1 == said.code
        assert "line 4" in one_line(said)
        assert "--set skip_bad_lines=true" in one_line(said)
    said = cli(*command, "--set", "skip_bad_lines=true", "--verbose")
    assert 0 == said.code
    assert [1] == asked(said)
    assert "left out as no rows or changed: 1" in said.out
    assert [run] == list(Path("biaskit-runs").iterdir())


# --- failures ---------------------------------------------------------------------------------------


def test_cells_that_fail_are_no_rows_are_counted_and_exit_3(cli: Cli) -> None:
    script("half.jsonl", {"contains": "nurse", "fail": "no answer today"}, OTHERS)
    said = cli("probe", "scripted:half.jsonl", *SMALL, "--out", "r")
    assert 3 == said.code
    assert said.out.startswith("12 of 18 prompts answered.\n")
    assert "Note: scripted:half.jsonl: 6 prompts failed" in said.out
    assert {"plumber", "carpenter"} == {row["job"] for row in rows("r")}
    nurse = [row for row in table("r", "probe_prompts") if row["job"] == "nurse"]
    assert 6 == len(nurse)
    assert all(row["reason"] and not row["male_share"] and not row["coverage"] for row in nurse)


def test_failed_cells_are_asked_again_by_the_same_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ScriptedScorer._answer
    command = ("probe", "scripted:m.jsonl", *SMALL, "--out", "r")

    def fail(self: ScriptedScorer, request: Any) -> Any:
        return Failed(request.key, "busy") if "plumber" in request.prompt.text else real(self, request)

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedScorer, "_answer", fail)
        assert 3 == cli(*command).code
    said = cli(*command)
    assert (0, [6]) == (said.code, asked(said))
    assert 0 == cli("probe", "scripted:m.jsonl", *SMALL, "--out", "unbroken").code
    assert tables("unbroken") == tables("r")


@pytest.mark.parametrize("bad", ["first", "second"])
def test_a_model_that_fails_its_checks_leaves_the_others_and_exits_3(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    real = ScriptedScorer.plan_scores

    def refuse(self: ScriptedScorer, requests: Any) -> Any:
        if self.identity.label == bad:
            error = TokenizationError("' He' joins the prompt's last token")
            error.request_key = requests[4].key  # type: ignore[attr-defined]
            raise error
        return real(self, requests)

    monkeypatch.setattr(ScriptedScorer, "plan_scores", refuse)
    script("n.jsonl", OTHERS)
    said = cli("probe", "first=scripted:m.jsonl", "second=scripted:n.jsonl", *SMALL, "--out", "r")
    assert 3 == said.code
    assert f"{bad} was skipped" in said.err
    assert re.search(r"explicit template 2, job '\w+'", said.err)
    other = {"first": "second", "second": "first"}[bad]
    assert {other: N_SMALL} == {
        label: sum(r["model"] == label for r in rows("r")) for label in {r["model"] for r in rows("r")}
    }


# --- interrupted ------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_exits_130_keeps_its_rows_and_goes_on(
    cli: Cli, folder: Path, number: signal.Signals
) -> None:
    command = Command("probe", ("scripted:m.jsonl", "--batch-size", "1"), folder)
    started = command.start("r")
    eventually(lambda: started.poll() is not None or len(command.kept("r")) > 50, 60)
    assert started.poll() is None, "the run ended before it could be interrupted"
    started.send_signal(number)
    err = started.communicate(timeout=60)[1].decode()
    assert 130 == started.returncode, err
    kept = len(rows("r"))
    assert 0 < kept < 2_000
    assert f"{kept} finished rows" in err
    assert "r; rerun the command to resume" in err
    assert "Traceback" not in err
    said = cli("probe", "scripted:m.jsonl", "--out", "r")
    assert (0, [2_000 - kept]) == (said.code, asked(said))


# --- analyze ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_models_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two models with debiasing prompts on two levels, made once and copied where it is wanted."""
    from biaskit.measures.probe.command import probe

    folder = tmp_path_factory.mktemp("two")
    n = {"contains": "plumber", "log_probs": {" He": -0.9, " They": -1.0}}
    for name, lines in (("m", (NURSE, OTHERS)), ("n", (n, OTHERS))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    probe(
        f"a=scripted:{folder / 'm.jsonl'}",
        f"b=scripted:{folder / 'n.jsonl'}",
        study="mattern",
        jobs="nurse,plumber,carpenter,secretary",
        context="plain",
        debiasing_prompts="1,3",
        out=folder / "r",
    )
    return folder / "r"


@pytest.fixture
def two_models(two_models_once: Path) -> None:
    shutil.copytree(two_models_once, "r")


def test_analyze_makes_every_table_again_byte_for_byte(cli: Cli, two_models: None) -> None:
    made = tables("r")
    assert {"probe_levels.csv", "tests.csv", "analysis.json"} <= set(made)
    shutil.rmtree("r/tables")
    said = cli("analyze", "r")
    assert 0 == said.code
    assert made == tables("r")


@pytest.mark.slow
def test_the_order_of_lines_changes_no_byte(cli: Cli, two_models: None) -> None:
    made, path = tables("r"), Path("r/probe.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    for shuffled in (lines[::-1], lines[1::2] + lines[::2], sorted(lines)):
        path.write_bytes(b"".join(shuffled))
        cli("analyze", "r")
        assert made == tables("r")


@pytest.mark.process
def test_hash_seed_threads_and_a_missing_torch_change_no_byte(cli: Cli, two_models: None) -> None:
    made = tables("r")
    run = WITHOUT.format(names=LOCAL)
    for seed, threads in (("0", "1"), ("12345", "2")):
        shutil.rmtree("r/tables")
        said = python(run, "analyze", "r", PYTHONHASHSEED=seed, OMP_NUM_THREADS=threads)
        assert 0 == said.code, said.err
        assert made == tables("r")


def test_analyze_needs_neither_the_model_nor_the_study_nor_the_lists(cli: Cli) -> None:
    own_study()
    assert 0 == cli("probe", "scripted:own.jsonl", "--study", "./own.toml", "--out", "r").code
    made = tables("r")
    for name in ("own.toml", "people.csv", "questions.toml", "groups.toml", "own.jsonl"):
        Path(name).unlink()
    shutil.rmtree("r/tables")
    assert 0 == cli("analyze", "r").code
    assert made == tables("r")


@pytest.mark.parametrize(
    "setting", ["articles=grammatical", "jobs.select=nurse", "min_coverag=1", "interval=wald"]
)
def test_analyze_refuses_what_would_change_the_question(cli: Cli, setting: str) -> None:
    cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r")
    said = cli("analyze", "r", "--set", setting)
    assert 2 == said.code
    assert setting.split("=")[0] in one_line(said)


def test_runs_with_different_jobs_are_merged_to_the_union_of_their_questions(cli: Cli) -> None:
    for job in ("nurse", "plumber", "carpenter"):
        cli("probe", "a=scripted:m.jsonl", "--jobs", job, "--templates", "1-3", "--out", job)
    whole = cli("probe", "a=scripted:m.jsonl", *SMALL, "--out", "whole")
    assert 0 == whole.code
    order = list(dict.fromkeys(row["job"] for row in table("whole", "probe_prompts")))
    said = cli("analyze", *order, "--out", "merged")
    assert 0 == said.code
    assert {n: c for n, c in tables("whole").items() if n.endswith(".csv")} == {
        n: c for n, c in tables("merged").items() if n.endswith(".csv")
    }
    # The signature names the question: merged and whole asked the same.
    signatures = [
        json.loads(Path(run, "manifest.json").read_text())["signature"] for run in ("whole", "merged")
    ]
    assert signatures[0] == signatures[1]


def test_one_label_for_two_models_is_not_merged(cli: Cli) -> None:
    script("n.jsonl", OTHERS)
    cli("probe", "a=scripted:m.jsonl", *SMALL, "--out", "ra")
    cli("probe", "a=scripted:n.jsonl", *SMALL, "--out", "rb")
    said = cli("analyze", "ra", "rb", "--out", "merged")
    assert 1 == said.code
    assert "'a'" in one_line(said)


# --- several models ---------------------------------------------------------------------------------


def test_models_named_in_a_study_file_are_shown_and_need_a_yes(cli: Cli) -> None:
    own_study()
    text = Path("own.toml").read_text() + '[models]\nmine = "scripted:own.jsonl"\n'
    Path("own.toml").write_text(text)
    said = cli("probe", "--study", "./own.toml", "--out", "r")
    assert 2 == said.code
    assert "scripted:own.jsonl" in said.err
    assert "--yes" in said.err
    assert not Path("r").exists()
    assert 0 == cli("probe", "--study", "./own.toml", "--out", "r", "--yes").code
    assert {"mine"} == {row["model"] for row in table("r", "probe_prompts")}


# --- a study of one's own -----------------------------------------------------------------------------


def own_study() -> None:
    """Faiths of people: four groups of other names, and items that are no jobs."""
    Path("people.csv").write_text(
        'item,group,share\npilgrim,travels,\nhermit,stays,0.25\n"monk, old",stays,0.5\n', encoding="utf-8"
    )
    Path("questions.toml").write_text(
        'slot = "[PERSON]"\n'
        '[[template]]\nbias_type = "explicit"\nquestion = "What does the [PERSON] believe?"\n'
        '[[template]]\nbias_type = "explicit"\nquestion = "Name the faith of the [PERSON]."\n'
        '[[template]]\nbias_type = "implicit"\nquestion = "Tell me of the [PERSON]."\n'
        'opening = "This [PERSON] is a"\n',
        encoding="utf-8",
    )
    Path("groups.toml").write_text(
        'forms = "as-listed"\n[groups]\nbuddhist = ["Buddhist", "Zen"]\n"roman catholic" = ["Catholic"]\n'
        'sikh = ["Sikh"]\nnone = ["atheist"]\n',
        encoding="utf-8",
    )
    Path("own.toml").write_text(
        'name = "Faiths of People"\n[jobs]\nsource = "people.csv"\n[templates]\nsource = "questions.toml"\n'
        '[target_words]\nsource = "groups.toml"\n',
        encoding="utf-8",
    )
    script(
        "own.jsonl",
        {"contains": "hermit", "log_probs": {" Buddhist": -1.0, " Zen": -2.0, " Catholic": -1.5}},
        {"log_probs": {" Sikh": -1.0, " atheist": -1.5, " Zen": -3.0}},
    )


FILES = ("--jobs", "./people.csv", "--templates", "./questions.toml", "--target-words", "./groups.toml")


@pytest.mark.parametrize("how", [("--study", "./own.toml"), FILES], ids=["a study file", "three options"])
def test_a_study_with_four_groups_of_other_names_and_items_that_are_no_jobs(
    cli: Cli, how: Sequence[str]
) -> None:
    own_study()
    said = cli("probe", "scripted:own.jsonl", *how, "--out", "r")
    assert 0 == said.code, said.err
    groups = ["buddhist", "roman catholic", "sikh", "none"]
    cells = table("r", "probe_prompts")
    assert 9 == len(cells)
    assert [f"{g}_share" for g in groups] == [c for c in cells[0] if c.endswith("_share")]
    assert ["pilgrim", "hermit", "monk, old"] == list(dict.fromkeys(row["job"] for row in cells))
    assert {"travels", "stays"} == {row["job_group"] for row in table("r", "probe_groups")}
    assert groups == list(dict.fromkeys(row["gender"] for row in table("r", "probe_groups")))
    assert "buddhist_minus_roman catholic" in table("r", "probe_jobs")[0]
    hermit = next(row for row in table("r", "probe_jobs") if row["job"] == "hermit")
    assert "0.25" == hermit["workforce_share"]
    masses = [0.3678794411714423 + 0.1353352832366127, 0.22313016014842982, 1e-6, 1e-6]
    shares = [float(hermit[f"{g}_share"]) for g in groups]
    assert pytest.approx([m / sum(masses) for m in masses], abs=1e-12) == shares
    assert {"What does the pilgrim believe?"} == {
        re.sub(r"\AQ: (.*)\nA:\Z", r"\1", row["prompt"])
        for row in rows("r")
        if (row["bias_type"], row["template_id"], row["job"]) == ("explicit", 1, "pilgrim")
    }
    assert all(name in said.out for name in groups)


# --- formats ----------------------------------------------------------------------------------------


def test_json_holds_every_table_under_the_names_of_its_columns(cli: Cli) -> None:
    said = cli("probe", "scripted:m.jsonl", *SMALL, "--out", "r", "--format", "json")
    content = json.loads(said.out)
    stored = {path.stem for path in Path("r/tables").glob("*.csv")}
    assert stored == set(content["tables"])
    for name in stored:
        assert [list(row) for row in content["tables"][name]] == [list(row) for row in table("r", name)]
    assert "study=occugender" in content["signature"]
    assert isinstance(content["warnings"], list)
    missing = [row for row in content["tables"]["probe_jobs"] if row["difference_low"] is None]
    assert missing


# --- runs, corpora, cite ------------------------------------------------------------------------------


def test_runs_lists_rows_done_of_planned(cli: Cli) -> None:
    assert "No runs" in cli("runs").out
    cli("probe", "scripted:m.jsonl", *SMALL)
    [run] = Path("biaskit-runs").iterdir()
    lines = (run / "probe.jsonl").read_bytes().splitlines(keepends=True)
    (run / "probe.jsonl").write_bytes(b"".join(lines[:7]))
    said = cli("runs")
    assert 0 == said.code
    assert f"7 of {N_SMALL}" in said.out
    assert str(run) in said.out
    [entry] = json.loads(cli("runs", "--format", "json").out)
    assert (7, N_SMALL, "occugender", ["scripted:m.jsonl"]) == (
        entry["rows"],
        entry["planned"],
        entry["study"],
        entry["models"],
    )
