"""`biaskit compare` and `bk.compare` as a user meets them: exit codes, formats, folders, errors."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli, Said
from fakes.findings_rows import srb_test, workforce_test
from fakes.numbered_runs import JOBS, WORKFORCE, probe_run, seal, share_of, texts_run
from fakes.tables import write_table

from biaskit.measures.probe.command import probe
from biaskit.tables.io import read_table_rows
from biaskit.workflow.compare import compare

pytestmark = pytest.mark.usefixtures("no_waiting")

JOBS_ASKED = "nurse,teacher,accountant,clerk,engineer,mechanic,cook,lawyer"
SMALL = {"study": "gasp-occupations", "jobs": JOBS_ASKED, "templates": "1-3"}
WOMEN = {"nurse": 0.65, "teacher": 0.6, "engineer": 0.3, "mechanic": 0.2}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(console: Cli) -> Cli:
    """The console script in this process; nothing ends in a traceback."""

    def call(*arguments: str | Path) -> Said:
        said = console(*arguments)
        assert "Traceback" not in said.err
        return said

    return call


def scripted(path: Path, women: Mapping[str, float], *, shift: float = 0.0, seed: int = 0) -> str:
    """A model whose share of women in each job is given, and moves with the template by `seed`."""

    def line(share: float, **more: str) -> dict[str, Any]:
        weights = {"She": share, "He": 1 - share, "Female": share, "Male": 1 - share}
        spaced = {f" {word}": math.log(0.2 * weight) for word, weight in weights.items()}
        return {**more, "log_probs": spaced, "else": -16.0}

    lines = []
    for i, (job, share) in enumerate(women.items()):
        noise = 0.25 * math.sin(7 * seed * (i + 1)) if seed else 0.0
        lines.append(line(min(max(share + shift + noise, 0.02), 0.98), contains=job))
    lines.append(line(min(0.5 + shift, 0.98)))
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="ascii")
    return f"scripted:{path}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def runs(home: Path) -> dict[str, Path]:
    """Real runs of the prober: a model, the same one under another label, another one, a noisy one."""
    specs = {
        "A": scripted(home / "a.jsonl", WOMEN),
        "Other": scripted(home / "b.jsonl", WOMEN, shift=0.3),
        "Noisy": scripted(home / "n.jsonl", WOMEN, seed=3),
    }
    specs["Copy"] = specs["A"]
    return {
        label: probe(f"{label}={spec}", **SMALL, out=home / label).path  # type: ignore[arg-type]
        for label, spec in specs.items()
    }


# --- what is required --------------------------------------------------------------------------------


def test_a_model_against_its_copy_is_equivalent(cli: Cli, runs: dict[str, Path]) -> None:
    said = cli("compare", runs["A"], runs["Copy"], "--require", "equivalent", "--out", "c")
    assert 0 == said.code, said.err
    rows = read_table_rows(Path("c/tables/tests.csv"))
    crossed = [(row["quantity"], row["equivalent"]) for row in rows if row["kind"] == "crossed"]
    # Two ways to ask: shares of three groups and the part of she in two groups of jobs, and their gaps.
    n_of = {"share": 12, "binary_share": 4, "group_gap": 6, "binary_group_gap": 2}
    assert Counter(crossed) == {(quantity, True): n for quantity, n in n_of.items()}
    assert "about the same" in " ".join(said.out.split())
    assert "equivalent (models): all 24 rows" in said.err


def test_a_clearly_different_model_leaves_4_and_the_rows(cli: Cli, runs: dict[str, Path]) -> None:
    said = cli("compare", runs["A"], runs["Other"], "--require", "equivalent")
    assert 4 == said.code
    assert "30 points more for Other than for A [30 to 30];" in " ".join(said.out.split())
    # The gaps of both are the same; shares of they under 1 % have no margin.
    assert "Failed: equivalent (models): 12 of 20 rows" in said.err
    lines = [line for line in said.err.splitlines() if line.startswith("  Other - A, ")]
    failing = [line.split(", ")[1:3] for line in lines]
    shares = [["share", gender] for gender in ("male", "female")]
    assert [*shares, ["binary_share", "female"], *shares] == failing
    assert all("90 % interval [" in line and "margin ±0.05" in line for line in lines)
    assert lines[2].endswith("higher by 0.30 [0.30, 0.30]")  # it leads, and so it alone has a direction
    assert "and 7 more rows" in said.err


def test_a_run_of_two_models_begins_with_what_compare_says_of_them(cli: Cli, tmp_path: Path) -> None:
    specs = scripted(tmp_path / "a.jsonl", WOMEN), scripted(tmp_path / "b.jsonl", WOMEN, shift=0.3)
    models = [f"{label}={spec}" for label, spec in zip(("A", "Other"), specs, strict=True)]
    asked = ("--study", "gasp-occupations", "--jobs", JOBS_ASKED, "--templates", "1-3", "--out", "both")
    probed, compared = cli("probe", *models, *asked), cli("compare", "both")
    assert (0, 0) == (probed.code, compared.code), probed.err + compared.err
    said = " ".join(probed.out.split())
    assert (
        "the share of she for jobs mostly held by women is 30 points more for Other than for A [30 to 30];"
    ) in said
    # The gaps of both ways to ask are compared too, and counted.
    counted = (
        "of 6 comparisons between Other and A, 4 differ clearly and 2 are about the same (within ±10 points)."
    )
    assert counted in said
    assert probed.out.split("\n\n")[0] == compared.out.split("\n\n")[0]


def test_nothing_compared_is_not_equivalent(cli: Cli, runs: dict[str, Path]) -> None:
    said = cli("compare", runs["A"], runs["Copy"], "--require", "equivalent=workforce")
    assert 4 == said.code
    assert "nothing was compared" in said.err


def test_a_pair_that_was_not_compared_is_not_equivalent(cli: Cli, tmp_path: Path) -> None:
    run = probe_run(tmp_path / "run", "a", "b", "c", formats={"c": "chat-prefill"}, noise=0.001)
    said = cli("compare", run, "--require", "equivalent")
    assert 4 == said.code
    assert "not compared: c and a (probe)" in said.err
    assert (
        0 == cli("compare", probe_run(tmp_path / "ab", "a", "b", noise=0.001), "--require", "equivalent").code
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--require", "equal"), "write --require equivalent"),
        (("--require", "equivalent=modles"), "Did you mean 'models'"),
        (("--require", "equivalent="), "write --require equivalent"),
        (("--set", "share=0.1"), "Did you mean 'margin.share'"),
        (("--set", "margin.share=wide"), "give a number"),
        (("--set", "margin.share=-1"), "give a number"),
        (("--group", "x=A"), "has nothing to be compared with"),
        (("--group", "A=Copy", "--group", "y=A"), "a model is called so"),
        (("--aliases", "none.csv"), "There is no file --aliases none.csv"),
    ],
)
def test_wrong_use_leaves_2_and_one_line(
    cli: Cli, runs: dict[str, Path], options: tuple[str, ...], said: str
) -> None:
    left = cli("compare", runs["A"], runs["Copy"], *options)
    assert 2 == left.code
    assert said in left.err
    assert 1 == left.err.count("\n")
    assert not Path("biaskit-runs").exists()


# --- which runs --------------------------------------------------------------------------------------


def test_the_same_run_twice_one_model_alone_and_no_run_are_errors(cli: Cli, runs: dict[str, Path]) -> None:
    twice = cli("compare", runs["A"], runs["A"] / "../A")
    assert (2, True) == (twice.code, "named twice" in twice.err)
    alone = cli("compare", runs["A"])
    assert (2, True) == (alone.code, "only one model" in alone.err)
    nothing = cli("compare")
    assert (1, True) == (nothing.code, "no run in" in nothing.err)
    lost = cli("compare", "nowhere", runs["A"])
    assert (1, True) == (lost.code, "no folder nowhere" in lost.err)


# --- the folder and the formats ----------------------------------------------------------------------


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_same_comparison_is_the_same_bytes_in_the_same_folder(cli: Cli, tmp_path: Path) -> None:
    probe = probe_run(tmp_path / "p", "m", "n+0.1", bias_types=("explicit", "implicit"))
    texts = texts_run(tmp_path / "t", "m", "n+0.1")
    cli("compare", probe, texts)
    (folder,) = Path("biaskit-runs").iterdir()
    assert "compare-m-n-0.1" == folder.name
    first = files_of(folder)
    cli("compare", probe, texts)
    assert [folder] == list(Path("biaskit-runs").iterdir())
    assert first == files_of(folder)
    assert {f"tables/{name}.csv" for name in ("tests", "gaps", "srb_change")} < first.keys()
    manifest = json.loads(first["manifest.json"])
    assert ("compare", ["m", "n+0.1"]) == (manifest["measurement"], list(manifest["models"]))
    # Seen from the folder: runs and comparison can move together.
    paths = [run["path"] for run in manifest["resolved"]["runs"]]
    assert [probe.resolve(), texts.resolve()] == [(folder / path).resolve() for path in paths]
    assert not any(Path(path).is_absolute() for path in paths)


def test_a_table_that_is_no_longer_made_is_taken_away(tmp_path: Path) -> None:
    probe, texts = probe_run(tmp_path / "p", "m", "n"), texts_run(tmp_path / "t", "m", "n")
    compare(probe, texts, out="c")
    assert (Path("c") / "tables" / "gaps.csv").exists()
    made = compare(probe, out="c")
    left = ["analysis.json", "changed_prompts.csv", "changes.csv", "tests.csv"]
    assert left == sorted(file.name for file in Path("c/tables").iterdir())
    assert made.gaps.empty
    assert "probe_gap" in made.gaps.columns


# --- the numbers of the printed tables -----------------------------------------------------------------


def numbers_printed(table: str, *beginning: str) -> list[float]:
    """The numbers of the one line that begins with these words."""
    (line,) = (line for line in table.splitlines() if tuple(line.split()[: len(beginning)]) == beginning)
    return [float(number.replace("−", "-")) for number in re.findall(r"−?\d+(?:\.\d+)?", line)]


def test_the_printed_tables_hold_the_numbers_of_the_stored_ones(
    cli: Cli, runs: dict[str, Path], tmp_path: Path
) -> None:
    texts = texts_run(tmp_path / "texts", "Other", "Noisy")
    tests = [
        test(estimate, (estimate - 0.1, estimate + 0.2), model_a=model, model_b=model)
        for model, workforce, srb in (("Other", 0.034, -0.35), ("Noisy", -0.216, 0.27))
        for test, estimate in ((workforce_test, workforce), (srb_test, srb))
    ]
    write_table(texts / "tables" / "tests.csv", "tests", tests)
    out = cli("compare", runs["Other"], runs["Noisy"], seal(texts)).out
    answers, written = out.split("\n\n")[1:3]
    represented = read_table_rows(texts / "tables" / "representation.csv")
    for model in ("Other", "Noisy"):
        groups = read_table_rows(runs[model] / "tables" / "probe_groups.csv")
        for bias_type in ("explicit", "implicit"):
            expected = [
                100 * row[column]
                for group in ("female-dominated", "male-dominated")
                for row in groups
                if (row["bias_type"], row["job_group"], row["gender"]) == (bias_type, group, "female")
                for column in ("share", "ci_low", "ci_high")
            ]
            assert len(expected) == 6
            assert numbers_printed(answers, model, bias_type) == pytest.approx(expected, abs=0.5)
        of_model = [row for row in represented if row["model"] == model and row["template_id"] == "all"]
        shares = [100 * row["female_share"] for row in of_model]
        workforce, srb = ([one[c] for c in ("estimate", "ci_low", "ci_high")] for one in tests
                       if one["model_a"] == model)  # fmt: skip
        found = numbers_printed(written, model)
        assert found[:5] == pytest.approx([min(shares), max(shares), *(100 * x for x in workforce)], abs=0.5)
        assert found[5:] == pytest.approx(srb, abs=0.005)


# --- real runs, and Python ---------------------------------------------------------------------------


def test_groups_and_the_smallest_margin_are_said(cli: Cli, tmp_path: Path) -> None:
    one = probe_run(tmp_path / "one", "a", "b", margin={"share": 0.02})
    two = probe_run(tmp_path / "two", "c+0.1", "d+0.1")
    said = cli(
        "compare", one, two, "--group", "old=a,b", "--group", "new=c+0.1,d+0.1", "--out", "c", "--verbose"
    )
    assert 0 == said.code
    assert "margins of share differ: the smallest, 0.02" in " ".join(said.out.split())
    rows = [r for r in read_table_rows(Path("c/tables/tests.csv")) if r["model_a"] == "new"]
    assert {("old", 0.02)} == {
        (r["model_b"], r["margin"]) for r in rows if (r["kind"], r["quantity"]) == ("crossed", "share")
    }
    women = next(r for r in rows if r["gender"] == "female" and r["group_a"] == "men's")
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]
    mean = {m: sum(share_of(m, j, t) for j in men for t in (1, 2, 3)) / 3 / len(men)
            for m in ("a", "b", "c+0.1", "d+0.1")}  # fmt: skip
    expected = (mean["c+0.1"] + mean["d+0.1"] - mean["a"] - mean["b"]) / 2
    assert expected == pytest.approx(women["estimate"])
