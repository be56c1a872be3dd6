"""Commands in environments that people have, and inputs that are no text of their kind."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.command import Cli, Said
from places import ROOT

from biaskit.common.files import cache_dir
from biaskit.common.foreign import is_formula
from biaskit.common.inputs import Inputs, expanded
from biaskit.errors import BiaskitError, RunError, StudyError, UsageError
from biaskit.runs.usage import spent
from biaskit.study.config import load_study, parse_setting
from fuzz.common import check_said, snapshot

LONGEST_S = 120
_POWERLESS = (
    "setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps=-all,+dac_read_search"
    " --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search"
)
"""A user without a name, a home or a right to write, who may read Python wherever it is installed."""


@dataclass(frozen=True)
class Environment:
    """What a shell sets, limits and redirects, and files that lie in the working folder."""

    variables: Mapping[str, str] = field(default_factory=dict)
    before: str = ""  # shell commands, or what the command runs under
    after: str = ""  # redirections
    files: Mapping[str, bytes] = field(default_factory=dict)
    codes: tuple[int, ...] = (0,)


ENVIRONMENTS: Mapping[str, Environment] = {
    "notebook": Environment({"MPLBACKEND": "module://matplotlib_inline.backend_inline"}),
    "no such backend": Environment({"MPLBACKEND": "nonsense"}, codes=(0, 2)),  # matplotlib does not import
    "no home": Environment(before="unset HOME; "),
    "home nowhere": Environment({"HOME": "/nonexistent"}),
    "nameless user": Environment(before=f"unset HOME; {_POWERLESS} ", codes=(0, 1, 2)),
    "stdout full": Environment(after=">/dev/full", codes=(1,)),
    "stderr full": Environment(after="2>/dev/full"),
    "reader has enough": Environment(after="| head -1; exit ${PIPESTATUS[0]}"),
    "ascii": Environment({"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
    "far future": Environment(
        files={"sitecustomize.py": b"import time\n_now = time.time\ntime.time = lambda: _now() + 3e9\n"}
    ),
    "no large files": Environment(before="ulimit -f 1; ", codes=(0, 1, 2)),
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "probe": ("probe", "scripted:m.jsonl", "--jobs", "nurse,plumber", "--templates", "1-2", "--out", "new"),
    "report": ("report", "run", "--out", "page.html"),
    "cite": ("cite", "run"),
}


@pytest.mark.process
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_command_in_an_environment(name: str, command: str, stored_probe: Path, tmp_path: Path) -> None:
    environment = ENVIRONMENTS[name]
    if "setpriv" in environment.before and (os.geteuid() or shutil.which("setpriv") is None):
        pytest.skip("only root can be another user, and needs setpriv")
    shutil.copytree(stored_probe, tmp_path / "run")
    shutil.copy(stored_probe.parent / "m.jsonl", tmp_path)
    tmp_path.chmod(0o777)
    for file, content in environment.files.items():
        (tmp_path / file).write_bytes(content)
    before = snapshot(tmp_path)
    line = shlex.join([sys.executable, "-m", "biaskit", *COMMANDS[command]])
    search = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        ["bash", "-c", f"{environment.before}{line} {environment.after}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1", **environment.variables},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LONGEST_S,
        check=False,
    )
    if name != "stderr full":
        check_said(Said(done.returncode, done.stdout, done.stderr), (name, command))
    assert done.returncode in environment.codes, done.stderr
    after = snapshot(tmp_path)
    assert before == {path: after.get(path) for path in before}
    if command == "report" and done.returncode == 0 and environment.codes == (0,):
        assert (tmp_path / "run/figures/answer.svg").is_file()


@pytest.mark.process
def test_a_report_in_a_real_notebook(stored_probe: Path, tmp_path: Path) -> None:
    from needs import require_notebook

    require_notebook()
    import nbclient
    import nbformat

    run = shutil.copytree(stored_probe, tmp_path / "run")
    line = f"!cd {tmp_path} && {sys.executable} -m biaskit report run --out page.html; echo ended $?"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    said = "".join(output.get("text", "") for output in book.cells[0].outputs)
    assert "ended 0" in said, said
    assert (run / "figures/answer.svg").is_file()


# --- inputs ----------------------------------------------------------------------------------------------


def test_a_file_beyond_its_bound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 11)
    with pytest.raises(RunError, match="11 bytes"):
        Inputs(RunError, most=10).content(tmp_path / "x")


@pytest.mark.parametrize(
    "words",
    [
        ("probe", "scripted:~nosuchuser"),
        ("probe", "demo", "--study", "~nosuchuser/s.toml"),
        ("analyze", "--texts", "~nosuchuser/x.csv"),
        ("report", "~nosuchuser"),
        ("probe", "demo", "--out", "~nosuchuser"),
    ],
)
def test_a_home_that_nobody_has_is_one_line(words: tuple[str, ...], console: Cli) -> None:
    with pytest.raises(UsageError, match="~nosuchuser"):
        expanded("~nosuchuser")
    said = console(*words)
    assert said.code == 2
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
        ("c_topic=1e308", "1000000"),
        ("alpha=nan", "finite"),
        ("margin.represented_share=inf", "finite"),
        ("seed=99999999999", "4294967295"),
        ("measurement=[1]", "measurement"),
    ],
)
def test_numbers_out_of_bounds_are_one_line(setting: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        load_study("gasp-pilot", dict([parse_setting(setting)]))


@pytest.mark.parametrize(
    "content",
    ["[]", '{"m": 3}', '{"m": {"cost": "many"}}', '{"m": {"cost": -1}}', '{"m": {"cost": true}}', "{", ""],
)
def test_a_damaged_account_never_says_that_nothing_was_spent(content: str, tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text(content, "ascii")
    with pytest.raises(RunError, match=r"usage\.json"):
        spent(tmp_path)


@pytest.mark.parametrize("group", ["coverage", "model", "share", "reason", "probe_prompts", "workforce"])
def test_groups_called_like_a_column_are_refused(group: str, tmp_path: Path, console: Cli) -> None:
    file = tmp_path / "groups.toml"
    file.write_text(f'[groups]\n{group} = ["she"]\nmale = ["he"]\n')
    said = console(
        "probe", "scripted:none", "--target-words", str(file), "--dry-run", "--out", str(tmp_path / "new")
    )
    assert said.code == 2
    assert group in said.err


@pytest.mark.parametrize("label", ["=1", "+1", "-1", "@x", "\t1"])
def test_signs_are_formulas_and_plain_labels_are_none(label: str) -> None:
    assert is_formula(label)
    assert not any(map(is_formula, ("nurse", "(=1)", "a=1", "", "é", "\u200b", "5-6")))
