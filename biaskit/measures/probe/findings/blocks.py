"""What may share a sentence: answers of one bias type in one format (methods/prompts#prompt-formats)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from biaskit.common.wording import count, listed, number_range, percent, points, short
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.finding import measured_by, noted
from biaskit.report.findings.groups import SPLIT, are_fields, in_order, one_group, one_job
from biaskit.report.findings.sentence import Foreign, Piece, beside, opening, pronoun
from biaskit.runs.collection import Part
from biaskit.stats.contrast import BINARY, Contrast
from biaskit.tables.coverage import WEAK, Coverage, coverage_of, is_under
from biaskit.tables.query import Row, defined, distinct, first, grouped, in_main_context, total, where


@dataclass(frozen=True)
class ProbeBlock:
    """The answers of one bias type in one format without a debiasing prompt: what may share a sentence.

    Rows are indexed by model once: sentences ask for them model by model, and both grow with the models.
    """

    part: Part
    bias_type: str
    context: str
    prompt_format: str

    @property
    def way(self) -> dict[str, object]:
        """Column → value of its rows in a probe table, with debiasing prompts and without."""
        return {"bias_type": self.bias_type, "context": self.context, "prompt_format": self.prompt_format}

    @property
    def topic(self) -> str:
        """Explicit and implicit prompts have topics of their own."""
        return "probe-explicit" if self.bias_type == "explicit" else "probe-implicit"

    @property
    def gender(self) -> str:
        """The gender that sentences speak of: the first of the study's contrast."""
        return self.part.contrast[0] or "female"

    @property
    def two(self) -> tuple[str, ...]:
        """The groups that its shares are of, where they are not of all target words."""
        return self.part.contrast if self.part.rule.binary and all(self.part.contrast) else ()

    def quantity(self, whole: str) -> str:
        """Name the quantity that leads for shares, or what is made of them."""
        return BINARY + whole if self.two else whole

    def neither(self, model: str, *groups: str | None) -> str:
        """Say what belongs to neither of the two in groups of jobs: '; it says they in 30 and 37 %'."""
        shares = {}
        for gender in genders_of_neither(self.part):
            of_gender = defined(self.rows_of(model, gender), "share")
            known = [row["share"] for group in groups for row in where(of_gender, job_group=group)]
            if known:
                shares[gender] = f"{' and '.join(dict.fromkeys(map(percent, known)))} %"
        return beside("it says ", shares)

    def pair(self, row: Contrast) -> dict[str, Piece]:
        """Name the gender and the two groups of jobs of a row, as pieces of a sentence."""
        a, b = row.group_a or "", row.group_b or ""
        second = one_group(self.part, b) if b in SPLIT else Foreign(b, "“", "”")
        alone = one_job(self.part, a) or one_job(self.part, b)
        if a in SPLIT and b in SPLIT and not alone:  # the second can be shorter: “than for men’s”
            people = "women" if b == SPLIT[0] else "men"
            second = f"mostly {people}" if are_fields(self.part) else f"{people}’s"
        return {"a": one_group(self.part, a), "b": second}

    def opening(self, model: str = "", *, of_two: bool = False) -> str:
        """Say how the models were asked; of a model, what little the target words hold."""
        two = self.two if of_two else ()
        return opening(self.bias_type, self.coverage(model) if model else None, of=two)

    def coverage(self, model: str) -> Coverage:
        """Find the least and the greatest coverage over a model's groups of jobs."""
        return coverage_of(self.rows_of(model), of_two=bool(self.two))

    def is_weak(self, model: str) -> bool:
        """Whether a model's shares are weak evidence."""
        return is_under(self.coverage(model), WEAK)

    @property
    def about(self) -> str:
        """What its sentences are about (`Sentence.about`): one thing for each bias type."""
        return f"say-{self.bias_type}"

    def claim(self, model: str, row: Contrast, *notes: str, **pieces: Piece) -> dict[str, Any]:
        """Arguments of `claim` for a model's row, beside its templates and the row."""
        own: dict[str, Piece] = {"who": pronoun(self.gender), "other": pronoun(self.part.contrast[1])}
        own["opening"] = self.opening(model, of_two=row.is_binary)
        return {
            "topic": self.topic,
            "measured": measured(self, model, [row], *notes),
            "model": model,
            "asked": self.bias_type,
            "coverage": self.coverage(model),
            "about": self.about,
            "pieces": own | pieces,
        }

    def of_table(self, name: str) -> list[Row]:
        """Pick its rows of a probe table."""
        return where(self.part.tables.get(name, ()), debiasing_id=0, **self.way)

    @cached_property
    def rows(self) -> list[Row]:
        """Its rows of probe_groups."""
        return self.of_table("probe_groups")

    @cached_property
    def _rows_of(self) -> dict[tuple[str, ...], list[Row]]:
        return grouped(self.rows, "model", "gender")

    def rows_of(self, model: str, gender: str = "") -> Sequence[Row]:
        """A model's rows of probe_groups for a gender; else for the one that sentences speak of."""
        return self._rows_of.get((model, gender or self.gender), ())

    @cached_property
    def tests(self) -> list[Contrast]:
        """Its rows of tests without a debiasing prompt."""
        return where(self.part.tests, **self.way, debiasing_a="0", debiasing_b="0")

    def against_workforce(self, kind: str) -> list[Contrast]:
        """Its tests of a kind of the shares over all jobs against labour statistics."""
        of_relation = {"quantity": "female_share~workforce_share", "contrast": "workforce"}
        return where(self.tests, **of_relation, kind=kind, group_a="", group_b="")

    @cached_property
    def models(self) -> list[str]:
        """Its models in order of appearance."""
        return distinct(self.rows, "model")

    @cached_property
    def groups(self) -> list[str]:
        """Its job groups, jobs mostly held by women first."""
        return in_order(self.rows)

    @cached_property
    def _tests_by_model(self) -> dict[tuple[str, ...], list[Contrast]]:
        return grouped(self.tests, "quantity", "model_a")

    def tests_of(self, model: str, whole: str = "share") -> list[Contrast]:
        """A model's tests between groups of jobs; for shares only of the gender that sentences speak of."""
        of_model = self._tests_by_model.get((self.quantity(whole), model), ())
        rows = where(of_model, kind="crossed", contrast="groups")
        return where(rows, gender=self.gender) if whole == "share" else rows

    def between_groups(self, model: str) -> Contrast | None:
        """The test of the share between the two groups of jobs."""
        return first(self.tests_of(model))

    @cached_property
    def jobs(self) -> dict[tuple[str, ...], list[Row]]:
        """Its rows of probe_jobs by model."""
        return grouped(self.of_table("probe_jobs"), "model")

    @cached_property
    def outcomes(self) -> dict[tuple[str, ...], list[Row]]:
        """Its rows of probe_outcomes by model."""
        return grouped(self.of_table("probe_outcomes"), "model")

    def row(self, model: str, group: str) -> Row | None:
        """The row of a group of jobs and the gender that sentences speak of."""
        return first(self.rows_of(model), job_group=group)


