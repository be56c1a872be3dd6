"""The Python face: three lines in a notebook do what the commands do."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import math
import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import biaskit as bk
from biaskit.cli import COMMANDS
from biaskit.errors import RunError

ROOT = Path(bk.__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ON_A_MODEL = [path for path in EXAMPLES if path.name in ("first_result.py", "own_study.py")]
TABLES = {
    "prompts": "probe_prompts",
    "jobs": "probe_jobs",
    "groups": "probe_groups",
    "templates": "probe_templates",
    "variance": "probe_variance",
    "tests": "tests",
}
SMALL = {"jobs": "nurse,plumber,carpenter,secretary", "templates": "1-2"}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"contains": "nurse", "log_probs": {" She": -0.5, " He": -2.0}},
        {"log_probs": {" He": -0.6, " She": -2.5, " They": -3.0}},
    ]
    Path("m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return "scripted:m.jsonl"


# --- the names --------------------------------------------------------------------------------------


def names_for_type_checkers() -> set[str]:
    tree = ast.parse(Path(bk.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert "TYPE_CHECKING" == ast.unparse(block.test)
    return {
        a.asname or a.name for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for a in node.names
    }


def test_type_checkers_and_readers_see_the_same_names() -> None:
    # `import *` works without transformers, of which the callback is a class.
    assert names_for_type_checkers() == {*bk.__all__, "ModelCallback"} == set(bk._FACE)
    assert sorted(bk.__all__) == list(bk.__all__)


@pytest.mark.parametrize("name", bk.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(bk, name)
    assert name == value.__name__
    assert value.__doc__
    assert name in dir(bk)


@pytest.mark.parametrize("name", [name for name in bk.__all__ if name[0].islower()])
def test_the_help_of_a_function_names_each_parameter(name: str) -> None:
    function = getattr(bk, name)
    names = set(inspect.signature(function).parameters)
    if "options" in names and "options:" not in function.__doc__:  # the keys of a record
        module = sys.modules[function.__module__]
        record = getattr(module, function.__annotations__["options"].removeprefix("Unpack[")[:-1])
        names = names - {"options"} | set(record.__annotations__)
    described = re.findall(r"^    ((?:\w+, )*\w+): ", inspect.getdoc(function) or "", re.M)
    assert names == {name for line in described for name in line.split(", ")}
    assert len(inspect.signature(function).parameters) <= 8  # more is a record


def test_a_slip_in_an_option_is_named() -> None:
    with pytest.raises(TypeError, match=r"probe\(\) has no argument 'devise'. Did you mean 'device'\?"):
        bk.probe("demo", devise="cpu")


def test_every_command_is_a_function() -> None:
    others = {"analyze": ("load", "analyze_texts"), "import": ("import_answers",)}
    for command in COMMANDS:
        assert {*others.get(command, (command,))} <= {*bk.__all__}


def test_help_and_dir_list_what_is_public() -> None:
    assert [*bk.__all__, "__version__"] == sorted(dir(bk), key=lambda name: (name[0] == "_", name))
    listed = set(re.findall(r"\w+", bk.__doc__ or ""))
    assert {*bk.__all__, "ModelCallback"} <= listed


def test_a_function_stays_one_when_the_package_of_its_name_is_imported() -> None:
    code = "import biaskit.runs.store, biaskit.corpora.sources, biaskit.compare.pairs; import biaskit as bk"
    code += "; from biaskit.runs import store; print(*map(callable, (bk.runs, bk.corpora, bk.probe)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "True True True\n" == said.stdout


# --- three lines ------------------------------------------------------------------------------------


def test_a_probe_gives_its_tables_as_data_frames(model: str) -> None:
    result = bk.probe(model, **SMALL, out="r")
    for name, file in TABLES.items():
        frame = getattr(result, name)
        assert isinstance(frame, pd.DataFrame)
        assert list(pd.read_csv(f"r/tables/{file}.csv").columns) == list(frame.columns)
        assert len(frame)
    assert 4 * 4 == len(result.prompts)
    assert result.complete
    nurse = result.prompts.query("job == 'nurse' and bias_type == 'implicit'").iloc[0]
    he, she, other = math.exp(-2.0), math.exp(-0.5), 1e-6
    # She and He as listed; their lower case and both forms of They are not in the script.
    assert pytest.approx(he + other, rel=1e-12) == nurse["male_mass"]
    assert pytest.approx((she + other) / (he + she + 4 * other), rel=1e-12) == nurse["female_share"]
    assert pytest.approx(he + she + 4 * other, rel=1e-12) == nurse["coverage"]


def test_load_gives_the_tables_of_the_probe(model: str) -> None:
    result = bk.probe(model, **SMALL, out="r")
    before = {path.name: path.read_bytes() for path in Path("r/tables").iterdir()}
    loaded = bk.load("r")
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(result, name), getattr(loaded, name))
    assert before == {path.name: path.read_bytes() for path in Path("r/tables").iterdir()}
    assert loaded.warnings == result.warnings
    assert loaded.path == result.path
    pd.testing.assert_frame_equal(result.prompts, bk.load(Path("r")).prompts)


def test_a_table_that_the_study_does_not_make_has_its_columns_and_no_rows(model: str) -> None:
    result = bk.probe(model, **SMALL, out="r")
    full = bk.probe(model, study="mattern", jobs="nurse,plumber", debiasing_prompts="1", out="m").levels
    assert result.levels.empty
    assert len(full)
    pd.testing.assert_series_equal(full.dtypes, result.levels.dtypes)
    # A table that somebody took away is no table without rows.
    Path("r/tables/probe_prompts.csv").unlink()
    with pytest.raises(bk.BiaskitError, match=r"probe_prompts\.csv is gone"):
        _ = result.prompts


def test_a_table_of_a_run_that_is_elsewhere_is_an_error_and_not_empty(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, planned = bk.probe(model, **SMALL, out="r"), bk.probe(model, **SMALL, out="s", dry_run=True)
    with pytest.raises(RunError, match="dry run"):
        planned.prompts  # noqa: B018
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="current folder"):
        result.levels  # noqa: B018


def test_lists_can_be_lists_and_settings_any_key(model: str) -> None:
    result = bk.probe(
        model,
        jobs=["nurse", "plumber"],
        templates=["1", "3-4"],
        settings={"articles": "grammatical"},
        out="r",
    )
    assert {"nurse", "plumber"} == set(result.prompts["job"])
    assert {1, 3, 4} == set(result.prompts["template_id"])
    assert "grammatical" in json.loads(Path("r/manifest.json").read_text())["signature"]


def test_load_takes_keys_of_the_analysis_recorded_texts_and_shards(model: str, tmp_path: Path) -> None:
    whole = bk.probe(model, **SMALL, out="r").groups
    assert not bk.load("r", settings={"interval": "bootstrap"}).groups.equals(whole)
    for number in (1, 2):
        bk.probe(model, **SMALL, shard=f"{number}/2", out=f"s{number}")
    merged = bk.load("s1", "s2", out="both")
    pd.testing.assert_frame_equal(whole, merged.groups)
    with pytest.raises(bk.BiaskitError, match="need out"):
        bk.load("s1", "s2")
    with pytest.raises(bk.BiaskitError, match="no recorded corpus 'nobody'"):
        bk.load("recorded:nobody")


def test_runs_and_corpora_are_what_the_commands_list(model: str, console: Any) -> None:
    bk.probe(model, **SMALL)
    bk.compare(bk.probe(model, f"b={model}", **SMALL))
    (broken := Path("biaskit-runs/x")).mkdir()
    (broken / "manifest.json").write_text("{}")
    listed, said = bk.runs(), json.loads(console("runs", "--format", "json").out)
    assert [run["run"] for run in said] == list(listed.query("reason.isna()")["run"])
    assert [run["rows"] for run in said] == [None if pd.isna(n) else n for n in listed["rows"].iloc[:3]]
    written = [t.timestamp() for t in listed["last_write"].iloc[:3]]
    assert pytest.approx([run["last_write"] for run in said], abs=1e-3) == written
    assert "manifest.json" in listed["reason"].iloc[3]
    assert bk.runs("nowhere").empty
    said = json.loads(console("corpora", "--format", "json").out)
    names = [*(c["name"] for c in said["corpora"]), *(s["name"] for s in said["studies"])]
    assert names == list(bk.corpora()["name"])


# --- in a notebook ----------------------------------------------------------------------------------


def test_a_notebook_shows_what_the_command_prints_each_number_with_its_name(model: str) -> None:
    result = bk.probe(model, f"<b>=scripted:{'m.jsonl'}", **SMALL, out="r")
    html = result._repr_html_()
    assert "± standard error over" in html
    assert "95 % interval" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    compared = bk.compare(result, out="c")._repr_html_()
    assert compared.index("ComparisonResult") < compared.index("[95 %]")
    assert "<table" not in bk.probe(model, **SMALL, out="s", dry_run=True)._repr_html_()


def test_an_error_is_a_biaskit_error_of_one_line(model: str) -> None:
    for arguments in ({"study": "ocugender"}, {"jobs": "nurze"}, {"settings": {"nothing": 1}}):
        with pytest.raises(bk.BiaskitError) as refused:
            bk.probe(model, **arguments)
        assert "\n" not in str(refused.value)
    with pytest.raises(bk.BiaskitError, match="Name a model"):
        bk.probe()


# --- what does not fit -------------------------------------------------------------------------------

ODD = [
    *(None, [], "", 3, math.nan, object(), b"x", "no/such", "\0", "x" * 300, [None]),
    *(-1, {1: 2}, pd.DataFrame()),
]
TEXTS = ["she is kind", "he is loud"]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_what_does_not_fit_raises_nothing_foreign(odd: Any, model: str) -> None:
    calls: list[partial[object]] = [
        *(partial(function, odd) for function in (bk.probe, bk.personas, bk.doctor, bk.load, bk.calibrate)),
        *(
            partial(bk.probe, model, dry_run=True, **{name: odd})
            for name in ("study", "jobs", "settings", "price")
        ),
        *(partial(bk.score_continuations, *three) for three in ((odd, ["A"], ["b"]), (model, odd, ["b"]))),
        partial(bk.score_continuations, model, ["A"], odd),
        *(partial(bk.analyze_texts, TEXTS, **{name: odd}) for name in ("text", "gender", "settings")),
        partial(bk.analyze_texts, odd),
        partial(bk.marked_words, odd, ["F", "M"]),
        partial(bk.marked_words, TEXTS, odd),
        partial(bk.associate_gender, odd),
        partial(bk.associate_gender, "she", honorifics=odd),
        partial(bk.chamfer_distance, odd, [[1.0]]),
        partial(bk.srb, TEXTS, TEXTS, TEXTS, odd),
    ]
    for call in calls:
        with suppress(bk.BiaskitError):
            call()


@pytest.mark.parametrize("name", ["x" * 300, "hf:" + "x" * 300, "gguf:./" + "ä" * 200, "y=scripted:a\0b"])
def test_a_name_that_no_file_can_have_is_one_line(name: str) -> None:
    for function in (bk.probe, bk.personas, bk.doctor):
        with pytest.raises(bk.BiaskitError, match=r"is not a model|answers from a script") as refused:
            function(name)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["load", "calibrate", "compare", "report", "cite"])
def test_a_folder_that_is_no_run_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        getattr(bk, name)(tmp_path)
    with pytest.raises(bk.BiaskitError, match="give a result, or a run's folder"):
        getattr(bk, name)(3)


@pytest.mark.parametrize(
    "texts",
    [
        pd.Series(TEXTS),
        tuple(TEXTS),
        {"text": TEXTS},
        [{"text": text} for text in TEXTS],
        pd.DataFrame({"text": TEXTS}),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_texts_come_in_any_shape_and_are_the_same_run(texts: Any, model: str) -> None:
    fast = {"srb_seeds": "1", "clusters": False, "permutations": 19}
    result = bk.analyze_texts(texts, settings=fast, watcher=bk.Silent())
    same = bk.analyze_texts(TEXTS, settings=fast, watcher=bk.Silent())
    assert result.path == same.path
    assert ["female", "male"] == list(result.genders["gender"])


# --- what is shown meanwhile ------------------------------------------------------------------------


def test_silence_is_a_choice(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    bk.load(bk.probe(model, **SMALL, out="r", watcher=bk.Silent()).path)
    bk.score_continuations(model, ["Q: A?\nA:"], ["He"])
    bk.report("r", watcher=bk.Silent())
    assert ("", "") == capfd.readouterr()


# --- what it says, and how to name it ---------------------------------------------------------------


def test_a_citation_is_what_the_command_prints(model: str, console: Any) -> None:
    result = bk.probe(model, **SMALL, out="r", watcher=bk.Silent())
    said = bk.cite(result)
    assert said == bk.cite("r") == bk.cite(Path("r"))
    assert said.startswith(f"{result.analysis()['signature'].split(' ')[0]} ")
    first, second = re.findall(r"^@\w+\{(.*),$", said, re.M)[:2]
    assert ("biaskit", True) == (first, "occugender" in second or "chen" in second.lower())
    assert f"{said}\n" == console("cite", "r").out
    assert "biaskit" == next(iter(json.loads(console("cite", "r", "--format", "json").out)["bibtex"]))
    assert f"{bk.cite()}\n" == console("cite").out
    with pytest.raises(bk.BiaskitError, match="no folder elsewhere"):
        bk.cite("elsewhere")


# --- inside a running event loop --------------------------------------------------------------------


def test_it_works_inside_a_running_event_loop(model: str) -> None:
    async def cell_of_a_notebook() -> tuple[Any, Any, Any]:
        assert asyncio.get_running_loop().is_running()
        result = bk.probe(model, **SMALL, out="r")
        return result, bk.load("r"), bk.score_continuations(model, ["Q: A?\nA:"], ["He"])

    result, loaded, scores = asyncio.run(cell_of_a_notebook())
    pd.testing.assert_frame_equal(result.groups, loaded.groups)
    assert 1 == len(scores)


# --- prompts of one's own ---------------------------------------------------------------------------


def test_score_continuations_gives_a_row_per_prompt_and_target_word_in_the_order_given(model: str) -> None:
    prompts = ["The plumber said that", "The nurse said that", "The plumber said that"]
    frame = bk.score_continuations(model, prompts, {"f": ["She"], "m": ["He", "he"]})
    assert ["prompt_index", "prompt", "group", "target_word", "log_prob"] == list(frame.columns)
    assert [0, 0, 0, 1, 1, 1, 2, 2, 2] == list(frame["prompt_index"])
    assert [p for p in prompts for _ in range(3)] == list(frame["prompt"])
    assert ["f", "m", "m"] * 3 == list(frame["group"])
    assert [" She", " He", " he"] * 3 == list(frame["target_word"])
    plumber, nurse = [-2.5, -0.6, math.log(1e-6)], [-0.5, -2.0, math.log(1e-6)]
    assert [*plumber, *nurse, *plumber] == list(frame["log_prob"])


@pytest.mark.parametrize(
    ("prompts", "target_words"), [([], ["He"]), (["A"], []), (["A"], {}), (["A"], {"m": []})]
)
def test_score_continuations_of_nothing_is_an_error(
    model: str, prompts: list[str], target_words: Any
) -> None:
    with pytest.raises(bk.BiaskitError, match="at least one"):
        bk.score_continuations(model, prompts, target_words)


def test_score_continuations_names_the_prompt_that_has_no_answer(model: str) -> None:
    Path("f.jsonl").write_text('{"contains": "nurse", "fail": "broken"}\n{"log_probs": {}}\n')
    with pytest.raises(bk.BiaskitError, match=r"prompt 1.*broken"):
        bk.score_continuations("scripted:f.jsonl", ["The plumber", "The nurse"], ["He"])


def test_a_text_for_prompts_or_target_words_is_not_taken_letter_by_letter(model: str) -> None:
    for prompts, target_words in (("The nurse", ["He"]), (["The nurse"], "He"), (["The nurse"], {"m": "He"})):
        with pytest.raises(bk.BiaskitError):
            bk.score_continuations(model, prompts, target_words)


# --- examples ---------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("script", ON_A_MODEL, ids=lambda path: path.name)
def test_an_example_runs_on_the_scripted_model(script: Path, model: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script), model],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert 0 == done.returncode, done.stderr
    assert done.stdout
