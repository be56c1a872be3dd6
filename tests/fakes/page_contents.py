"""Contents of made-up reports for tests of the page: of any size, and with hostile text in every field."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any

from biaskit.report.content import Content, Deviation, ExampleText, PromptShown, Span, WordInContext
from biaskit.report.figures import Figure
from biaskit.report.figures.plot import Band, Dots, Panel, Plot, Point, shares
from biaskit.report.figures.style import Mark
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.runs.collection import Model, Part
from biaskit.tables.io import columns
from biaskit.tables.query import Row
from biaskit.tables.schema import SCHEMAS

GROUPS = ("male", "female", "diverse")
CONTRAST = ("female", "male")


def figure(name: str, title: str, question: Any = "say") -> Figure:
    """A small drawing with a caption and an alternative text."""
    panel = Panel(["nurse", "pilot"], shares("share"), [Dots(Mark("#0072b2", "o"), [Point(0.2), Point(0.4)])])
    return Figure(name, title, Plot([Band([panel])], "n = 63 jobs; bars: 95 % intervals."), question)


# --- tables --------------------------------------------------------------------------------------------


def rows(
    name: str, keys: Mapping[str, Sequence[Any]], *, seed: int = 1, undefined: float = 0.02
) -> list[Row]:
    """Rows of a public table: every combination of the keys, made-up numbers, some of them undefined."""
    rng = random.Random(f"{name}{seed}")
    layout = columns(name, groups=GROUPS, contrast=CONTRAST)
    has_reason = layout[-1].name == "reason"
    found: list[Row] = []
    for values in product(*keys.values()):
        row: dict[str, Any] = {}
        missing = has_reason and rng.random() < undefined
        for column in layout:
            row[column.name] = _made_up(column.kind, rng, missing)
        row |= dict(zip(keys, values, strict=True))
        if has_reason:
            row["reason"] = "no target word listed in 3 of 25 prompts" if missing else ""
        found.append(row)
    return found


def _made_up(kind: str, rng: random.Random, missing: bool) -> Any:
    if kind == "text":
        return ""
    if missing and kind == "number":
        return None
    if kind == "integer":
        return rng.randrange(400)
    return rng.random() < 0.5 if kind == "boolean" else rng.uniform(-1, 1)


WORDS = tuple(
    f"{a}{b}{c}" for a in "bcdfglmnprst" for b in ("a", "e", "ion", "oru") for c in ("la", "ter", "ss", "")
)


def block(models: Sequence[str]) -> dict[str, Sequence[Any]]:
    """The keys that most tables of the prober begin with."""
    return {
        "model": models,
        "bias_type": ("explicit", "implicit"),
        "debiasing_id": (0,),
        "context": ("plain",),
        "prompt_format": ("chat-prefill",),
        "estimator": ("exact",),
    }


def probe_tables(models: Sequence[str], jobs: Sequence[str]) -> dict[str, list[Row]]:
    """Tables of a probe run."""
    groups = {"job_group": ("female-dominated", "male-dominated"), "gender": GROUPS}
    own = block(models)
    without = {name: values for name, values in own.items() if name != "estimator"}
    tests = {
        "measurement": ("probe",),
        "family": ("probe/share/welch/groups", "probe/share/crossed/groups"),
        "quantity": ("share",),
        "gender": GROUPS,
        "model_a": models,
        "bias_type": ("explicit", "implicit"),
        "kind": ("welch",),
        "group_a": ("female-dominated",),
        "group_b": ("male-dominated",),
    }
    return {
        "probe_prompts": rows("probe_prompts", {**own, "job": jobs[:1], "template_id": (1, 2)}),
        "probe_jobs": rows("probe_jobs", {**own, "job": jobs, "job_group": ("female-dominated",)}),
        "probe_groups": rows("probe_groups", {**own, **groups}),
        "probe_templates": rows("probe_templates", {**without, "template_id": range(1, 26), **groups}),
        "probe_variance": rows("probe_variance", {**without, **groups}),
        "tests": [{**row, "model_b": row["model_a"]} for row in rows("tests", tests)],
    }


def personas_tables(models: Sequence[str], jobs: Sequence[str], *, n_words: int) -> dict[str, list[Row]]:
    """Tables of a personas run; each list marks `n_words` words."""
    of = {"model": models, "occupation": jobs}
    lists = {**of, "origin": ("inferred", "requested"), "gender": ("female", "male"), "against": ("all",)}
    return {
        "representation": rows("representation", {**of, "template_id": ("persona", "biography", "all")}),
        "word_lists": rows("word_lists", {**lists, "method": ("calibrated", "marked-personas")}),
        "marked_words": [
            {**row, "rank": 1 + i % n_words}
            for i, row in enumerate(
                rows("marked_words", {**lists, "method": ("calibrated",), "word": WORDS[:n_words]})
            )
        ],
        "word_overlap": rows(
            "word_overlap", {**of, "gender": ("female", "male"), "word": WORDS[:n_words], "place": ("both",)}
        ),
        "srb": rows("srb", {**of, "gender": ("female", "male"), "vectors": ("corpus:0123abcd",)}),
        "clusters": rows(
            "clusters", {"model": (*models, "all"), "cluster": range(1, 20), "words": ("she her",)}
        ),
        "silhouette": rows("silhouette", {"k": range(2, 22)}),
        "genders": [{"model": models[0], "occupation": jobs[0], "key": "k"}],
    }


# --- contents -------------------------------------------------------------------------------------------


def model(label: str, *, generation: bool = False, run: str = "runs/r1") -> Model:
    """A model as a manifest tells it."""
    return Model(
        label=label,
        spec=f"hf:{label}",
        fingerprint="64de5f416e0f8b1c",
        tuning="instruct",
        where="local",
        prompt_format="chat" if generation else "chat-prefill",
        estimator="" if generation else "exact",
        run=run,
        answered_by=("Gemma3ForCausalLM 64de5f416e0f",),
        first_answered="2026-11-21",
        last_answered="2026-11-22",
    )


def part(kind_name: Any, models: Sequence[str], tables: Mapping[str, Sequence[Row]]) -> Part:
    """A measurement's part with these tables."""
    return Part(
        measurement=kind_name,
        study="gasp-occupations" if kind_name == "probe" else "gasp",
        summary="63 occupations, one question in 25 wordings",
        tables=tables,
        models=tuple(
            model(label, generation=kind_name == "personas", run=f"runs/{kind_name}") for label in models
        ),
        runs=(f"runs/{kind_name}",),
        signatures=(f"biaskit=0.1.0 | study={kind_name}",),
        notes=("in 29 of 600 prompts the target words have less than 0.01 of the probability",),
        groups=GROUPS,
        contrast=CONTRAST,
        templates=({"id": 1, "bias_type": "implicit", "question": "Tell me about a [JOB].", "opening": ""},),
        commands=(f"biaskit {kind_name} demo --yes",),
    )


