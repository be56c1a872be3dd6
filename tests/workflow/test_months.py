"""A user's own texts of two months: compared over texts in the same departments, gated, planned."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import biaskit as bk
from biaskit.compare.pairs import Side
from biaskit.measures.personas.compare import pair_rows_of_texts, texts_of
from biaskit.report.render.headline import headline
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.stats.power import texts_to_show
from biaskit.stats.proportions import noise_of, proportion, wilson

LETTERS = {"Nursing": (45, 0.7), "Engineering": (30, 0.3), "Sales": (15, 0.5), "Legal": (8, 0.8)}
REFUSALS = ("As an AI language model, I cannot write this letter.", "I'm sorry, but I can't help with that.")
QUIET: Any = {"watcher": bk.Silent()}
ROUGH: Any = {"settings": {"permutations": 19}, **QUIET}
MARGINS = {"represented_share": 0.05}


def letters(seed: int, change: float = 0.0) -> list[dict[str, str]]:
    rng = random.Random(seed)
    rows = []
    for department, (n, women) in LETTERS.items():
        for i in range(n):
            who = "The person" if i % 4 == 0 else "She" if rng.random() < women + change else "He"
            words = " ".join(f"word{rng.randrange(300)}" for _ in range(30))
            rows.append({"text": f"{who} is good and {words}.", "Dept": department})
    return rows


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of three months: the second is as the first, the third writes about women far less often."""
    folder = tmp_path_factory.mktemp("months")
    runs = {}
    for seed, (month, change) in enumerate({"may": 0.0, "june": 0.0, "july": -0.4}.items()):
        rows = letters(seed, change)
        if month == "june":
            rows += [{"text": text, "Dept": "Sales"} for text in REFUSALS]
            rows.append({"text": "I cannot describe how good she is. She is the best.", "Dept": "Sales"})
        runs[month] = folder / month
        bk.analyze_texts([{**row, "month": month} for row in rows], occupation="Dept", model="month",
                         out=runs[month], **ROUGH)  # fmt: skip
    return runs


