"""The report of a replay as JUnit XML, for tools that display test results.

There is one test case per step, per boundary and per output. A divergence fails the case of its step (or
of its output; or of its boundary, if it belongs to no step), and shows both sides. Of a replay from
spans, there is one test case per call of a model, per refused request, and for the exit status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from playhead_core.facts import Fidelity
from playhead_core.untrusted.shown_text import visible
from playhead_replay.report.report import Divergence, Report

OUTPUTS = ("stdout", "stderr", "exit", "effect", "response")
"""Kinds of divergence that are reported with their output."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """A test case. It failed if there are ``lines``, which say why."""

    group: str
    name: str
    lines: list[str]
    is_blocked: bool = False
    """Whether it failed because something was refused."""


def junit_xml(report: Report, command: str, time_s: float = 0.0) -> bytes:
    """``command``: the command that reproduces the report. ``time_s``: duration of the replay."""
    return junit_suite(
        report.run, dict(_properties(report)), list(_cases(report)), report.lines(), command, time_s
    )


def junit_suite(
    run: str,
    properties: Mapping[str, str],
    cases: Sequence[Case],
    lines: Iterable[str],
    command: str,
    time_s: float,
) -> bytes:
    """One test suite. ``lines``: the report as text. ``command``, ``time_s``: as for `junit_xml`."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_clean(f"playhead replay {run}"))
    listed = ElementTree.SubElement(suite, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(listed, "property", name=name, value=_clean(value))
    for case in cases:
        classname, name = _clean(f"{run}.{case.group}"), _clean(case.name)
        test = ElementTree.SubElement(suite, "testcase", classname=classname, name=name, time="0")
        if case.lines:
            kind = "blocked" if case.is_blocked else "diverged"
            failure = ElementTree.SubElement(test, "failure", type=kind, message=_clean(case.lines[0]))
            failure.text = _clean("\n".join([*case.lines, f"again: {command}"]))
    failed = sum(bool(case.lines) for case in cases)
    counts = {"tests": len(cases), "failures": failed, "errors": 0, "skipped": 0}
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{time_s:.3f}")
    ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(lines))
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


def _case(group: str, name: str, found: list[Divergence]) -> Case:
    lines = [line for one in found for line in one.lines()]
    return Case(group, name, lines, any(one.kind == "blocked" for one in found))


def _cases(report: Report) -> Iterator[Case]:
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
        yield _case("steps", f"{number} {name}", taken(found))
    kinds = sorted({*report.boundaries, *report.reads})
    for kind in kinds:
        yield _case("boundaries", kind, taken([one for one in left if _boundary_of(one, kind)]))
    for check in report.outputs:
        yield _case("outputs", str(check), by_output[check.full_name])
    if left:
        yield _case("run", "outside any step", left)


def _output_of(one: Divergence) -> str:
    if one.kind not in OUTPUTS:
        return ""
    return {"effect": "effects", "response": "responses"}.get(one.kind, one.kind)


def _boundary_of(one: Divergence, kind: str) -> bool:
    return f" {kind} " in f"{one.what} " or f"#{kind}:" in one.what


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))