def text(rng: random.Random, n: int) -> str:
    """Made-up prose: it deflates as badly as real prose does."""
    said = []
    while sum(map(len, said)) + len(said) < n:
        word = rng.choice((*WORDS, "she", "he", "they", "Mrs"))
        said.append(word + rng.choice(("", "", "", ",", ".", str(rng.randrange(99)))))
    return " ".join(said)


def example(model: str, occupation: str, said: str, *, origin: str = "inferred") -> ExampleText:
    """A text with its pronouns traced."""
    spans, at = [], 0
    for token in said.split(" "):
        if (kind := {"she": "female", "he": "male", "they": "neutral"}.get(token)) is not None:
            spans.append(Span(at, at + len(token), kind))
        at += len(token) + 1
    asked = "female" if origin == "requested" else None
    return ExampleText(model, occupation, origin, asked, "female", "female", said, tuple(spans), "k")


def content(
    models: Sequence[str],
    jobs: Sequence[str],
    *,
    n_words: int = 25,
    n_texts: int = 1,
    letters: int = 2000,
    n_prompts: int = 50,
) -> Content:
    """A report of both measurements over these models and occupations."""
    rng = random.Random(2)
    sentences = tuple(text(rng, 120) for _ in range(3 * len(models) * len(jobs)))
    places = range(len(sentences))
    examples = tuple(
        example(m, job, text(rng, letters), origin=origin)
        for m, job, origin, _ in product(models, jobs, ("inferred", "requested"), range(n_texts))
    )
    words = tuple(
        WordInContext(m, job, origin, gender, word, 3.5 - i / 10, tuple(rng.choices(places, k=3)))
        for m, job, origin, gender in product(models, jobs, ("inferred", "requested"), ("female", "male"))
        for i, word in enumerate(WORDS[:5])
    )
    prompts = tuple(
        PromptShown(
            "probe",
            "gasp-occupations",
            m,
            "implicit",
            f"implicit, template {i}, nurse",
            "chat-prefill",
            text(rng, 180),
        )
        for m, i in product(models, range(n_prompts))
    )
    gaps = rows("gaps", {"model": models, "occupation": jobs, "bias_type": ("explicit", "implicit")})
    return Content(
        title="Ten models, women and men" if len(models) == 10 else "Women and men",
        parts=(
            part("probe", models, probe_tables(models, jobs)),
            part("personas", models, personas_tables(models, jobs, n_words=n_words)),
        ),
        between={"gaps": gaps},
        notes=("two prompt formats never meet in one cell",),
        prompts=prompts,
        examples=examples,
        words=words,
        sentences=sentences,
        deviations=(Deviation("OccuGender", "uncertainty", "crossed", "over templates", "se_templates"),),
        command="biaskit report runs/probe runs/personas",
        versions={"biaskit": "0.1.0", "numpy": "2.4"},
        bibtex="@inproceedings{x,\n  url = {https://example.org/x},\n}",
    )


