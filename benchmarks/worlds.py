"""What the tool says of worlds whose truth is known, from rows to the page's sentences.

    python benchmarks/worlds.py --out worlds.jsonl --jobs 2     # hundreds of pages, some minutes
    python benchmarks/worlds.py --out worlds.jsonl --table      # the table of what is there

Every page comes from a run of its own: models that answer from `tests/fakes/worlds.py`, and the real design,
rows, analysis and findings. Where nothing differs (`null`) a sentence that names a direction is false; where
the groups differ by exactly the margin, "equivalent" is false; where they differ by 5, 10 or 20 points, power
is how often the sentence about them says so. In mixed worlds one thing differs and the others do not. A page
is a line of the output; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import multiprocessing
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE.parent / "tests"),) if path not in sys.path]

from fakes.finding_rules import false_directions  # noqa: E402
from fakes.worlds import (  # noqa: E402
    FEMALE,
    MALE,
    ProbeKind,
    ProbeWorld,
    Spread,
    TextKind,
    TextWorld,
    labels,
    opened,
)

import biaskit as bk  # noqa: E402
from biaskit.common import provenance  # noqa: E402
from biaskit.measures.personas.findings.words import BEYOND, lists_of  # noqa: E402
from biaskit.report.content import Content  # noqa: E402
from biaskit.report.findings import Finding, findings  # noqa: E402
from biaskit.report.findings.finding import DIRECTED  # noqa: E402
from biaskit.stats.contrast import Contrast  # noqa: E402
from biaskit.stats.proportions import wilson  # noqa: E402
from biaskit.tables.query import defined, where  # noqa: E402
from biaskit.workflow.report import _content  # noqa: E402

Json = dict[str, Any]
DIFFERENCE = {"null": 0.0, "margin": 0.05, "power": 0.10, "power20": 0.20}
"""What the two groups of jobs, or texts and labour statistics, truly differ by; 0.05 is the margin."""
CLAIMS = {"groups": "difference", "models": "apart", "help": "instructed"}
"""What differs in a world of the prober → its name there."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of world: what both measurements meet, which truths are made, how many pages (None: as asked).

    `between`: what differs where something does.
    """

    probe: ProbeKind | None = None
    texts: TextKind | None = None
    between: Literal["groups", "models", "help", "workforce", "told"] = "groups"
    truths: tuple[str, ...] = tuple(DIFFERENCE)
    n: int | None = None
    mixed: bool = False  # one thing differs already

    @property
    def probe_differs(self) -> bool:
        """Whether a truth is a difference between a prober's shares."""
        return self.between in CLAIMS and not self.mixed

    def at(self, truth: str) -> Kind:
        """The same kind with this difference."""
        by = DIFFERENCE[truth]
        of_probe = {CLAIMS[self.between]: -by if self.between == "help" else by} if self.probe_differs else {}
        of_texts = {"told": 3 * by} if self.between == "told" else {"difference": by}
        return replace(
            self,
            probe=self.probe and replace(self.probe, **of_probe),
            texts=self.texts and replace(self.texts, **of_texts),
        )


def _sampled(coverage: float, follows: float = 0.0, **more: Any) -> Kind:
    return Kind(ProbeKind(estimator="sampling", coverage=coverage, follows=follows, **more))


def _apart(**more: Any) -> Kind:
    return Kind(ProbeKind(models=2, coverage=0.3, **more), between="models")


def _both(between: Literal["workforce", "told"]) -> Kind:
    texts = TextKind(occupations=12, flat=between == "told", nouns=True)
    return Kind(ProbeKind(jobs=6), texts, between=between, truths=("power",))


