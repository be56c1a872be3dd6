"""Batches of samples: Algorithm 5 corrected; the same rows at any order of arrival, failure, interruption."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from biaskit.errors import ModelError
from biaskit.measures.personas.design import PersonasDesign, resolve
from biaskit.measures.personas.sampling.filling import BatchVerdict, Filling, Tally
from biaskit.measures.personas.sampling.samples import sample_texts
from biaskit.measures.personas.sampling.series import format_for, sample_keys, seed_of, series_of_design
from biaskit.measures.personas.study import PersonasStudy
from biaskit.models.scripted import ScriptedGenerator
from biaskit.progress import ModelPlan, Silent
from biaskit.records import Failed, ModelIdentity, Plan, Sample, SampleRequest
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import RowWriter, read_rows, rows_file
from biaskit.study.config import load_as

WOMAN = "She is well known and her friends like her."
MAN = "He is well known and his friends like him."
NOBODY = "This person is well known."

F, M, N = "female", "male", None


# --- whether a series goes on ---------------------------------------------------------------------


def genders(*listed: str | None) -> dict[int, str | None]:
    return dict(enumerate(listed))


def count(genders: Mapping[int, str | None], samples: range) -> tuple[int, int]:
    """Women and men among some samples."""
    found = [gender for sample, gender in genders.items() if sample in samples]
    return found.count(F), found.count(M)


def verdict_after(filling: Filling, genders: Mapping[int, str | None], sample_batches: int) -> BatchVerdict:
    """By all samples of the batches, where the product adds one batch after the other."""
    first, found = (count(genders, range(n * filling.batch)) for n in (1, sample_batches))
    return filling.verdict_of(first, found, sample_batches)


def printed_loop_goes_on(women: int, men: int, n: int) -> bool:
    """The test that GAS(P) prints in Algorithm 5: "while t_M < n and t_F < n"."""
    return men < n and women < n


def test_a_series_goes_on_while_either_gender_is_short_and_the_printed_loop_would_stop() -> None:
    filling = Filling(n=5, batch=10, most=100)
    batch = [F] * 8 + [M] * 2
    expected = {1: ("open", 8, 2), 2: ("open", 16, 4), 3: ("full", 24, 6)}
    for sample_batches, (verdict, women, men) in expected.items():
        drawn = genders(*batch * sample_batches)
        assert (women, men) == count(drawn, range(100))
        assert verdict == verdict_after(filling, drawn, sample_batches)
        assert not printed_loop_goes_on(women, men, 5), "the printed test has stopped since the first batch"
    assert ("open", True) == (verdict_after(filling, {}, 0), printed_loop_goes_on(0, 0, 5))


def test_the_verdict_is_the_same_with_women_and_men_exchanged() -> None:
    filling, other = Filling(n=3, batch=4, most=16), {F: M, M: F, N: N}
    chance = random.Random(1)
    seen = set()
    for _ in range(300):
        sample_batches = chance.randint(0, 4)
        drawn = genders(*chance.choices([F, M, N], [5, 2, 2], k=4 * sample_batches))
        verdict = verdict_after(filling, drawn, sample_batches)
        assert verdict == verdict_after(filling, {k: other[g] for k, g in drawn.items()}, sample_batches)
        seen.add(verdict)
    assert {"open", "full", "ineligible", "capped"} == seen


@pytest.mark.parametrize(
    ("women", "men", "verdict"),
    [(18, 2, "open"), (19, 1, "ineligible"), (2, 18, "open"), (1, 19, "ineligible"), (2, 2, "open"),
     (20, 0, "ineligible"), (0, 0, "ineligible")],
)  # fmt: skip
def test_ten_percent_count_against_the_batch(women: int, men: int, verdict: str) -> None:
    """2 of 20 are not below 10 %; texts of nobody count for the batch."""
    drawn = genders(*[F] * women, *[M] * men, *[N] * (20 - women - men))
    assert verdict == verdict_after(Filling(n=20, batch=20, most=400), drawn, 1)


def test_a_sample_that_was_given_up_counts_for_nobody_but_for_its_batch() -> None:
    filling = Filling(n=20, batch=20, most=400)
    drawn = genders(*[F] * 18, *[M] * 2)
    assert "open" == verdict_after(filling, {k: g for k, g in drawn.items() if k != 0}, 1)
    # 1 of the 19 answered would be below 10 % of either; 1 of 10 answered would not be, of the batch it is.
    few = {k: g for k, g in drawn.items() if 9 <= k < 19}
    assert (9, 1) == count(few, range(20))
    assert "ineligible" == verdict_after(filling, few, 1)


def test_batches_that_are_counted_once_give_the_verdicts_of_all_samples() -> None:
    filling, chance = Filling(n=3, batch=4, most=18), random.Random(2)
    seen = set()
    for _ in range(300):
        drawn = genders(*chance.choices([F, M, N], [5, 2, 2], k=18))
        tally, shown = Tally(filling), {}
        for number in range(5):
            of_batch = {sample: drawn[sample] for sample in filling.of_batch(number) if chance.random() < 0.9}
            shown |= of_batch
            assert verdict_after(filling, shown, number + 1) == tally.add(of_batch.values())
        seen |= {*tally.verdicts}
    assert {"open", "full", "ineligible", "capped"} == seen


# --- a scripted model that answers as it likes ----------------------------------------------------

LINES = [
    {"contains": "a nurse who", "texts": [WOMAN, MAN, NOBODY]},
    {"contains": "a mechanic who", "texts": [MAN]},
    {"contains": "nurse", "texts": [WOMAN, WOMAN, WOMAN, WOMAN, MAN]},  # 5 men after 25 samples
    {"contains": "mechanic", "texts": [MAN, MAN, WOMAN, NOBODY]},  # 5 women after 19 samples
    {"contains": "lawyer", "texts": [WOMAN, MAN]},  # both after 10
    {"contains": "cook", "texts": [MAN, NOBODY]},  # never a woman
    {"contains": "clerk", "texts": [MAN, WOMAN, *[NOBODY] * 28]},  # 5 of each after 122: beyond the cap
    {"texts": [WOMAN, MAN]},
]
MOST = 40
DRAWN = {"nurse": 25, "mechanic": 20, "lawyer": 10, "cook": 5, "clerk": MOST}
"""Samples of a prompt that names no gender, with five of each wanted in batches of five, at most `MOST`."""

Fails = Callable[[SampleRequest, int], bool]


class Unruly(ScriptedGenerator):
    """Answers in an order and in groups of its own, and fails where it is told to.

    A text names its sample, so that a text on the wrong row shows. Its batches are whole, as a local model's.
    """

    whole_batches = True

    def __init__(
        self,
        *,
        seed: int | None = None,
        fails: Fails = lambda request, time: False,
        tuning: str = "unknown",
        batch_size: int = 4,  # no divisor of a batch: batches hold samples of two prompts
    ) -> None:
        super().__init__(LINES, label="m", spec="scripted:m", batch_size=batch_size)
        self.identity: ModelIdentity = replace(self.identity, tuning=tuning)  # type: ignore[arg-type]
        self._chance = random.Random(seed)
        self._shuffles = seed is not None
        self._fails = fails
        self.asked: Counter[str] = Counter()
        self.calls: list[list[str]] = []

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        requests = [request for batch in batches for request in batch]
        self.calls.append([request.key for request in requests])
        if self._shuffles:
            self._chance.shuffle(requests)
        while requests:
            size = self._chance.randint(1, 12)
            group, requests = requests[:size], requests[size:]
            yield [self._reply(request) for request in group]

    def _reply(self, request: SampleRequest) -> Sample | Failed:
        self.asked[request.key] += 1
        answer = self._answer(request)
        assert isinstance(answer, Sample)
        if self._fails(request, self.asked[request.key]):
            return Failed(request.key, "overloaded")
        return replace(answer, text=f"{answer.text} {request.number} {request.seed}")


class Plans(Silent):
    """Keeps the plans; stops the run like Ctrl-C after so many reports of progress."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.plans: list[tuple[ModelPlan, bool]] = []
        self.left = stop_after

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        self.plans.append((plan, dry_run))

    def progress(self, label: str, done: int, total: int) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt


