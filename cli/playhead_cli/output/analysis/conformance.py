"""The lines of ``playhead conform``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead_analysis.workflows.conformance import Conformance, ConformanceReport, reasons_of
from playhead_cli.output.analysis.flow import percent
from playhead_cli.output.styles import ERROR, FAINT, TITLE, StyledLine
from playhead_cli.output.words import count

MOST_RUNS = 20
MOST_REASONS = 8
MOST_ALIGNED = 200
STYLES = {"yes": "green", "no": "red", "unknown": "yellow"}
SIGNS = {"step": " ", "missing": "-", "unexpected": "+"}


def conformance_lines(report: ConformanceReport) -> Iterator[Text | StyledLine]:
    """Yield the sums, what is missing and not expected most often, then each other run."""
    yield StyledLine(
        [
            (report.conforms, STYLES[report.conforms]),
            (
                f"  {report.conforming} of {count(report.runs, 'run')} conform to {report.workflow}",
                TITLE,
            ),
            (f", {percent(report.completeness)} complete", ""),
        ]
    )
    for title, found in (("MISSING", report.missing), ("NOT EXPECTED", report.unexpected)):
        if found:
            yield Text("")
            yield Text(title, style=FAINT)
            for what, times in list(found.items())[:MOST_REASONS]:
                yield Text(f"  {what}  in {count(times, 'run')}")
    others = [one for one in report.results if one.conforms != "yes"]
    for one in others[:MOST_RUNS]:
        yield Text("")
        yield from run_lines(one)
    if len(others) > MOST_RUNS:
        yield Text(f"{len(others) - MOST_RUNS} more runs; --json has all", style=FAINT)


def run_lines(found: Conformance) -> Iterator[Text | StyledLine]:
    """Yield how far a run conforms, and why not."""
    yield StyledLine(
        [
            (found.run, TITLE),
            (f"  {found.conforms}", STYLES[found.conforms]),
            (f"  {percent(found.completeness)} complete", ""),
            (f"  {', '.join(found.anomalies)}" if found.anomalies else "", ERROR),
        ]
    )
    reasons = reasons_of(found)
    for reason in reasons[:MOST_REASONS]:
        yield Text(f"  {reason}")
    if len(reasons) > MOST_REASONS:
        yield Text(f"  {len(reasons) - MOST_REASONS} more", style=FAINT)


def alignment_lines(found: Conformance) -> Iterator[Text | StyledLine]:
    """Yield a run beside its workflow: ``+`` is not expected, ``-`` is missing."""
    for one in found.alignment[:MOST_ALIGNED]:
        label = one.label if one.label in ("", one.action) else f"{one.label} ({one.action})"
        said = f"  {SIGNS[one.kind]} {one.place if one.kind != 'missing' else '':>6}  "
        yield StyledLine([(said, ""), (label or one.action, "" if one.kind == "step" else ERROR)])
    if len(found.alignment) > MOST_ALIGNED:
        yield Text(f"  {len(found.alignment) - MOST_ALIGNED} more", style=FAINT)