KINDS: Mapping[str, Kind] = {
    "exact 20+20 jobs, 25 templates": Kind(ProbeKind(jobs=20, templates=25)),
    "exact 10+10 jobs, 10 templates": Kind(ProbeKind()),
    "exact 6+6 jobs, 3 templates": Kind(ProbeKind(jobs=6, templates=3)),
    "exact 6+6 jobs, 25 templates": Kind(ProbeKind(jobs=6, templates=25)),
    "exact 20+20 jobs, 3 templates": Kind(ProbeKind(jobs=20, templates=3)),
    "exact 10+10 jobs, 2 templates": Kind(ProbeKind(templates=2), truths=("null", "power20")),
    "exact, explicit and implicit": Kind(ProbeKind(bias_types=("explicit", "implicit"))),
    "exact, three models": Kind(ProbeKind(models=3)),
    "exact, two models apart": _apart(),
    "exact, two models": Kind(ProbeKind(models=2, bias_types=("explicit", "implicit"))),
    "exact, five models": Kind(ProbeKind(models=5), truths=("null", "power")),
    "exact, five models apart": Kind(ProbeKind(models=5), between="models", truths=("power",)),
    "exact, debiasing": Kind(ProbeKind(difference=0.2, instructed=0.0), between="help"),
    "exact, debiasing, no gap": Kind(ProbeKind(instructed=0.0), between="help", truths=("null",)),
    "exact, frames of five": Kind(ProbeKind(templates=25, frames=5)),
    "exact, they 0.2": Kind(ProbeKind(diverse=0.2)),
    "exact, they differs by jobs": Kind(ProbeKind(they="groups")),
    "exact, they differs by model": Kind(ProbeKind(they="models", models=2), truths=("null",)),
    "exact, they raised by a prompt": Kind(
        ProbeKind(they="help", difference=0.2, instructed=0.0), between="help", truths=("null", "power")
    ),
    "sampling, they differs by jobs": _sampled(0.3, they="groups"),
    "top-k, they differs by jobs": Kind(ProbeKind(estimator="top-k", k=20, they="groups")),
    "exact, slopes of 1": Kind(ProbeKind(slope=1.0, jobs=20, spread=Spread(0.3, 0.3, 0.3)), truths=("null",)),
    "exact, slopes of 1, 3 templates": Kind(
        ProbeKind(slope=1.0, jobs=20, templates=3, spread=Spread(0.3, 0.3, 0.3)), truths=("null",)
    ),
    "mixed, groups differ": Kind(
        ProbeKind(models=2, difference=0.3, instructed=0.0), truths=("null",), mixed=True
    ),
    "mixed, models apart": Kind(
        ProbeKind(models=2, apart=0.3, instructed=0.0, bias_types=("explicit", "implicit")),
        truths=("null",),
        mixed=True,
    ),
    "exact, mean share 0.05": Kind(ProbeKind(women=0.055), truths=("null",)),
    "top-k, 20 listed": Kind(ProbeKind(estimator="top-k", k=20)),
    "top-k, 5 listed, coverage follows": Kind(ProbeKind(estimator="top-k", coverage=0.3, follows=1.0)),
    "top-k, women unlisted": Kind(ProbeKind(estimator="top-k", k=3, coverage=0.3, women=0.12)),
    "top-k, 5 listed, three models": Kind(ProbeKind(estimator="top-k", models=3, coverage=0.3)),
    "top-k, two models apart": _apart(estimator="top-k"),
    "sampling, coverage 0.9": _sampled(0.9),
    "sampling, coverage 0.3": _sampled(0.3),
    "sampling, coverage 0.3 follows": _sampled(0.3, 1.0),
    "sampling, coverage 0.05": _sampled(0.05),
    "sampling, coverage 0.05 follows": _sampled(0.05, 1.0),
    "sampling, 4+4 jobs, share 0.96": Kind(
        ProbeKind(
            4, 4, estimator="sampling", coverage=0.3, women=0.96, diverse=0.0, spread=Spread(0.1, 0.1, 0.1)
        ),
        truths=("null", "margin"),
    ),
    "sampling, three models, follows": _sampled(0.3, 1.0, models=3),
    # The world of methods/estimators#sampling-estimator: true mean 0.500, 20 jobs, 25 templates.
    "sampling, true mean 0.500": Kind(
        ProbeKind(estimator="sampling", coverage=0.3, follows=1.0, templates=25),
        truths=("null",),
    ),
    "texts, equal": Kind(texts=TextKind()),
    "texts, men's twice as long": Kind(texts=TextKind(length=(60, 120), permutations=199), truths=("null",)),
    "texts, bursty words": Kind(texts=TextKind(bursts=True), truths=("null",)),
    "texts, with woman, Mr, mother": Kind(texts=TextKind(nouns=True), truths=("null",)),
    "texts, women's without a gender": Kind(texts=TextKind(missing=0.3), truths=("null",)),
    "texts, women refused": Kind(texts=TextKind(refused=0.5), truths=("null",)),
    "texts, three models": Kind(texts=TextKind(models=3), truths=("null",)),
    "both measurements": Kind(
        ProbeKind(jobs=6), TextKind(occupations=12, flat=True, nouns=True), truths=("null",)
    ),
    "both measurements, workforce": _both("workforce"),
    "both measurements, told apart": _both("told"),
}
KIND_NAMES = ("exact", "mixed", "top-k", "sampling", "texts", "both")


