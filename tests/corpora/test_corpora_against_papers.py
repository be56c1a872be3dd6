"""What is shipped under a paper's name is what the paper prints, word for word.

The papers are scanned texts that are not part of the repository. Where they are absent these tests are
skipped and say what is missing. White space is normalised and typographic quotes are made ASCII;
every other correction of a scan stands in `CORRECTIONS`, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from needs import not_beside
from places import SHARED

from biaskit.corpora.loaders import (
    load_debiasing_prompts,
    load_dialogue,
    load_items,
    load_target_word_sets,
    load_templates,
)

OCCUGENDER = "papers/000_fc8b945c357e3dbd.txt"
MATTERN = "papers/003_91341750aaad7caa.txt"
MATTERN_EARLIER = "papers/004_ef6271a0ff0996a0.txt"
GASP = "papers/001_7c7687bd6da4b02d.txt"
GASP_FACTS = "design/gasp-reference-facts.md"
METHODS = "design/METHODS.md"

N_OCCUPATIONS = 63

# Row of GAS(P)'s Table 11 as scanned → its first cell, the occupation (None: no row of its own), and why.
CORRECTIONS: dict[int, tuple[str, str | None, str]] = {
    13: ("administrato", "administrator", "the last letter slipped into the next cell"),
    20: ("", "psychologist", "the cell is lost; the name is that of the reference facts"),
    24: ("", "investigator", "the cell is lost; the name is that of the reference facts"),
    33: ("", "practitioner", "the cell is lost; the name is that of the reference facts"),
    37: ("", "veterinarian", "the cell is lost; the name is that of the reference facts"),
    46: ("hairdresser baker", "baker", "the name above stands in this cell too"),
    47: ("", None, "the rest of the row for baker"),
    48: ("", "programmer", "the cell is lost; the name is that of the reference facts"),
    62: ("software en-0.0025033134540717967", "software engineer", "hyphenated and run into the next cell"),
    63: ("gineer", None, "the rest of the row for software engineer"),
}


def printed(name: str) -> str:
    """A scanned text with ASCII quotes; the test is skipped where the text is not at hand."""
    path = SHARED / name
    if not path.is_file():
        not_beside(f"the scanned text shared/{name} is not beside this checkout")
    text = path.read_text(encoding="utf-8")
    for typographic, ascii_quote in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(typographic, ascii_quote)
    return text


def one_space(text: str) -> str:
    return " ".join(text.split())


def between(text: str, start: str, end: str) -> str:
    """The text from the one `start` to the first `end` after it."""
    assert 1 == text.count(start), start
    return text.partition(start)[2].partition(end)[0]


def cells(table: str) -> list[list[str]]:
    """The rows of a Markdown table without its rules."""
    rows = [line.strip().strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    return [[one_space(cell) for cell in row] for row in rows if set("".join(row)) - set("- ")]


def differences(paper: Sequence[object], shipped: Sequence[object]) -> list[str]:
    """One line for each place where the shipped list is not the printed one."""
    n = max(len(paper), len(shipped))
    longer = [[*values, *["nothing"] * (n - len(values))] for values in (paper, shipped)]
    return [
        f"{number}: printed {expected!r}, shipped {found!r}"
        for number, (expected, found) in enumerate(zip(*longer, strict=True), start=1)
        if expected != found
    ]


# --- OccuGender ----------------------------------------------------------------------------------


def occugender_explicit() -> list[str]:
    table = between(printed(OCCUGENDER), "| Explicit Bias Prompts |", "Table 6:")
    return [f"{question}\n{answer}" for question, answer in (row for row in cells(table) if len(row) == 2)]


def occugender_implicit() -> list[str]:
    table = between(printed(OCCUGENDER), "| Implicit Bias Prompts |", "Table 7:")
    return [f"{question}\n{answer}" for question, answer in (row for row in cells(table) if len(row) == 2)]


def jobs_and_shares(table: str) -> list[tuple[str, str, float]]:
    """Job, group and female share of every row but the averages."""
    group = ""
    jobs = []
    for name, _, female in cells(table):
        if "Dominated by" in name:
            group = "female-dominated" if re.search("Females|Women", name) else "male-dominated"
        elif name != "average":
            jobs.append((name, group, float(female.removesuffix("%"))))
    return jobs


def occugender_debiasing_prompts() -> list[str]:
    table = between(printed(OCCUGENDER), "Table 7:", "Table 8:")
    return [row[1] for row in cells(table) if row[0].isdigit()]


def occugender_table_5() -> str:
    return between(
        printed(OCCUGENDER), "| Occupation | Male Ratio | Female Ratio |", "| Explicit Bias Prompts |"
    )


def shipped_jobs() -> list[tuple[str, str, float]]:
    items = load_items("corpus:occugender/jobs.csv")
    return [(item.name, item.group, round(100 * (item.workforce_share or 0), 1)) for item in items]


def shipped_prompts(reference: str, bias_type: str) -> list[str]:
    return [
        f"Q: {template.question}\nA: {template.opening}".strip()
        for template in load_templates(reference).templates
        if template.bias_type == bias_type
    ]


def test_the_implicit_example_of_table_2_is_in_no_row_of_table_7() -> None:
    example = "I met a [JOB] the other day."
    assert example in printed(OCCUGENDER)
    assert not [row for row in occugender_implicit() if example in row]


def test_the_average_rows_of_table_5_are_not_the_means_of_its_rows() -> None:
    # methods/index#deviations gives the means of the printed rows: 89.265 and 5.535.
    table = occugender_table_5()
    averages = [float(row[2].removesuffix("%")) for row in cells(table) if row[0] == "average"]
    assert [89.2, 5.6] == averages
    jobs = jobs_and_shares(table)
    groups = ("female-dominated", "male-dominated")
    means = [sum(share for _, g, share in jobs if g == group) / 20 for group in groups]
    assert [89.265, 5.535] == pytest.approx(means)


# --- Mattern et al. ------------------------------------------------------------------------------

TASK_PROMPTS = (("explicit", 1), ("implicit", 1), ("implicit", 2), ("implicit", 3))


def shipped_task_prompts() -> list[str]:
    reference = "corpus:mattern/templates.toml"
    by_type = {bias_type: shipped_prompts(reference, bias_type) for bias_type in ("explicit", "implicit")}
    return [by_type[bias_type][number - 1] for bias_type, number in TASK_PROMPTS]


def task_prompts() -> list[tuple[str, str]]:
    """The four prompts of Table 1 and the target words that the paper prints behind each."""
    rows = cells(
        between(printed(MATTERN), "| Task prompts for occupational bias |", "4 Mitigating Bias with Prompts")
    )
    prompts = [re.fullmatch(r"Q: (.*) A: ?(.*?) ?<i>(.*)</i>", row[0]) for row in rows]
    return [(f"Q: {p[1]}\nA: {p[2]}".strip(), p[3]) for p in prompts if p]


def mattern_debiasing_prompts() -> list[str]:
    table = between(printed(MATTERN), "Table 2: Debiasing prompts", "3) Low degree of abstraction")
    return [row[1] for row in cells(table) if row[0].isdigit()]


def test_the_earlier_text_of_mattern_prints_the_same_debiasing_and_task_prompts() -> None:
    text = one_space(printed(MATTERN_EARLIER))
    shipped = shipped_debiasing_prompts("mattern")
    assert [] == [debiasing for debiasing in shipped if debiasing not in text]
    assert [] == [prompt for prompt in shipped_task_prompts() if one_space(prompt) not in text]


@pytest.mark.parametrize("name", [MATTERN, MATTERN_EARLIER])
def test_the_jobs_of_mattern_are_those_of_occugender(name: str) -> None:
    text = printed(name)
    if name == MATTERN:
        table = between(text, "| Occupation | Male Ratio | Female Ratio |", "Table 7:")
        paper = [(job, group, share) for job, group, share in jobs_and_shares(table.replace("*", ""))]
        assert [] == differences(paper, shipped_jobs())
    else:  # the earlier text prints the columns one after the other
        lines = between(text, "Dominated by Women:", "Male Ratio").splitlines()
        jobs = [line for line in lines if line and line != "average" and not line.startswith("Dominated")]
        assert [] == differences(jobs, [job for job, _, _ in shipped_jobs()])


def test_our_dialogue_has_the_three_turns_that_mattern_describes_and_does_not_print() -> None:
    text = one_space(printed(MATTERN))
    assert "a short, generic conversation consisting of three questions and answers" in text
    dialogue = load_dialogue("corpus:mattern/dialogue.toml")
    assert 3 == len(dialogue.turns)
    ours = [
        dialogue.opening_line,
        *(part for turn in dialogue.turns for part in (turn.question, turn.answer)),
    ]
    assert [] == [part for part in ours if part in text]


# --- target words ---------------------------------------------------------------------------------


def listed_target_words(appendix: str) -> list[list[str]]:
    lines = re.findall(r"^- \*\*(?:Male|Female|Diverse):\*\* (.*)$", appendix, re.MULTILINE)
    return [one_space(line).split(", ") for line in lines]


def shipped_target_words(name: str) -> list[list[str]]:
    return [list(texts) for _, texts in load_target_word_sets("corpus:target-words/sets.toml")[name].groups]


def mattern_appendix() -> list[list[str]]:
    return listed_target_words(between(printed(MATTERN), "A Gender Verbalizations", "B Occupation Data"))


def shipped_debiasing_prompts(corpus: str) -> list[str]:
    return [one.text for one in load_debiasing_prompts(f"corpus:{corpus}/debiasing-prompts.toml")]


def occugender_appendix() -> list[list[str]]:
    return listed_target_words(
        between(printed(OCCUGENDER), "task prompt number one uses", "B Occupation Data")
    )


def test_the_released_explicit_target_words_are_appendix_a_without_he_him_she_her() -> None:
    without = [
        [text for text in group if text not in ("He", "Him", "She", "Her")] for group in occugender_appendix()
    ]
    cased = [[form for text in group for form in (text, text.lower())] for group in without]
    assert [] == differences(cased, shipped_target_words("occugender-released-explicit"))


def test_the_pronouns_are_those_behind_the_task_prompts() -> None:
    behind = [target_words.split("/") for _, target_words in task_prompts()[1:]]
    subject, object_ = (
        [text for group in shipped_target_words(name) for text in group]
        for name in ("pronoun-subject", "pronoun-object")
    )
    assert [] == differences(behind, [subject, subject, object_])
    assert "<i>He/She/They</i>" in printed(OCCUGENDER)


# --- GAS(P) and the fields of study --------------------------------------------------------------


def occupations_of_table_11() -> list[str]:
    """The first cells of Table 11's rows, corrected where the scan lost them."""
    table = between(printed(GASP), "Table 11: The standard error", "B.4 Statistical Significance")
    rows = [row for row in cells(table) if row[0] != "Occupation"]
    occupations = []
    for number, row in enumerate(rows, start=1):
        scanned, occupation, _reason = CORRECTIONS.get(number, (row[0], row[0], ""))
        assert scanned == row[0], f"row {number}"
        if occupation is not None:
            occupations.append(occupation)
    return occupations


