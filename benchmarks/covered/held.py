"""What the receiver holds of calls that playhead recorded, as the worker tells it of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playhead_genai.messages import to_json
from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step


def held(data_dir: Path) -> dict[str, Any]:
    """The spans of the last run's steps by case, with messages, attempts and chunks."""
    store = open_store(data_dir, read_only=True)
    try:
        run = Run.load(store, "last")
        cases = [span for span in run.spans if span.name.startswith("case ")]
        return {case.name.removeprefix("case "): _below(run, case) for case in cases}
    finally:
        store.close()


def _below(run: Run, case: Span) -> list[dict[str, Any]]:
    own = {span.span_id for span in case.walk()}
    return [one for step in run.steps if step.span.span_id in own for one in _told(run, step)]


def _told(run: Run, step: Step) -> list[dict[str, Any]]:
    said = run.messages(step)
    content = {name: to_json(getattr(said, name)) for name in ("system", "input", "output", "tools")}
    exchanges = run.exchanges_of(step)
    chunks = [
        {"time": one.time_ns, "data": _text(one.data)} for each in exchanges for one in each.chunks
    ]
    raw = [_text(body) for each in exchanges for body in (each.request, each.response)]
    spans = [step.span, *(one for one in step.attempts if one is not step.span)]
    told = [
        {
            "name": span.name,
            "status": "ERROR" if span.failed else "UNSET",
            "attributes": span.attributes,
            "events": [],
        }
        for span in spans
    ]
    told[0] |= {"content": content, "events": chunks, "raw": raw}
    return told


def _text(data: bytes) -> str:
    return data.decode("latin-1")