# --- one page ------------------------------------------------------------------------------------------


def page(name: str, truth: str, number: int) -> Json:
    """One world, its run, its page: what was said and what is true."""
    start, kind = time.monotonic(), KINDS[name].at(truth)
    seed = (zlib.crc32(name.encode()), list(DIFFERENCE).index(truth), number)
    probe = ProbeWorld.sample(kind.probe, *seed) if kind.probe else None
    texts = TextWorld(kind.texts, seed) if kind.texts else None
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    line: Json = {"kind": name, "truth": truth, "number": number}
    try:
        with tempfile.TemporaryDirectory(dir=shared) as folder:
            content = content_of(Path(folder), probe, texts)
        said = findings(content)
    except Exception as error:  # a world that the tool breaks on is a result too
        return line | {"error": f"{type(error).__name__}: {error}"}
    line["verdicts"] = verdicts(content, said, kind)
    if truth == "null":
        line["named"] = sum(one.verdict in DIRECTED for one in said)
        line["false"] = [[one.topic, *claim] for one in said for claim in false_claims(one, kind)]
        line["longer"] = longer_lists(content)
    line["intervals"] = [
        *(intervals_of_probe(content, probe) if probe else ()),
        *(intervals_of_texts(content, texts) if texts else ()),
    ]
    return line | {"seconds": round(time.monotonic() - start, 2)}


def content_of(folder: Path, probe: ProbeWorld | None, texts: TextWorld | None) -> Content:
    """Ask the models of a world, analyse, and gather what the page says its sentences from."""
    return _content(list(make_runs(folder, probe, texts)), True, (), None, {}, None, bk.Silent())[0]


def make_runs(folder: Path, probe: ProbeWorld | None, texts: TextWorld | None) -> Iterator[Path]:
    """The runs of a world, under `folder`."""
    for world, kind_name, ask in ((probe, "probe", bk.probe), (texts, "personas", bk.personas)):
        if world is None:
            continue
        lists = folder / f"{kind_name}-lists"
        lists.mkdir()
        models = [f"{label}=scripted:{label}" for label in labels(world.kind.models)]
        with opened(probe, texts):
            yield ask(
                *models, study=str(world.write(lists)), out=folder / kind_name, watcher=bk.Silent()
            ).path


def verdicts(content: Content, said: Sequence[Finding], kind: Kind) -> list[str]:
    """The verdict on what may differ, of each model or pair of models; of one model it is said so."""
    rows: list[Contrast] = []
    for row in where(content.every_test, gender="" if kind.between == "told" else "female"):
        may_differ = (row.kind, row.quantity) in JUDGED[kind.between]
        if may_differ and row.contrast in CONTRASTS[kind.between] and row.verdict != "shown":
            rows.append(row)
    found = [row.conclusion for row in rows]
    if len({row.model_a for row in rows}) == len(rows) == 1:
        assert found[0] in {one.verdict for one in said} or found[0] in ("not-measured", "no-verdict")
    return [*found]


