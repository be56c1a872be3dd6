"""Make the document of a run of texts: who is represented, which words mark whom, SRB, the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from biaskit.measures.personas.printing.groups import group_tables
from biaskit.report.render.cells import in_list
from biaskit.report.render.document import Document, TitledTable
from biaskit.report.render.generic import printed_table
from biaskit.runs.claims import Claim
from biaskit.stats.contrast import Contrast
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row, Tables, defined, grouped, total, where
from biaskit.tables.reasons import HOLD_OUT, NOT_ENGLISH, is_reason, parts_of_reason
from biaskit.tables.schema import SCHEMAS

TOP_WORDS = 10
MOST_OCCUPATIONS = 12
"""Lists are printed one by one for so many occupations; for more, the words that most of them share."""
ORIGINS = {"inferred": "gender not in the prompt", "requested": "gender in the prompt"}
_IN_PROMPT = {"inferred": "not in prompt", "requested": "in prompt"}
WHO = {"female": "women", "male": "men", "nonbinary": "non-binary"}
_BY_DEBIASING = """Model = {model} | debiasing = {debiasing_id} || women = {women:%1} | occupations |
texts | no gender = {none:%1}"""
_COMMON_WORDS = """Model = {model} | marks = {who} | words in most occupations, with their number = {first} ||
lists | above baseline = {longer}"""
_TESTS = """Model = {models} | what | test = {kind} || estimate = {estimate:+3} | 95 % = {:+3[ci]} |
statistic = {statistic:.2} | p = {p_value:p} | p Holm = {p_adjusted:p} | n = {n_a}"""


def personas_document(tables: Tables, analysis: Row, warnings: Sequence[str], claim: Claim) -> Document:
    """Make every headline table that the run has; `claim`: whether titles may name GAS(P)'s tables."""
    shown = [*_validation(claim, tables.get("gender_validation", ()))]
    shown += _representation(claim, tables.get("representation", ()))
    shown += _accuracy(tables.get("label_validation", ()))
    shown += _words(tables.get("marked_words", ()), tables.get("word_lists", ()))
    shown += group_tables(tables.get("group_words", ()), tables.get("group_lists", ()))
    for name, make in (
        ("srb", _srb),
        ("text_transfer", _transfer),
        ("debiasing_words", _debiasing_words),
    ):
        shown += make(tables.get(name, ()))
    shown += _clusters(claim, tables.get("clusters", ()))
    shown += _tests(map(Contrast.of, tables.get("tests", ())))
    return Document(tuple(shown), tuple(warnings), str(analysis["signature"]))


def _print(name: str, title: str, rows: Sequence[Row], note: str = "") -> Iterator[TitledTable]:
    return printed_table(title, SCHEMAS[name].printed, rows, note=note)


# --- who texts are about ------------------------------------------------------------------------------


def _validation(claim: Claim, rows: Sequence[Row]) -> Iterator[TitledTable]:
    lines = []
    for row in rows:
        parts = {
            name: 100 * row[f"n_{name}"] / row["n_texts"] for name in ("correct", "incorrect", "not_captured")
        }
        lines.append({**row, **parts, "who": WHO[row["requested_gender"]]})
    title = f"Inferred and requested gender{claim.place('GAS(P), Table 1')}: % of the texts"
    yield from _print("gender_validation", title, lines)


