"""Rows in the shape of the public tables, a few numbers set, and the content of a report made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.report.content import Content
from biaskit.runs.collection import Model, Part
from biaskit.stats.crossed import p_of_interval
from biaskit.tables.io import columns

GROUPS = ("male", "female", "diverse")
CONTRAST = ("female", "male")
WOMENS, MENS = "female-dominated", "male-dominated"
Rows = list[dict[str, Any]]


def row(table: str, **values: Any) -> dict[str, Any]:
    """A row with every column of a public table and no other; what is not named is empty."""
    layout = columns(table, groups=GROUPS, contrast=CONTRAST)
    found: dict[str, Any] = {column.name: "" if column.kind == "text" else None for column in layout}
    assert values.keys() <= found.keys(), sorted(values.keys() - found.keys())
    return {**found, **values}


def block(model: str = "m", bias_type: str = "explicit", **more: Any) -> dict[str, Any]:
    return {"model": model, "bias_type": bias_type, "context": "plain", "prompt_format": "raw", **more}


def group_rows(
    shares: Mapping[str, Sequence[float | None]],
    *,
    model: str = "m",
    bias_type: str = "explicit",
    **more: Any,
) -> Rows:
    """Rows of probe_groups: for each kind of jobs the shares of women, men and diverse; ± 0.1 for women's."""
    rows = []
    for job_group, three in shares.items():
        for gender, share in zip(("female", "male", "diverse"), three, strict=True):
            own = {
                "debiasing_id": 0,
                "estimator": "exact",
                "share": share,
                "ci_low": None if share is None else share - 0.1,
                "ci_high": None if share is None else share + 0.1,
                "binary_share": share if gender == "female" else None,
                "binary_share_ci_low": None if share is None or gender != "female" else share - 0.1,
                "binary_share_ci_high": None if share is None or gender != "female" else share + 0.1,
                "coverage": 0.7,
                "coverage_median": 0.68,
                "n_jobs": 20,
                "n_templates": 25,
                "n_low_coverage": 0,
            }
            scope = block(model, bias_type, job_group=job_group, gender=gender)
            made = row("probe_groups", **{**scope, **own, **more})
            if gender == "female":  # as if "they" had nothing: one number to read in tests
                made["binary_coverage"] = made["coverage"]
            rows.append(made)
    return rows


def contrast_row(
    family: str, estimate: float | None, ci: Sequence[float] | None = None, **more: Any
) -> dict[str, Any]:
    """A row of tests.csv; family is measurement/quantity/kind/contrast.

    Of the prober's shares of women it is the one of women among women and men.
    """
    kind_name, quantity, kind, contrast = family.split("/")
    of_women = more.get("gender", "female") in ("female", None)
    if kind_name == "probe" and of_women and quantity in ("share", "group_gap", "asymmetry"):
        quantity = f"binary_{quantity}"
        family = f"{kind_name}/{quantity}/{kind}/{contrast}"
    ends = dict(zip(("ci_low", "ci_high"), ci, strict=True)) if ci is not None else {}
    scope: dict[str, Any] = {"model_a": "m", "model_b": "m"}
    if kind_name == "probe":
        scope |= {"bias_type": "explicit", "context": "plain", "prompt_format": "raw"}
        scope |= {"debiasing_a": "0", "debiasing_b": "0", "gender": "female"}
    own = {
        "p_value": None if estimate is None or ci is None else p_of_interval(estimate, *ci, 10.0),
        "dof": 10.0,
        "measurement": kind_name,
        "family": family,
        "quantity": quantity,
        "kind": kind,
        "estimate": estimate,
        **ends,
    }
    return row("tests", **{**scope, **own, "n_a": 20, "n_b": 20, "unit": "job", **more})


