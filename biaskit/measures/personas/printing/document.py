"""Make the document of a run of texts: who is represented, which words mark whom, SRB, the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

from biaskit.common.wording import share_with_interval
from biaskit.measures.personas.printing.groups import group_tables
from biaskit.report.render.cells import beyond, in_list, number, p_value, percent, signed, span, table
from biaskit.report.render.document import Document, TitledTable
from biaskit.runs.claims import Claim
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row, Tables, contrast_of, defined, grouped, where
from biaskit.tables.reasons import HOLD_OUT, NOT_ENGLISH, is_reason, parts_of_reason

TOP_WORDS = 10
MOST_OCCUPATIONS = 12
"""Lists are printed one by one for so many occupations; for more, the words that most of them share."""
ORIGINS = {"associated": "gender not in the prompt", "specified": "gender in the prompt"}
_IN_PROMPT = {"associated": "not in prompt", "specified": "in prompt"}
WHO = {"female": "women", "male": "men", "nonbinary": "non-binary"}


def personas_document(tables: Tables, analysis: Row, warnings: Sequence[str], claim: Claim) -> Document:
    """Make every headline table that the run has; `claim`: whether titles may name GAS(P)'s tables."""
    shown = [
        *_validation(tables.get("association_validation", ()), claim),
        *_representation(tables.get("representation", ()), claim),
        *_accuracy(tables.get("label_validation", ())),
        *_words(tables.get("word_lists", ()), tables.get("marked_words", ())),
        *group_tables(tables.get("group_lists", ()), tables.get("group_words", ())),
        *_srb(tables.get("srb", ())),
        *_transfer(tables.get("text_transfer", ())),
        *_instruction_words(tables.get("instruction_words", ())),
        *_clusters(tables.get("clusters", ()), claim),
        *_tests(tables.get("tests", ())),
    ]
    return Document(tuple(shown), tuple(warnings), str(analysis["signature"]))


def _validation(rows: Sequence[Row], claim: Claim) -> Iterator[TitledTable]:
    def part(name: str) -> Callable[[Row], str]:
        return lambda row: f"{100 * row[name] / row['n_texts']:.1f}"

    yield from table(
        f"Inferred and requested gender{claim.place('GAS(P), Table 1')}: % of the texts",
        rows,
        {
            "Model": "model",
            "requested": lambda row: WHO[row["specified_gender"]],
            "texts": "n_texts",
            "correct": part("n_correct"),
            "incorrect": part("n_incorrect"),
            "not captured": part("n_not_captured"),
        },
        n_text=2,
    )


def _representation(rows: Sequence[Row], claim: Claim) -> Iterator[TitledTable]:
    """Make a line per occupation (and instruction), the mean of its prompts."""
    means = where(rows, template_id="all")
    scoped = bool(means) and "instruction_id" in means[0]
    if scoped and len(means) > MOST_OCCUPATIONS * 4:
        yield from _by_instruction(means)
        return
    scope = {"debiasing": "instruction_id"} if scoped else {}
    by_labels: Mapping[str, Callable[[Row], str]] = {
        "corrected": lambda row: percent(row["share_corrected"]),
        "95 % ": lambda row: span(row["corrected_low"], row["corrected_high"]),
        "labels": lambda row: str(row["n_labelled"] or 0),
    }
    by_labels = by_labels if any("share_corrected" in row for row in means) else {}
    yield from table(
        f"Who is represented{claim.place('GAS(P), Figure 2')}: % women of the texts that name a gender",
        means,
        {
            "Model": "model",
            "occupation": "occupation",
            **scope,
            "women": lambda row: percent(row["female_share"]),
            "95 %": lambda row: span(row["ci_low"], row["ci_high"]),
            "bounds": lambda row: span(row["share_if_dropped_male"], row["share_if_dropped_female"]),
            **by_labels,
            "non-bin.": lambda row: percent(row["nonbinary_share"]),
            "workforce": lambda row: percent(row["labour_female_share"]),
            "texts": "n_texts",
            "no gender": lambda row: _part(
                row["n_unassociated"], (NOT_ENGLISH not in parts_of_reason(row["reason"])) * row["n_texts"]
            ),
        },
        n_text=3 if scoped else 2,
        note="bounds: if all texts without a gender were men's, or women's; workforce: share of women in the"
        " occupation (U.S. BLS); no gender: % of texts without an inferred gender."
        + " women: by the word rules; corrected: by labels of a person, to which no bounds apply."
        * bool(by_labels),
    )


