"""Commands in a bounded number of environments, and inputs that are no plain files of a bearable size."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fakes.command import Cli, Said

from biaskit.errors import BiaskitError, RunError, StudyError, UsageError
from biaskit.files import cache_dir
from biaskit.foreign import is_formula
from biaskit.inputs import Inputs, expanded, parse_json, parse_toml
from biaskit.runs.usage import read_usage, spent
from biaskit.study.config import load_study, parse_setting
from fuzz.base_runs import probe_run
from fuzz.environments import ENVIRONMENTS, Case, cases, check, possible

N = 14
"""Real processes of the ordinary run; some more are slow, and `long.py --only environments` tries all."""
N_SLOW = 26


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probe_run(tmp_path_factory.mktemp("environments"))


@pytest.mark.process
@pytest.mark.parametrize("case", cases(N, seed=1), ids=str)
def test_commands_in_environments(case: Case, run: Path, tmp_path: Path) -> None:
    check(case, run, tmp_path / "home")


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("case", cases(N + N_SLOW, seed=1)[N:], ids=str)
def test_commands_in_more_environments(case: Case, run: Path, tmp_path: Path) -> None:
    check(case, run, tmp_path / "home")


@pytest.mark.process
@pytest.mark.parametrize("environment", ["notebook", "no such backend", "broken matplotlibrc"])
def test_figures_come_out_whatever_matplotlib_is_told(environment: str, run: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    check(Case(environment, "report"), run, home)
    assert (home / "run/figures/answer.svg").is_file()


@pytest.mark.process
@pytest.mark.skipif(not possible("nameless user"), reason="only root can be another user; needs setpriv")
def test_a_read_only_run_is_reported_elsewhere(run: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = check(Case("nameless user", "report"), run, home)
    assert said.code == 0, said.err
    assert (home / "page.html").is_file()
    assert (home / "figures/answer.svg").is_file(), "beside the page"


def test_the_oracle_sees_a_traceback(run: Path, tmp_path: Path) -> None:
    def failing(line: str, home: Path, variables: Mapping[str, str | None]) -> Said:
        return Said(1, "", "Traceback (most recent call last):\nbiaskit: x\n")

    with pytest.raises(AssertionError):
        check(Case("no home", "cite"), run, tmp_path / "home", failing)


def test_every_environment_is_among_the_cases() -> None:
    assert {case.environment for case in cases(10_000, 3)} == {
        name for name in ENVIRONMENTS if possible(name)
    }


# --- inputs ----------------------------------------------------------------------------------------------


def _bytes(content: bytes) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(content), None)[1]


ODD: Mapping[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "nested": _bytes(b"v = " + b"[" * 200_000),
    "nested json": _bytes(b'{"a":' * 200_000),
    "utf-16": _bytes("name = 'x'\n".encode("utf-16")),
    "no text": _bytes(bytes(range(256))),
    "empty": _bytes(b""),
}
FEW = ("--jobs", "nurse,plumber", "--templates", "1-3")
READERS: Mapping[str, tuple[str, ...]] = {
    "odd.toml": ("probe", "scripted:m.jsonl", "--study", "./odd.toml", "--out", "new"),
    "odd.jsonl": ("probe", "scripted:odd.jsonl", "--out", "new"),
    "odd.csv": ("probe", "scripted:m.jsonl", "--jobs", "./odd.csv", "--out", "new"),
    "system.txt": (
        "probe",
        "scripted:m.jsonl",
        "--system-prompt",
        "system.txt",
        "--jobs",
        "nobody",
        "--out",
        "new",
    ),
    "texts.csv": ("analyze", "--texts", "texts.csv", "--out", "new"),
    "texts.jsonl": ("analyze", "--texts", "texts.jsonl", "--out", "new"),
    "texts.csv.gz": ("analyze", "--texts", "texts.csv.gz", "--out", "new"),
    "aliases.csv": ("compare", "run", "run", "--aliases", "aliases.csv", "--out", "new"),
    "run/manifest.json": ("report", "run", "--out", "page.html"),
    "run/usage.json": (
        "probe",
        "scripted:m.jsonl",
        "--jobs",
        "nurse,plumber",
        "--templates",
        "1-3",
        "--out",
        "run",
    ),
    "run/tables/analysis.json": ("report", "run", "--out", "page.html"),
}


MEETINGS = random.Random(1).sample([(odd, file) for odd in ODD for file in READERS], len(ODD) * len(READERS))
N_MEETINGS = 24
"""Of the ordinary run."""


@pytest.mark.parametrize(
    ("odd", "file"),
    [
        pytest.param(*one, marks=[pytest.mark.slow] if i >= N_MEETINGS else [])
        for i, one in enumerate(MEETINGS)
    ],
)
def test_an_odd_input_is_one_line_at_once(
    odd: str, file: str, run: Path, console: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "run")
    shutil.copy(run.parent / "m.jsonl", tmp_path / "m.jsonl")
    path = tmp_path / file
    path.unlink(missing_ok=True)
    ODD[odd](path)
    monkeypatch.chdir(tmp_path)
    started = time.monotonic()
    said = console(*READERS[file])
    assert time.monotonic() - started < 30
    assert said.code in (0, 1, 2), said
    assert said.code or odd in ("empty", "no text", "nested", "utf-16"), said
    assert "Traceback" not in said.err
    if said.code:
        assert sum(line.startswith("biaskit: ") for line in said.err.splitlines()) == 1, said.err


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, "1" * 5_000, "NaN", "-Infinity", "{"]
)  # fmt: skip
def test_json_without_bounds_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["v=" + "[" * 200_000, "v=" + "1" * 5_000, "v={"]
)  # fmt: skip
def test_toml_without_bounds_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_toml(text)


def test_a_file_beyond_its_bound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 11)
    with pytest.raises(RunError, match="has 11 bytes, and at most 10 are read"):
        Inputs(RunError, most=10).content(tmp_path / "x")


# --- homes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["~nosuchuser", "~nosuchuser/x.csv"])
def test_a_home_that_nobody_has_is_one_line(path: str, tmp_path: Path, console: Cli) -> None:
    with pytest.raises(UsageError, match="~nosuchuser"):
        expanded(path)
    for words in (
        ("probe", f"scripted:{path}"),
        ("probe", f"hf:{path}"),
        ("probe", "demo", "--study", f"{path}/s.toml"),
        ("analyze", "--texts", f"{path}/x.csv"),
        ("report", path),
        ("probe", "demo", "--out", path),
    ):
        said = console(*words)
        assert said.code == 2, words
        assert "~nosuchuser" in said.err


def test_without_a_home_the_cache_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(cls: type) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(nowhere))
    with pytest.raises(BiaskitError, match="XDG_CACHE_HOME"):
        cache_dir()


# --- keys, money, names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("c_topic=1e308", r"c_topic = 1e\+308: write a number less than or equal to 1000000"),
        ("permutations=1000000000000", "write a number less than or equal to 1000000"),
        ("alpha=nan", "a finite number"),
        ("c=inf", "a finite number"),
        ("margin.represented_share=inf", "a finite number"),
        ("seed=99999999999", "write a number less than or equal to 4294967295"),
        ("engine=[1]", "there is no engine"),
    ],
)
def test_numbers_out_of_bounds_are_one_line(setting: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        load_study("gasp-pilot", dict([parse_setting(setting)]))


def test_every_number_key_is_bounded_on_both_sides() -> None:
    from biaskit.study.keys import STUDIES

    for model in STUDIES.values():
        for name, field in model.model_fields.items():
            if field.annotation in (int, float, int | None, float | None):
                bounds = {type(part).__name__ for part in field.metadata}
                assert bounds & {"Ge", "Gt"}, name
                assert bounds & {"Le", "Lt"}, name


@pytest.mark.parametrize(
    "content", ["[]", '{"m": 3}', '{"m": {"cost": "many"}}', '{"m": {"cost": -1}}', '{"m": {"cost": true}}', "{", "", '{"m": {"cost": 1e999}}']  # noqa: E501
)  # fmt: skip
def test_a_damaged_account_never_says_that_nothing_was_spent(content: str, tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text(content, "ascii")
    with pytest.raises(RunError, match=r"usage\.json.*What the run has cost stands in it"):
        spent(tmp_path)


def test_no_account_is_nothing_spent(tmp_path: Path) -> None:
    assert read_usage(tmp_path) == {}
    (tmp_path / "usage.json").write_text(json.dumps({"m": {"cost": 2.5, "calls": None}}), "ascii")
    assert spent(tmp_path) == 2.5


@pytest.mark.parametrize("group", ["coverage", "model", "share", "reason", "probe_cells", "labour_female"])
def test_groups_called_like_a_column_are_refused(group: str, tmp_path: Path, console: Cli) -> None:
    file = tmp_path / "groups.toml"
    file.write_text(f'[groups]\n{group} = ["she"]\nmale = ["he"]\n')
    said = console(
        "probe", "scripted:none", "--expressions", str(file), "--dry-run", "--out", str(tmp_path / "new")
    )
    assert said.code == 2
    assert group in said.err
    assert "Rename" in said.err


@pytest.mark.parametrize("label", ["=1", "+1", "-1", "@x", "\t1"])
def test_signs_are_formulas(label: str) -> None:
    assert is_formula(label)


@pytest.mark.parametrize("label", ["nurse", "(=1)", "a=1", "", "é", "\u200b", "5-6"])
def test_plain_labels_are_no_formulas(label: str) -> None:
    assert not is_formula(label)


# --- the first sign of life, and a notebook -----------------------------------------------------------------


@pytest.mark.process
@pytest.mark.slow
def test_something_is_said_within_two_seconds(run: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "biaskit", "report", str(run), "--out", str(tmp_path / "page.html")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline()
    assert time.monotonic() - started < 4, "two seconds, and two for a machine under load"
    process.communicate()


@pytest.mark.process
@pytest.mark.slow
def test_a_report_in_a_real_notebook(run: Path, tmp_path: Path) -> None:
    from needs import require_notebook

    require_notebook()
    import nbclient
    import nbformat

    line = f"!cd {tmp_path} && {sys.executable} -m biaskit report {run} --out page.html; echo ended $?"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    said = "".join(output.get("text", "") for output in book.cells[0].outputs)
    assert "ended 0" in said, said
    assert (run / "figures/answer.svg").is_file()
