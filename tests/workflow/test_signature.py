"""Every analysis key that changes a number changes the signature, and those that change none are named."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from biaskit.corpora.loaders import load_items
from biaskit.errors import RunError
from biaskit.measures.personas.calibrate import calibrate
from biaskit.measures.personas.command import personas
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.vectors import training
from biaskit.measures.probe.command import probe
from biaskit.measures.probe.study import ProbeStudy
from biaskit.study.keys import DISPLAY_KEYS
from biaskit.workflow.analyze import rebuild_tables

Made = tuple[dict[str, bytes], str]


def made(run: Path) -> Made:
    """Tables and signature of a run as they lie there."""
    tables = {path.name: path.read_bytes() for path in sorted((run / "tables").glob("*.csv"))}
    return tables, str(json.loads((run / "tables" / "analysis.json").read_text())["signature"])


def analysed(run: Path, settings: Mapping[str, Any]) -> Made:
    rebuild_tables(run, dict(settings))
    return made(run)


@pytest.fixture(scope="module")
def usual() -> Callable[[Path, Mapping[str, Any]], Made]:
    """`analysed`, once for each run and setting: most keys are changed against the same tables."""
    kept: dict[tuple[Path, str], Made] = {}

    def once(run: Path, settings: Mapping[str, Any]) -> Made:
        key = run, json.dumps(dict(settings))
        if key not in kept:
            kept[key] = analysed(run, settings)
        return kept[key]

    return once


def differ(before: Made, after: Made) -> None:
    assert before[0] != after[0]
    assert before[1] != after[1]


def tear_a_row(rows: Path) -> None:
    """The second row becomes unreadable, and whole rows follow it."""
    first, second, *others = rows.read_text("ascii").splitlines(keepends=True)
    rows.write_text("".join([first, second[: len(second) // 2] + "\n", *others]), "ascii")


# --- the prober ----------------------------------------------------------------------------------------

BOOTSTRAP = {"interval": "bootstrap"}
PROBE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "min_coverage": ({}, {"min_coverage": 1.0}),
    "interval": ({}, BOOTSTRAP),
    "contrast": ({}, {"contrast": ["diverse", "male"]}),
    "margin": ({}, {"margin.share": 0.5}),
    "conclusion": ({}, {"conclusion.rule": "strict"}),
    "seed": (BOOTSTRAP, {"seed": 2}),
}
"""Analysis key → what is set before and after, and what after alone."""
STATED_ALWAYS = {"on_prefix"}
"""`refuse` stops before a model is asked; an analysis is the same either way."""
OF_COMPARISONS = {"tie_zone"}
"""Changes no table of a run (tests/compare/test_changes.py)."""


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("probe")
    lines = [
        {"contains": item.name, "log_probs": {" She": -0.7 - 0.2 * i**0.5, " He": -1.0, " they": -3.0}}
        for i, item in enumerate(load_items("corpus:occugender/jobs.csv"))
    ]
    (home / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    return probe(
        f"m=scripted:{home / 'm.jsonl'}",
        jobs="2,6,10,14,21-24",  # a difference with a p of 0.042, which the strict rule leaves open
        templates="1-3",
        out=home / "run",
    ).path


def test_every_analysis_key_of_the_prober_is_looked_at() -> None:
    known = {*PROBE, *STATED_ALWAYS, *OF_COMPARISONS, "skip_bad_lines"}
    assert ProbeStudy.analysis_keys == known | DISPLAY_KEYS


@pytest.mark.parametrize("key", PROBE)
def test_a_choice_of_the_prober_changes_a_table_and_the_signature(
    probed: Path, usual: Callable[..., Made], key: str
) -> None:
    before, change = PROBE[key]
    differ(usual(probed, before), analysed(probed, {**before, **change}))


def test_the_share_that_leads_moves_verdicts_and_no_number(probed: Path, usual: Callable[..., Made]) -> None:
    before, after = usual(probed, {}), analysed(probed, {"conclusion.share": "of-all"})
    differ(before, after)
    moved = {name for name, content in before[0].items() if content != after[0][name]}
    assert moved == {"tests.csv"}
    rows = [list(csv.DictReader(made[0]["tests.csv"].decode().splitlines())) for made in (before, after)]
    named = [
        {row["quantity"] for row in table if row["verdict"] in ("higher", "lower") and row["gender"]}
        for table in rows
    ]
    assert named == [{"binary_share"}, {"share"}]
    for table in rows:
        for row in table:
            del row["verdict"]
    assert rows[0] == rows[1]


DISPLAYED = {
    "summary": "other",
    "papers": [],
    "reference": "parity",
    "report.pdf": True,
    "lock": "none",
}


def test_titles_and_the_page_change_neither_a_table_nor_the_signature(probed: Path, texts: Path) -> None:
    of_probe = {**DISPLAYED, "table.explicit": "other"}
    assert DISPLAY_KEYS == {key.partition(".")[0] for key in of_probe}
    assert analysed(probed, {}) == analysed(probed, of_probe)
    assert analysed(texts, {}) == analysed(texts, DISPLAYED)


def test_rows_that_were_left_out_are_in_the_signature(probed: Path, texts: Path, tmp_path: Path) -> None:
    for run, name in ((probed, "probe.jsonl"), (texts, "personas.jsonl")):
        torn = Path(shutil.copytree(run, tmp_path / name))
        tear_a_row(torn / name)
        with pytest.raises(RunError, match="not a row written by biaskit"):
            analysed(torn, {})
        differ(analysed(run, {}), analysed(torn, {"skip_bad_lines": True}))


# --- personas -----------------------------------------------------------------------------

# Two clusters: words near "strong" stand in the women's lists of two occupations and in the men's of three.
NEAR_STRONG = ("warm", "kind", "strong", "bold")
WORDS = {
    "nurse": {"female": "tender gentle proud warm kind", "male": "strong bold self-made loud"},
    "cook": {"female": "tender gentle proud warm kind", "male": "strong bold"},
    "doctor": {"female": "tender gentle proud", "male": "strong bold"},
}
NONBINARY = "open creative bright"
SUBJECT = {
    "female": "She and her" + " herself" * 8,
    "male": "He and his" + " himself" * 8,
    "nonbinary": "This nonbinary person, they",
}
NAMES = {"female": "Maria", "male": "the man", "nonbinary": "Sam"}
COMMON = (
    *("the", "of", "and", "to", "a", "in", "for", "is", "on", "that"),
    *("work", "day", "team", "report", "office", "project", "people", "place", "time"),
)
ASKED = {"f": "female", "m": "male", "n": "nonbinary"}


def story(job: str, gender: str, number: int) -> str:
    """A text of a gender; texts differ, so that which ones are compared can be told."""
    rng = random.Random(f"{job} {gender} {number}")
    said = [*WORDS[job].get(gender, NONBINARY).split() * 8, *COMMON, *rng.choices(COMMON, k=6)]
    rng.shuffle(said)
    return f"{SUBJECT[gender]} {' '.join(said)}. {f'Then {NAMES[gender]} came. ' * 6} Ms Jones."


def rows_of_texts() -> list[dict[str, str]]:
    """Requested and unrequested texts of three occupations."""
    found = []
    for job in WORDS:
        for code, gender in ASKED.items():
            for i in range(5):
                found.append({"text": story(job, gender, i), "gender": code, "job": job})
                if gender != "nonbinary":
                    found.append({"text": story(job, gender, i + 40), "gender": "", "job": job})
    return found


def write_vectors(path: Path, seed: int) -> Path:
    rng = random.Random(seed)
    marked = " ".join([NONBINARY, *(text for own in WORDS.values() for text in own.values())])
    words = sorted({*COMMON, *marked.split(), "selfmade", *("she", "her", "he", "his", "herself", "himself")})
    lines = []
    for word in words:
        near = (4.0, 0.0) if word in NEAR_STRONG else (0.0, 4.0)
        numbers = (*near, *(rng.gauss(0, 1) for _ in range(3)))
        lines.append(f"{word} {' '.join(f'{number:.4f}' for number in numbers)}\n")
    path.write_text("".join(lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("personas")
    with (home / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("text", "gender", "job"))
        writer.writeheader()
        writer.writerows(rows_of_texts())
    write_vectors(home / "vectors.txt", 1)
    write_vectors(home / "others.txt", 2)
    (home / "words.txt").write_text("tender\nstrong\n", "utf-8")
    (home / "categories.csv").write_text("word,category\nwarm,care\nbold,power\n", "utf-8")
    return home


def imported(home: Path, out: str, **settings: Any) -> Path:
    usual = {
        "vectors": f"pretrained:{home / 'vectors.txt'}",
        "permutations": 19,
        "clusters": False,
        "gender_codes": {"f": "female", "m": "male", "n": "nonbinary"},
    }
    return analyze_texts(
        home / "texts.csv",
        gender="gender",
        occupation="job",
        settings={**usual, **settings},
        out=home / out,
    ).path


@pytest.fixture(scope="module")
def texts(home: Path) -> Path:
    return imported(home, "run")


@pytest.fixture(scope="module")
def drawn(home: Path) -> Path:
    """Sampled texts, more of women than are compared."""
    genders = ("female", "female", "female", "male")
    named = [
        {"contains": said, "texts": [story("nurse", gender, i) for i in range(4)]}
        for said, gender in (("a woman", "female"), ("a man", "male"), ("non-binary", "nonbinary"))
    ]
    line = {"texts": [story("nurse", gender, i) for i, gender in enumerate(genders * 4)]}
    (home / "g.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*named, line]), "ascii")
    return personas(
        f"m=scripted:{home / 'g.jsonl'}",
        study="gasp-pilot",
        occupations="doctor",
        per_gender=4,
        settings={
            "vectors": f"pretrained:{home / 'vectors.txt'}",
            "permutations": 19,
            "clusters": False,
            "templates.select": "1",
        },
        out=home / "drawn",
    ).path


CORPUS = {"vectors": "corpus", "srb_seeds": "1-2"}
CLUSTERS = {"clusters": True}
PERSONAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "variant": ({}, {"variant": "released"}),
    "honorifics": ({}, {"honorifics": "titles"}),
    "tokenizer": ({}, {"tokenizer": "words"}),
    "balance": ({}, {"balance": "sample"}),
    "alpha": ({}, {"alpha": 0.9}),
    "c": ({}, {"c": 0.01}),
    "c_topic": ({}, {"c_topic": 0.9}),
    "c_english": ({}, {"c_english": 0.9}),
    "prior": ({}, {"prior": "released"}),
    "prior_scale": ({}, {"prior_scale": "rates"}),
    "prior_scope": ({}, {"prior_scope": "all"}),
    "english_prior": ({}, {"english_prior": "nltk"}),
    "permutations": ({}, {"permutations": 20}),
    "names": ({}, {"names": "keep"}),
    "pronouns": ({}, {"pronouns": "released"}),
    "vectors": ({}, {"vectors": "pretrained:others.txt"}),
    "srb_seeds": (CORPUS, {"srb_seeds": "3"}),
    "clusters": ({}, CLUSTERS),
    "cluster_vectors": (CLUSTERS, {"cluster_vectors": "pretrained:others.txt"}),
    "k": (CLUSTERS, {"k": 4}),
    "k_rule": (CLUSTERS, {"k_rule": "largest-gain"}),
    "keep_rule": (CLUSTERS, {"keep_rule": "released"}),
    "drop_words": (CLUSTERS, {"drop_words": "words.txt"}),
    "categories": (CLUSTERS, {"categories": "categories.csv"}),
    "hold_out": ({}, {"hold_out": 0.5}),
    "margin": ({}, {"margin.srb": 5.0}),
}
OF_TABLES = {
    "marked_words": "names tokenizer alpha c prior prior_scale prior_scope c_topic c_english",
    "word_lists": "permutations",
    "genders": "honorifics hold_out",
    "srb": "pronouns",
}
TABLE_OF = {key: f"{table}.csv" for table, keys in OF_TABLES.items() for key in keys.split()}
"""The table that a key changes at least."""
CHANGES = [*((key, change) for key, (_, change) in PERSONAS.items()), ("names", {"names": "released"})]
AT_IMPORT = {"gender_codes": {"gender_codes": {"f": "male", "m": "female", "n": "none"}}, "seed": {"seed": 2}}
"""Keys that act when texts are read in; the seed is no analysis key of a sampled run, since samples have it.
`unmarked` needs texts with groups: tests/workflow/test_groups_workflow.py; `copies` needs some:
tests/personas/texts/test_texts_as_they_are.py; `language` another:
tests/personas/texts/test_languages.py; `verdict` needs more claims."""


def test_every_analysis_key_of_personas_is_looked_at() -> None:
    looked_at = {
        *PERSONAS,
        *AT_IMPORT,
        "c_rule",
        "skip_bad_lines",
        "unmarked",
        "conclusion",
        "copies",
        "language",
    } | DISPLAY_KEYS
    assert PersonasStudy.analysis_keys == looked_at - {"seed", "table"}


@pytest.mark.parametrize(("key", "change"), CHANGES)
def test_a_choice_of_personas_changes_a_table_and_the_signature(
    request: pytest.FixtureRequest,
    home: Path,
    usual: Callable[..., Made],
    key: str,
    change: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(home)
    for name in ("FEWEST_EPOCHS", "TRAINING_TOKENS"):
        monkeypatch.setattr(training, name, 1)
    brown = SimpleNamespace(words=lambda: ["warm"] * 9 + ["strong"] * 90)
    monkeypatch.setattr("nltk.corpus.brown", brown)
    run: Path = request.getfixturevalue("drawn" if key == "balance" else "texts")
    set_before, _ = PERSONAS[key]
    before, after = usual(run, set_before), analysed(run, {**set_before, **change})
    differ(before, after)
    if key in TABLE_OF:
        assert before[0][TABLE_OF[key]] != after[0][TABLE_OF[key]]
        stated = f"| {key}={change[key]} |"
        assert (stated in before[1], stated in after[1]) == (False, True)
        assert json.loads((run / "tables" / "analysis.json").read_text())["choices"][key] == change[key]


@pytest.mark.parametrize("key", AT_IMPORT)
def test_a_choice_at_import_changes_a_table_and_the_signature(
    texts: Path, home: Path, usual: Callable[..., Made], key: str
) -> None:
    differ(usual(texts, {}), made(imported(home, key, **AT_IMPORT[key])))


def test_a_list_of_other_words_under_the_same_name_is_another_signature(texts: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("tender\n", "utf-8")
    before = analysed(texts, {**CLUSTERS, "drop_words": str(words)})
    words.write_text("strong\n", "utf-8")
    differ(before, analysed(texts, {**CLUSTERS, "drop_words": str(words)}))
    assert str(tmp_path) not in before[1]


def test_the_rule_of_c_changes_a_calibration_and_its_signature(texts: Path) -> None:
    found = [calibrate(texts, settings={"c_rule": rule}) for rule in ("per-alpha", "interpolated")]
    assert found[0].signature != found[1].signature
    assert found[0].found != found[1].found
