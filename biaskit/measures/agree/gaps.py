"""The four gaps of an occupation: answers, texts, workforce, SRB (methods/comparisons#gaps)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.wording import first_words, joined
from biaskit.compare.aliases import key_of
from biaskit.compare.same_prompts import PromptTexts, vectors_of
from biaskit.compare.units import Values
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.runs.collection import StoredRun
from biaskit.tables.quantities import GAPS
from biaskit.tables.query import (
    Row,
    apart_from,
    defined,
    distinct,
    grouped,
    named,
    undefined,
    where,
    without_debiasing,
)

FEMALE, MALE = "female", "male"
_NOTES: Mapping[str, str] = words("agree")["notes"]
Aliases = Mapping[str, str]
"""Name → the name that stands for it (`compare/aliases.py`)."""


@dataclass(frozen=True, slots=True)
class BothKinds:
    """One model's runs of both measurements, and what each calls it."""

    model: str
    probe: StoredRun
    personas: StoredRun
    probe_model: str
    personas_model: str

    def plain(self, table: str) -> list[Row]:
        """Its rows of a table of the prober without a debiasing prompt, in the plain context."""
        rows = self.probe.tables.get(table, ())
        return where(rows, model=self.probe_model, debiasing_id=0, context="plain")

    def texts(self) -> list[Row]:
        """Its rows of representation.csv without a debiasing prompt."""
        rows = self.personas.tables.get("representation", ())
        return without_debiasing(where(rows, model=self.personas_model))

    def scores(self) -> list[Row]:
        """Its rows of srb.csv."""
        return where(self.personas.tables.get("srb", ()), model=self.personas_model)


Number = tuple[float | None, str | None]
"""A number, or None and why there is none."""


def workforce_table(
    representation: Iterable[Row], probe_jobs: Iterable[Row], aliases: Aliases
) -> tuple[dict[str, float], list[str]]:
    """Collect workforce shares by `aliases.key_of`, the texts' where two differ, and a note on those."""
    shares: dict[str, float] = {}
    differing: dict[str, None] = {}
    for column_of_name, rows in (("occupation", representation), ("job", probe_jobs)):
        for row in defined(rows, "workforce_share"):
            name, value = str(row[column_of_name]), row["workforce_share"]
            if shares.setdefault(key_of(name, aliases), value) != value:
                differing[name] = None
    if not differing:
        return shares, []
    return shares, [_NOTES["shares_differ"].format(len(differing), first_words([*differing], 5, ", "))]


def gap_rows(
    both: BothKinds, workforce: Mapping[str, float], aliases: Aliases
) -> tuple[list[Row], list[str]]:
    """Make gaps.csv of one model: a row per occupation that both kinds measured, bias type and format.

    probe_gap = female_share − male_share of a job (debiasing prompt 0, plain); represented_gap = share of
    women − share of men in its texts; workforce_gap = 2 · workforce share − 1; srb_spread = SRB(men) −
    SRB(women), without gendered words: positive where the words of each gender are nearer to texts requested
    about it. The gaps of shares are in [−1, 1], positive towards women. The notes name occupations that do
    not meet.
    """
    jobs, texts = both.plain("probe_jobs"), both.texts()
    if jobs and not {f"{FEMALE}_share", f"{MALE}_share"} <= jobs[0].keys():
        return [], [_NOTES["no_genders"].format(both.model)]
    occupations, twice_there = _by_key(distinct(texts, "occupation"), aliases)
    names, twice_here = _by_key(distinct(jobs, "job"), aliases)
    notes = [f"{both.model}: {sentence}" for sentence in (*twice_here, *twice_there)]
    common = [key for key in occupations if key in names]
    alone = len(occupations.keys() ^ names.keys())
    if alone and common:
        notes.append(_NOTES["alone"].format(both.model, alone))
    if not common:
        notes.append(_NOTES["none_common"].format(both.model))
    scores, texts_of = grouped(both.scores(), "occupation"), grouped(texts, "occupation")
    jobs_of = grouped(jobs, "job")
    rows: list[Row] = []
    for key in common:
        occupation, share = occupations[key], workforce.get(key)
        of_workforce: Number = (None, "no workforce share") if share is None else (2.0 * share - 1.0, None)
        spread, vectors = _spread(scores.get((occupation,), []))
        represented = _represented(texts_of[(occupation,)])
        for job in jobs_of[(names[key],)]:
            gaps = dict(zip(GAPS, (_probed(job), represented, of_workforce, spread), strict=True))
            missing = [f"{name}: {why}" for name, (value, why) in gaps.items() if value is None]
            row: dict[str, object] = {"model": both.model, "occupation": occupation}
            row |= {"bias_type": job["bias_type"], "prompt_format": job["prompt_format"]}
            row |= {name: value for name, (value, _) in gaps.items()}
            rows.append({**row, "vectors": vectors, "reason": joined(missing)})
    return rows, notes


