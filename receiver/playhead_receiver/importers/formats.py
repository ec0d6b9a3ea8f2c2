"""The formats of files that can be imported; the content of a file tells which one it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import CorruptTape, MalformedOtlp, UsageError
from playhead_exporter.delivery import Signal
from playhead_exporter.shipping.requests import bounded, fact_requests, merge_spans
from playhead_receiver.archive import run_files
from playhead_receiver.archive.run_files import REQUEST_BYTES, Incoming, count_request
from playhead_receiver.importers import (
    cassettes,
    har,
    jaeger,
    langfuse,
    langsmith,
    mlflow,
    openai_completions,
    otlp_files,
    phoenix,
)
from playhead_receiver.importers.documents import MOST_BYTES, items_of, parsed
from playhead_receiver.importers.spans import Converted
from playhead_replay.tape_files.tape_file import bytes_of, is_tape

TAPE, OTLP, VCR = "tape", "otlp", "vcr"
LOOKED_AT = 20
"""Objects of a document that are looked at to recognize its format."""


class Format(NamedTuple):
    """How the objects of a format are recognized and converted."""

    is_one: Callable[[dict[str, Any]], bool]
    convert: Callable[[Any, Converted, str], None]
    """Adds a document to the result; the text is the name of the file without its suffix."""


def _unnamed(convert: Callable[[Any, Converted], None]) -> Callable[[Any, Converted, str], None]:
    return lambda document, found, name: convert(document, found)


FORMATS = {
    "har": Format(har.is_har, har.convert),
    VCR: Format(cassettes.is_cassette, cassettes.convert),
    "jaeger": Format(jaeger.is_jaeger, _unnamed(jaeger.convert)),
    "langsmith": Format(langsmith.is_langsmith, _unnamed(langsmith.convert)),
    "openai": Format(openai_completions.is_openai, _unnamed(openai_completions.convert)),
    "mlflow": Format(mlflow.is_mlflow, _unnamed(mlflow.convert)),
    "phoenix": Format(phoenix.is_phoenix, _unnamed(phoenix.convert)),
    "langfuse": Format(langfuse.is_langfuse, _unnamed(langfuse.convert)),
}
"""Formats of other tools, in the order in which they are tried."""
NAMES = (TAPE, OTLP, *FORMATS)


def incoming(path: Path, form: str | None = None, *, partial: bool = False) -> tuple[str, Incoming]:
    """Read a file of any format. Returns the name of the format, and what the file holds.

    ``form``: its format, if its content does not say it. ``partial``: of a damaged tape or of damaged
    lines, the readable part. `UsageError` for an unknown format; `CorruptTape`, `TapeMissing`,
    `TooLarge`.
    """
    if form == TAPE or (form is None and is_tape(path)):
        return TAPE, run_files.incoming(path, partial=partial)
    view, problem = bytes_of(path, MOST_BYTES + 1)
    source: Any = view.obj
    head = source.find(b"\n", 0, len(view))
    if form in (None, OTLP) and _is_line(bytes(view[: head if head >= 0 else len(view)])):
        return OTLP, run_files.incoming(path, partial=partial)
    if problem:
        raise CorruptTape(f"{path.name} is damaged: {problem}")
    data = bytes(view)
    if form in (None, OTLP) and (requests := otlp_files.binary_requests(data)):
        return OTLP, _of_requests(requests)
    document = _flat(parsed(data, path.name))
    form = form or _recognized(document, is_json=data.lstrip()[:1] in (b"{", b"["))
    if form is None:
        raise UsageError(
            f"{path.name} has none of the known formats",
            cause=f"they are {', '.join(NAMES)}",
            hint="name it if you know it: playhead import --format FORMAT FILE",
        )
    if form == OTLP:
        try:
            return OTLP, _of_requests(otlp_files.checked(otlp_files.requests_in(document)))
        except MalformedOtlp as unreadable:
            raise CorruptTape(f"{path.name} is damaged: {unreadable.what}") from None
    found = Converted(form)
    FORMATS[form].convert(document, found, path.name.partition(".")[0] or path.name)
    return form, _of_converted(found)


def _is_line(line: bytes) -> bool:
    """Whether the first line of a file is a whole OTLP request, or was one before it was cut."""
    line = line.lstrip(b"\xef\xbb\xbf \t\r")
    return line.startswith((b'{"resourceSpans":', b'{"resourceLogs":')) or (
        line.startswith(b"{") and line.rstrip().endswith(b"}") and b'"resource' in line[:4096]
        and otlp_files.is_otlp_line(line)
    )  # fmt: skip


def _flat(document: Any) -> Any:
    """A list of pages, as JSON lines may be, as one list."""
    if not isinstance(document, list):
        return document
    return [inner for one in cast("list[Any]", document) for inner in items_of(one)]


def _recognized(document: Any, *, is_json: bool) -> str | None:
    """The format of the first object that has one. Only cassettes are YAML."""
    candidates = [cast("dict[str, Any]", document)] if isinstance(document, dict) else []
    candidates += items_of(document, "runs", "traces")[:LOOKED_AT]
    forms = {VCR: FORMATS[VCR]} if not is_json else FORMATS
    for one in candidates:
        if is_json and otlp_files.is_otlp(one):
            return OTLP
        name = next((name for name, form in forms.items() if form.is_one(one)), None)
        if name is not None:
            return name
    return None


def _of_requests(requests: list[otlp_files.Request]) -> Incoming:
    found = Incoming(lambda: iter(requests))
    for request in requests:
        count_request(request, found)
    return found


def requests_of_converted(converted: Converted) -> Iterator[tuple[Signal, bytes]]:
    """Yield export requests with facts and spans."""
    if converted.facts:
        for logs in fact_requests(converted.facts, converted.facts[0].instance, {}):
            yield logs.signal, logs.body()
    for some in bounded(map(ResourceSpans.FromString, converted.spans), REQUEST_BYTES):
        yield Signal.TRACES, merge_spans(some).SerializeToString()


def _of_converted(converted: Converted) -> Incoming:
    return Incoming(
        lambda: requests_of_converted(converted),
        facts=len(converted.facts),
        spans=len(converted.spans),
        trace_ids=converted.trace_ids,
        problems=Counter(converted.problems),
    )
