"""A gate's outcome for a build server: JUnit's XML, or a summary in Markdown."""

from __future__ import annotations

from biaskit.compare.gate import GateResult
from biaskit.compare.gate_files import junit, summary
from biaskit.exchange.source import ExportFiles


def as_junit(result: GateResult) -> ExportFiles:
    """A suite with a case for each requirement."""
    return ExportFiles({"gate.xml": junit(result)}, "gate.xml")


def as_summary(result: GateResult) -> ExportFiles:
    """A table in GitHub's Markdown with the rows that do not hold."""
    return ExportFiles({"gate.md": summary(result).encode()}, "gate.md")