def _representation(claim: Claim, rows: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per occupation (and debiasing prompt), the mean of its prompts."""
    means = where(rows, template_id="all")
    if means and "debiasing_id" in means[0] and len(means) > MOST_OCCUPATIONS * 4:
        yield from _by_debiasing(means)
        return
    lines = []
    for row in means:
        n_read = 0 if NOT_ENGLISH in parts_of_reason(row["reason"]) else row["n_texts"]
        bounds = {"bounds_low": row["share_if_dropped_male"], "bounds_high": row["share_if_dropped_female"]}
        line = {**row, **bounds, "none": row["n_not_inferred"] / n_read if n_read else None}
        if "n_labelled" in row:
            line["labels"] = row["n_labelled"] or 0
        lines.append(line)
    title = f"Who is represented{claim.place('GAS(P), Figure 2')}: % women of the texts that name a gender"
    note = (
        "bounds: if all texts without a gender were men's, or women's; workforce: share of women in the"
        " occupation (U.S. BLS); no gender: % of texts without an inferred gender."
    )
    if any("share_corrected" in row for row in means):
        note += " women: by the word rules; corrected: by labels of a person, to which no bounds apply."
    yield from _print("representation", title, lines, note)


def _by_debiasing(means: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per debiasing prompt with the mean over occupations: a line for each would fill screens."""
    lines = []
    for rows in grouped(means, "model", "debiasing_id").values():
        shares = [row["female_share"] for row in defined(rows, "female_share")]
        texts, none = total(rows, "n_texts"), total(rows, "n_not_inferred")
        line = {"women": sum(shares) / len(shares) if shares else None, "occupations": len(shares)}
        lines.append({**rows[0], **line, "texts": texts, "none": none / texts if texts else None})
    title = "Who is represented with each debiasing prompt (0: none): mean % women over occupations"
    note = "representation.csv has every occupation with its interval."
    yield from printed_table(title, _BY_DEBIASING, lines, note=note)


def _accuracy(rows: Sequence[Row]) -> Iterator[TitledTable]:
    """Make the table of what the rules said against what people said."""
    yield from _print(
        "label_validation",
        "Labelled texts: inferred gender (lines) and the label of a person (columns)",
        [{**row, "who": WHO.get(row["gender"], row["gender"])} for row in rows],
        "precision: how many of the texts so inferred are so; recall: how many of those are so inferred;"
        " both weighted to all texts.",
    )


# --- which words mark whom ----------------------------------------------------------------------------


def _words(words: Sequence[Row], lists: Sequence[Row]) -> Iterator[TitledTable]:
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
    lines = []
    for row in lists:
        first = " ".join(words_of_list.get(_list_key(row), ())[:TOP_WORDS])
        lines.append({**row, "who": _marks(row), "first": first or "(none)"})
    note = (
        "baseline: lists with shuffled genders; ungendered: without gendered words and names (in"
        " brackets), which mark a gender whatever the texts describe; p: of the ungendered length, p max|z|:"
        " of the strongest ungendered word; (all): against both other genders."
    )
    yield from _print("word_lists", title, lines, note)


def _common_words(
    title: str, lists: Sequence[Row], words_of_list: Mapping[tuple[str, ...], Sequence[str]]
) -> Iterator[TitledTable]:
    lines = []
    for rows in grouped(lists, "model", "gender", "against").values():
        seen = Counter(word for row in rows for word in words_of_list.get(_list_key(row), ()))
        most = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[: TOP_WORDS + 5]
        first = " ".join(f"{word} {n}" for word, n in most)
        longer = [
            row for row in defined(rows, "null_p95_beyond") if row["n_marked_beyond"] > row["null_p95_beyond"]
        ]
        line = {"who": _marks(rows[0]), "first": first or "(none)", "lists": len(rows), "longer": len(longer)}
        lines.append({**rows[0], **line})
    note = (
        "above baseline: lists longer than 95 % of those with shuffled genders, both without gendered"
        " words and names (in brackets); marked_words.csv has all."
    )
    yield from printed_table(title, _COMMON_WORDS, lines, note=note)


def _debiasing_words(rows: Sequence[Row]) -> Iterator[TitledTable]:
    lists = grouped(where(rows, method="calibrated"), "model", "debiasing_id", "marked_for").values()
    lines = []
    for words in lists:
        first = " ".join(row["word"] for row in words[:TOP_WORDS])
        lines.append({**words[0], "first": first, "n": len(words)})
    yield from _print(
        "debiasing_words",
        "Words that a debiasing prompt adds (debiasing) or removes (none), without pronouns",
        lines,
        "ungendered: without gendered words and names; baseline: texts shuffled over debiasing prompt"
        " and none.",
    )


def _clusters(claim: Claim, rows: Sequence[Row]) -> Iterator[TitledTable]:
    kept = [row for row in rows if row["kept"]]
    of_models = {row["cluster"] for row in kept if row["model"] != "all"}
    shown = [row for row in kept if row["model"] == "all" and row["cluster"] in of_models]
    yield from _print(
        "clusters",
        f"Clusters of marked words that one gender has in more occupations{claim.place('GAS(P), Figure 5')}",
        [{"p_value": None, **row, "first": row["words"][:70]} for row in shown[:MOST_OCCUPATIONS]],
        "p: a difference as large with women's and men's lists swapped at random within occupations.",
    )


# --- how texts differ ---------------------------------------------------------------------------------


def _srb(rows: Sequence[Row]) -> Iterator[TitledTable]:
    scored = defined(rows, "srb")
    if not scored:
        reasons = Counter(row["reason"] for row in rows).most_common(1)
        lines = [{"why": reason, "n": n} for reason, n in reasons]
        title = "Subset Representational Bias (SRB)"
        yield from printed_table(title, "no score = {why} || occupations and genders = {n}", lines)
        return
    control = f", {scored[0]['control']}" if scored[0]["control"] else ""
    yield from _print(
        "srb",
        f"Subset Representational Bias (SRB{control}): negative = closer to requested women",
        [{**row, "who": WHO[row["gender"]]} for row in scored],
        f"vectors {scored[0]['vectors']}: scores of other vectors are not comparable; matched:"
        " both target lists equally long; overlap: from equal words only; z, p: against shuffled genders.",
    )


def _transfer(rows: Sequence[Row]) -> Iterator[TitledTable]:
    lines = []
    for row in defined(where(rows, occupation=ALL_OCCUPATIONS), "auc"):
        origins = {"trained": _IN_PROMPT[row["trained_on"]], "tested": _IN_PROMPT[row["tested_on"]]}
        lines.append({**row, **origins})
    control = any(is_reason(part, HOLD_OUT) for row in lines for part in parts_of_reason(row["reason"]))
    yield from _print(
        "text_transfer",
        "Women's and men's texts: classifier AUC (0.5 = chance)",
        lines,
        "mean over occupations, without gendered words and names, trained on 10 + 10 texts; p: trained"
        f" on all texts, against shuffled genders.{' Positive control, not a result.' * control}",
    )


_SHOWN = {
    ("srb_content", "genders"): "SRB without gendered words, women minus men",
    ("refused_share", "genders"): "texts refused",
    ("declined_share", "genders"): "texts refused or declined",
    ("represented_share", "workforce"): "share of women, texts minus workforce",
    ("srb_content", "models"): "SRB without gendered words",
    ("represented_share", "models"): "share of women",
}


def _tests(rows: Iterable[Contrast]) -> Iterator[TitledTable]:
    """Make a line of each test that could be made; tests.csv has the reason of the others."""
    lines = []
    for row in rows:
        quantity, contrast = row.quantity, row.contrast
        if (quantity, contrast) not in _SHOWN or row.estimate is row.p_value is None:
            continue
        what = _SHOWN[quantity, contrast]
        if quantity.endswith("ed_share") and contrast == "genders":
            what += f", {WHO[str(row.group_a)]} minus {WHO[str(row.group_b)]}"
        if (quantity, contrast) == ("srb_content", "models"):
            what += f" ({WHO[str(row.gender)]})"
        models = " − ".join(dict.fromkeys(row.models))
        lines.append({**row, "what": what, "models": models})
    yield from printed_table("Tests over occupations", _TESTS, lines)