def _by_key(names: Iterable[str], aliases: Aliases) -> tuple[dict[str, str], list[str]]:
    """Map keys to a measurement's names; leave out names that share a key, with a sentence for each."""
    name_of: dict[str, str] = {}
    twice: dict[str, str] = {}
    for name in map(str, names):
        key = key_of(name, aliases)
        if name_of.setdefault(key, name) != name:
            twice[key] = _NOTES["twice"].format(name_of[key], name)
    return {key: name for key, name in name_of.items() if key not in twice}, list(twice.values())


def _probed(job: Row) -> Number:
    """Share of women − share of men in the answers about one job."""
    women, men = job[f"{FEMALE}_share"], job[f"{MALE}_share"]
    if women is None or men is None:
        return None, str(job.get("reason") or "no share")
    return women - men, None


def _represented(rows: Sequence[Row]) -> Number:
    """Share of women − share of men in the texts of one occupation: the mean of its prompts' differences.

    Shares are of the texts with an inferred gender (women, men, non-binary people), as `female_share` is.
    Summed counts would weigh a prompt by how many of its texts have an association. Labels of a person
    correct them.
    """
    for row in rows:
        if row.get("share_corrected") is not None:
            return 2 * row["share_corrected"] + row["nonbinary_corrected"] - 1, None
    differences = []
    for row in apart_from(rows, template_id=ALL) or rows:
        counts = [row["n_female"], row["n_male"], row["n_nonbinary"]]
        if None in counts or not sum(counts):
            return None, f"no text with a gender ({row['template_id']})"
        differences.append((counts[0] - counts[1]) / sum(counts))
    if not differences:
        return None, "no texts without a requested gender"
    return sum(differences) / len(differences), None


def _spread(rows: Sequence[Row]) -> tuple[Number, str]:
    """SRB(men) − SRB(women) of one occupation without gender words, and its vector model."""
    row_of = {str(row["gender"]): row for row in rows}
    women, men = (row_of.get(gender, {}).get("srb_content") for gender in (FEMALE, MALE))
    if women is not None and men is not None:
        return (men - women, None), str(row_of[FEMALE]["vectors"] or "")
    reasons = list(map(str, named(undefined(rows, "srb_content"), "reason")))
    return (None, joined(reasons) or ("no SRB of both women and men" if rows else "no SRB")), ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One gap of one model over occupations; probe_gap in one bias type and prompt format."""

    model: str
    label: str  # what the measurement that measured it calls the model
    gap: str
    values: Values  # by occupation as in gaps.csv
    asked: object  # the texts behind it: numbers of other texts are not compared
    bias_type: str = ""  # of probe_gap
    prompt_format: str = ""
    vectors: tuple[str, str] = ("", "")  # of srb_spread, and their run

    @property
    def place(self) -> tuple[str, str, str]:
        """What tells it from the other measures of its model."""
        return self.gap, self.bias_type, self.prompt_format


def measures(both: BothKinds, rows: Sequence[Row]) -> Iterator[Measure]:
    """Read every gap from the rows of one model: probe_gap per bias type and format, the others once."""
    texts = PromptTexts(both.probe.question)
    cells = both.plain("probe_prompts")
    for (bias_type, prompt_format), of_format in grouped(rows, "bias_type", "prompt_format").items():
        own = where(cells, bias_type=bias_type, prompt_format=prompt_format)
        asked = {number: texts.template(bias_type, number) for number in distinct(own, "template_id")}
        values = _values(of_format, "probe_gap")
        yield Measure(both.model, both.probe_model, "probe_gap", values, asked, bias_type, prompt_format)
    for gap in GAPS[1:] if rows else ():
        spread = gap == "srb_spread"
        vectors = (vectors_of(both.scores()), str(both.personas.path)) if spread else ("", "")
        values, prompts = _values(rows, gap), _prompts(both, with_gender=spread)
        yield Measure(both.model, both.personas_model, gap, values, prompts, vectors=vectors)


def _values(rows: Sequence[Row], gap: str) -> Values:
    return {str(row["occupation"]): row[gap] for row in rows}


def _prompts(both: BothKinds, *, with_gender: bool) -> object:
    """The prompt format of a model's texts, and their prompts by template."""
    prompt_format = both.personas.manifest.models[both.personas_model].prompt_format
    asked, prompts = PromptTexts(both.personas.question), {}
    for name in map(str, distinct(apart_from(both.texts(), template_id=ALL), "template_id")):
        prompts[name] = asked.prompt(name, prompt_format, with_gender=with_gender)
    return prompt_format, prompts
