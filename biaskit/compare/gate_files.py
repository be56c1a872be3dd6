"""A gate's outcome as the files that build servers read: JUnit's XML, and a summary in Markdown."""

from __future__ import annotations

from xml.etree import ElementTree

from biaskit.compare.gate import GateResult, Outcome
from biaskit.foreign import markdown, visible

SUITE = "biaskit gate"


def junit(result: GateResult) -> bytes:
    """One test suite with a case for each requirement; one that does not hold is a failure with its rows."""
    failures = sum(not one.holds for one in result.outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(result.outcomes)),
        failures=str(failures),
        errors="0",
        skipped="0",
    )
    for one in result.outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="biaskit.gate", name=visible(one.require.title), time="0"
        )
        if not one.holds:
            failure = ElementTree.SubElement(case, "failure", type="gate", message=visible(one.text))
            failure.text = "\n".join(map(visible, one.lines))
    suites = ElementTree.Element(
        "testsuites", tests=suite.get("tests", ""), failures=str(failures), errors="0"
    )
    suites.append(suite)
    ElementTree.indent(suites)
    written: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def summary(result: GateResult) -> str:
    """Markdown for a build's summary: one line for each requirement, and the rows that do not hold."""
    verdict = "holds" if result.holds else "does not hold"
    lines = [f"### biaskit gate {verdict}", "", "| Requirement | Rows | Outcome |", "|---|---|---|"]
    lines += [
        f"| {markdown(one.require.title)} | {one.n_rows:,} | {_outcome(one)} |" for one in result.outcomes
    ]
    for one in result.outcomes:
        if not one.holds:
            lines += [
                "",
                f"**{markdown(one.require.title)}**",
                "",
                *(f"- {markdown(line)}" for line in one.lines),
            ]
    return "\n".join(lines) + "\n"


def _outcome(one: Outcome) -> str:
    return "holds" if one.holds else markdown(one.text.partition(" does not hold: ")[2].rstrip("."))