def genders_of_neither(part: Part) -> list[str]:
    """List the gender groups beside the two whose shares are said; none where shares are of all words."""
    two = part.contrast if part.rule.binary else part.groups
    return [gender for gender in part.groups if gender not in two]


def blocks_of(part: Part) -> list[ProbeBlock]:
    """List the blocks of a part, explicit before implicit; the plain context where there is one."""
    rows = in_main_context(where(part.tables.get("probe_groups", ()), debiasing_id=0))
    scopes = grouped(rows, "bias_type", "context", "prompt_format")
    return [ProbeBlock(part, *scope) for scope in sorted(scopes, key=lambda scope: scope[0])]


def blocks_in(content: Content) -> Iterator[ProbeBlock]:
    """List the blocks of every part of a page."""
    for part in parts_of(content.parts, "probe"):
        yield from blocks_of(part)


def widest_bounds(rows: Sequence[Row]) -> float | None:
    """Find the greatest width of the bounds of a share; None where no row has bounds."""
    bounded = defined(rows, "share_low", "share_high")
    return max((row["share_high"] - row["share_low"] for row in bounded), default=None)


def measured(block: ProbeBlock, model: str, rows: Sequence[Row | None] = (), *extra: str) -> str:
    """Say what was measured: estimator, format, n, model; then what the `rows` of a sentence rest on."""
    shares = block.rows_of(model)
    templates = distinct(defined(shares, "n_templates"), "n_templates")
    jobs = count(total(shares, "n_jobs"), "job")
    plural = "" if templates == [1] else "s"
    size = f"{number_range(templates)} template{plural} × {jobs}" if templates else ""
    notes = [*extra, *noted([*rows, *shares])]
    # A service that shows only its likeliest words leaves bounds around a share.
    if (width := widest_bounds(shares)) is not None:
        notes.append(f"bounds of up to {points(width)} around a share")
    prompt_format = f"{block.prompt_format} prompts"
    return measured_by(listed(distinct(shares, "estimator")), prompt_format, size, short(model), notes=notes)
