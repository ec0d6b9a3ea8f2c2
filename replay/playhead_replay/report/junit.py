"""The fidelity report as JUnit XML, for tools that display test results.

There is one test case per step, per boundary and per output. A divergence fails the case of its step (or
of its output; or of its boundary, if it belongs to no step), and shows both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from playhead_core.facts import Fidelity
from playhead_core.untrusted.shown_text import visible
from playhead_replay.report.report import Divergence, Report

OUTPUTS = ("stdout", "stderr", "exit", "effect", "response")
"""Kinds of divergence that are reported with their output."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(report: Report, command: str, time_s: float = 0.0) -> bytes:
    """``command``: the command that reproduces the report. ``time_s``: duration of the replay."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_clean(f"playhead replay {report.run}"))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    failed = total = 0
    for group, name, found in _cases(report):
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean(f"{report.run}.{group}"), name=_clean(name), time="0"
        )
        total += 1
        if found:
            failed += 1
            kind = "blocked" if any(one.kind == "blocked" for one in found) else "diverged"
            failure = ElementTree.SubElement(
                case, "failure", type=kind, message=_clean(next(iter(found[0].lines())))
            )
            lines = [line for one in found for line in one.lines()]
            failure.text = _clean("\n".join([*lines, f"again: {command}"]))
    counts = {"tests": total, "failures": failed, "errors": 0, "skipped": 0}
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{time_s:.3f}")
    said = ElementTree.SubElement(suite, "system-out")
    said.text = _clean("\n".join(report.lines()))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "verdict", report.verdict
    yield "level", report.level
    if report.network:
        yield "network", report.network
    if report.files:
        yield "files", report.files
    for one in Fidelity:
        yield str(one), str(report.count(one))


def _cases(report: Report) -> Iterator[tuple[str, str, list[Divergence]]]:
    left = list(report.divergences)

    def taken(wanted: list[Divergence]) -> list[Divergence]:
        for one in wanted:
            left.remove(one)
        return wanted

    by_output = {
        check.full_name: taken(
            [one for one in left if (_output_of(one), one.process) == (check.name, check.process)]
        )
        for check in report.outputs
    }
    for number, name in report.steps.items():
        found = [one for one in left if one.step == number]
        yield "steps", f"{number} {name}", taken(found)
    kinds = sorted({*report.boundaries, *report.reads})
    for kind in kinds:
        yield "boundaries", kind, taken([one for one in left if _boundary_of(one, kind)])
    for check in report.outputs:
        yield "outputs", str(check), by_output[check.full_name]
    if left:
        yield "run", "outside any step", left


def _output_of(one: Divergence) -> str:
    if one.kind not in OUTPUTS:
        return ""
    return {"effect": "effects", "response": "responses"}.get(one.kind, one.kind)


def _boundary_of(one: Divergence, kind: str) -> bool:
    return f" {kind} " in f"{one.what} " or f"#{kind}:" in one.what


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))
