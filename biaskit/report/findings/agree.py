"""Whether answers and texts agree: the headline of both engines, and gaps that go together.

See docs/methods.md#headline and docs/methods.md#relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of
from biaskit.report.findings.contrasts import Claim, Kind, contrast
from biaskit.report.findings.finding import (
    DIRECTED,
    MEASURED,
    Outcome,
    agreeing,
    measured_by,
    noted,
    outcome_of,
    parts_of,
    tests,
)
from biaskit.report.findings.scores import carried_over, is_control, vectors_of, women_minus_men
from biaskit.report.findings.sentence import (
    DETAIL,
    HEADLINE,
    RESTATED,
    Foreign,
    Said,
    opening,
    said,
    sentence,
    why,
)
from biaskit.runs.collection import Part
from biaskit.tables.quantities import BETWEEN_ENGINES, RELATIONS, relation
from biaskit.tables.query import Row, defined, distinct, grouped, undefined
from biaskit.wording import count, short

Measured = tuple[ProbeBlock, Part, str]
"""A model that both engines came to a verdict on, with the probe's block and the texts' part."""


def agree(content: Content) -> Iterator[Said]:
    """The headline where it holds, else what both engines come to; then the relations over occupations."""
    pairs = [
        (block, part, model)
        for probe_part in parts_of(content, "probe")
        for block in blocks_of(probe_part)
        for part in parts_of(content, "personas")
        if not is_control(part)
        for model in block.models
        if of_answers(block, model) in MEASURED and of_texts(part, model) in MEASURED
    ]
    for bias_type, form in dict.fromkeys((block.bias_type, block.form) for block, *_ in pairs):
        own = [pair for pair in pairs if (pair[0].bias_type, pair[0].form) == (bias_type, form)]
        yield _of_one(*own[0]) if len(own) == 1 else _of_many(bias_type, own)
    yield from _relations(content)


def of_answers(block: ProbeBlock, model: str) -> Outcome:
    """What the answers come to between the two groups of jobs."""
    return outcome_of(block.between_groups(model))


def of_texts(part: Part, model: str) -> Outcome:
    """What the texts come to: SRB of content, or where it shows nothing, what carries over to the texts."""
    content, over = (outcome_of(row) for row in (women_minus_men(part, model), carried_over(part, model)))
    return over if content not in DIRECTED and (over == "higher" or content not in MEASURED) else content


def even_but_apart(probe: Outcome, texts: Outcome) -> bool:
    """Whether the headline holds: the probe's groups are shown to be equal, and the texts to differ."""
    return probe == "equivalent" and texts in DIRECTED


def _using(pairs: Sequence[Measured]) -> str:
    block, part, model = pairs[0]
    vectors = vectors_of(defined(part.tables.get("srb", ()), "srb"))
    who = short(model) if len(pairs) == 1 else count(len(pairs), "model")
    return measured_by(f"{block.form} prompts against texts", *vectors, who)


def _of_one(block: ProbeBlock, part: Part, model: str) -> Said:
    probe, texts, weak = of_answers(block, model), of_texts(part, model), below_floor(block, model)
    text = sentence(
        _contrast(probe, texts), opening=opening(block.bias_type, weak=weak), model=Foreign(model)
    )
    # Both halves are shown, or there is no headline: an interval too wide to tell is not "even".
    strength = HEADLINE if even_but_apart(probe, texts) and not weak else RESTATED
    using = _using([(block, part, model)])
    return said(text, "relations", "agree", texts, using, about="agree-headline", strength=strength)


def _contrast(probe: Outcome, texts: Outcome) -> str:
    if even_but_apart(probe, texts):
        return "{opening}, {model} looks even, and still its texts describe women and men differently."
    if texts in DIRECTED and probe not in DIRECTED:
        return "{opening}, {model} shows no clear difference; its texts describe women and men differently."
    if texts in DIRECTED:
        return "{opening}, {model} shows a difference, and its texts describe women and men differently."
    if probe in DIRECTED:
        return "{opening}, {model} shows a difference; its texts show no clear one."
    return "{opening}, neither {model}’s answers nor its texts show a clear difference."


