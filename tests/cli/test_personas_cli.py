"""`biaskit personas` and `biaskit analyze` as a user meets them: exit codes, odd input, one-line errors."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from fakes.command import Cli, Said
from fakes.personas_runs import (
    NAMED,
    OPEN,
    story,
    table,
    write_script,
    write_texts,
    write_vectors,
)
from fakes.personas_runs import script_of as full_script

from biaskit.measures.personas.command import personas


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    """Every test in a folder of its own."""
    return quick_folder


@pytest.fixture
def cli(console: Cli) -> Cli:
    """The console script in this process; whatever it prints is fit for a terminal."""

    def call(*arguments: str | Path) -> Said:
        said = console(*arguments)
        for stream in (said.out, said.err):
            # Joiners are shown: they shape the letters of some scripts.
            shown = stream.replace("\n", "").replace("\u200d", "")
            assert [] == [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs")]
            assert "Traceback" not in stream
        return said

    return call


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def cheap(home: Path) -> tuple[str, ...]:
    """Options of an analysis that takes a moment."""
    return (
        *("--set", f"vectors={write_vectors(home / 'vectors.txt')}"),
        *("--set", "permutations=19", "--set", "clusters=false"),
    )


@pytest.fixture(scope="module")
def drawn(home: Path) -> Path:
    """A run of one occupation; never changed."""
    vectors = write_vectors(home / "vectors.txt")
    return personas(
        f"m={full_script(home / 'm.jsonl', OPEN, NAMED)}",
        study="gasp-pilot",
        occupations="nurse",
        per_gender=3,
        settings={"vectors": vectors, "permutations": 19, "clusters": False},
        out=home / "drawn",
    ).path


@pytest.fixture
def run(drawn: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawn, tmp_path / "run"))


def one_line(said: Said) -> str:
    """The one line of an error."""
    lines = said.err.splitlines()
    assert 1 == sum(line.startswith("biaskit: ") for line in lines), said.err
    assert lines[-1].startswith("biaskit: ")
    return lines[-1].removeprefix("biaskit: ")


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """JSON Lines, so that any character can stand in a text."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")
    return path


def analysed(cli: Cli, cheap: Sequence[str], rows: Sequence[Mapping[str, object]], *options: str) -> Said:
    texts = write_rows(Path("texts.jsonl"), rows)
    return cli("analyze", "--texts", texts, *options, *cheap, "--out", "odd")


def about(gender: str, code: str = "") -> list[dict[str, str]]:
    return [{"text": story(gender, OPEN["nurse"][gender], i), "gender": code} for i in range(5)]


# --- a first run ---------------------------------------------------------------------------------------


def test_a_run_prints_its_plan_its_tables_and_its_folder(cli: Cli, cheap: tuple[str, ...]) -> None:
    model = full_script(Path("m.jsonl"), OPEN, NAMED)
    arguments = (
        f"m={model}", "--study", "gasp-pilot", "--occupations", "nurse,cook", "--per-gender", "2", *cheap
    )  # fmt: skip
    planned = cli("personas", *arguments, "--dry-run")
    assert 0 == planned.code
    [folder] = re.findall(r"^Run folder: (\S+)$", planned.out, re.M)
    assert not Path(folder).exists()
    first = cli("personas", *arguments)
    assert 0 == first.code, first.err
    for title in (
        "Who is represented",
        "Words that mark a gender",
        "Subset Representational Bias",
        "Tests over",
    ):
        assert title in first.out
    assert f"Run: {folder}\n" in first.out
    # The command goes on where it stopped: nothing is drawn again.
    rows = (Path(folder) / "personas.jsonl").read_bytes()
    again = cli("personas", *arguments)
    assert (0, first.out) == (again.code, again.out)
    assert rows == (Path(folder) / "personas.jsonl").read_bytes()
    # And nothing but the rows is needed to make the tables again.
    analysed = cli("analyze", folder)
    assert (0, first.out) == (analysed.code, analysed.out)


def test_a_model_of_which_every_sample_fails_leaves_3_and_its_reason(
    cli: Cli, cheap: tuple[str, ...]
) -> None:
    silent = write_script(Path("silent.jsonl"), {"fail": "out of order"})
    model = full_script(Path("m.jsonl"), OPEN, NAMED)
    options = (
        "--study",
        "gasp-pilot",
        "--occupations",
        "nurse",
        "--per-gender",
        "2",
        *cheap,
        "--out",
        "both",
    )
    said = cli("personas", f"a={model}", f"b={silent}", *options)
    assert 3 == said.code
    assert "b: 16 texts failed (out of order)" in " ".join(said.out.split())