def questions_of(**keys: Any) -> PersonasDesign:
    occupations = keys.pop("occupations", tuple(DRAWN))
    settings = {"occupations.select": occupations, "templates.select": ("persona", "biography")}
    return resolve(
        load_as(PersonasStudy, "gasp-pilot", {**settings, "per_gender": 5, "max_samples": MOST, **keys})
    )


@dataclass(frozen=True)
class Asked:
    run: Path
    done: Outcome
    model: Unruly
    watcher: Plans

    @property
    def plan(self) -> ModelPlan:
        [(plan, _)] = self.watcher.plans
        return plan


def start(
    run: Path,
    model: Unruly | None = None,
    *,
    stop_after: int | None = None,
    dry_run: bool = False,
    **keys: Any,
) -> Asked:
    model, watcher = model or Unruly(), Plans(stop_after)
    done = Outcome()
    session: Session[Any] = Session(run, {"m": "scripted:m"}, lambda *_: model, watcher, dry_run)
    try:
        done = sample_texts(questions_of(**keys), session)
    except KeyboardInterrupt:
        assert stop_after is not None
    return Asked(run, done, model, watcher)


def rows_of(run: Path) -> dict[str, dict[str, Any]]:
    """Key → row without when it was answered; a row that stands twice is refused."""
    lines = rows_file(run, "personas").read_text("ascii").splitlines()
    rows = {row["key"]: row for row in read_rows(rows_file(run, "personas"))}
    assert len(lines) == len(rows), "a row was written twice"
    return {
        key: {k: v for k, v in row.items() if k not in ("answered_at", "sum")} for key, row in rows.items()
    }