def ten_models() -> Content:
    """Ten models, 63 occupations, 100 words a list: as long as a report gets."""
    models = [f"org/model-{i}-{kind}" for i in range(5) for kind in ("base", "instruct")]
    return content(models, [f"occupation {i}" for i in range(63)])


EMPTY = Content(title="", parts=(), between={}, with_texts=False, texts_reason="--no-texts was given")

EXACT, CHAT = "a, raw, exact", "a, chat"
FINDINGS = (
    Finding(
        "Asked directly, a says women 14 points more often [9 to 19].",
        "probe-explicit",
        "say",
        "higher",
        EXACT,
    ),
    Finding(
        "Its texts speak of women as often as labour does.", "representation", "write", "equivalent", CHAT
    ),
    Finding("Women get 58 % [33–79] for jobs mostly held by women.", "probe-implicit", "say", "shown", EXACT),
    *(Finding(f"A detail, number {i}.", "srb", "how", "shown", CHAT) for i in range(9)),
    Finding("The two show no clear difference.", "models", "models", "no-clear-difference", "a and b, raw"),
    Finding("Fewer than 10 occupations.", "relations", "agree", "not-measured", "a and b"),
)
LIMITS = ("“They” is the only neutral pronoun that is measured.", "Labour statistics are from the U.S.")
SAID = Sentences(FINDINGS, 2, LIMITS, ("debiasing prompts: biaskit probe a --study x",))
NOTHING = Sentences()
FIGURES = (
    figure("answer", "Share of women in each job"),
    figure("gaps", "Probe gap against represented gap", "agree"),
    figure("scatter", "Texts against labour statistics", "write"),
    figure("variance", "Where it varies", "sure"),
)

# --- hostile text ------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>window.__hacked = 'script'; alert(1)</script>",
    "</script><script>window.__hacked = 'closed'</script>",
    "</textarea></title></style></noscript><img src=x onerror=\"window.__hacked='handler'\">",
    '"><svg onload="window.__hacked=\'attribute\'">',
    "' onmouseover='window.__hacked=1' autofocus onfocus='window.__hacked=1' x='",
    "javascript:window.__hacked=1",
    "<!-- <!--",
    "]]>",
    "&lt;b&gt; &amp; &#x3c;script&#x3e;window.__hacked=2&#x3c;/script&#x3e;",
    "{{ 7 * 7 }} {% raw %} ${7 * 7} {# #}",
    "\x1b[31mred\x1b[0m \x07 \x00 \x9b31m",
    "abc\u202ecod\u2066x \u200f\u061c",
    "lone \ud83d surrogate \udc00",
    "\u2028\u2029\ufeff\u00ad",
    "[bold]markup[/bold] [link=http://x.invalid]x[/link]",
    r"$\frac{1$ \input{/etc/passwd} \write18{rm} %",
    '=HYPERLINK("http://x.invalid")',
    "w" * 60,
    "a" * 200_000,
    "عربي, עברית",
    "Z̷̢̛͓a̵͙͑l̶̡͘g̸̦͛o̷͎" * 20,
    "__proto__",
)


def poisoned(value: Any, payload: str) -> Any:
    """The same records with the payload in every text of them, behind what was there."""
    if isinstance(value, str):
        return value + payload
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _poisoned_field(f.name, getattr(value, f.name), payload) for f in fields(value)}
        )
    if isinstance(value, tuple | list):
        return type(value)(poisoned(one, payload) for one in value)
    if isinstance(value, Mapping):
        return {key: poisoned(one, payload) for key, one in value.items()}
    return value


_CLOSED = (
    "measurement",
    "reference",
    "groups",
    "contrast",
    "question",
    "topic",
    "verdict",
)  # values of our own code, not of a stranger
_TABLES = ("tables", "between")
_LONG = ("text", "prompt", "sentences", "examples", "prompts", "title")


def _poisoned_field(name: str, value: Any, payload: str) -> Any:
    if name in _CLOSED:
        return value
    if name not in _LONG:
        payload = payload[:400]  # a long line in every field is a page of a gigabyte
    if name in _TABLES:
        assert all(table in SCHEMAS for table in value)
        return {table: [_poisoned_row(row, payload) for row in own] for table, own in value.items()}
    return poisoned(value, payload)


def _poisoned_row(row: Row, payload: str) -> Row:
    keep = ("method", "origin")  # by which the page chooses rows
    payload = payload[:400]
    return {
        key: one + payload if isinstance(one, str) and key not in keep else one for key, one in row.items()
    }


def hostile(payload: str) -> tuple[Content, Sentences, tuple[Any, ...]]:
    """A small report with the payload in every text: content, sentences, figures."""
    small = content(["a", "b"], ["nurse", "pilot"], n_words=3, letters=200, n_prompts=2)
    figures = tuple(
        replace(
            one,
            title=one.title + payload,
            plot=replace(one.plot, caption=payload, bands=[Band(one.plot.bands[0].panels, payload)]),
        )
        for one in FIGURES
    )
    return poisoned(small, payload), poisoned(SAID, payload), figures
