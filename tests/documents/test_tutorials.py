"""The tutorials run as notebooks, and their cells print what the pages show; so does the README's command."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from needs import require_demo, require_demo_base, require_notebook
from places import ROOT, module_of

from biaskit.common.files import cache_dir

NUMBER = re.compile(r"\d+(?:\.(\d+))?")
LONGEST_CELL_S = 1200
DIGITS = 1.5
"""Units of its last digit by which a number of a real model may differ between machines."""


@pytest.fixture
def notebooks() -> ModuleType:
    require_notebook()
    return module_of(ROOT / "docs" / "notebooks.py")


# --- the notebooks ------------------------------------------------------------------------------------------

PAGE = """# Title

See [a page](../howto/verify.md#what-it-cannot-prove) and ![a picture](../gallery/z.svg).

```python
print(1)
```

<!-- output: python -->
```
1
```

Prose.

```toml
a = 1
```

```sh
biaskit runs
biaskit cite
```
"""


def test_a_page_becomes_a_notebook(notebooks: ModuleType) -> None:
    book = notebooks.notebook(PAGE)
    site = "https://github.com/biaskit/biaskit/blob/main/docs"
    page, picture = f"{site}/howto/verify.md#what-it-cannot-prove", f"{site}/gallery/z.svg?raw=true"
    links = f"[a page]({page}) and ![a picture]({picture})"
    assert [
        ("markdown", f"# Title\n\nSee {links}."),
        ("code", "print(1)"),
        ("markdown", "Prose.\n\n```toml\na = 1\n```"),
        ("code", "%%bash\nbiaskit runs\nbiaskit cite"),
    ] == [(cell.cell_type, cell.source) for cell in book.cells]
    assert ["1\n"] == book.cells[1].metadata["prints"]
    assert book == notebooks.notebook(PAGE)


# --- what they print ----------------------------------------------------------------------------------------


def same(shown: str, printed: str) -> bool:
    """Whether two words are equal but for the last digit of their decimals."""
    if NUMBER.sub("N", shown) != NUMBER.sub("N", printed):
        return False
    pairs = zip(NUMBER.finditer(shown), NUMBER.finditer(printed), strict=True)
    return all(a[0] == b[0] or _close(a, b) for a, b in pairs)


def _close(a: re.Match[str], b: re.Match[str]) -> bool:
    """Whether two decimals of equal length are near; whole numbers must be equal."""
    is_near = abs(float(a[0]) - float(b[0])) <= DIGITS * 10 ** -len(a[1] or "")
    return bool(a[1]) and len(a[1]) == len(b[1] or "") and is_near


def is_part(shown: str, printed: str) -> bool:
    """Whether the words shown are printed, one after the other."""
    words, found = shown.split(), printed.split()
    assert words, "a printed block shows something"
    starts = range(len(found) - len(words) + 1)
    return any(all(map(same, words, found[i : i + len(words)])) for i in starts)


def test_numbers_may_differ_in_their_last_digit_and_words_may_not() -> None:
    assert is_part("demo 66.8 ± 2.4\n0.14", "Model M\ndemo  66.9 ± 2.4  0.15\n")
    assert not is_part("demo 66.8", "demo 67.0")
    assert not is_part("cov. 0.14", "cov. 0.16")
    assert not is_part("[1 to 17]", "[2 to 17]")
    assert not is_part("40 jobs", "41 jobs")
    assert not is_part("demo 66.8", "demo-base 66.8")


def has_converted_demos() -> bool:
    from biaskit.models.huggingface.demo import CONVERSION, DEMOS

    folders = [cache_dir() / f"demo-{demo.sha256[:12]}-{CONVERSION}" for demo in DEMOS.values()]
    return all(folder.is_dir() for folder in folders)


NAMES = {"base-and-chat": pytest.mark.real_model, "audit-a-csv": pytest.mark.slow}


def test_every_tutorial_is_run() -> None:
    assert NAMES.keys() == {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")}


@pytest.mark.parametrize("name", [pytest.param(name, marks=mark) for name, mark in NAMES.items()])
def test_a_tutorial_prints_what_it_shows(
    name: str, notebooks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbclient

    if name == "base-and-chat":
        require_demo()
        require_demo_base()
    if name != "base-and-chat" or not has_converted_demos():
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    book = notebooks.notebook((notebooks.TUTORIALS / f"{name}.md").read_text(encoding="utf-8"))
    folder = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=LONGEST_CELL_S, kernel_name="python3", resources=folder).execute()
    wrong = []
    for cell in book.cells:
        streams = {"stdout": "", "stderr": ""}
        for output in cell.get("outputs", ()):
            streams[output.get("name", "stdout")] += output.get("text", "")
        printed = "\n".join(streams.values())
        for shown in cell.metadata.get("prints", ()):
            if not is_part(shown, printed):
                wrong.append(f"{cell.source}\n--- shows\n{shown}--- and prints\n{printed}")
    assert not wrong, "\n\n".join(wrong)


def shown_on_the_front_pages() -> dict[str, list[str]]:
    """What README and start page show of each command that they run."""
    shown: dict[str, list[str]] = {}
    block = re.compile(r"^<!-- output: biaskit ([^\n]*) -->\n```\n(.*?)^```$", re.M | re.S)
    for name in ("README.md", "docs/index.md"):
        for command, printed in block.findall((ROOT / name).read_text(encoding="utf-8")):
            shown.setdefault(command, []).append(printed)
    return shown


FRONT = shown_on_the_front_pages()


def test_the_start_page_has_a_door_for_each_kind_of_material() -> None:
    assert ["analyze", "decisions", "probe"] == sorted(command.split()[0] for command in FRONT)
    assert 2 == len(FRONT["probe demo --bias-type implicit"]), "its table, and its sentence"


@pytest.mark.real_model
@pytest.mark.parametrize("command", FRONT)
def test_the_front_pages_show_what_their_commands_print(command: str, tmp_path: Path) -> None:
    require_demo()
    yes = [] if command.startswith("analyze") else ["--yes"]
    asked = [sys.executable, "-m", "biaskit", *shlex.split(command), *yes]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert [] == [shown for shown in FRONT[command] if not is_part(shown, done.stdout)], done.stdout


def test_each_printed_block_names_the_cell_above_it(notebooks: ModuleType) -> None:
    """By the beginning of its command, or as `python`."""
    for path in notebooks.TUTORIALS.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        cells = [cell for cell in notebooks.notebook(text).cells if cell.cell_type == "code"]
        above = [cell.source for cell in cells for _ in cell.metadata.get("prints", [])]
        for label, source in zip(re.findall("^<!-- output: (.*) -->$", text, re.M), above, strict=True):
            is_shell = source.startswith("%%bash\n")
            assert f"\n{label}" in source if is_shell else label == "python"
