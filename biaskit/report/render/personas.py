"""The headline of a run as a document: who is represented, which words mark whom, SRB, the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from biaskit.report.render.document import Document, Heading, TitledTable

Row = Mapping[str, Any]
TOP_WORDS = 10
MOST_OCCUPATIONS = 12
"""Occupations whose lists are printed one by one; of more the words that mark in most of them are shown."""
ORIGINS = {"associated": "gender not in the prompt", "specified": "gender in the prompt"}
WHO = {"female": "women", "male": "men", "nonbinary": "non-binary"}


def personas_document(tables: Mapping[str, Sequence[Row]], made: Row, warnings: Sequence[str]) -> Document:
    """Every headline table that the run has, in the order a reader asks."""
    shown = [
        *_validation(tables.get("association_validation", ())),
        *_representation(tables.get("representation", ())),
        *_words(tables.get("word_lists", ()), tables.get("marked_words", ())),
        *_srb(tables.get("srb", ())),
        *_instruction_words(tables.get("instruction_words", ())),
        *_clusters(tables.get("clusters", ())),
        *_tests(tables.get("tests", ())),
    ]
    return Document(tuple(shown), tuple(warnings), str(made["signature"]))


def _heads(*texts: str) -> tuple[tuple[Heading, ...], ...]:
    return (tuple(Heading(text) for text in texts),)


# --- association and representation -----------------------------------------------------------------


def _validation(rows: Sequence[Row]) -> Iterable[TitledTable]:
    if not rows:
        return
    body = [
        (
            row["model"],
            WHO[row["specified_gender"]],
            str(row["n_texts"]),
            *(f"{100 * row[name] / row['n_texts']:.1f}" for name in _OUTCOMES),
        )
        for row in rows
    ]
    yield TitledTable(
        "Association held against the gender in the prompt (GAS(P), Table 1): % of the texts",
        _heads("Model", "asked for", "texts", "correct", "incorrect", "not captured"),
        tuple(body),
        n_text=2,
    )


_OUTCOMES = ("n_correct", "n_incorrect", "n_not_captured")


def _representation(rows: Sequence[Row]) -> Iterable[TitledTable]:
    """One line per occupation, the mean of its prompts; under instructions per instruction."""
    whole = [row for row in rows if row["template_id"] == "all"]
    if not whole:
        return
    scoped = "instruction_id" in whole[0]
    if scoped and len(whole) > MOST_OCCUPATIONS * 4:
        yield _by_instruction(whole)
        return
    body = []
    for row in whole:
        scope = (str(row["instruction_id"]),) if scoped else ()
        n = row["n_texts"]
        body.append(
            (
                row["model"],
                row["occupation"],
                *scope,
                percent(row["female_share"]),
                span(row["ci_low"], row["ci_high"]),
                span(row["share_if_dropped_male"], row["share_if_dropped_female"]),
                percent(row["nonbinary_share"]),
                percent(row["labour_female_share"]),
                str(n),
                percent(row["n_unassociated"] / n if n else None),
            )
        )
    heads = ["Model", "occupation", *(["instr."] if scoped else [])]
    heads += ["women", "95 %", "bounds", "non-bin.", "labour", "texts", "no gender"]
    yield TitledTable(
        "Who is represented (GAS(P), Figure 2): % women of the texts that speak of a gender",
        _heads(*heads),
        tuple(body),
        note="bounds: if all texts without a gender were men's, or women's; labour: share of women in the"
        " occupation (U.S. BLS); no gender: % of texts that the rules associate with nobody.",
        n_text=3 if scoped else 2,
    )


def _by_instruction(whole: Sequence[Row]) -> TitledTable:
    """Means over occupations, when occupations times instructions would fill screens."""
    body = []
    for key in dict.fromkeys((row["model"], row["instruction_id"]) for row in whole):
        rows = [row for row in whole if (row["model"], row["instruction_id"]) == key]
        shares = [row["female_share"] for row in rows if row["female_share"] is not None]
        texts, dropped = sum(r["n_texts"] for r in rows), sum(r["n_unassociated"] for r in rows)
        mean = sum(shares) / len(shares) if shares else None
        left = percent(dropped / texts if texts else None)
        body.append((key[0], str(key[1]), percent(mean), str(len(shares)), str(texts), left))
    return TitledTable(
        "Who is represented under each instruction (0: none): mean % women over occupations",
        _heads("Model", "instr.", "women", "occupations", "texts", "no gender"),
        tuple(body),
        note="representation.csv has every occupation with its interval.",
        n_text=2,
    )


# --- words -------------------------------------------------------------------------------------------


def _words(lists: Sequence[Row], words: Sequence[Row]) -> Iterable[TitledTable]:
    for origin, said in ORIGINS.items():
        own = [row for row in lists if row["origin"] == origin and row["method"] == "calibrated"]
        own = [row for row in own if row["n_marked"] is not None]
        if not own:
            continue
        of_list: dict[tuple[str, ...], list[str]] = {}
        for row in words:
            if row["origin"] == origin and row["method"] == "calibrated":
                of_list.setdefault(_list_key(row), []).append(_in_list(row))
        title = f"Words that mark a gender, {said} (Calibrated Marked Words, z > 1.96)"
        if len({(row["model"], row["occupation"]) for row in own}) > MOST_OCCUPATIONS:
            yield _common_words(title, own, of_list)
        else:
            yield _list_by_list(title, own, of_list)


def _in_list(row: Row) -> str:
    return f"({row['word']})" if row["is_name"] or row["is_gender_word"] else str(row["word"])


def _list_key(row: Row) -> tuple[str, ...]:
    return (row["model"], row["occupation"], row["gender"], row["against"])


def _list_by_list(
    title: str, own: Sequence[Row], of_list: Mapping[tuple[str, ...], Sequence[str]]
) -> TitledTable:
    body = [
        (
            row["model"],
            row["occupation"],
            WHO[row["gender"]] + (" (all)" if row["against"] == "all" else ""),
            " ".join(of_list.get(_list_key(row), ())[:TOP_WORDS]) or "(none)",
            f"{row['n_marked']} ({number(row['null_p95'], 0)})",
            f"{row['n_marked_beyond']} ({number(row['null_p95_beyond'], 0)})",
            number(row["p_value_beyond"], 3),
            number(row["p_value_max_z_beyond"], 3),
            f"{row['n_target']}:{row['n_unmarked']}",
        )
        for row in own
    ]
    return TitledTable(
        title,
        _heads(
            *("Model", "occupation", "marks", "first ten", "words (null 95 %)"),
            *("beyond (null 95 %)", "p", "p max|z|", "texts"),
        ),
        tuple(body),
        note="null: lists with shuffled genders; beyond: without gender words and names (in brackets), which"
        " mark a gender whatever the texts describe; p: of the length beyond, p max|z|: of the strongest word"
        " beyond; (all): against both other genders.",
        n_text=4,
    )


def _common_words(
    title: str, own: Sequence[Row], of_list: Mapping[tuple[str, ...], Sequence[str]]
) -> TitledTable:
    body = []
    for model, gender, against in dict.fromkeys((r["model"], r["gender"], r["against"]) for r in own):
        rows = [r for r in own if (r["model"], r["gender"], r["against"]) == (model, gender, against)]
        seen = Counter(word for row in rows for word in of_list.get(_list_key(row), ()))
        first = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[: TOP_WORDS + 5]
        longer = sum(
            r["null_p95_beyond"] is not None and r["n_marked_beyond"] > r["null_p95_beyond"] for r in rows
        )
        body.append(
            (
                model,
                WHO[gender] + (" (all)" if against == "all" else ""),
                " ".join(f"{word} {n}" for word, n in first) or "(none)",
                str(len(rows)),
                str(longer),
            )
        )
    return TitledTable(
        title,
        _heads("Model", "marks", "words in most occupations, with their number", "lists", "beyond null"),
        tuple(body),
        note="beyond null: lists that hold more words than 95 % of those with shuffled genders, both without"
        " gender words and names (in brackets); marked_words.csv has all.",
        n_text=3,
    )


# --- SRB, clusters, tests --------------------------------------------------------------------------------


def _srb(rows: Sequence[Row]) -> Iterable[TitledTable]:
    scored = [row for row in rows if row["srb"] is not None]
    if rows and not scored:
        reasons = Counter(row["reason"] for row in rows)
        reason, n = reasons.most_common(1)[0]
        yield TitledTable(
            "Subset Representational Bias (SRB)",
            _heads("no score", "occupations and genders"),
            ((reason, str(n)),),
        )
        return
    if not scored:
        return
    control = f", {scored[0]['control']}" if scored[0]["control"] else ""
    body = [
        (
            row["model"],
            row["occupation"],
            WHO[row["gender"]],
            signed(row["srb"]),
            signed(row["srb_matched"]),
            signed(row["overlap_only"]),
            signed(row["srb_z"], 1),
            number(row["p_value"], 3),
            number(row["srb_seed_sd"], 3),
            f"{row['n_candidates']}/{row['n_target_female']}/{row['n_target_male']}",
        )
        for row in scored
    ]
    yield TitledTable(
        f"Subset Representational Bias (SRB{control}): negative = nearer to specified women",
        _heads(
            *("Model", "occupation", "words of", "SRB", "matched", "overlap", "z", "p", "seed SD"),
            "words C/F/M",
        ),
        tuple(body),
        note=f"vectors {scored[0]['vectors']}: scores of other vectors are not comparable, z is; matched:"
        " both target lists equally long; overlap: from equal words alone; z, p: against shuffled genders.",
        n_text=3,
    )


def _instruction_words(rows: Sequence[Row]) -> Iterable[TitledTable]:
    own = [row for row in rows if row["method"] == "calibrated"]
    if not own:
        return
    body = []
    for key in dict.fromkeys((r["model"], r["instruction_id"], r["marked_for"]) for r in own):
        rows = [r for r in own if (r["model"], r["instruction_id"], r["marked_for"]) == key]
        null = f"{number(rows[0]['n_marked_beyond'], 0)} ({number(rows[0]['null_p95_beyond'], 0)})"
        words = " ".join(r["word"] for r in rows[:TOP_WORDS])
        body.append((key[0], str(key[1]), key[2], words, null, number(rows[0]["p_value_beyond"], 3)))
    yield TitledTable(
        "Words that an instruction adds (instruction) or takes away (none), pronouns left out",
        _heads("Model", "instr.", "marked for", "first ten", "beyond (null 95 %)", "p"),
        tuple(body),
        note="beyond: without gender words and names; null: texts shuffled over the instruction and none.",
        n_text=4,
    )


def _clusters(rows: Sequence[Row]) -> Iterable[TitledTable]:
    kept = [row for row in rows if row["kept"] and row["model"] == "all"]
    own = {row["cluster"] for row in rows if row["kept"] and row["model"] != "all"}
    kept = [row for row in kept if row["cluster"] in own][:MOST_OCCUPATIONS]
    if not kept:
        return
    body = [
        (
            row["words"][:70],
            f"{row['n_occupations_female']}:{row['n_occupations_male']}",
            row["category"] or "",
        )
        for row in kept
    ]
    yield TitledTable(
        "Clusters of marked words that one gender has in more occupations (GAS(P), Figure 5)",
        _heads("words", "women:men", "category"),
        tuple(body),
    )


_SHOWN = {
    ("srb", "genders"): "SRB, women minus men",
    ("represented_share", "labour"): "share of women, texts minus labour",
    ("srb", "models"): "SRB",
    ("represented_share", "models"): "share of women",
}


def _tests(rows: Sequence[Row]) -> Iterable[TitledTable]:
    body = []
    for row in rows:
        contrast = row["family"].rsplit("/", 1)[-1]
        if (row["quantity"], contrast) not in _SHOWN or row["estimate"] is row["p_value"] is None:
            continue  # tests.csv has the reason of a test that could not be made
        models = row["model_a"] if contrast != "models" else f"{row['model_a']} − {row['model_b']}"
        gender = f" ({WHO[row['gender']]})" if contrast == "models" and row["quantity"] == "srb" else ""
        body.append(
            (
                models,
                _SHOWN[row["quantity"], contrast] + gender,
                row["kind"],
                signed(row["estimate"]),
                span(row["ci_low"], row["ci_high"], signed=True),
                number(row["statistic"], 2),
                p_value(row["p_value"]),
                p_value(row["p_adjusted"]),
                str(row["n_a"]),
            )
        )
    if body:
        yield TitledTable(
            "Tests over occupations",
            _heads("Model", "what", "test", "estimate", "95 %", "statistic", "p", "p Holm", "n"),
            tuple(body),
            n_text=3,
        )


# --- numbers ------------------------------------------------------------------------------------------------


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    return "–" if value is None else form(value)


def percent(value: float | None) -> str:
    """A fraction as a percentage with one digit; undefined: –."""
    return _shown(value, lambda v: f"{100 * v:.1f}")


def number(value: float | None, digits: int) -> str:
    """A number with so many digits; undefined: –."""
    return _shown(value, lambda v: f"{v:.{digits}f}")


def p_value(value: float | None) -> str:
    """Four digits, nothing smaller than that; undefined: –."""
    return _shown(value, lambda v: f"{v:.4f}" if v >= 0.0001 else "<0.0001")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, whose sign is always shown; undefined: –."""
    return _shown(value, lambda v: f"{v:+.{digits}f}")


def span(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """An interval: of a fraction in percent, of a difference (`signed`) as it is; undefined: –."""
    if low is None or high is None:
        return "–"
    return f"{low:+.3f} to {high:+.3f}" if signed else f"{100 * low:.1f}–{100 * high:.1f}"
