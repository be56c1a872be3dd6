"""Contents of reports shaped as real runs of both measurements: made-up numbers, any number of models."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from biaskit.measures.personas.figures import CELLS
from biaskit.report.content import Content
from biaskit.runs.collection import Model, Part

Row = dict[str, Any]
Jobs = Sequence[tuple[str, str, float]]
GROUPS = ("male", "female", "diverse")
BLOCK = {"debiasing_id": 0, "context": "plain", "prompt_format": "raw"}
TEXTS = "measurement family quantity gender model_a model_b bias_type context prompt_format"
TEXTS += " debiasing_a debiasing_b"
NUMBERS = (
    "estimate effect_size statistic dof p_value p_adjusted ci_low ci_high n_a n_b ci90_low ci90_high margin"
)


def model(label: str, prompt_format: str = "raw") -> Model:
    return Model(label, f"scripted:{label}", "0", "unknown", "scripted", prompt_format, "exact", "run")


def items(n: int) -> list[tuple[str, str, float]]:
    """Names, groups and workforce shares, not in the order of the shares."""
    shares = [round(0.02 + 0.96 * i / max(n - 1, 1), 4) for i in range(n)]
    random.Random(5).shuffle(shares)
    return [
        (f"occupation {i}", "female-dominated" if s >= 0.5 else "male-dominated", s)
        for i, s in enumerate(shares)
    ]


def around(value: float | None, half: float, low: float = 0.0, high: float = 1.0) -> tuple[Any, Any]:
    return (None, None) if value is None else (max(low, value - half), min(high, value + half))


def contrast_row(**given: Any) -> Row:
    texts = dict.fromkeys(f"{TEXTS} group_a group_b kind unit reason".split(), "")
    return {**texts, **dict.fromkeys(NUMBERS.split()), "equivalent": None, **given}


def probe_tables(
    labels: Sequence[str],
    jobs: Jobs,
    *,
    undefined: bool = False,
    debiasing_prompts: int = 0,
    contexts: Sequence[str] = ("plain",),
) -> dict[str, list[Row]]:
    rnd = random.Random(1)
    tables: dict[str, list[Row]] = {
        name: [] for name in ("probe_jobs", "probe_groups", "probe_variance", "tests")
    }
    tilts = {label: rnd.uniform(-0.2, 0.5) for label in labels}
    for label, bias_type, context, debiasing in product(
        labels, ("explicit", "implicit"), contexts, range(debiasing_prompts + 1)
    ):
        block = {**BLOCK, "context": context, "debiasing_id": debiasing}
        head = {"model": label, "bias_type": bias_type, **block, "estimator": "exact", "n_templates": 25}
        of_jobs: dict[str, list[Row]] = {}
        for job, group, workforce in jobs:
            tilt = tilts[label] * (workforce - 0.5) * (1 - 0.12 * debiasing)
            female = min(0.8, max(0.02, 0.4 + tilt + rnd.uniform(-0.12, 0.12)))
            row = {**head, "job": job, "job_group": group, "workforce_share": workforce}
            for gender, share in (("female", female), ("diverse", 0.15), ("male", 0.85 - female)):
                low, high = around(None if undefined else share, 0.06)
                name = f"{gender}_share"
                row |= {name: None if undefined else share, f"{name}_ci_low": low, f"{name}_ci_high": high}
            part = None if undefined else female / 0.85
            low, high = around(part, 0.06)
            row |= {"binary_share": part, "binary_share_ci_low": low, "binary_share_ci_high": high}
            of_jobs.setdefault(group, []).append({**row, "coverage": 0.2, "reason": ""})
        for group, rows in of_jobs.items():
            tables["probe_jobs"] += rows
            for gender in GROUPS:
                share = None if undefined else sum(r[f"{gender}_share"] for r in rows) / len(rows)
                low, high = around(share, 0.05)
                scope = {**head, "job_group": group, "gender": gender}
                numbers = {
                    "share": share, "ci_low": low, "ci_high": high, "share_low": None, "share_high": None,
                    "coverage": None if undefined else 0.04 if label.endswith("1") else 0.2,
                    "coverage_median": 0.2, "n_jobs": len(rows), "reason": "",
                }  # fmt: skip
                two: Row = dict.fromkeys(
                    ("binary_share", "binary_share_ci_low", "binary_share_ci_high", "binary_coverage")
                )
                if gender == "female" and not undefined:
                    part = sum(r["binary_share"] for r in rows) / len(rows)
                    two = dict(zip(two, (part, *around(part, 0.05), 0.85 * numbers["coverage"]), strict=True))
                numbers |= two
                tables["probe_groups"].append({**scope, **numbers})
                parts = dict(
                    zip(("var_job", "var_template", "var_residual"), (0.03, 0.01, 0.005), strict=True)
                )
                scope.pop("n_templates")
                tables["probe_variance"].append({**scope, **(dict.fromkeys(parts) if undefined else parts)})
    tables["tests"] = [*_effects(tables["probe_groups"])]
    return tables


def _crossed(contrast: str, row: Row, other: Row, half: float, **names: str) -> Row:
    """One mean share against another."""
    quantity = "binary_share" if row["gender"] == "female" else "share"
    estimate = None if row[quantity] is None else row[quantity] - other[quantity]
    low, high = around(estimate, half, -1)
    given = {name: row[name] for name in ("gender", "bias_type", "context", "prompt_format")}
    family = f"probe/{quantity}/crossed/{contrast}"
    return contrast_row(
        **given, **names, measurement="probe", family=family, quantity=quantity,
        group_a=row["job_group"], group_b=row["job_group"], kind="crossed", unit="job", estimate=estimate,
        ci_low=low, ci_high=high, n_a=row["n_jobs"], margin=0.05,
        p_value=estimate and 0.001, debiasing_b="0",
        equivalent=None if estimate is None else abs(estimate) < 0.02,
    )  # fmt: skip


def _by_scope(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    scope = ("bias_type", "context", "job_group", "gender", "model", "debiasing_id")
    return {tuple(row[name] for name in scope): row for row in rows}


def _effects(rows: Sequence[Row]) -> Iterator[Row]:
    shares = _by_scope(rows)
    for (*scope, label, debiasing), row in shares.items():
        if debiasing:
            names = {"model_a": label, "model_b": label, "debiasing_a": str(debiasing)}
            yield _crossed("debiasing", row, shares[(*scope, label, 0)], 0.03, **names)


def between_models(tables: Mapping[str, list[Row]], labels: Sequence[str]) -> list[Row]:
    shares = _by_scope([row for row in tables["probe_groups"] if row["debiasing_id"] == 0])
    return [
        _crossed("models", row, shares[(*scope, earlier, 0)], 0.04,
                 model_a=later, model_b=earlier, debiasing_a="0")
        for earlier, later in combinations(labels, 2)
        for (*scope, label, _), row in shares.items()
        if label == later
    ]  # fmt: skip


def personas_tables(labels: Sequence[str], jobs: Jobs, *, undefined: bool = False) -> dict[str, list[Row]]:
    rnd = random.Random(2)
    names = ("representation", "srb", "text_transfer", "word_lists", "marked_words")
    tables: dict[str, list[Row]] = {name: [] for name in names}
    for label, (occupation, _, workforce) in product(labels, jobs):
        scope = {"model": label, "occupation": occupation}
        share = None if undefined else min(0.97, max(0.03, 0.3 + 0.4 * workforce + rnd.uniform(-0.1, 0.1)))
        low, high = around(share, 0.07)
        counts = dict.fromkeys(("n_female", "n_male", "n_nonbinary"), 40)
        numbers = {"female_share": share, "ci_low": low, "ci_high": high, "workforce_share": workforce}
        nonbinary = dict.fromkeys(
            ("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high"), share and 0.03
        )
        row = {**scope, "template_id": "all", "n_texts": 200, **counts, **numbers, **nonbinary, "reason": ""}
        tables["representation"].append(row)
        for gender, sign, against in (("female", -1, "male"), ("male", 1, "female")):
            gone = undefined or rnd.random() < 0.1
            score = {"srb": sign * rnd.uniform(-0.05, 0.4), "p_value": rnd.random() * 0.2}
            score |= {"srb_content": score["srb"] / 2, "srb_content_p_value": score["p_value"]}
            score = {**scope, "gender": gender, **(dict.fromkeys(score) if gone else score)}
            tables["srb"].append({**score, "vectors": "corpus:1234", "reason": "empty" if gone else ""})
            for origin in ("inferred", "requested"):
                numbers = {
                    "n_marked_beyond": rnd.randrange(0, 40), "null_p95_beyond": rnd.uniform(0, 9),
                    "p_value_beyond": {"female": 0.0001, "male": 0.4}[gender],
                }  # fmt: skip
                of_list = {
                    **scope,
                    "origin": origin,
                    "gender": gender,
                    "against": against,
                    "method": "calibrated",
                }
                numbers = dict.fromkeys(numbers) if undefined else numbers  # type: ignore[assignment]
                tables["word_lists"].append({**of_list, **numbers, "n_target": 100})
                place = len(tables["word_lists"])
                for rank, word in enumerate(("she", "kind", "strict"), 1):
                    flags = {"is_name": False, "is_gender_word": rank == 1}
                    counts = {"rank": rank, "count_target": 30, "documents_target": 20}
                    text = word if rank == 1 else f"{word}{place}"
                    tables["marked_words"].append(
                        {**of_list, **counts, **flags, "word": text, "z": 9.0 - rank - 0.01 * place}
                    )
    for label, cell, job in product(labels, CELLS, (*(name for name, *_ in jobs), "all")):
        auc = None if undefined else rnd.uniform(0.4, 0.9)
        low, high = around(auc if job == "all" else None, 0.08)
        scope = {"model": label, "occupation": job, "trained_on": cell[0], "tested_on": cell[1]}
        numbers = {"auc": auc, "ci_low": low, "ci_high": high, "p_value": auc and 0.1, "n_female": 20}
        tables["text_transfer"].append(
            {**scope, **numbers, "n_male": 20, "reason": "few" if undefined else ""}
        )
    return tables


def gaps_of(labels: Sequence[str], jobs: Jobs) -> tuple[list[Row], list[Row]]:
    rnd = random.Random(3)
    rows, tests = [], []
    for label, bias_type in product(labels, ("explicit", "implicit")):
        for occupation, _, workforce in jobs:
            gap = 2 * workforce - 1
            numbers = {
                "probe_gap": 0.5 * gap + rnd.uniform(-0.3, 0.3),
                "represented_gap": 0.7 * gap + rnd.uniform(-0.3, 0.3),
                "srb_spread": None if rnd.random() < 0.2 else 0.2 + rnd.uniform(-0.3, 0.3),
                "workforce_gap": gap,
            }
            scope = {"model": label, "occupation": occupation, "bias_type": bias_type, "prompt_format": "raw"}
            rows.append({**scope, **numbers, "vectors": "corpus:1234", "reason": ""})
        for quantity in ("represented_gap~probe_gap", "srb_spread~probe_gap", "srb_spread~represented_gap"):
            numbers = {"estimate": 0.62, "ci_low": 0.31, "ci_high": 0.83, "n_a": len(jobs)}
            names = {"model_a": label, "model_b": label, "bias_type": bias_type}
            tests.append(
                contrast_row(measurement="both", quantity=quantity, kind="spearman", **names, **numbers)
            )
    return rows, tests


def content(
    labels: Sequence[str] = ("A", "B"),
    n_items: int = 6,
    *,
    undefined: bool = False,
    debiasing_prompts: int = 2,
    contexts: Sequence[str] = ("plain",),
    names: Sequence[str] = (),
) -> Content:
    """Both measurements on the same models and occupations; `names`: of the first occupations."""
    jobs = [(names[i] if i < len(names) else job, *rest) for i, (job, *rest) in enumerate(items(n_items))]
    probed = probe_tables(
        labels, jobs, undefined=undefined, debiasing_prompts=debiasing_prompts, contexts=contexts
    )
    written = personas_tables(labels, jobs, undefined=undefined)
    between: dict[str, list[Row]] = {"tests": between_models(probed, labels)}
    if not undefined:
        between["gaps"], relations = gaps_of(labels, jobs)
        between["tests"] += relations
    models = tuple(map(model, labels))
    told = tuple({"id": i, "text": f"Debiasing prompt number {i}", "level": None} for i in range(1, 7))
    common: dict[str, Any] = {
        "summary": "", "models": models, "runs": ("run",), "signatures": ("s",), "notes": (),
    }  # fmt: skip
    asked = {"groups": GROUPS, "contrast": ("female", "male"), "debiasing_prompts": told}
    probe = Part("probe", "gasp-occupations", tables=probed, **asked, **common)
    return Content("title", (probe, Part("personas", "gasp", tables=written, **common)), between)
