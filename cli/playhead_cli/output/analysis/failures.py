"""The lines of ``playhead failures`` and ``playhead like``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead_analysis.failure_kinds import FailureKinds
from playhead_analysis.likeness import LikeRuns
from playhead_cli.output.styles import ERROR, FAINT, TITLE, StyledLine
from playhead_cli.output.words import count
from playhead_genai.prices import dollars


def kind_lines(found: FailureKinds) -> Iterator[Text | StyledLine]:
    """Yield the kinds of failures, each with its share, what it cost, and examples."""
    yield StyledLine(
        [(f"{count(found.failed, 'failed run')} of {found.runs}", TITLE), (_summary(found), "")]
    )
    for number, kind in enumerate(found.kinds, 1):
        cost = "" if kind.cost_usd is None else f"  {dollars(kind.cost_usd)}"
        yield Text("")
        yield StyledLine(
            [
                (f"{number}. ", FAINT),
                (" ".join(filter(None, (kind.type, kind.code))) or "nothing says why", ERROR),
                (f"  {kind.name}" if kind.name else "", ""),
                (f"  {count(len(kind.runs), 'run')}, {kind.share * 100:.0f} %{cost}", FAINT),
            ]
        )
        if kind.message:
            yield Text(f"   {kind.message}")
        if kind.explained_by:
            yield Text(f"   nearly all of these and few others: {', '.join(kind.explained_by)}")
        more = len(kind.runs) - 3
        yield Text(
            f"   {', '.join(kind.runs[:3])}{f' and {more} more' if more > 0 else ''}", style=FAINT
        )


def _summary(found: FailureKinds) -> str:
    """Return how few kinds explain most: ``; 2 kinds explain 10``."""
    explained = 0
    for number, kind in enumerate(found.kinds, 1):
        explained += len(kind.runs)
        if explained >= 0.8 * found.failed and len(found.kinds) > 1:
            return f"; {count(number, 'kind')} explain{'s' * (number == 1)} {explained} of them"
    return ""


def like_lines(found: LikeRuns) -> Iterator[Text | StyledLine]:
    """Yield the runs that are like a run, the most alike first."""
    yield Text(f"runs like {found.run}", style=TITLE)
    wide = max((len(one.name) for one in found.like), default=0)
    for one in found.like:
        what = [f"way {one.way * 100:.0f} %", f"tools {one.tools * 100:.0f} %"]
        what += [f"same calls of {', '.join(one.same_calls[:3])}"] * bool(one.same_calls)
        what += [f"both: {', '.join(one.failures[:3])}"] * bool(one.failures)
        what += [f"only there: {', '.join(one.only_here[:3])}"] * bool(one.only_here)
        what += [f"not there: {', '.join(one.only_there[:3])}"] * bool(one.only_there)
        yield StyledLine(
            [
                (f"{one.likeness * 100:>5.0f} %  ", ""),
                (f"{one.name:<{wide}}  ", ""),
                (f"{one.status:<11}  ", ERROR if one.status in ("failure", "interrupted") else ""),
                (", ".join(what), FAINT),
            ]
        )


def content_lines(found: LikeRuns) -> Iterator[Text | StyledLine]:
    """Yield what a run read and others read, too: who did, and who acted on it."""
    for number, content in enumerate(found.contents):
        same = [one for one in found.same_content if one.content == number]
        if not same:
            continue
        acted = sum(bool(one.acted) for one in same)
        runs = count(len(same), "other run")
        yield Text("")
        yield StyledLine(
            [
                (f"{content.place} {content.source}".strip(), TITLE),
                (f"  also read by {runs}", ""),
                (f", {acted} acted on it" if acted else "", ERROR),
            ]
        )
        yield Text(f"  {content.excerpt}", style=FAINT)
        wide = max(len(one.name) for one in same)
        for one in sorted(same, key=lambda one: not one.acted):
            yield StyledLine(
                [
                    (f"  {one.name:<{wide}}  ", ""),
                    (f"{one.status:<11}  ", ERROR if one.status in ("failure", "interrupted") else ""),
                    (f"{one.place} {one.source}".strip(), FAINT),
                    (f"  acted: {'; '.join(one.acted)}" if one.acted else "", ERROR),
                ]
            )
