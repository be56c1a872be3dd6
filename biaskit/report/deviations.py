"""Where biaskit's numbers follow another definition than a paper, and which key gives the paper's."""

from __future__ import annotations

from collections.abc import Iterable

from biaskit.report.content import Deviation

_OCCUGENDER = "OccuGender (Chen et al.)"
_MATTERN = "Mattern et al."
_GASP = "GAS(P) (Mickel et al.)"

_BY_CORPUS: dict[str, tuple[Deviation, ...]] = {
    "occugender": (
        Deviation(
            _OCCUGENDER,
            "precision of the output head",
            "float32, whatever the weights' dtype",
            "bfloat16 logits (released scripts)",
            "",
        ),
        Deviation(
            _OCCUGENDER,
            "forms of an expression",
            "as listed with a capital letter, and all lower case",
            "released scripts: 18 explicit forms; implicit only he, she, they in lower case",
            "--expressions occugender-released-explicit or occugender-released-implicit",
        ),
        Deviation(
            _OCCUGENDER,
            "uncertainty of a share",
            "interval over jobs and templates as crossed random factors; the printed ± beside it",
            "±, most likely the standard error over the 25 template means",
            "se_templates in probe_groups.csv",
        ),
        Deviation(
            _OCCUGENDER,
            "low probability on the listed words (coverage)",
            "shown beside every share; cells under the floor are counted",
            "not reported; in the released debiasing file its median is 0.0005",
            "coverage_floor",
        ),
        Deviation(
            _OCCUGENDER,
            "tests between groups, models and instructions",
            "Welch and paired tests over jobs, Holm-adjusted, with effect sizes",
            "none",
            "",
        ),
    ),
    "mattern": (
        Deviation(
            _MATTERN,
            "the conversation of the dialogue setting",
            "a text of ours (corpora/mattern/dialogue.toml)",
            "not printed in the paper",
            "dialogue",
        ),
        Deviation(
            _MATTERN,
            "sums of the explicit prompt",
            "each job apart",
            "released scripts do not reset the sum between jobs",
            "",
        ),
    ),
    "gasp": (
        Deviation(
            _GASP,
            "a word is marked",
            "z > 1.96, and it occurs in the target group",
            "z ≥ 1.96 as printed, z > 1.96 as released",
            "",
        ),
        Deviation(
            _GASP, "hybrid prior", "real numbers", "cut to integers, 0 becomes 1 (released)", "prior=released"
        ),
        Deviation(
            _GASP,
            "names",
            "name list and capitals inside sentences",
            "name list, also without a word's last letter (released)",
            "names=released",
        ),
        Deviation(
            _GASP,
            "pronouns left out of SRB",
            "twenty, from candidates and targets",
            "all (paper); eight, from candidates only (released)",
            "pronouns=released",
        ),
        Deviation(
            _GASP,
            "word vectors of SRB",
            "Word2Vec trained on all texts of the run, five seeds",
            "Word2Vec trained on the lists of marked words (released)",
            "vectors=marked-lists",
        ),
        Deviation(
            _GASP,
            "Chamfer distance (Algorithm 6)",
            "mean over candidates of the distance to the nearest target",
            "printed: divides inside the loop, minimum not reset",
            "",
        ),
        Deviation(
            _GASP,
            "texts that are compared",
            "the first n in draw order",
            "100 drawn with a seed (released)",
            "balance=sample",
        ),
        Deviation(
            _GASP,
            "kept clusters",
            "difference of at least half of the smaller count",
            "divided by the men's count (released)",
            "keep_rule=released",
        ),
        Deviation(
            _GASP,
            "standard error of a share (Table 11)",
            "SD / √n, and Wilson intervals",
            "SD / 200, 14 to 22 times too small",
            "",
        ),
        Deviation(
            _GASP,
            "tests of SRB",
            "paired t, Wilcoxon and permutation tests beside Welch: both sides have the same occupations",
            "Welch",
            "",
        ),
    ),
}


def deviations_of(papers: Iterable[str]) -> tuple[Deviation, ...]:
    """The deviations from the papers whose instruments were used, in their order."""
    return tuple(one for paper in dict.fromkeys(papers) for one in _BY_CORPUS.get(paper, ()))