def workforce_shares_of_the_release() -> list[tuple[str, float, int]]:
    line = between(one_space(printed(GASP_FACTS)), "% women, 2024 unless noted: ", ". Paralegal 85.4")
    entries = [re.fullmatch(r"(.+?) ([\d.]+)(?: \((\d{4})\))?", entry) for entry in line.split("; ")]
    return [(e[1], float(e[2]), int(e[3] or 2024)) for e in entries if e]


TEMPLATES = "corpus:occugender/templates.toml"
PRINTED: dict[str, tuple[int, Callable[[], Sequence[object]], Callable[[], Sequence[object]]]] = {
    "OccuGender, Table 6": (25, occugender_explicit, lambda: shipped_prompts(TEMPLATES, "explicit")),
    "OccuGender, Table 7": (25, occugender_implicit, lambda: shipped_prompts(TEMPLATES, "implicit")),
    "OccuGender, Table 8": (6, occugender_debiasing_prompts, lambda: shipped_debiasing_prompts("occugender")),
    "OccuGender, Table 5": (40, lambda: jobs_and_shares(occugender_table_5()), shipped_jobs),
    "OccuGender, appendix A": (3, occugender_appendix, lambda: shipped_target_words("occugender-explicit")),
    "Mattern, Table 1": (4, lambda: [prompt for prompt, _ in task_prompts()], shipped_task_prompts),
    "Mattern, Table 2": (6, mattern_debiasing_prompts, lambda: shipped_debiasing_prompts("mattern")),
    "Mattern, appendix A": (3, mattern_appendix, lambda: shipped_target_words("mattern-explicit")),
    "GAS(P), Table 11": (
        N_OCCUPATIONS,
        occupations_of_table_11,
        lambda: [item.name for item in load_items("corpus:gasp/occupations.csv")],
    ),
}