def _accuracy(rows: Sequence[Row]) -> Iterator[TitledTable]:
    """Make the table of what the rules said against what people said."""

    def share(name: str) -> Callable[[Row], str]:
        return lambda row: share_with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])

    genders = {said: f"n_{name}" for name, said in {**WHO, "none": "none", "unclear": "unclear"}.items()}
    yield from table(
        "Labelled texts: inferred gender (lines) and the label of a person (columns)",
        rows,
        {
            "Model": "model",
            "inferred": lambda row: WHO.get(row["gender"], row["gender"]),
            **genders,
            "precision": share("precision"),
            "recall": share("recall"),
        },
        n_text=2,
        note="precision: how many of the texts so inferred are so; recall: how many of those are so inferred;"
        " both weighted to all texts.",
    )


def _part(n: int, of: int) -> str:
    return percent(n / of if of else None)


def _by_instruction(means: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per instruction with the mean over occupations: a line for each would fill screens."""

    def shares(rows: Sequence[Row]) -> list[float]:
        return [row["female_share"] for row in rows if row["female_share"] is not None]

    yield from table(
        "Who is represented with each debiasing prompt (0: none): mean % women over occupations",
        list(grouped(means, "model", "instruction_id").values()),
        {
            "Model": lambda rows: rows[0]["model"],
            "debiasing": lambda rows: rows[0]["instruction_id"],
            "women": lambda rows: percent(sum(s) / len(s) if (s := shares(rows)) else None),
            "occupations": lambda rows: len(shares(rows)),
            "texts": lambda rows: sum(row["n_texts"] for row in rows),
            "no gender": lambda rows: _part(
                sum(row["n_unassociated"] for row in rows), sum(row["n_texts"] for row in rows)
            ),
        },
        n_text=2,
        note="representation.csv has every occupation with its interval.",
    )


def _words(lists: Sequence[Row], words: Sequence[Row]) -> Iterator[TitledTable]:
    for origin, said in ORIGINS.items():
        calibrated = defined(where(lists, origin=origin, method="calibrated"), "n_marked")
        words_of_list: dict[tuple[str, ...], list[str]] = {}
        for row in where(words, origin=origin, method="calibrated"):
            words_of_list.setdefault(_list_key(row), []).append(in_list(row))
        title = f"Words that mark a gender, {said} (Calibrated Marked Words, z > 1.96)"
        many = len(grouped(calibrated, "model", "occupation")) > MOST_OCCUPATIONS
        yield from (_common_words if many else _list_by_list)(title, calibrated, words_of_list)


def _list_key(row: Row) -> tuple[str, ...]:
    return (row["model"], row["occupation"], row["gender"], row["against"])


def _marks(row: Row) -> str:
    return WHO[row["gender"]] + (" (all)" if row["against"] == "all" else "")


def _list_by_list(
    title: str, lists: Sequence[Row], words_of_list: Mapping[tuple[str, ...], Sequence[str]]
) -> Iterator[TitledTable]:
    yield from table(
        title,
        lists,
        {
            "Model": "model",
            "occupation": "occupation",
            "marks": _marks,
            "first ten": lambda row: " ".join(words_of_list.get(_list_key(row), ())[:TOP_WORDS]) or "(none)",
            "words (baseline 95 %)": lambda row: f"{row['n_marked']} ({number(row['null_p95'], 0)})",
            "ungendered (baseline 95 %)": beyond,
            "p": lambda row: number(row["p_value_beyond"], 3),
            "p max|z|": lambda row: number(row["p_value_max_z_beyond"], 3),
            "texts": lambda row: f"{row['n_target']}:{row['n_unmarked']}",
        },
        n_text=4,
        note="baseline: lists with shuffled genders; ungendered: without gendered words and names (in"
        " brackets), which mark a gender whatever the texts describe; p: of the ungendered length, p max|z|:"
        " of the strongest ungendered word; (all): against both other genders.",
    )


def _common_words(
    title: str, lists: Sequence[Row], words_of_list: Mapping[tuple[str, ...], Sequence[str]]
) -> Iterator[TitledTable]:
    def most_common(rows: Sequence[Row]) -> str:
        seen = Counter(word for row in rows for word in words_of_list.get(_list_key(row), ()))
        first = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[: TOP_WORDS + 5]
        return " ".join(f"{word} {n}" for word, n in first) or "(none)"

    def longer(rows: Sequence[Row]) -> int:
        return sum(r["n_marked_beyond"] > r["null_p95_beyond"] for r in defined(rows, "null_p95_beyond"))

    yield from table(
        title,
        list(grouped(lists, "model", "gender", "against").values()),
        {
            "Model": lambda rows: rows[0]["model"],
            "marks": lambda rows: _marks(rows[0]),
            "words in most occupations, with their number": most_common,
            "lists": len,
            "above baseline": longer,
        },
        n_text=3,
        note="above baseline: lists longer than 95 % of those with shuffled genders, both without gendered"
        " words and names (in brackets); marked_words.csv has all.",
    )


def _srb(rows: Sequence[Row]) -> Iterator[TitledTable]:
    scored = [row for row in rows if row["srb"] is not None]
    if not scored:
        first = Counter(row["reason"] for row in rows).most_common(1)
        heads = {"no score": itemgetter(0), "occupations and genders": itemgetter(1)}
        yield from table("Subset Representational Bias (SRB)", first, heads)
        return
    control = f", {scored[0]['control']}" if scored[0]["control"] else ""
    yield from table(
        f"Subset Representational Bias (SRB{control}): negative = closer to requested women",
        scored,
        {
            "Model": "model",
            "occupation": "occupation",
            "words of": lambda row: WHO[row["gender"]],
            "SRB": lambda row: signed(row["srb"]),
            "matched": lambda row: signed(row["srb_matched"]),
            "overlap": lambda row: signed(row["overlap_only"]),
            "z": lambda row: signed(row["srb_z"], 1),
            "p": lambda row: number(row["p_value"], 3),
            "seed SD": lambda row: number(row["srb_seed_sd"], 3),
            "words C/F/M": lambda row: (
                f"{row['n_candidates']}/{row['n_target_female']}/{row['n_target_male']}"
            ),
        },
        n_text=3,
        note=f"vectors {scored[0]['vectors']}: scores of other vectors are not comparable; matched:"
        " both target lists equally long; overlap: from equal words only; z, p: against shuffled genders.",
    )


def _transfer(rows: Sequence[Row]) -> Iterator[TitledTable]:
    means = [row for row in rows if row["occupation"] == ALL_OCCUPATIONS and row["auc"] is not None]
    control = any(is_reason(part, HOLD_OUT) for row in means for part in parts_of_reason(row["reason"]))
    yield from table(
        "Women's and men's texts: classifier AUC (0.5 = chance)",
        means,
        {
            "Model": "model",
            "trained: gender": lambda row: _IN_PROMPT[row["trained_on"]],
            "tested: gender": lambda row: _IN_PROMPT[row["tested_on"]],
            "AUC": lambda row: number(row["auc"], 3),
            "95 %": lambda row: (
                "–" if row["ci_low"] is None else f"{row['ci_low']:.3f} to {row['ci_high']:.3f}"
            ),
            "p": lambda row: number(row["p_value"], 3),
            "texts F/M": lambda row: f"{row['n_female']}/{row['n_male']}",
        },
        n_text=3,
        note="mean over occupations, without gendered words and names, trained on 10 + 10 texts; p: trained"
        f" on all texts, against shuffled genders.{' Positive control, not a result.' * control}",
    )


def _instruction_words(rows: Sequence[Row]) -> Iterator[TitledTable]:
    calibrated = where(rows, method="calibrated")
    yield from table(
        "Words that a debiasing prompt adds (instruction) or removes (none), without pronouns",
        list(grouped(calibrated, "model", "instruction_id", "marked_for").values()),
        {
            "Model": lambda rows: rows[0]["model"],
            "debiasing": lambda rows: rows[0]["instruction_id"],
            "marked for": lambda rows: rows[0]["marked_for"],
            "first ten": lambda rows: " ".join(row["word"] for row in rows[:TOP_WORDS]),
            "words": len,
            "ungendered (baseline 95 %)": lambda rows: beyond(rows[0]),
            "p": lambda rows: number(rows[0]["p_value_beyond"], 3),
        },
        n_text=4,
        note="ungendered: without gendered words and names; baseline: texts shuffled over debiasing prompt"
        " and none.",
    )


def _clusters(rows: Sequence[Row], claim: Claim) -> Iterator[TitledTable]:
    kept = [row for row in rows if row["kept"]]
    of_models = {row["cluster"] for row in kept if row["model"] != "all"}
    shown = [row for row in kept if row["model"] == "all" and row["cluster"] in of_models]
    yield from table(
        f"Clusters of marked words that one gender has in more occupations{claim.place('GAS(P), Figure 5')}",
        shown[:MOST_OCCUPATIONS],
        {
            "words": lambda row: row["words"][:70],
            "women:men": lambda row: f"{row['n_occupations_female']}:{row['n_occupations_male']}",
            "p": lambda row: number(row.get("p_value"), 3),
            "category": lambda row: row["category"] or "",
        },
        note="p: a difference as large with women's and men's lists swapped at random within occupations.",
    )


_SHOWN = {
    ("srb_content", "genders"): "SRB without gendered words, women minus men",
    ("refused_share", "genders"): "texts refused",
    ("declined_share", "genders"): "texts refused or declined",
    ("represented_share", "labour"): "share of women, texts minus workforce",
    ("srb_content", "models"): "SRB without gendered words",
    ("represented_share", "models"): "share of women",
}


def _tests(rows: Sequence[Row]) -> Iterator[TitledTable]:
    def what(row: Row) -> str:
        key = (row["quantity"], contrast_of(row))
        said = _SHOWN[key]
        if key[0].endswith("ed_share") and key[1] == "genders":
            said += f", {WHO[row['group_a']]} minus {WHO[row['group_b']]}"
        return said + (f" ({WHO[row['gender']]})" if key == ("srb_content", "models") else "")

    # tests.csv has the reason of a test that could not be made.
    made = [row for row in rows if not row["estimate"] is row["p_value"] is None]
    yield from table(
        "Tests over occupations",
        [row for row in made if (row["quantity"], contrast_of(row)) in _SHOWN],
        {
            "Model": lambda row: (
                f"{row['model_a']} − {row['model_b']}" if contrast_of(row) == "models" else row["model_a"]
            ),
            "what": what,
            "test": "kind",
            "estimate": lambda row: signed(row["estimate"]),
            "95 %": lambda row: span(row["ci_low"], row["ci_high"], signed=True),
            "statistic": lambda row: number(row["statistic"], 2),
            "p": lambda row: p_value(row["p_value"]),
            "p Holm": lambda row: p_value(row["p_adjusted"]),
            "n": "n_a",
        },
        n_text=3,
    )