def representation(month: str, **departments: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Rows `all` of departments with so many letters on women, on men, and without a gender."""
    rows = []
    for name, (women, men, silent) in departments.items():
        share = proportion(women, women + men)
        low, high = share.ci95 or (None, None)
        counts = {"n_female": women, "n_male": men, "n_nonbinary": 0, "n_not_inferred": silent}
        counts |= {"n_texts": women + men + silent}
        numbers = {"female_share": share.estimate, "ci_low": low, "ci_high": high}
        rows.append({"model": month, "occupation": name, "template_id": "all", "n_refused": 0, "n_empty": 0}
                    | counts | numbers)  # fmt: skip
    return rows


def compared(
    may: list[dict[str, Any]], june: list[dict[str, Any]], prompt_format: str = ""
) -> list[Contrast]:
    of = {}
    for month, rows in (("may", may), ("june", june)):
        of |= texts_of({"representation": rows}, {month: prompt_format}, run=month, seed=1)
    pair = Side("june", ("june",)), Side("may", ("may",))
    return adjust(pair_rows_of_texts(pair, of, MARGINS)[0])


# --- the number --------------------------------------------------------------------------------------


def test_a_difference_is_that_of_each_occupation_weighted_as_in_the_later_file() -> None:
    may = representation("may", a=(60, 40, 10), b=(10, 30, 0), gone=(5, 5, 0))
    june = representation("june", a=(20, 20, 30), b=(30, 30, 0), new=(9, 1, 0))
    (row,) = compared(may, june)
    assert ("standardised", "text", 100, 140) == (row.kind, row.unit, row.n_a, row.n_b)
    assert row.estimate == pytest.approx(0.4 * (0.5 - 0.6) + 0.6 * (0.5 - 0.25))
    variance = below = 0.0
    for weight, women, n in ((0.4, 20, 40), (0.4, 60, 100), (0.6, 30, 60), (0.6, 10, 40)):
        p = (women + 1) / (n + 2)
        variance += weight**2 * p * (1 - p) / n
        below += (weight**2 * p * (1 - p) / n) ** 2 / (n - 1)
    assert row.dof == pytest.approx(variance**2 / below)
    assert row.ci_high - row.estimate == pytest.approx(stats.t.ppf(0.975, row.dof) * variance**0.5)
    assert row.ci90_high - row.estimate == pytest.approx(stats.t.ppf(0.95, row.dof) * variance**0.5)
    # Texts without a gender do not widen it, and stand beside it.
    least, most = (0.4 * (part / 70) + 0.6 * 0.5 for part in (20, 50))
    ends = least - (0.4 * 70 / 110 + 0.6 * 0.25), most - (0.4 * 60 / 110 + 0.6 * 0.25)
    assert "between {:+.2f} and {:+.2f}".format(*ends) in str(row.reason)
    assert "of 2 occupations alone, weighted as in june; 2 occupations left out" in str(row.reason)
    assert row.bound_low is None


def test_another_mix_of_occupations_alone_is_no_difference() -> None:
    may = representation("may", a=(80, 20, 0), b=(10, 30, 0))
    june = representation("june", a=(16, 4, 0), b=(50, 150, 0))
    (row,) = compared(may, june)
    assert row.estimate == pytest.approx(0.0)
    assert row.verdict == "no-clear-difference"


def test_one_occupation_is_enough_and_equal_files_of_one_gender_are_not_certain() -> None:
    (row,) = compared(representation("may", a=(0, 40, 0)), representation("june", a=(0, 40, 0)))
    assert (row.estimate, row.p_value) == (0.0, 1.0)
    assert 0.05 < row.ci_high < 0.15
    nothing = compared(representation("may", a=(5, 5, 0)), representation("june", b=(5, 5, 0)))
    assert {None} == {row.estimate for row in nothing}
    assert "no occupation has both numbers" in str(nothing[0].reason)


def test_sampled_texts_keep_the_occupation_as_their_unit() -> None:
    rows = [representation(month, **{f"o{i}": (3 + i, 9, 0) for i in range(5)}) for month in ("may", "june")]
    assert {"welch", "paired"} == {row.kind for row in compared(*rows, prompt_format="chat")}


def test_noise_is_that_of_the_texts_behind_an_interval() -> None:
    for women, n in ((0, 7), (7, 7), (5, 10), (3, 19), (16, 19)):
        low, high = wilson(women, n) or (0.0, 1.0)
        q = (women + 1) / (n + 2)
        found = noise_of(*(np.array([x]) for x in (women / n, low, high)))
        assert np.concatenate(found) == pytest.approx([q * (1 - q) / n, n - 1])


def test_intervals_hold_the_truth_with_copies_and_few_letters() -> None:
    """Twelve departments of eight letters, each letter once or three times, in 400 months."""
    rng = np.random.default_rng(5)
    women, held = np.linspace(0.2, 0.8, 12), []
    for _ in range(400):
        sides = []
        for change in (0.1, 0.0):
            times = rng.choice([1, 3], (12, 8), p=[0.8, 0.2])
            n, she = (
                times.sum(axis=1),
                (times * (rng.random((12, 8)) < (women + change)[:, None])).sum(axis=1),
            )
            worth = n**2 / (times**2).sum(axis=1)
            ends = np.array([wilson(p * m, m) for p, m in zip(she / n, worth, strict=True)]).T
            sides.append((n, she / n, noise_of(she / n, *ends)[0]))
        (n, later, a), (_, earlier, b) = sides
        w = n / n.sum()
        held.append(abs(w @ (later - earlier) - 0.1) < 1.96 * (w**2 @ (a + b)) ** 0.5)
    assert 0.92 < np.mean(held) < 0.985


# --- files, sentences, gates -------------------------------------------------------------------------


def test_a_true_change_is_found_and_the_sentence_speaks_of_these_departments(months: dict[str, Path]) -> None:
    made = bk.compare(months["may"], months["july"], out=months["july"].with_name("found"))
    (row,) = made.tests.to_dict("records")
    assert ("standardised", "lower") == (row["kind"], row["verdict"])
    (said,) = (finding.text for finding in made.findings if finding.question == "models")
    assert said.startswith("In texts of these occupations, the share of women is ")
    assert "less for july than for may [" in said


def test_an_unclear_change_has_its_number_and_texts_the_name_of_their_month(
    months: dict[str, Path], tmp_path: Path
) -> None:
    result = bk.compare(months["may"], months["june"], out=tmp_path / "unclear")
    first, *others = result.findings
    (row,) = result.tests.to_dict("records")
    low, high = round(100 * row["ci_low"]), round(100 * row["ci_high"])
    assert "no-clear-difference" == row["verdict"]
    assert first.text.startswith("In texts of these occupations, the share of women is not clearly different")
    assert first.text.replace("\N{MINUS SIGN}", "-").endswith(f"[{low} to {high}].")
    texts = [finding.text for finding in others if "your texts" in finding.text]
    assert texts
    assert all("(may)" in text or "(june)" in text for text in texts)


def test_a_table_of_own_texts_has_no_column_without_a_number(months: dict[str, Path], tmp_path: Path) -> None:
    result = bk.compare(months["may"], months["july"], out=tmp_path / "columns")
    tables = result.document().tables
    assert [["", "% by occupation"]] * 2 == [[*table.columns()] for table in tables]
    assert not [note for note in result.warnings if "label differs" in note or "no gaps" in note]


def test_texts_without_a_column_of_occupations_are_these_texts(tmp_path: Path) -> None:
    for month, change in (("may", 0.0), ("july", -0.4)):
        rows = [{"text": row["text"], "month": month} for row in letters(1, change)]
        alone = bk.analyze_texts(rows, model="month", out=tmp_path / month, **ROUGH)
    [row] = alone.representation.query("template_id == 'all'").to_dict("records")
    low, share, high = (f"{100 * row[name]:.0f}" for name in ("ci_low", "female_share", "ci_high"))
    page = bk.report(alone, **QUIET)
    assert f" july {share} % [{low}–{high}]" in " ".join(headline(page.content).split())
    pairs = 100 * alone.text_transfer.query("occupation == 'all'").auc.dropna().iloc[0]
    said = " ".join(finding.text for finding in page.findings)
    assert f" in {pairs:.0f} of 100 pairs; no conclusion (needs two occupations)." in said
    made = bk.compare(tmp_path / "may", tmp_path / "july", out=tmp_path / "c")
    said = [finding.text for finding in made.findings if finding.question == "models"]
    assert said[0].startswith("In these texts, the share of women is ")


def test_a_gate_says_how_many_texts_its_margin_takes(months: dict[str, Path]) -> None:
    def gate(**keys: Any) -> Any:
        required = {"contrast": "models", "quantity": "represented_share", "min_n": 50, **keys}
        return bk.check(months["may"], months["june"], thresholds={"require": [required]})

    assert gate(margin=0.35)
    failed = gate(margin=0.05)
    assert not failed
    (row,) = (failing.row for failing in failed.outcomes[0].failing)
    n = texts_to_show(row, 0.05)
    assert f"no clear difference; about {n:,} texts a side with a gender would show it" in failed.text
    assert f"±0.05 takes about {n:,} texts a side that name a gender (80 % power)" in row.reason
    assert "fewer than 500" in gate(margin=0.35, min_n=500).text


def test_the_planned_number_of_texts_shows_equivalence_in_four_of_five_comparisons() -> None:
    (row,) = compared(representation("may", a=(60, 60, 0)), representation("june", a=(90, 90, 0)))
    n = texts_to_show(row, 0.1)
    assert n == pytest.approx(430, abs=15)  # 2 · 0.25 · (1.645 + 1.282)²/0.1²
    rng = np.random.default_rng(3)
    p = rng.binomial(n, 0.5, (4_000, 2)) / n
    q = (n * p + 1) / (n + 2)
    reach = 1.644854 * np.sqrt((q * (1 - q) / n).sum(axis=1))
    assert (np.abs(p[:, 0] - p[:, 1]) + reach < 0.1).mean() == pytest.approx(0.8, abs=0.03)


# --- one count, and no vectors without need ----------------------------------------------------------


def test_refused_letters_are_counted_once_and_nobody_with_a_gender_is_lost(months: dict[str, Path]) -> None:
    run = bk.load(months["june"], watcher=bk.Silent())
    rows = run.representation.query("template_id == 'all'").set_index("occupation")
    assert {"Sales": len(REFUSALS)} == rows["n_refused"][rows["n_refused"] > 0].to_dict()
    assert rows.loc["Sales", "n_texts"] == LETTERS["Sales"][0] + 3
    assert f"{len(REFUSALS)} texts were refused or filtered and 0 are empty" in " ".join(run.warnings)
    assert "seem to decline" not in " ".join(run.warnings)
    praised = run.genders.query("occupation == 'Sales'").iloc[-1]
    assert (praised["gender"], praised["n_female"]) == ("female", 2)


def test_refused_letters_with_a_requested_gender_are_left_out_of_lists(tmp_path: Path) -> None:
    rows = [{**row, "asked": "FM"[i % 2]} for i, row in enumerate(letters(4))]
    rows += [{"text": text, "Dept": "Sales", "asked": "F"} for text in REFUSALS]
    run = bk.analyze_texts(rows, gender="asked", out=tmp_path / "r", **ROUGH)
    assert f"{len(REFUSALS)} refused or filtered and 0 empty of 51 about women" in " ".join(run.warnings)
    assert run.word_lists.query("gender == 'female'")["n_target"].tolist()[0] == 49


def test_vectors_are_trained_only_for_scores_or_where_clusters_are_asked_for(tmp_path: Path) -> None:
    rows = [{**row, "asked": ["F", "M", ""][i % 3]} for i, row in enumerate(letters(6))]

    def vectors(name: str, gender: str | None, **settings: Any) -> object:
        every = {**ROUGH["settings"], "srb_seeds": "1", **settings}
        run = bk.analyze_texts(rows, gender=gender, out=tmp_path / name, settings=every, watcher=bk.Silent())
        return run.analysis().get("vectors")

    assert vectors("plain", None) is None
    assert vectors("asked", None, clusters=True) is not None
    assert vectors("genders", "asked") is not None
    again = bk.load(tmp_path / "plain", settings={"clusters": True, "srb_seeds": "1"}, watcher=bk.Silent())
    assert again.analysis().get("vectors") is not None
