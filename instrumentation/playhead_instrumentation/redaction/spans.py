"""Spans as they are recorded: without the credentials that the program or an instrumentor put into them.

The program's own exporters get the spans as they are. Everything that a span holds is searched in one
pass, as JSON, so that the name of an attribute marks its value; only a span in which that finds
something is taken apart and copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, TraceState

from playhead_instrumentation.redaction.redactor import Redactor
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_instrumentation.redaction.metadata import Metadata

Named = Mapping[str, Any]
"""Attributes."""

_HEADERS: Final = (".header.", ".headers.", ".metadata.")
"""What precedes the name of a header or of a key of gRPC metadata in the name of an attribute."""
_ADDRESSES: Final = ("query", "target", "url", "uri", "full", "path")
"""Last words of the names of attributes that hold a URL or the end of one."""
OURS: Final = "playhead"
"""Name of the instrumentation scope of our own spans."""
_EVENTS: Final = frozenset((e.GEN_AI_EVALUATION_RESULT, "exception"))
"""Names of span events that are kept without content."""
MOST_NAMES: Final = 500
"""Maximum number of cached span names."""
_CLOSER: Final = (".header", ".metadata.", "query", a.PROCESS_COMMAND_ARGS)
"""Parts of the names of attributes that have rules of their own."""


class _Copy(ReadableSpan):
    """A copy of a span, with the counts of what its limits dropped."""

    def __init__(self, span: ReadableSpan, **changed: Any) -> None:
        super().__init__(
            parent=span.parent,
            kind=span.kind,
            start_time=span.start_time,
            end_time=span.end_time,
            **changed,
        )
        self._dropped = span.dropped_attributes, span.dropped_events, span.dropped_links

    @property
    def dropped_attributes(self) -> int:
        """As in the SDK."""
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        """As in the SDK."""
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        """As in the SDK."""
        return self._dropped[2]


class SpanRedactor:
    """Removes credentials from spans. Safe from any thread."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._metadata: Metadata | None = None
        if not redactor.content:
            from playhead_instrumentation.redaction.metadata import Metadata  # few recordings want it

            self._metadata = Metadata(redactor)
        self._resource: tuple[Any, int, Any] = None, 0, None
        self._scope: tuple[Any, int, Any] = None, 0, None
        self._clean: dict[str, int] = {}
        """Span names without a credential → number of known values when the name was searched."""

    def span(self, span: ReadableSpan, unsearched: Named) -> ReadableSpan:
        """Return ``span``, or a copy of it without its credentials.

        ``unsearched``: its attributes without those that are known to hold none.
        """
        resource = self._resource = self._once(self._resource, span.resource, self._cleaned_resource)
        scope = self._scope = self._once(self._scope, span.instrumentation_scope, self._cleaned_scope)
        context = span.get_span_context()
        if self._metadata is not None:
            return self._reduced(span, self._metadata, resource[2], scope[2])
        if not unsearched and self._is_bare(span, context) and resource[2] is resource[0]:
            if scope[2] is scope[0] and self._is_clean(span.name):
                return span
        named = dict(unsearched)
        said: list[Any] = [span.name, span.status.description, *_entries(context), named]
        said += [[one.name, dict(one.attributes or ())] for one in span.events]
        said += [dict(one.attributes or ()) for one in span.links]
        found = self._holds(said)
        attributes = self._cleaned(named, found)
        events = [self._event(one, found) for one in span.events]
        links = [self._link(one, found) for one in span.links]
        ours = resource[2] is resource[0] and scope[2] is scope[0] and attributes is named
        if not found and ours and events == list(span.events) and links == list(span.links):
            return span
        searched = {name: one for name, one in (span.attributes or {}).items() if name not in named}
        return _Copy(
            span,
            name=self._redactor.text(span.name),
            context=None if context is None else self._context(context),
            resource=resource[2],
            instrumentation_scope=scope[2],
            attributes=searched | dict(attributes),
            events=events,
            links=links,
            status=self._status(span.status),
        )

    @staticmethod
    def _is_bare(span: ReadableSpan, context: SpanContext | None) -> bool:
        """Whether a span has only a name and attributes."""
        state = context is not None and context.trace_state
        return not (span.events or span.links or span.status.description or state)

    def _is_clean(self, name: str) -> bool:
        """Whether a span name contains no credential. Cached, because most spans share a few names."""
        learned = self._redactor.learned
        if self._clean.get(name) == learned:
            return True
        if self._holds(name):
            return False
        if len(self._clean) > MOST_NAMES:
            self._clean.clear()
        self._clean[name] = learned
        return True

    def _reduced(
        self, span: ReadableSpan, metadata: Metadata, resource: Any, scope: Any
    ) -> ReadableSpan:
        """Return what of ``span`` is metadata."""

        def kept(attributes: Any) -> Any:
            return _bounded(self.attributes(attributes or {}), attributes)

        def named(event: Event) -> str:
            return event.name if event.name in _EVENTS else metadata.digest(event.name)

        context = span.get_span_context()
        return _Copy(
            span,
            name=self.name(span),
            context=None if context is None else _without_state(context),
            resource=resource,
            instrumentation_scope=scope,
            attributes=self.attributes(span.attributes or {}),
            events=[Event(named(one), kept(one.attributes), one.timestamp) for one in span.events],
            links=[Link(_without_state(one.context), kept(one.attributes)) for one in span.links],
            status=Status(span.status.status_code),
        )

    def name(self, span: ReadableSpan) -> str:
        """Return the name of a span; a digest of it for others' spans, without content."""
        scope = span.instrumentation_scope
        if self._metadata is None or (scope is not None and scope.name == OURS):
            return self._redactor.text(span.name)
        return f"{scope.name if scope is not None else 'span'} {self._metadata.digest(span.name)}"

    def attributes(self, attributes: Named) -> Named:
        """Return attributes without the credentials in their names and values, or only metadata."""
        if not attributes:
            return attributes
        cleaned = self._cleaned(attributes, self._holds(dict(attributes)))
        return cleaned if self._metadata is None else self._metadata.attributes(cleaned)

    def _cleaned(self, attributes: Named, found: bool) -> Named:
        """As `attributes`. ``found``: whether the search by names and shapes found anything."""
        changed = {
            name: (self._redactor.text(name), self._value(name, value))
            for name, value in attributes.items()
            if found or _has_rules(name, value)
        }
        if all(new == (name, attributes[name]) for name, new in changed.items()):
            return attributes
        return dict(changed.get(name, (name, value)) for name, value in attributes.items())

    def _event(self, event: Event, found: bool) -> Event:
        attributes = event.attributes or {}
        cleaned = self._cleaned(attributes, found)
        name = self._redactor.text(event.name) if found else event.name
        if cleaned is attributes and name == event.name:
            return event
        return Event(name, _bounded(cleaned, attributes), event.timestamp)

    def _link(self, link: Link, found: bool) -> Link:
        attributes = link.attributes or {}
        cleaned = self._cleaned(attributes, found)
        return link if cleaned is attributes else Link(link.context, _bounded(cleaned, attributes))

    def text(self, text: str) -> str:
        """Return a text without its credentials."""
        return self._redactor.text(text)

    def _holds(self, held: Any) -> bool:
        """Whether there is a credential in any of these names and values; it is learned."""
        return self._redactor.holds(_JSON(held).encode("utf-8", "surrogatepass"))

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(name, value)
        if isinstance(value, bytes):
            return self._redactor.body(value)[0]
        if isinstance(value, Mapping):
            held = cast("Mapping[Any, Any]", value)
            return {
                self._redactor.text(str(key)): self._value(str(key), one) for key, one in held.items()
            }
        if isinstance(value, Sequence):
            items = cast("Sequence[Any]", value)
            if name == a.PROCESS_COMMAND_ARGS:
                return tuple(self._redactor.arguments(str(one) for one in items))
            return tuple(self._value(name, one) for one in items)
        if isinstance(value, int | float):
            return self._redactor.under(name, value)
        return value if value is None else self._text(name, str(value))

    def _text(self, name: str, text: str) -> str:
        redactor, last = self._redactor, name.rpartition(".")[2].lower()
        if any(part in name for part in _HEADERS):
            return redactor.headers([(last.replace("_", "-"), text)])[0][1]
        if last == "query":
            return redactor.url(f"?{text}")[1:]
        text = redactor.url(text) if "://" in text or last in _ADDRESSES else redactor.text(text)
        return redactor.under(name, text)

    def _status(self, status: Status) -> Status:
        said = status.description
        return Status(status.status_code, self._redactor.text(said)) if said else status

    def _context(self, context: SpanContext) -> SpanContext:
        before = _entries(context)
        entries = [(key, self._redactor.under(key, self._redactor.text(one))) for key, one in before]
        if entries == before:
            return context
        state = TraceState(entries)
        return SpanContext(
            context.trace_id, context.span_id, context.is_remote, context.trace_flags, state
        )

    def _once(self, known: tuple[Any, int, Any], whole: Any, clean: Any) -> tuple[Any, int, Any]:
        """Return ``whole``, how many credentials were known, and ``whole`` without them."""
        learned = self._redactor.learned
        if known[0] is whole and known[1] == learned:
            return known
        cleaned = None if whole is None else clean(whole)
        return whole, self._redactor.learned, cleaned

    def _cleaned_resource(self, resource: Resource) -> Resource:
        attributes = resource.attributes
        cleaned = self.attributes(attributes)
        if cleaned is attributes:
            return resource
        return Resource(dict(cleaned), resource.schema_url)

    def _cleaned_scope(self, scope: InstrumentationScope) -> InstrumentationScope:
        attributes = scope.attributes or {}
        cleaned = self.attributes(attributes)
        said = [self._redactor.text(one or "") for one in (scope.name, scope.version, scope.schema_url)]
        if cleaned is attributes and said == [scope.name, scope.version or "", scope.schema_url or ""]:
            return scope
        return InstrumentationScope(said[0], said[1], said[2], dict(cleaned))