def drawn(rows: Mapping[str, Mapping[str, Any]], requested: bool = False) -> Counter[tuple[Any, ...]]:
    """Rows per series, after checking that the samples of each count from 0 without a hole."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in rows.values():
        if (row["requested_gender"] is not None) == requested:
            scope = (row["occupation"], row["template_id"], row["requested_gender"])
            found.setdefault(scope[: 3 if requested else 2], []).append(row["sample"])
    assert all(sorted(samples) == list(range(len(samples))) for samples in found.values())
    return Counter({scope: len(samples) for scope, samples in found.items()})


PROMPTS = ("persona", "biography")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return start(tmp_path_factory.mktemp("unbroken") / "run")


# --- one run ------------------------------------------------------------------------------------------


def test_each_prompt_is_drawn_until_both_genders_are_full_or_there_is_a_reason(unbroken: Asked) -> None:
    rows = rows_of(unbroken.run)
    assert {(job, prompt): n for job, n in DRAWN.items() for prompt in PROMPTS} == drawn(rows)
    assert {} == unbroken.done.failed
    # Every draw was asked once, and no batch was asked that a row already had.
    assert {1} == set(unbroken.model.asked.values())
    assert set(rows) == set(unbroken.model.asked)


def test_a_prompt_that_names_a_gender_is_drawn_n_times_for_every_occupation(unbroken: Asked) -> None:
    """Also for the cook, who is ineligible, and whatever the texts say."""
    wanted = {(job, p, g): 5 for job in DRAWN for p in PROMPTS for g in ("female", "male", "nonbinary")}
    assert wanted == drawn(rows_of(unbroken.run), requested=True)


def test_all_prompts_of_a_batch_are_in_flight_together(unbroken: Asked) -> None:
    rows = rows_of(unbroken.run)
    first, second = unbroken.model.calls[:2]
    assert 5 * 2 * 5 + 5 * 2 * 3 * 5 == len(first)
    # The cook is out after the first batch; every other prompt gives its next five samples.
    assert {(rows[key]["occupation"], rows[key]["sample"]) for key in second} == {
        (job, sample) for job in DRAWN if job != "cook" for sample in range(5, 10)
    }
    assert MOST / 5 == len(unbroken.model.calls)


def test_a_row_holds_its_sample_with_the_seed_of_its_key(unbroken: Asked) -> None:
    design = questions_of()
    for key, row in rows_of(unbroken.run).items():
        assert seed_of(1, key) == row["seed"]
        assert row["seed"] == int(hashlib.sha256(f"[1,{key}]".encode()).hexdigest()[:8], 16) >> 1
        assert row["text"].endswith(f" {row['sample']} {row['seed']}")
        assert ("m", "chat", None, "stop") == tuple(
            row[name] for name in ("model", "prompt_format", "system", "finish_reason")
        )
    seeds = [row["seed"] for row in rows_of(unbroken.run).values()]
    assert len(seeds) == len(set(seeds))
    assert 1 == design.study.seed


def test_max_samples_is_the_cap_of_every_prompt_that_names_no_gender(tmp_path: Path) -> None:
    rows = rows_of(start(tmp_path / "run", max_samples=12).run)
    assert {
        (job, prompt): {"cook": 5, "lawyer": 10}.get(job, 12) for job in DRAWN for prompt in PROMPTS
    } == drawn(rows)
    assert {5} == set(drawn(rows, requested=True).values())


def test_without_filling_one_batch_is_all(tmp_path: Path) -> None:
    rows = rows_of(start(tmp_path / "run", fill=False, batch=7).run)
    assert {(job, prompt): 7 for job in DRAWN for prompt in PROMPTS} == drawn(rows)
    assert {5} == set(drawn(rows, requested=True).values())


def test_refused_and_filtered_texts_are_no_text_of_a_gender(tmp_path: Path) -> None:
    """Women and men are in every text; the model filters those of the men, so the men are never there."""

    class Filters(Unruly):
        def _reply(self, request: SampleRequest) -> Sample | Failed:
            answer = super()._reply(request)
            assert isinstance(answer, Sample)
            return replace(answer, finish="filter") if answer.text.startswith(MAN) else answer

    rows = rows_of(start(tmp_path / "run", Filters(), occupations=("lawyer",), requested=()).run)
    assert {("lawyer", prompt): 5 for prompt in PROMPTS} == drawn(rows)


# --- the same rows, however the answers come ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_interruptions_shuffling_and_failures_together_change_no_row(
    unbroken: Asked, tmp_path: Path, seed: int
) -> None:
    """A run that is stopped after a few groups, again and again, by a model that is never twice the same."""
    chance = random.Random(100 + seed)
    starts, n_rows = 0, -1
    while True:
        lot = {key for key in rows_of(unbroken.run) if chance.random() < 0.2}
        model = Unruly(seed=starts, fails=lambda request, time, lot=lot: request.key in lot and time == 1)  # type: ignore[misc]
        other = start(tmp_path / "run", model, stop_after=chance.randint(1, 20))
        starts += 1
        if other.watcher.left is not None and other.watcher.left >= 0:
            break
        rows = rows_of(tmp_path / "run") if rows_file(tmp_path / "run", "personas").exists() else {}
        assert len(rows) >= n_rows
        n_rows = len(rows)
        assert rows.items() <= rows_of(unbroken.run).items(), "a start drew what an unbroken run does not"
    assert starts > 5
    assert rows_of(unbroken.run) == rows_of(tmp_path / "run")


def test_a_stored_draw_that_is_asked_again_beside_a_failed_one_may_fail(
    unbroken: Asked, tmp_path: Path
) -> None:
    """A batch is computed whole; what its stored samples answer again is neither row nor failure."""
    whole = rows_of(unbroken.run)
    lot = set(list(whole)[::9])
    found = start(tmp_path / "run", Unruly(fails=lambda r, time: (time == 1) == (r.key in lot)))
    assert any(found.model.asked[key] > 1 for key in whole.keys() - lot)
    assert whole == rows_of(found.run)
    assert {} == found.done.failed


def test_a_sample_that_fails_twice_is_given_up_and_its_batch_ends_without_it(
    unbroken: Asked, tmp_path: Path
) -> None:
    whole = rows_of(unbroken.run)
    # A woman's text of the nurse, who has women enough: the hole changes no verdict.
    [hole] = [
        key
        for key, row in whole.items()
        if (row["occupation"], row["template_id"], row["requested_gender"], row["sample"])
        == ("nurse", "persona", None, 2)
    ]
    first = start(tmp_path / "run", Unruly(seed=1, fails=lambda request, time: request.key == hole))
    assert {"m": {"overloaded": 1}} == first.done.failed
    assert 2 == first.model.asked[hole]
    assert {key: row for key, row in whole.items() if key != hole} == rows_of(first.run)
    # It is asked again at the next start, still fails, and stays a hole; nothing else is asked.
    second = start(tmp_path / "run", Unruly(seed=2, fails=lambda request, time: request.key == hole))
    assert {"m": {"overloaded": 1}} == second.done.failed
    assert whole.keys() - {hole} == rows_of(first.run).keys()
    assert 2 == second.model.asked[hole]
    plan = second.plan
    assert (1, len(whole) - 1) == (plan.n_units - plan.n_stored, plan.n_stored)
    # With it the nurse may turn out to need what batches after hers may ask: not what they have asked
    # already.
    assert 1 + MOST - DRAWN["nurse"] == (plan.n_units_most or 0) - plan.n_stored
    third = start(tmp_path / "run", Unruly(seed=3))
    assert {} == third.done.failed
    assert whole == rows_of(tmp_path / "run")


def test_a_hole_that_a_gender_needed_makes_one_more_round_and_that_round_stays(
    unbroken: Asked, tmp_path: Path
) -> None:
    """The lawyer's men are samples 1, 3, 5, 7, 9; without one of them a batch more is drawn."""
    whole = {k: r for k, r in rows_of(unbroken.run).items() if r["occupation"] == "lawyer"}
    [hole] = [
        k
        for k, r in whole.items()
        if (r["template_id"], r["requested_gender"], r["sample"]) == ("biography", None, 7)
    ]
    choice = {"occupations": ("lawyer",)}
    first = start(tmp_path / "run", Unruly(seed=1, fails=lambda r, time: r.key == hole), **choice)
    rows = rows_of(first.run)
    more = {(r["template_id"], r["sample"]) for k, r in rows.items() if k not in whole}
    assert {("biography", sample) for sample in range(10, 15)} == more
    assert whole.keys() - rows.keys() == {hole}
    second = start(tmp_path / "run", Unruly(), **choice)
    assert [hole] == [key for key in second.model.asked if key not in rows]
    assert whole.items() <= rows_of(second.run).items()
    assert len(whole) + 5 == len(rows_of(second.run))
    assert rows.items() <= rows_of(second.run).items()


