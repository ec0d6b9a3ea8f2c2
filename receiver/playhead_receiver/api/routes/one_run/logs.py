"""``/v1/runs/{run}/logs``: log records of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from playhead_core.otlp.log_records import LEVELS, LogQuery, level_name, log_line
from playhead_receiver.api.context import Limit, Reading, RunName
from playhead_receiver.api.models.spans import LogPage, LogRecord
from playhead_receiver.api.routes.one_run.events import MOST_NS, readable
from playhead_receiver.queries.language import read_log_filter
from playhead_receiver.storage.values.stored import StoredLog

router = APIRouter(tags=["runs"])

Level = Literal["trace", "debug", "info", "warning", "error", "fatal"]


@router.get("/v1/runs/{run}/logs")
def list_logs(
    context: Reading,
    run: RunName,
    level: Annotated[Level, Query(description="Only records of this level or above.")] = "trace",
    span: Annotated[
        str, Query(pattern="^([0-9a-f]{16})?$", description="Only records of the span with this id.")
    ] = "",
    q: Annotated[str, Query(description="Level and words: `level>=warning cache`.")] = "",
    limit: Limit = 200,
    after: Annotated[
        str, Query(pattern="^([0-9]{1,19}:[0-9a-f]{32})?$", description="`next` of the page before.")
    ] = "",
) -> LogPage:
    """List the log records that programs and instrumentations sent for a run, by time."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    time_ns, _, digest = after.partition(":")
    wanted = LogQuery(
        [bytes.fromhex(span)] if span else None,
        LEVELS[level] if level != "trace" else 0,
        after=(min(int(time_ns), MOST_NS), bytes.fromhex(digest)) if after else (-1, b""),
    )
    found: list[StoredLog] = []
    selected = read_log_filter(q)
    for one in context.store.logs(bytes.fromhex(summary.trace_id), wanted):
        if q and not selected.selects(log_line(one.otlp)):
            continue
        if len(found) == limit:
            return LogPage(logs=[log_record(log) for log in found], next=found[-1].key)
        found.append(one)
    return LogPage(logs=[log_record(log) for log in found], next=None)


def log_record(stored: StoredLog) -> LogRecord:
    """A log record in a list."""
    line = log_line(stored.otlp)
    return LogRecord(
        time_ns=line.time_ns,
        trace_id=line.trace_id,
        span_id=line.span_id or None,
        level=line.level,
        level_name=level_name(line.level) or None,
        event=line.event or None,
        logger=line.logger or None,
        service=line.service or None,
        body=readable(line.body),
        attributes=readable(line.attributes),
    )
