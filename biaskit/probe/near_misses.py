"""Words near the listed ones that a model says, and the list of expressions that would count them.

A near miss is a likely next token that is a listed word in another case, form or punctuation, or one that
`corpora/expressions/near.toml` puts beside its group. It is named, never counted.

See docs/methods.md#near-misses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from biaskit.corpora.loaders import load_word_groups
from biaskit.probe.design import ProbeDesign
from biaskit.records import NO_INSTRUCTION, CellShares, Expression
from biaskit.report.said_next import EVERY_GROUP
from biaskit.stats.contrasts import Row
from biaskit.tables.query import grouped, where
from biaskit.wording import listed, percent

WEIGHS = 0.1
"""Part of the coverage from which a near miss is named."""
MARK = "# Suggested by biaskit: the study's expressions and words near them that a model said.\n"
FILE = "suggested-expressions.toml"
_ENDINGS = ("'s", "’s", "s")


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A word that a model says beside the listed ones of a bias type."""

    model: str
    bias_type: str
    word: str
    group: str
    probability: float  # mean over the prompts of the bias type without an instruction
    coverage: float  # mean, of the listed words


def near_misses(rows: Iterable[Row], cells: Sequence[CellShares], design: ProbeDesign) -> list[NearMiss]:
    """The near misses that rows of probe_next.csv hold, the heaviest of a model and bias type first."""
    found: list[NearMiss] = []
    means = where(rows, job_group=EVERY_GROUP, instruction_id=NO_INSTRUCTION)
    for (model, bias_type), own in grouped(means, "model", "bias_type").items():
        coverage = _mean_coverage(cells, model, bias_type)
        known = _listed_words(design, bias_type)
        weights: dict[tuple[str, str], float] = {}
        for row in own:
            word = row["token"][1:-1].strip()
            group = _group_of(word, known) if row["beyond"] and word not in known else None
            if group is not None:
                weights[word, group] = weights.get((word, group), 0.0) + row["beyond"]
        ranked = sorted(weights.items(), key=lambda one: (-one[1], one[0]))
        found += [
            NearMiss(model, bias_type, word, group, weight, coverage)
            for (word, group), weight in ranked
            if weight > WEIGHS * coverage
        ]
    return found


def _mean_coverage(cells: Sequence[CellShares], model: str, bias_type: str) -> float:
    found = [
        x.coverage
        for x in cells
        if x.coverage is not None
        and (x.cell.model, x.cell.bias_type, x.cell.instruction_id) == (model, bias_type, NO_INSTRUCTION)
    ]
    return sum(found) / len(found) if found else 0.0


def _listed_words(design: ProbeDesign, bias_type: str) -> dict[str, str]:
    """Each listed form of a bias type → its group."""
    sets = (listed for (own, _), listed in design.expressions.items() if own == bias_type)
    return {e.text: e.group for listed in sets for e in listed}


def _group_of(word: str, known: Mapping[str, str]) -> str | None:
    """The group whose listed words a word is near, None where it is near none; forms go before meanings."""
    bare = {_bare(text): group for text, group in known.items()}
    for stem in _stems(_bare(word)):
        if stem and stem in bare:
            return bare[stem]
    group = near_words().get(_bare(word))
    return group if group in known.values() else None


def _bare(text: str) -> str:
    """A word without case, hyphens and the punctuation around it."""
    letters = "".join(c for c in text.casefold() if c.isalnum() or c in "'’ ")
    return letters.strip("'’ ")


def _stems(word: str) -> Iterator[str]:
    yield word
    for ending in _ENDINGS:
        if word.endswith(ending):
            yield word.removesuffix(ending)


@cache
def near_words() -> Mapping[str, str]:
    """Each word of `corpora/expressions/near.toml`, bare → its group."""
    return MappingProxyType(
        {_bare(word): group for word, group in load_word_groups("corpus:expressions/near.toml").items()}
    )


def notes_of(found: Sequence[NearMiss]) -> list[str]:
    """One line for each model and bias type."""
    lines = []
    by_block: dict[tuple[str, str], list[NearMiss]] = {}
    for one in found:
        by_block.setdefault((one.model, one.bias_type), []).append(one)
    for (model, bias_type), own in by_block.items():
        words = listed([f"“{one.word}” ({one.group}, {percent(one.probability)} %)" for one in own])
        lines.append(
            f"{model}, {bias_type}: said and not counted, though near the listed words (which hold"
            f" {percent(own[0].coverage)} %): {words}; {FILE} in the run's folder adds them (--expressions)"
        )
    return lines


def suggested(found: Sequence[NearMiss], design: ProbeDesign) -> str | None:
    """The study's expression sets with the near misses of their bias types, as a file for --expressions.

    None where there is nothing to add. A set keeps the name under which its templates look for it, so that
    the file takes the place of the study's own.
    """
    if not found:
        return None
    sets: dict[str, tuple[Expression, ...]] = {}
    types: dict[str, set[str]] = {}
    for (bias_type, number), expressions in design.expressions.items():
        name = _set_name(design, bias_type, number)
        sets[name] = expressions
        types.setdefault(name, set()).add(bias_type)
    lines = [MARK]
    for name, expressions in sets.items():
        groups: dict[str, list[str]] = {group: [] for group in design.groups}
        near = [Expression(one.group, one.word) for one in found if one.bias_type in types[name]]
        for one in (*expressions, *near):
            groups[one.group] += [one.text] if one.text not in groups[one.group] else []
        lines += [f'[sets.{json.dumps(name)}]\nforms = "as-listed"\n', f"[sets.{json.dumps(name)}.groups]"]
        lines += [f"{json.dumps(group)} = {json.dumps(words)}" for group, words in groups.items() if words]
        lines.append("")
    return "\n".join(lines)


def _set_name(design: ProbeDesign, bias_type: str, number: int) -> str:
    """Under which name a template looks for its expressions; one set for all needs none."""
    if len(set(design.expressions.values())) == 1:
        return "all"
    keys = design.study.expressions
    usual = keys.explicit if bias_type == "explicit" else keys.implicit
    own = next(t.expressions for t in design.templates if (t.bias_type, t.id) == (bias_type, number))
    return own or usual or bias_type