def test_a_batch_in_which_everything_fails_ends_and_says_how_many(tmp_path: Path) -> None:
    found = start(tmp_path / "run", Unruly(fails=lambda request, time: True), occupations=("lawyer",))
    assert {} == rows_of(found.run)
    assert {"m": {"overloaded": 2 * 5 + 2 * 3 * 5}} == found.done.failed
    assert {2} == set(found.model.asked.values())


def test_a_finished_run_asks_nothing(unbroken: Asked, tmp_path: Path) -> None:
    before = rows_file(unbroken.run, "personas").read_bytes()
    again = start(unbroken.run, Unruly(fails=lambda request, time: True))
    assert [] == again.model.calls
    assert before == rows_file(unbroken.run, "personas").read_bytes()
    assert again.plan.n_units == again.plan.n_stored == again.plan.n_units_most == len(rows_of(unbroken.run))


# --- what another choice shares with a run --------------------------------------------------------------


def test_another_choice_of_occupations_only_adds_keys(unbroken: Asked, tmp_path: Path) -> None:
    run = tmp_path / "run"
    some = rows_of(start(run, occupations=("nurse", "cook")).run)
    whole = rows_of(unbroken.run)
    assert {k: r for k, r in whole.items() if r["occupation"] in ("nurse", "cook")} == some
    others = Unruly(batch_size=5)  # batches of one prompt, so that none holds a stored draw beside others
    rest = start(run, others, occupations=("lawyer", "nurse", "mechanic", "clerk"))
    assert not set(rest.model.asked) & set(some)
    assert whole == rows_of(run)


