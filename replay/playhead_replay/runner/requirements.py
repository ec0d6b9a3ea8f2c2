"""What a run must have so that it can be executed again; checked before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from playhead_core.boundaries import had
from playhead_core.errors import TapeGap, TapeMissing, UsageError
from playhead_core.tape.slices import AGED_OUT
from playhead_replay.run.held_tapes import gaps_of
from playhead_replay.run.inbound_requests import InboundRequest
from playhead_replay.run.run import Run
from playhead_replay.runner.isolation import enforceable


def require_whole(run: Run) -> None:
    """`TapeGap` when facts of the tape are missing, `TapeMissing` when their bytes are."""
    gaps = gaps_of(run.tape)
    if gaps and gaps[0].reason == AGED_OUT:
        raise TapeGap(
            f"{run.name} cannot be replayed: {gaps[0]}",
            cause="what a service does for no request is kept for as long as process-history says",
            hint="replay one of its requests: playhead ls",
        )
    if gaps:
        raise TapeGap(
            f"{run.name} cannot be replayed: {gaps[0]}",
            cause="the agent died before they were delivered, or they were lost",
            hint="look for undelivered facts: playhead spool push",
        )
    for exchange in run.exchanges:
        if not exchange.has_content:
            raise TapeMissing(
                f"{run.name} cannot be replayed: it was recorded without content",
                cause=f"{exchange.name} has no bytes",
                hint="record it with its content: playhead record --content full SCRIPT",
            )


def require_contained(run: Run) -> None:
    """`UsageError` if a replay would change files for real."""
    left_out = [
        name for name in ("files", "sqlite") if name not in had(next(run.tape.facts()).attributes)
    ]
    if left_out and "files" not in enforceable():
        raise UsageError(
            f"a replay of {run.name} could change files: nothing here keeps it from them",
            cause=(
                f"it was recorded without {' and '.join(left_out)}, "
                "and this system allows no namespaces of mounts"
            ),
            hint="where that does no harm: --repeat-effects; level causal records files",
        )


def require_headers(run: Run, headers: Mapping[str, str]) -> None:
    """`UsageError` if ``headers`` are given and no recorded request has headers."""
    if headers and not any(not one.is_marked for one in run.requests):
        raise UsageError(
            f"{run.name} is not an HTTP request: it has no headers",
            hint=f"playhead show {run.name}",
        )


def require_application(run: Run, came: Sequence[InboundRequest]) -> None:
    """`TapeMissing` if the tape does not say which application a request was for."""
    for one in came:
        if not one.application and one.is_marked:
            raise TapeMissing(
                f"{run.name} cannot be replayed: {one.key} is not a function that can be called again",
                cause="it is a block, or a function that is made inside another one",
                hint="mark a function of a module: @playhead.run",
            )
        if not one.application:
            raise TapeMissing(
                f"{run.name} cannot be replayed: nothing leads to the application that served {one.key}",
                cause="no module held it when it was recorded",
                hint="make it an attribute of a module: app = create_app()",
            )
