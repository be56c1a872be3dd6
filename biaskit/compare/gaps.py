"""The four gaps of an occupation: what the prober says, the texts, the labour force, SRB.

See docs/methods.md#gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.compare.aliases import key_of
from biaskit.stats.contrasts import Row
from biaskit.stats.crossed import joined
from biaskit.tables.quantities import GAPS
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import Tables, grouped, where, without_instruction

FEMALE, MALE = "female", "male"
Aliases = Mapping[str, str]
"""Name → the name that stands for it (`compare/aliases.py`)."""


@dataclass(frozen=True, slots=True)
class BothEngines:
    """One model's tables of both engines."""

    model: str
    probe: Tables  # probe_jobs
    personas: Tables  # representation, srb
    probe_model: str  # what each engine's tables call it
    personas_model: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or why there is none."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LabourTable:
    """Share of women in the labour force, by occupation: one table for both engines."""

    share: Mapping[str, float]  # by `aliases.key_of`
    apart: tuple[str, ...] = ()  # occupations of which the engines have other shares

    @property
    def note(self) -> str | None:
        """A sentence where the engines disagree."""
        if not self.apart:
            return None
        more = f" and {len(self.apart) - 5} more" if len(self.apart) > 5 else ""
        return (
            f"Labour shares differ between the engines for {len(self.apart)} occupations"
            f" ({', '.join(self.apart[:5])}{more}): those of the texts' runs are used for both."
        )


def labour_table(
    representation: Iterable[StoredRow], probe_jobs: Iterable[StoredRow], aliases: Aliases
) -> LabourTable:
    """One labour table: the texts' run's where it has it, else the prober's; disagreements are named."""
    share: dict[str, float] = {}
    apart: dict[str, None] = {}
    rows = [(str(r["occupation"]), r) for r in representation] + [(str(r["job"]), r) for r in probe_jobs]
    for name, row in rows:
        value = _number(row, "labour_female_share")
        if value is not None and share.setdefault(key_of(name, aliases), value) != value:
            apart[name] = None
    return LabourTable(share, tuple(apart))


def gap_rows(both: BothEngines, labour: LabourTable, aliases: Aliases) -> tuple[list[Row], list[str]]:
    """gaps.csv of one model: a row per occupation that both engines measured, bias type and prompt form.

    probe_gap = female_share − male_share of a job (instruction 0, plain); represented_gap = share of women
    − share of men in its texts; labour_gap = 2 · labour share − 1; srb_spread = SRB(men) − SRB(women), so
    that positive means each nearer to their own specified gender. All in [−1, 1] but the spread; positive
    gaps point to women. The notes name occupations that cannot be joined and those of one engine alone.
    """
    jobs = where(both.probe.get("probe_jobs", ()), model=both.probe_model, instruction_id=0, setting="plain")
    texts = where(both.personas.get("representation", ()), model=both.personas_model)
    if jobs and not {f"{FEMALE}_share", f"{MALE}_share"} <= jobs[0].keys():
        return [], [f"{both.model}: the prober's gender groups lack female or male: there are no gaps."]
    texts = without_instruction(texts)
    occupations, twice_there = _by_key((str(row["occupation"]) for row in texts), aliases)
    names, twice_here = _by_key((str(row["job"]) for row in jobs), aliases)
    notes = [f"{both.model}: {sentence}" for sentence in (*twice_here, *twice_there)]
    common = [key for key in occupations if key in names]
    alone = len(occupations.keys() ^ names.keys())
    if alone and common:
        notes.append(f"{both.model}: {alone} occupations of one engine alone have no gaps.")
    if not common:
        notes.append(f"{both.model}: the engines have no occupation in common (--aliases FILE joins names).")
    spreads, texts_of, jobs_of = _spreads(both), grouped(texts, "occupation"), grouped(jobs, "job")
    rows = []
    for key in common:
        represented = _represented(texts_of.get((occupations[key],), []))
        spread, vectors = spreads.get(occupations[key], (Number(None, "no SRB"), ""))
        for row in jobs_of.get((names[key],), []):
            gaps = (_probe_gap(row), represented, _labour_gap(labour.share.get(key)), spread)
            rows.append(_row(both.model, occupations[key], row, gaps, vectors))
    return rows, notes