def test_more_texts_per_gender_take_the_rows_that_are_there(unbroken: Asked, tmp_path: Path) -> None:
    run = tmp_path / "run"
    few = rows_of(start(run, occupations=("nurse", "lawyer")).run)
    more = start(run, occupations=("nurse", "lawyer"), per_gender=8)
    rows = rows_of(run)
    assert few.items() <= rows.items()
    assert not {key for call in more.model.calls for key in call} - {*rows}
    # 8 men of the nurse are there after 40 samples, both of the lawyer after 16: batches of eight.
    assert {(job, p): n for job, n in (("nurse", 40), ("lawyer", 16)) for p in PROMPTS} == drawn(rows)
    assert {8} == set(drawn(rows, requested=True).values())
    fresh = start(tmp_path / "fresh", occupations=("nurse", "lawyer"), per_gender=8)
    assert rows_of(fresh.run) == rows


def test_another_sampling_prompt_format_seed_or_model_has_keys_of_its_own() -> None:
    def keys(fingerprint: str = "f", prompt_format: str = "chat", **settings: Any) -> set[str]:
        design = questions_of(occupations=("lawyer",), **settings)
        every = series_of_design(design, prompt_format)  # type: ignore[arg-type]
        return {sample_keys(s, fingerprint, design)(sample) for s in every for sample in range(3)}

    plain = keys()
    assert 2 * (1 + 3) * 3 == len(plain)
    others: list[set[str]] = [
        keys(fingerprint="g"),
        keys(prompt_format="completion"),
        keys(seed=2),
        keys(temperature=0.5),
        keys(top_p=0.9),
        keys(max_new_tokens=10),
        keys(system_prompt="Be fair."),
    ]
    assert not any(plain & other for other in others)
    same = {"per_gender": 9, "batch": 3, "max_samples": 4, "fill": False, "permutations": 19}
    assert plain == keys(**same)