def _of_many(bias_type: str, pairs: Sequence[Measured]) -> Said:
    strong = [pair for pair in pairs if not below_floor(pair[0], pair[2])]
    judged = strong or pairs
    kinds = [(of_answers(block, model), of_texts(part, model)) for block, part, model in judged]
    even = sum(even_but_apart(*kind) for kind in kinds)
    both = sum(probe in DIRECTED and texts in DIRECTED for probe, texts in kinds)
    asked, n = opening(bias_type, weak=not strong), len(kinds)
    if even:
        verb = f"{agreeing(even, 'look even, and still')} {'describes' if even == 1 else 'describe'}"
        text = f"{{opening}}, {even} of {n} models {verb} women and men differently in texts."
    elif both:
        text = f"{{opening}}, {both} of {n} models {agreeing(both, 'show a difference')}, and in texts too."
    else:
        text = f"{{opening}} and in texts, none of {n} models shows a difference in both."
    strength = HEADLINE if even and strong else RESTATED
    using = _using(judged)
    text = sentence(text, opening=asked)
    return said(text, "relations", "agree", "shown", using, about="agree-headline", strength=strength)


# --- over occupations -----------------------------------------------------------------------------------

_X = {
    "probe_gap": ("{model} says women more", "saying women"),
    "represented_gap": ("{model} writes about women more", "writing about women"),
    "labour_gap": ("more women work", "women in the labour force"),
}
"""Where a gap is wide, in words; and the gap."""
_Y = {
    "probe_gap": (("says women more", "says women less"), "saying women"),
    "represented_gap": (("writes about women more", "writes about women less"), "writing about women"),
    "srb_spread": (
        ("has words for women and men farther apart", "has words for women and men nearer to each other"),
        "words apart for women and men",
    ),
}
NOISY = "noise in either number draws the correlation towards 0"


def _kind(y: str, x: str) -> Kind:
    (wide, x_name), ((more, less), y_name) = _X[x], _Y[y]
    subject = "{model}" if x == "labour_gap" else "it"
    link = f"{x_name} and {y_name}"
    return Kind(
        question="agree",
        lead="{opening}",
        what=f"the link between {link}",
        one={
            "higher": (f"where {wide}, {subject} {more}.",),
            "lower": (f"where {wide}, {subject} {less}.",),
            **dict.fromkeys(
                ("equivalent", "no-clear-difference"), (f"no clear link between {link} in {{model}}.",)
            ),
        },
        many={
            "higher": f"have {link} rise together over occupations",
            "lower": f"have {link} run against each other over occupations",
            **dict.fromkeys(("equivalent", "no-clear-difference"), f"show no clear link between {link}"),
        },
        after={"higher": "together", "lower": "against each other"},
    )


def _relations(content: Content) -> Iterator[Said]:
    missing: list[Row] = []
    for y, x in RELATIONS if content.reference in ("labour", "both") else BETWEEN_ENGINES:
        rows = tests(content.between.get("tests", ()), relation(y, x), "spearman", "gaps")
        rows = rows or tests(content.between.get("tests", ()), relation(y, x), "spearman", "labour")
        missing += undefined(rows, "estimate")
        least = 0 if (y, x) in BETWEEN_ENGINES else DETAIL
        for (bias_type,), own in grouped(defined(rows, "estimate"), "bias_type").items():
            yield _relation(_kind(y, x), bias_type, own, least, [NOISY] if x != "labour_gap" else [])
    if missing:
        text = sentence(
            "{n} over occupations not measured ({why}).",
            n=count(len(missing), "link between answers, texts and labour statistics",
                    "links between answers, texts and labour statistics"),
            why=why(missing[0]),
        )  # fmt: skip
        yield said(text, "relations", "agree", "not-measured", _related(missing, []), about="agree-relations")


def _relation(kind: Kind, bias_type: str, rows: Sequence[Row], least: int, notes: Sequence[str]) -> Said:
    n = f"over {count(rows[0]['n_a'] or 0, 'occupation')}, " if len(rows) == 1 else ""
    lead = f"{opening(bias_type)}{': ' if n else ', '}{n}" if bias_type else n
    return contrast(
        kind,
        [Claim(row["model_a"], row) for row in rows],
        "relations",
        _related(rows, notes),
        about="agree-relations",
        least=least,
        pieces={"opening": lead},
    )


def _related(rows: Sequence[Row], notes: Sequence[str]) -> str:
    models = distinct(rows, "model_a")
    who = short(models[0]) if len(models) == 1 else count(len(models), "model")
    forms = [f"{form} prompts" for form in distinct(rows, "prompt_form") if form]
    return measured_by("Spearman, bootstrap over occupations", *forms, who, notes=[*notes, *noted(rows)])
