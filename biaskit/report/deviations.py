"""Where biaskit's numbers follow another definition than a paper, and which key gives the paper's."""

from __future__ import annotations

from collections.abc import Iterable

from biaskit.report.content import Deviation

_PAPERS = {
    "occugender": "OccuGender (Chen et al.)",
    "mattern": "Mattern et al.",
    "gasp": "GAS(P) (Mickel et al.)",
}
_DEVIATIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "occugender": (
        (
            "precision of the output head",
            "float32, whatever the weights' dtype",
            "bfloat16 logits (released scripts)",
        ),
        (
            "forms of an expression",
            "as listed with a capital letter, and all lower case",
            "released scripts: 18 explicit forms; implicit only he, she, they in lower case",
            "--expressions occugender-released-explicit or occugender-released-implicit",
        ),
        (
            "uncertainty of a share",
            "interval over jobs and templates as crossed random factors; the printed ± beside it",
            "±, most likely the standard error over the 25 template means",
            "se_templates in probe_groups.csv",
        ),
        (
            "low probability on the listed words (coverage)",
            "shown beside every share; cells under the floor are counted",
            "not reported; in the released debiasing file its median is 0.0005",
            "coverage_floor",
        ),
        (
            "tests between groups, models and instructions",
            "Welch and paired tests over jobs, Holm-adjusted, with effect sizes",
            "none",
        ),
    ),
    "mattern": (
        (
            "the conversation of the dialogue setting",
            "a text of ours (corpora/mattern/dialogue.toml)",
            "not printed in the paper",
            "dialogue",
        ),
        (
            "sums of the explicit prompt",
            "each job apart",
            "released scripts do not reset the sum between jobs",
        ),
    ),
    "gasp": (
        (
            "a word is marked",
            "z > 1.96, and it occurs in the target group",
            "z ≥ 1.96 as printed, z > 1.96 as released",
        ),
        ("hybrid prior", "real numbers", "cut to integers, 0 becomes 1 (released)", "prior=released"),
        (
            "names",
            "name list and capitals inside sentences",
            "name list, also without a word's last letter (released)",
            "names=released",
        ),
        (
            "pronouns left out of SRB",
            "twenty, from candidates and targets",
            "all (paper); eight, from candidates only (released)",
            "pronouns=released",
        ),
        (
            "word vectors of SRB",
            "Word2Vec trained on all texts of the run, five seeds",
            "Word2Vec trained on the lists of marked words (released)",
            "vectors=marked-lists",
        ),
        (
            "Chamfer distance (Algorithm 6)",
            "mean over candidates of the distance to the nearest target",
            "printed: divides inside the loop, minimum not reset",
        ),
        (
            "texts that are compared",
            "the first n in draw order",
            "100 drawn with a seed (released)",
            "balance=sample",
        ),
        (
            "kept clusters",
            "difference of at least half of the smaller count",
            "divided by the men's count (released)",
            "keep_rule=released",
        ),
        (
            "standard error of a share (Table 11)",
            "SD / √n, and Wilson intervals",
            "SD / 200, 14 to 22 times too small",
        ),
        (
            "tests of SRB",
            "paired t, Wilcoxon and permutation tests beside Welch: both sides have the same occupations",
            "Welch",
        ),
    ),
}
"""By corpus: what differs, what is done here, what the paper does, and the key that gives the paper's."""


def deviations_of(papers: Iterable[str]) -> tuple[Deviation, ...]:
    """The deviations from the papers whose instruments were used, in their order."""
    return tuple(
        Deviation(_PAPERS[paper], *one)
        for paper in dict.fromkeys(papers)
        for one in _DEVIATIONS.get(paper, ())
    )