# --- the plan ---------------------------------------------------------------------------------------------


def test_the_plan_of_a_fresh_run_goes_from_one_batch_to_every_sample(unbroken: Asked) -> None:
    plan = unbroken.plan
    n_requested = 5 * 2 * 3 * 5
    assert 0 == plan.n_stored
    assert 5 * 2 * 5 + n_requested == plan.n_units
    assert 5 * 2 * MOST + n_requested == plan.n_units_most
    assert 150 * plan.n_units == plan.new_tokens
    assert ("m", "chat", "texts") == (plan.label, plan.prompt_format, plan.unit)


def test_a_dry_run_writes_nothing_and_plans_the_same(unbroken: Asked, tmp_path: Path) -> None:
    run = tmp_path / "run"
    dry = start(run, dry_run=True)
    assert not run.exists()
    assert [] == dry.model.calls
    [(plan, was_dry)] = dry.watcher.plans
    assert was_dry
    assert plan == replace(unbroken.plan, run=run), "the time too is what the real start measures"
    start(run, stop_after=9)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    later = start(run, dry_run=True)
    assert before == {path.name: path.read_bytes() for path in run.iterdir()}
    assert len(rows_of(run)) == later.plan.n_stored > 0


def test_the_plan_at_every_moment_bounds_what_is_asked(unbroken: Asked, tmp_path: Path) -> None:
    """Whichever rows are there in whatever batches: at least and at most so many are asked."""
    whole = list(read_rows(rows_file(unbroken.run, "personas")))
    chance = random.Random(6)
    for i, kept in enumerate([0, 40, 250, len(whole) - 1, 150]):
        run = tmp_path / str(i)
        start(run, dry_run=False, stop_after=0)  # leaves no run, since nothing was stored
        run.mkdir(exist_ok=True)
        shutil.copy(unbroken.run / "manifest.json", run)
        some = whole[:kept] if i < 3 else chance.sample(whole, kept)
        with RowWriter(run, "personas") as writer:
            writer.append(some)
        found = start(run)
        n_new = len(rows_of(run)) - len(some)
        plan = found.plan
        assert plan.n_units - plan.n_stored <= n_new <= (plan.n_units_most or 0) - plan.n_stored
        assert rows_of(unbroken.run) == rows_of(run)
        if i < 4:  # beyond a batch of which nothing is there nobody looks
            assert len(some) == plan.n_stored
        if i == 3:
            assert 1 == plan.n_units - plan.n_stored


def test_a_plan_says_what_prompt_the_model_refuses(tmp_path: Path) -> None:
    class Refuses(Unruly):
        def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
            error = ModelError("a prompt of 9 tokens has no room")
            error.request_key = requests[-1].key  # type: ignore[attr-defined]
            raise error

    said = "m, prompt biography, occupation 'lawyer': a prompt of 9 tokens has no room"
    with pytest.raises(ModelError, match=said):
        start(tmp_path / "run", Refuses(), occupations=("lawyer",), requested=())


def test_the_plan_names_the_format_that_the_models_tuning_asks_for() -> None:
    study = load_as(PersonasStudy, "gasp-pilot", {})
    formats = {
        tuning: format_for(study, Unruly(tuning=tuning).identity)
        for tuning in ("base", "instruct", "unknown")
    }
    assert {"base": "completion", "instruct": "chat", "unknown": "chat"} == formats
    plain = replace(Unruly().identity, formats=("raw", "completion"))
    assert "completion" == format_for(study, plain)