CONTRASTS = {
    "groups": ("groups", "workforce"),
    "models": ("models",),
    "help": ("debiasing",),
    "workforce": ("workforce",),
    "told": ("genders",),
}
JUDGED = {
    "groups": (("crossed", "binary_share"), ("paired", "represented_share")),
    "models": (("crossed", "binary_share"),),
    "help": (("crossed", "binary_group_gap"),),
    "workforce": (("paired", "represented_share"),),
    "told": (("paired", "auc_transfer"),),
}
"""Kind and quantity of the rows that a world may make differ."""


def false_claims(finding: Finding, kind: Kind) -> list[tuple[str, str]]:
    """What a sentence says of a direction where nothing differs: (about what, its words)."""
    texts = false_directions([finding])
    if kind.probe is not None and kind.probe.slope == 1 and finding.verdict in DIRECTED:
        texts = [finding.text]  # there workforce words are false too
    return [(about(finding), text) for text in texts if not is_true(finding, kind)]


def about(finding: Finding) -> str:
    """What a sentence is about, in the words of the table."""
    if finding.question == "say":
        return "asymmetry" if "he for men’s jobs" in finding.text else "groups of jobs"
    return f"{finding.question}: {finding.topic}"


def is_true(finding: Finding, kind: Kind) -> bool:
    """Whether what a sentence names differs in this kind of world, and in this direction."""
    probe, text = kind.probe, finding.text
    if kind.texts is not None and kind.texts.refused and " refuses " in text:
        return finding.verdict == "higher"
    if probe is None:
        return False
    if "he for men’s jobs" in text:  # away from a half men's share is truly not women's
        return abs(probe.women - 0.5) > 1e-9 or probe.apart > 0
    if "the U.S. workforce" in text:
        return False
    if finding.question == "say":
        return (probe.difference > 0 or probe.slope is not None) and finding.verdict == "higher"
    return finding.question == "models" and probe.apart > 0 and "the gap" not in text


def longer_lists(content: Content) -> list[list[int]]:
    """How many lists of words are longer than their null, of how many, in each part with texts."""
    parts = [part for part in content.parts if part.measurement == "personas"]
    lists = [defined(lists_of(part), *BEYOND) for part in parts]
    return [[sum(row["n_marked_beyond"] > row["null_p95_beyond"] for row in own), len(own)] for own in lists]


# --- intervals and what they should hold -----------------------------------------------------------------


def intervals_of_probe(content: Content, world: ProbeWorld) -> Iterator[list[Any]]:
    """(what, estimate, low, high, truth) of shares and contrasts of shares."""
    kind = world.kind
    if kind.slope is not None:
        return
    share = {
        (label, group): kind.true_share(group, model)
        for model, label in enumerate(labels(kind.models))
        for group in (FEMALE, MALE)
    }
    for part in (part for part in content.parts if part.measurement == "probe"):
        for row in where(part.tables["probe_groups"], gender="female", debiasing_id=0):
            truth, ends = (
                share[row["model"], row["job_group"]],
                ("binary_share_ci_low", "binary_share_ci_high"),
            )
            yield ["share", row["binary_share"], *(row[end] for end in ends), truth]
        tests = where(part.tests, kind="crossed", debiasing_a="0")
        for test in where(tests, gender="female", quantity="binary_share"):
            if test.contrast == "groups":
                yield _interval("groups", test, kind.difference)
                if test.verdict in DIRECTED:
                    shown = replace(test, ci_low=test.shown_low, ci_high=test.shown_high)
                    yield _interval("shown", shown, kind.difference)
            elif test.contrast == "models":
                a, b = (share[model, str(test.group_a)] for model in test.models)
                yield _interval("models", test, a - b)
        for test in where(tests, quantity="binary_asymmetry"):
            of_men = 1 - share[test.model_a, MALE]
            yield _interval("asymmetry", test, of_men - share[test.model_a, FEMALE])