def _without_state(context: SpanContext) -> SpanContext:
    """Return ``context`` with what its trace state says of sampling alone."""
    kept = [(key, value) for key, value in _entries(context) if key == "ot"]
    return SpanContext(
        context.trace_id, context.span_id, context.is_remote, context.trace_flags, TraceState(kept)
    )


def _entries(context: SpanContext | None) -> list[tuple[str, str]]:
    state = None if context is None else context.trace_state
    return list(state.items()) if state else []


def _has_rules(name: str, value: Any) -> bool:
    """Whether an attribute is a header, a URL or a command line, which have rules of their own."""
    address = isinstance(value, str) and ("?" in value or "://" in value)
    return address or any(part in name for part in _CLOSER)


def _bounded(cleaned: Named, before: Any) -> Any:
    """Attributes of an event or a link, with the count of what its limits dropped."""
    made = BoundedAttributes(attributes=dict(cleaned), immutable=False)
    made.dropped = getattr(before, "dropped", 0)
    return made


def _plain(value: Any) -> Any:
    """A value that JSON does not know, for the search."""
    if isinstance(value, Mapping):
        return {str(key): one for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(cast("Sequence[Any]", value)) if isinstance(value, Sequence) else str(value)


_JSON: Final = json.JSONEncoder(ensure_ascii=False, default=_plain).encode
