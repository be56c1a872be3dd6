"""Every content that a test of the findings makes also holds the rules of the short sentences."""

from __future__ import annotations

import pytest
from fakes import brief_rules
from fakes.findings_rows import HOSTILE

from biaskit.report import findings as package
from biaskit.report.content import Content
from biaskit.report.findings import Finding


@pytest.fixture(autouse=True)
def _short_sentences_hold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if getattr(request.module, "findings", None) is not package.findings:
        return

    def both(made: Content) -> tuple[Finding, ...]:
        labels = {model.label for part in made.parts for model in part.models}
        brief_rules.hold(made, foreign=not labels.isdisjoint(HOSTILE))
        return package.findings(made)

    monkeypatch.setattr(request.module, "findings", both)