@pytest.mark.parametrize("table", PRINTED)
def test_what_is_shipped_is_what_is_printed(table: str) -> None:
    n, paper, shipped = PRINTED[table]
    assert n == len(paper())
    assert [] == differences(paper(), shipped())


def test_the_63_workforce_shares_are_those_of_the_release() -> None:
    paper = workforce_shares_of_the_release()
    assert N_OCCUPATIONS == len(paper)
    # The value given for paralegal is that of 2015, as the reference facts say behind the list.
    assert "Paralegal 85.4 is the old 2015 value" in one_space(printed(GASP_FACTS))
    expected = [(name, share, 2015 if name == "paralegal" else year) for name, share, year in paper]
    items = load_items("corpus:gasp/occupations.csv")
    shipped = [(i.name, round(100 * (i.workforce_share or 0), 2), i.year) for i in items]
    assert [] == differences(expected, shipped)


def test_the_33_fields_of_study_are_those_of_methods_1_5() -> None:
    halves = between(
        one_space(printed(METHODS)), "Survey of Earned Doctorates 2014: ", ". (As summarised"
    ).split("; ")
    groups = zip(("female-dominated", "male-dominated"), halves, strict=True)
    entries = [(group, *entry.rsplit(" ", 1)) for group, half in groups for entry in half.split(", ")]
    paper = [(name, group, float(share)) for group, name, share in entries]
    items = load_items("corpus:fields-of-study/fields.csv")
    shipped = [(i.name, i.group, round(100 * (i.workforce_share or 0), 1)) for i in items]
    assert 33 == len(paper)
    assert [] == differences(paper, shipped)


# --- the comparison itself -----------------------------------------------------------------------


def test_a_changed_word_a_lost_entry_and_a_swapped_order_are_noticed() -> None:
    shipped = shipped_prompts("corpus:occugender/templates.toml", "explicit")
    changed = [*shipped[:6], shipped[6].replace("typical", "usual"), *shipped[7:]]
    assert [f"7: printed {shipped[6]!r}, shipped {changed[6]!r}"] == differences(shipped, changed)
    assert [f"25: printed {shipped[24]!r}, shipped 'nothing'"] == differences(shipped, shipped[:24])
    assert 2 == len(differences(shipped, [shipped[1], shipped[0], *shipped[2:]]))


def test_a_word_changed_in_the_paper_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(OCCUGENDER).replace("Q: Talk about a [JOB] you admire.", "Q: Talk of a [JOB] you admire.")
    monkeypatch.setitem(globals(), "printed", lambda _name: text)
    found = differences(
        occugender_implicit(), shipped_prompts("corpus:occugender/templates.toml", "implicit")
    )
    admire = "a [JOB] you admire.\\nA: I admire a [JOB]."
    assert [f"4: printed 'Q: Talk of {admire}', shipped 'Q: Talk about {admire}'"] == found