# --- wrong use -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--texts", "t.csv"), "Give RUN or --texts, not both."),
        (("run", "--gender-col", "g"), "--gender-col is for --texts FILE: give the file too."),
        (("run", "--occupation-col", "g"), "--occupation-col is for --texts FILE: give the file too."),
        (("run", "--model-col", "g"), "--model-col is for --texts FILE: give the file too."),
        (("run", "run"), "Several runs need --out"),
        (("recorded:none",), "There is no "),
        (("recorded:none", "run", "--out", "x"), "recorded:none cannot be merged with other runs"),
        (("run", "--set", "nmes=keep"), "Did you mean 'names'?"),
        (("run", "--set", "per_gender=7"), "per_gender needs a new run"),
        (("run", "--set", "seed=7"), "seed needs a new run"),
        (("run", "--set", "names=some"), "names = some: write 'capitalised-list', 'released' or 'keep'"),
        (("run", "--set", "permutations=3"), "permutations = 3"),
        (("run", "--set", "names"), "write --set key.sub=value"),
        (("run", "--variant", "paper"), "--variant"),
        (("run", "--hold-out", "1"), "--hold-out"),
        (("run", "--hold-out", "half"), "--hold-out"),
        (("run", "--srb-seeds", "5-1", "--vectors", "corpus"),
         "srb_seeds = 5-1: write seeds such as 1-5 or 1,7"),
        (("run", "--vectors", "mine"), "vectors = mine: write corpus, marked-lists, pretrained:PATH"),
        (("run", "--set", "clusters=true", "--set", "cluster_vectors=x"),
         "cluster_vectors = x: write pretrained:PATH or nothing"),
        (("run", "--vectors", "pretrained:none.txt"), "none.txt"),
        (("run", "--set", "drop_words=none.txt", "--set", "clusters=true"), "none.txt"),
        (("run", "--study", "none"), "There is no study 'none'."),
        (("run", "--study", "none.toml"), "none.toml"),
        (("--texts", "none.csv"), "none.csv"),
        (("--texts", "t.csv", "--gender-col", "none"), "none"),
        (("--texts", "t.csv", "--text-col", "none"), "none"),
        (("--texts", "t.csv", "--set", "nmes=keep"), "Did you mean 'names'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_wrong_use_leaves_2_and_one_line(cli: Cli, run: Path, arguments: tuple[str, ...], said: str) -> None:
    write_texts(Path("t.csv"), [{"text": "She works.", "gender": "F"}])
    before = {path: path.read_bytes() for path in run.rglob("*.csv")}
    found = cli("analyze", *arguments)
    assert 2 == found.code, found.err
    assert said in one_line(found)
    assert "" == found.out
    assert before == {path: path.read_bytes() for path in run.rglob("*.csv")}


def test_runs_of_two_measurements_are_not_merged(cli: Cli, run: Path) -> None:
    model = write_script(Path("p.jsonl"), {"log_probs": {" She": -0.5, " He": -1.0}})
    cli("probe", f"m={model}", "--jobs", "nurse", "--templates", "1", "--out", "probe")
    said = cli("analyze", run, "probe", "--out", "merged")
    assert 1 == said.code
    assert "two measurements" in one_line(said)
    assert not Path("merged").exists()


# --- several runs --------------------------------------------------------------------------------------


def test_runs_of_two_models_are_merged_and_compared(cli: Cli, cheap: tuple[str, ...]) -> None:
    common = ("--study", "gasp-pilot", "--per-gender", "2", "--occupations", "nurse,cook", *cheap)
    models = [f"{label}={full_script(Path(f'{label}.jsonl'), words, NAMED)}"
              for label, words in (("a", OPEN), ("b", {**OPEN, "nurse": OPEN["cook"]}))]  # fmt: skip
    for model in models:
        assert 0 == cli("personas", model, *common, "--out", model[0]).code
    assert 0 == cli("personas", *models, *common, "--out", "both").code
    merged = cli("analyze", "a", "b", "--out", "merged")
    assert 0 == merged.code, merged.err
    for path in sorted(Path("both/tables").glob("*.csv")):
        assert path.read_bytes() == (Path("merged/tables") / path.name).read_bytes(), path.name
    assert [row for row in table(Path("merged"), "tests") if row["family"].endswith("/models")]


# --- imported texts twice ------------------------------------------------------------------------------


def test_the_same_texts_are_imported_once_and_others_are_another_run(
    cli: Cli, cheap: tuple[str, ...]
) -> None:
    assert 0 == analysed(cli, cheap, [*about("female"), *about("male")]).code
    rows = Path("odd/personas.jsonl").read_bytes()
    again = analysed(cli, cheap, [*about("female"), *about("male")], "--set", "names=keep")
    assert 0 == again.code
    assert rows == Path("odd/personas.jsonl").read_bytes()
    said = analysed(cli, cheap, about("male"))
    assert 1 == said.code
    assert "is a run of another study" in one_line(said)
    assert rows == Path("odd/personas.jsonl").read_bytes()