def intervals_of_texts(content: Content, world: TextWorld) -> Iterator[list[Any]]:
    """The same of the share of women in texts against labour statistics."""
    truth = float((world.shares - world.workforce).mean())
    for part in (part for part in content.parts if part.measurement == "personas"):
        of_women = {"quantity": "represented_share", "contrast": "workforce", "gender": "female"}
        for test in where(part.tests, kind="paired", **of_women):
            yield _interval("workforce", test, truth)


def _interval(what: str, test: Contrast, truth: float) -> list[Any]:
    return [what, test.estimate, test.ci_low, test.ci_high, truth]


# --- many pages ------------------------------------------------------------------------------------------


Task = tuple[str, str, int]
"""Kind, truth and number of a page: its world follows from them."""


def tasks(kinds: Iterable[str], n: int) -> Iterator[Task]:
    """Every page wanted: n of nulls and half as many of the other truths, kinds taking turns."""
    wanted = []
    for name in kinds:
        for truth in KINDS[name].truths:
            pages = KINDS[name].n if n > 1 else None
            pages = pages or (n if truth == "null" else (n + 1) // 2)
            wanted += [(number / pages, (name, truth, number)) for number in range(pages)]
    return iter(task for _, task in sorted(wanted))


def task_of(line: Json) -> Task:
    """Which page a line is."""
    return line["kind"], line["truth"], line["number"]


def run(wanted: Iterable[Task], out: Path, jobs: int) -> None:
    """Add the pages that `out` lacks, each a line as soon as it is there."""
    there = {task_of(line) for line in read(out)}
    missing = [task for task in wanted if task not in there]
    with out.open("a", encoding="ascii") as file:
        file.truncate(out.read_bytes().rfind(b"\n") + 1)  # half a line of a killed start
        for done, line in enumerate(_made(missing, jobs), 1):
            file.write(json.dumps(line) + "\n")
            file.flush()
            if done % 50 == 0:
                print(f"{done} of {len(missing)} pages", file=sys.stderr, flush=True)


def _made(missing: Sequence[Task], jobs: int) -> Iterator[Json]:
    if jobs == 1:
        yield from (page(*task) for task in missing)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=_settle) as pool:
        yield from pool.imap_unordered(_page, missing)


def _settle() -> None:
    """After a first page all is imported and stays, and versions are looked up once.

    Else statsmodels, which collects garbage at each call of Holm, takes most of a page's time.
    """
    provenance.version = functools.cache(provenance.version)  # type: ignore[attr-defined]
    page("both measurements", "null", 0)
    gc.collect()
    gc.freeze()


def _page(task: Task) -> Json:
    return page(*task)


def read(path: Path) -> list[Json]:
    """The pages made so far; half a line at the end is left out."""
    if not path.exists():
        return []
    lines = path.read_text("ascii").split("\n")
    return [json.loads(line) for line in lines[:-1]]


# --- the table -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rate:
    """k of n, with Wilson's 95 % interval; percent in words."""

    k: float
    n: int

    def __str__(self) -> str:
        ends = wilson(self.k, self.n)
        if ends is None:
            return "–"
        low, high = (f"{100 * end:.0f}" for end in ends)
        return f"{100 * self.k / self.n:.1f} [{low}–{high}] of {self.n}"


def rate(values: Iterable[bool]) -> Rate:
    """How many of them hold."""
    listed = list(values)
    return Rate(sum(listed), len(listed))


def held(lines: Sequence[Json], *what: str) -> Rate:
    """The part of intervals that hold the truth."""
    ends = [one[2:] for line in lines for one in line["intervals"] if one[0] in what]
    return rate(low - 1e-9 <= truth <= high + 1e-9 for low, high, truth in ends if low is not None)


def missed(lines: Sequence[Json]) -> Rate:
    """The part of intervals shown beside directions that miss the truth: mean over pages, 0 where none is."""
    of_groups = (line["intervals"] for line in lines if "groups" in {one[0] for one in line["intervals"]})
    every = [[one[2:] for one in own if one[0] == "shown"] for own in of_groups]
    parts = [sum(not low <= truth <= high for low, high, truth in own) / max(1, len(own)) for own in every]
    return Rate(sum(parts), len(parts))


