"""Where biaskit's numbers follow another definition than a paper, and which key gives the paper's."""

from __future__ import annotations

from collections.abc import Iterable

from biaskit.common.files import toml_beside
from biaskit.report.content import Deviation

_PAPERS = {
    "occugender": "OccuGender (Chen et al.)",
    "mattern": "Mattern et al.",
    "gasp": "GAS(P) (Mickel et al.)",
}


def deviations_of(papers: Iterable[str]) -> tuple[Deviation, ...]:
    """List the deviations from the papers whose instruments were used, in the order of the papers."""
    stated = toml_beside(__file__)
    return tuple(
        Deviation(_PAPERS[paper], **deviation)
        for paper in dict.fromkeys(papers)
        for deviation in stated.get(paper, ())
    )