def of_groups(estimate: float | None, ci: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    scope = {"group_a": WOMENS, "group_b": MENS, "margin": 0.05, "equivalent": False}
    return contrast_row("probe/share/crossed/groups", estimate, ci, **{**scope, **more})


def model(label: str = "m", prompt_format: str = "raw", where: str = "local") -> Model:
    return Model(label, "spec", "f", "base", where, prompt_format, "exact", "run")


def probe_part(tables: Mapping[str, Rows], *labels: str, study: str = "occugender", **more: Any) -> Part:
    return Part(
        measurement="probe",
        study=study,
        summary="",
        tables=tables,
        models=tuple(map(model, labels or ("m",))),
        runs=("run",),
        signatures=("",),
        notes=(),
        groups=GROUPS,
        contrast=CONTRAST,
        **more,
    )


def personas_part(tables: Mapping[str, Rows], *labels: str, where: str = "local") -> Part:
    part = probe_part(tables, study="gasp")
    models = tuple(model(label, "chat" if where == "local" else "", where) for label in labels or ("m",))
    imported = {"source": "letters.csv"} if where == "texts" else {}
    part = replace(part, measurement="personas", models=models, imported=imported)
    return replace(part, groups=(), contrast=("", ""))


def content(*parts: Part, between: Mapping[str, Rows] | None = None, **more: Any) -> Content:
    return Content("t", parts, between or {}, **more).judged()


SHARES = {WOMENS: (0.6, 0.3, 0.1), MENS: (0.34, 0.5, 0.16)}


EVEN = of_groups(0.01, (-0.03, 0.05), ci90_low=-0.02, ci90_high=0.04, equivalent=True)


def asked(test: dict[str, Any] | None, **more: Any) -> Content:
    return content(probe_part({"probe_groups": group_rows(SHARES, **more), "tests": [test] if test else []}))


def slope(estimate: float | None, ci: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    family = "probe/female_share~workforce_share/slope/workforce"
    return contrast_row(family, estimate, ci, **more)


def many(n: int, **below: float) -> Content:
    labels = [f"m{i}" for i in range(n)]
    rows, crossed = [], []
    for i, label in enumerate(labels):
        shares = {WOMENS: (0.4 + 0.05 * i, 0.4, 0.1), MENS: (0.3, 0.5, 0.2)}
        rows += group_rows(shares, model=label, coverage=below.get(label, 0.7))
        low = -0.05 + 0.05 * i
        crossed.append(of_groups(low + 0.1, (low, low + 0.2), model_a=label, model_b=label))
    return content(probe_part({"probe_groups": rows, "tests": crossed}, *labels))


def occupation(
    name: str, share: float | None, workforce: float | None, label: str = "m", **more: Any
) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "n_texts": 100,
        "n_female": 40,
        "n_male": 50,
        "n_nonbinary": 0,
        "n_not_inferred": 10,
    }
    if share is not None:
        numbers |= {"female_share": share, "ci_low": share - 0.05, "ci_high": share + 0.05}
        numbers |= {"nonbinary_share": 0.0, "nonbinary_ci_low": 0.0, "nonbinary_ci_high": 0.03}
        numbers |= {"share_if_dropped_male": share - 0.1, "share_if_dropped_female": share + 0.1}
    scope = {
        "model": label,
        "occupation": name,
        "template_id": "all",
        "workforce_share": workforce,
        "n_refused": 1,
    }
    return row("representation", **{**scope, **numbers, **more})


def workforce_test(estimate: float | None, ci: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    scope = {"gender": "female", "unit": "occupation"}
    return contrast_row("personas/represented_share/paired/workforce", estimate, ci, **{**scope, **more})


REPRESENTED = [occupation("nurse", 0.9, 0.93), occupation("pilot", 0.3, 0.09), occupation("cook", 0.2, 0.43)]


def score(name: str, gender: str, srb: float | None, p: float | None = 0.5, **more: Any) -> dict[str, Any]:
    numbers = {"srb": srb, "p_value": p, "srb_z": None if p is None else 1.5, "vectors": "corpus:1"}
    content = {"srb_content": srb, "srb_content_p_value": p}
    return row("srb", model="m", occupation=name, gender=gender, **{**numbers, **content, **more})


def srb_test(estimate: float | None, ci: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    scope = {"group_a": "female", "group_b": "male", "unit": "occupation"}
    return contrast_row("personas/srb_content/paired/genders", estimate, ci, **{**scope, **more})


def area(
    trained_on: str, tested_on: str, auc: float | None, ci: Sequence[float] | None = None, **more: Any
) -> dict[str, Any]:
    """The mean over occupations of text_transfer.csv."""
    ends = dict(zip(("ci_low", "ci_high"), ci, strict=True)) if ci else {}
    where = {"trained_on": trained_on, "tested_on": tested_on, "occupation": "all", "model": "m"}
    return row("text_transfer", **{**where, "auc": auc, "n_female": 40, "n_male": 40, **ends, **more})


def area_test(quantity: str, auc: float, ci: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    scope = {"group_a": "female", "group_b": "male", "unit": "occupation"}
    ends = None if ci is None else [end - 0.5 for end in ci]
    return contrast_row(f"personas/{quantity}/paired/genders", auc - 0.5, ends, **{**scope, **more})


SCORES = [score("nurse", "female", -0.3, 0.01), score("nurse", "male", 0.2)]


def list_scope(name: str, gender: str) -> dict[str, Any]:
    """What a list of an occupation's women or men and its words have in common."""
    scope = {"model": "m", "occupation": name, "origin": "inferred", "gender": gender, "method": "calibrated"}
    return {**scope, "against": "male" if gender == "female" else "female"}


def word_list(name: str, gender: str, n: int | None, p: float = 0.005, **more: Any) -> dict[str, Any]:
    """A list with n words beyond gender words, and two more."""
    numbers = {
        "n_marked": None if n is None else n + 2,
        "null_p95": 4.0,
        "n_marked_beyond": n,
        "null_mean": 1.0,
    }
    numbers |= {"null_p95_beyond": 4.0, "p_value_beyond": None if n is None else p}
    return row("word_lists", **{**list_scope(name, gender), **numbers, **more})


def word(name: str, gender: str, text: str, z: float, **more: Any) -> dict[str, Any]:
    flags = {"is_pronoun": False, "is_name": False, "is_gender_word": False, **more}
    return row("marked_words", **list_scope(name, gender), word=text, z=z, **flags)


def pair(
    a: str, b: str, estimate: float | None, ci: Sequence[float] | None = None, **more: Any
) -> dict[str, Any]:
    scope = {
        "model_a": a,
        "model_b": b,
        "group_a": WOMENS,
        "group_b": WOMENS,
        "margin": 0.05,
        "equivalent": False,
    }
    return contrast_row("probe/share/crossed/models", estimate, ci, **{**scope, **more})


HOSTILE = [
    "<script>alert(1)</script>",
    "a\nb",
    "\u202egpj.exe",
    "$\\frac{1$",
    "x" * 300,
    "=cmd|' /C calc'!A0",
    "\ud800",
    "&lt;b&gt; {0} %s {label}",
]