def _by_key(names: Iterable[str], aliases: Aliases) -> tuple[dict[str, str], list[str]]:
    """Key → the engine's own name; two names of one engine that mean the same are left out and named."""
    known: dict[str, str] = {}
    twice: dict[str, str] = {}
    for name in dict.fromkeys(names):
        key = key_of(name, aliases)
        if known.setdefault(key, name) != name:
            twice[key] = (
                f"{known[key]} and {name} are one name for both engines and are left out of the gaps."
            )
    return {key: name for key, name in known.items() if key not in twice}, list(twice.values())


def _row(
    model: str, occupation: str, job: StoredRow, gaps: tuple[Number, Number, Number, Number], vectors: str
) -> Row:
    return {
        "model": model,
        "occupation": occupation,
        "bias_type": job["bias_type"],
        "prompt_form": job["prompt_form"],
        **{name: gap.value for name, gap in zip(GAPS, gaps, strict=True)},
        "vectors": vectors,
        "reason": joined(
            [f"{name}: {gap.reason}" for name, gap in zip(GAPS, gaps, strict=True) if gap.value is None]
        ),
    }


# --- one number ------------------------------------------------------------------------------------


def _probe_gap(row: StoredRow) -> Number:
    women, men = _number(row, f"{FEMALE}_share"), _number(row, f"{MALE}_share")
    if women is None or men is None:
        return Number(None, str(row.get("reason") or "no share"))
    return Number(women - men)


def _represented(rows: Sequence[StoredRow]) -> Number:
    """Share of women − share of men in the texts of one occupation.

    Shares are of the associated texts (women, men, non-binary people), as `female_share` is; the number is
    the mean of the prompts' differences, as the row `all` is the mean of the prompts' shares: summed counts
    would weigh a prompt by how many of its texts have an association.
    """
    templates = [row for row in rows if row["template_id"] != "all"] or list(rows)
    found = []
    for row in templates:
        counts = [row["n_female"], row["n_male"], row["n_nonbinary"]]
        if any(n is None for n in counts) or not sum(counts):
            return Number(None, f"no associated text ({row['template_id']})")
        found.append((counts[0] - counts[1]) / sum(counts))
    return Number(sum(found) / len(found)) if found else Number(None, "no texts without a specified gender")


def _labour_gap(share: float | None) -> Number:
    return Number(None, "no labour share") if share is None else Number(2.0 * share - 1.0)


def _spreads(both: BothEngines) -> dict[str, tuple[Number, str]]:
    """Occupation → SRB(men) − SRB(women) and the vector model it was made with."""
    by_gender: dict[str, dict[str, StoredRow]] = {}
    for row in where(both.personas.get("srb", ()), model=both.personas_model):
        by_gender.setdefault(str(row["occupation"]), {})[str(row["gender"])] = row
    return {occupation: _spread(rows) for occupation, rows in by_gender.items()}


def _spread(rows: Mapping[str, StoredRow]) -> tuple[Number, str]:
    scores = {gender: _number(row, "srb") for gender, row in rows.items()}
    women, men = scores.get(FEMALE), scores.get(MALE)
    if women is not None and men is not None:
        return Number(men - women), str(rows[FEMALE]["vectors"] or "")
    reasons = [str(row["reason"]) for row in rows.values() if row["srb"] is None and row.get("reason")]
    return Number(None, joined(reasons) or "no SRB of both women and men"), ""


def _number(row: StoredRow, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None


# --- over occupations ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """One gap of one model over occupations, in one bias type and form where they matter."""

    model: str
    gap: str
    bias_type: str  # empty but for probe_gap
    prompt_form: str
    values: Mapping[str, float | None]  # by occupation as in gaps.csv


def measures(rows: Sequence[Mapping[str, object]]) -> Iterator[Measure]:
    """Every gap of one model's rows: probe_gap per bias type and form, the others once."""
    for (bias_type, form), own in grouped(rows, "bias_type", "prompt_form").items():
        yield Measure(str(rows[0]["model"]), "probe_gap", bias_type, form, _values(own, "probe_gap"))
    for gap in GAPS[1:]:
        if rows:
            yield Measure(str(rows[0]["model"]), gap, "", "", _values(rows, gap))


def _values(rows: Sequence[Mapping[str, object]], gap: str) -> dict[str, float | None]:
    return {
        str(row["occupation"]): float(value) if isinstance(value := row[gap], int | float) else None
        for row in rows
    }
