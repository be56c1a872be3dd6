"""Write the result of a check for build servers: JUnit's XML, and a summary in Markdown."""

from __future__ import annotations

from xml.etree import ElementTree

from biaskit.common.foreign import markdown, visible
from biaskit.compare.check import CheckResult


def junit(result: CheckResult) -> bytes:
    """Write a test suite with a case for each requirement; what does not hold is a failure with its rows."""
    counts = {"tests": str(len(result.outcomes)), "failures": str(sum(not o.holds for o in result.outcomes))}
    suites = ElementTree.Element("testsuites", counts | {"errors": "0"})
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": "biaskit check", **counts, "errors": "0", "skipped": "0"}
    )
    for outcome in result.outcomes:
        attributes = {"classname": "biaskit.check", "name": visible(outcome.require.title), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        if not outcome.holds:
            failure = ElementTree.SubElement(case, "failure", type="check", message=visible(outcome.text))
            failure.text = "\n".join(map(visible, outcome.lines))
        if outcome.weak:
            ElementTree.SubElement(case, "system-out").text = visible(outcome.text)
    ElementTree.indent(suites)
    xml: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def summary(result: CheckResult) -> str:
    """Write Markdown for a build's summary: a line for each requirement, and the rows that do not hold."""
    outcome_of_all = "passed" if result.holds else "failed"
    lines = [f"### biaskit check: {outcome_of_all}", "", "| Requirement | Rows | Outcome |", "|---|---|---|"]
    details: list[str] = []
    for outcome in result.outcomes:
        title = markdown(outcome.require.title)
        result_of_one = f"passed{outcome.on_weak_evidence}" if outcome.holds else outcome.result
        lines.append(f"| {title} | {outcome.n_rows:,} | {markdown(result_of_one)} |")
        if not outcome.holds:
            details += ["", f"**{title}**", "", *(f"- {markdown(line)}" for line in outcome.lines)]
    return "\n".join([*lines, *details]) + "\n"
