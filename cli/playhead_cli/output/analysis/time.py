"""The lines of ``playhead time``."""

from __future__ import annotations

from collections.abc import Iterator

from playhead_analysis.durations import brief
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE, StyledLine
from playhead_genai.prices import dollars
from playhead_replay.derived.attribution import Attribution, StepTime

MOST_STEPS = 10
"""Steps that are listed, those that took most."""
MOST_PLACES = 20
"""Steps of the critical path that are listed, the last ones."""


def time_lines(found: Attribution) -> Iterator[StyledLine]:
    """Yield the parts of the time of a run, its longest steps, and what its failures took."""
    cost = "" if found.cost_usd is None else f", {dollars(found.cost_usd)}"
    yield StyledLine([(found.run, TITLE), (f"  {brief(found.duration_ns)}{cost}", "")])
    parts = (
        ("models", found.model_ns),
        ("tools", found.tool_ns),
        ("retries", found.retry_ns),
        ("waiting for a person", found.waiting_ns),
        ("own code", found.code_ns),
    )
    for name, time_ns in parts:
        share = f"{100 * time_ns / found.duration_ns:.0f} %" if found.duration_ns else ""
        yield StyledLine([(f"  {brief(time_ns):>8}  ", NUMBER), (f"{share:>5}  ", FAINT), (name, "")])
    longest = sorted(found.steps, key=lambda one: -(one.time_ns + one.retry_ns))[:MOST_STEPS]
    if longest:
        yield StyledLine([("", "")])
    for one in longest:
        yield StyledLine(
            [
                (f"  {brief(one.time_ns + one.retry_ns):>8}  ", NUMBER),
                (f"{one.place:>5}  ", FAINT),
                (one.name, ""),
                (_details(one), FAINT),
            ]
        )
    if found.critical_path:
        path = found.critical_path[-MOST_PLACES:]
        before = "… → " if len(found.critical_path) > MOST_PLACES else ""
        yield StyledLine([("", "")])
        yield StyledLine([("  the end waited for  ", FAINT), (before + " → ".join(path), "")])
    for failure in found.failures:
        where = f" at step {failure.place}" if failure.place else ""
        more = "" if failure.cost_usd is None else f", {dollars(failure.cost_usd)}"
        recovered = ", recovered" if failure.recovered else ""
        yield StyledLine(
            [
                (f"  {failure.type} {failure.code}{where}", FAINT if failure.recovered else ERROR),
                (f"  {brief(failure.time_ns)}{more}{recovered}", ""),
            ]
        )


def _details(step: StepTime) -> str:
    said = [
        "" if step.cost_usd is None else dollars(step.cost_usd),
        f"{brief(step.retry_ns)} in retries" if step.retry_ns else "",
        f"in {step.agent}" if step.agent else "",
    ]
    return "".join(f"  {one}" for one in said if one)