def summary(lines: Sequence[Json]) -> dict[str, Rate]:
    """What a row of the table says of some pages."""
    of = {truth: [line for line in lines if line["truth"] == truth] for truth in DIFFERENCE}
    directed = ("higher", "lower")
    return {
        "false direction": rate(bool(line["false"]) for line in of["null"]),
        "equivalent at margin": rate(v == "equivalent" for line in of["margin"] for v in line["verdicts"]),
        **{
            f"power, {100 * DIFFERENCE[truth]:.0f} points": rate(
                v in directed for line in of[truth] for v in line["verdicts"]
            )
            for truth in ("margin", "power", "power20")
        },
        "shown ends that miss": missed(lines),
        "shares held": held(lines, "share"),
        "differences held": held(lines, "groups", "models", "asymmetry", "workforce"),
        "null pages with a conclusion": rate(
            any(v in (*directed, "equivalent", "no-clear-difference") for v in line["verdicts"])
            for line in of["null"]
        ),
    }


def report(lines: Sequence[Json]) -> str:
    """The table as Markdown, and what is said below it."""
    failed = [line for line in lines if "error" in line]
    lines = [line for line in lines if "error" not in line]
    rows: list[tuple[str, Sequence[Json]]] = []
    for name in KINDS:
        if own := [line for line in lines if line["kind"] == name]:
            rows.append((name, own))
    for kind_name in KIND_NAMES:
        own = [line for line in lines if line["kind"].startswith(kind_name)]
        if own:
            rows.append((f"all: {kind_name}", own))
    rows.append(("all", lines))
    heads = list(summary(lines))
    text = [f"| world | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    text += [f"| {name} | {' | '.join(map(str, summary(own).values()))} |" for name, own in rows]
    errors = [f"NO PAGE: {' '.join(map(str, task_of(line)))}: {line['error']}" for line in failed]
    return "\n".join([*text, "", *_below(lines), *errors])


def _below(lines: Sequence[Json]) -> Iterator[str]:
    """Numbers of single kinds."""
    own = [line for line in lines if line["kind"] == "sampling, true mean 0.500"]
    shares = [one[1] for line in own for one in line["intervals"] if one[0] == "share" and one[1] is not None]
    if shares:
        mean = sum(shares) / len(shares)
        yield f"true mean 0.500: printed {mean:.3f} on average of {len(shares)}; held: {held(own, 'share')}"
    null = [line for line in lines if line["truth"] == "null"]
    for name in KINDS:
        pairs = [pair for line in null if line["kind"] == name for pair in line["longer"]]
        if pairs:
            found = Rate(sum(k for k, _ in pairs), sum(n for _, n in pairs))
            yield f"lists called longer than their null, {name}: {found}"
    for name in KINDS:
        topics: dict[str, int] = {}
        for line in (line for line in null if line["kind"] == name):
            for what in {claim[1] for claim in line["false"]}:
                topics[what] = topics.get(what, 0) + 1
        if topics:
            listed = ", ".join(f"{what} {n}" for what, n in sorted(topics.items(), key=lambda one: -one[1]))
            yield f"pages with a false direction, {name}: {listed}"


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Make the pages that are missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("worlds.jsonl"))
    parser.add_argument("--n", type=int, default=30, help="pages of nulls of each kind; half of other truths")
    parser.add_argument("--kinds", nargs="*", default=[], help="beginnings of names of kinds; default all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--table", action="store_true", help="make no page")
    given = parser.parse_args(arguments)
    kinds = [name for name in KINDS if not given.kinds or name.startswith(tuple(given.kinds))]
    wanted = list(tasks(kinds, given.n))
    if not given.table:
        run(wanted, given.out, given.jobs)
    known = set(wanted)
    say(report([line for line in read(given.out) if task_of(line) in known]))


if __name__ == "__main__":
    main()
