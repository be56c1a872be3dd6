"""A gate's outcome as the files that build servers read: JUnit's XML, and a summary in Markdown."""

from __future__ import annotations

from xml.etree import ElementTree

from biaskit.common.foreign import markdown, visible
from biaskit.compare.gate import GateResult

SUITE = "biaskit gate"


def junit(result: GateResult) -> bytes:
    """One test suite with a case for each requirement; one that does not hold is a failure with its rows."""
    counts = {"tests": str(len(result.outcomes)), "failures": str(sum(not o.holds for o in result.outcomes))}
    suites = ElementTree.Element("testsuites", counts | {"errors": "0"})
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": SUITE, **counts, "errors": "0", "skipped": "0"}
    )
    for one in result.outcomes:
        named = {"classname": "biaskit.gate", "name": visible(one.require.title), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        if not one.holds:
            failure = ElementTree.SubElement(case, "failure", type="gate", message=visible(one.text))
            failure.text = "\n".join(map(visible, one.lines))
    ElementTree.indent(suites)
    written: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def summary(result: GateResult) -> str:
    """Markdown for a build's summary: one line for each requirement, and the rows that do not hold."""
    verdict = "holds" if result.holds else "does not hold"
    lines = [f"### biaskit gate {verdict}", "", "| Requirement | Rows | Outcome |", "|---|---|---|"]
    details: list[str] = []
    for one in result.outcomes:
        title = markdown(one.require.title)
        said = "holds" if one.holds else markdown(one.text.partition(" does not hold: ")[2].rstrip("."))
        lines.append(f"| {title} | {one.n_rows:,} | {said} |")
        if not one.holds:
            details += ["", f"**{title}**", "", *(f"- {markdown(line)}" for line in one.lines)]
    return "\n".join([*lines, *details]) + "\n"
