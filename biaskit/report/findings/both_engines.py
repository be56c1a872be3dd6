"""The headline: whether a model that looks even in the probe describes women and men apart.

See docs/methods.md#headline.
"""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of, group_verdict, jobs_of
from biaskit.report.findings.finding import (
    MANY_MODELS,
    NUMBER,
    Finding,
    Outcome,
    Rank,
    Ranked,
    agreeing,
    difference,
    outcome_of,
    parts_of,
)
from biaskit.report.findings.srb import is_control, vectors_of, women_minus_men
from biaskit.report.findings.transfer import carried, carried_over
from biaskit.runs.collection import Part
from biaskit.tables.query import defined
from biaskit.wording import count, listed, people, short

MEASURED: tuple[Outcome, ...] = ("higher", "lower", "equivalent", "no-clear-difference")
DIRECTED: tuple[Outcome, ...] = ("higher", "lower")
Measured = tuple[ProbeBlock, Part, str]


def both_engines(content: Content) -> Iterator[Ranked]:
    """One sentence per model that both engines measured; above four models, one for all."""
    pairs = measured_by_both(content)
    if len({model for *_, model in pairs}) > MANY_MODELS:
        yield from _of_many(pairs)
        return
    for block, part, model in pairs:
        yield _of_one(block, part, model)


def measured_by_both(content: Content) -> list[Measured]:
    """The models that both engines came to a verdict on, with the probe's block and the texts' part."""
    return [
        (block, part, model)
        for probe_part in parts_of(content, "probe")
        for block in blocks_of(probe_part)
        for part in parts_of(content, "personas")
        if not is_control(part)
        for model in block.models
        if group_verdict(block, model) in MEASURED and of_texts(part, model) in MEASURED
    ]


def of_texts(part: Part, model: str) -> Outcome:
    """What the texts come to: SRB of content, or where it shows nothing, what carries over to the texts."""
    content, over = (outcome_of(row) for row in (women_minus_men(part, model), carried_over(part, model)))
    return over if content not in DIRECTED and (over == "higher" or content not in MEASURED) else content


def _of_one(block: ProbeBlock, part: Part, model: str) -> Ranked:
    probe, texts = group_verdict(block, model), of_texts(part, model)
    (one, other), who = block.groups()[:2], people(block.gender)
    groups = difference(block.between_groups(model))
    text = f"{_contrast(short(model), block.bias_type, probe, texts)} In {block.bias_type} prompts {who} "
    text += f"get, for {jobs_of(block.part, one)} against {jobs_of(block.part, other)}, {groups}. In texts "
    content = difference(women_minus_men(part, model), NUMBER, more="")
    text += f"women's SRB minus men's, without gender words, is {content}."
    if carried_over(part, model) is not None:
        text += " By words that are no gender words and no names, learnt from texts about women and men on "
        text += f"request, the others are told apart with an area under the curve of {carried(part, model)} "
        text += "(0.5: as well as by a coin)."
    if below_floor(block, model):
        text += " The probe's part is weak evidence: its coverage is below the floor."
    # Both halves are shown, or there is no headline: an interval too wide to tell is not "even".
    rank = Rank.HEADLINE if even_but_apart(probe, texts) else Rank.DETAIL
    return rank, Finding(text, "relations", texts, _using(block, part, short(model)))


def even_but_apart(probe: Outcome, texts: Outcome) -> bool:
    """Whether the headline holds: the probe's groups are shown to be equal, and the texts to differ."""
    return probe == "equivalent" and texts in DIRECTED


def _contrast(name: str, bias_type: str, probe: Outcome, texts: Outcome) -> str:
    asked = f"{bias_type} prompts"
    if even_but_apart(probe, texts):
        return f"{name} looks even in the probe ({asked}) and still describes women and men differently."
    if texts in DIRECTED and probe not in DIRECTED:
        return f"The texts of {name} describe women and men apart; its probe ({asked}) shows neither."
    if texts in DIRECTED:
        return f"The probe ({asked}) and the texts of {name} both show a difference."
    if probe in DIRECTED:
        return f"The probe ({asked}) finds a difference in {name}, its texts show no clear one."
    return f"Neither the probe ({asked}) nor the texts of {name} show a clear difference."


def _using(block: ProbeBlock, part: Part, who: str) -> str:
    vectors = vectors_of(defined(part.tables.get("srb", ()), "srb"))
    return ", ".join(bit for bit in (f"{block.form} prompts against texts", vectors, who) if bit)


def _of_many(pairs: list[Measured]) -> Iterator[Ranked]:
    for bias_type, form in dict.fromkeys((block.bias_type, block.form) for block, *_ in pairs):
        same = [pair for pair in pairs if (pair[0].bias_type, pair[0].form) == (bias_type, form)]
        own = [pair for pair in same if not below_floor(pair[0], pair[2])]
        if not own:
            continue
        kinds = [(group_verdict(block, model), of_texts(part, model), model) for block, part, model in own]
        even = [short(model) for probe, texts, model in kinds if even_but_apart(probe, texts)]
        open_ = sum(texts in DIRECTED for _, texts, _ in kinds) - len(even)
        both = sum(probe in DIRECTED and texts in DIRECTED for probe, texts, _ in kinds)
        alone = sum(probe in DIRECTED and texts not in DIRECTED for probe, texts, _ in kinds)
        text = f"Of {count(len(own), 'model')} that both engines measured ({bias_type} prompts), "
        text += (
            f"{len(even)} {agreeing(len(even), 'look')} even in the probe and still describe women and men "
        )
        text += "differently"
        text += f" ({listed(even[:5] + ['others'] * (len(even) > 5))})" if even else ""
        text += f"; {both} tell women and men apart in both engines, {alone} in the probe alone, "
        text += f"{open_ - both} in texts alone with a probe that leaves it open, and "
        text += f"{len(own) - len(even) - open_ - alone} in neither."
        using = _using(own[0][0], own[0][1], count(len(own), "model"))
        rank = Rank.HEADLINE if even else Rank.DETAIL
        yield rank, Finding(text, "relations", "shown", using)
