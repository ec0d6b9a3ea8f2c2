"""A run that is a part of a process gets an instance of its own in its file.

The facts of a request are renumbered when they are extracted from the tape of their process. Under the
original instance they would collide with those of other requests of the process as soon as both are in
one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.facts import Content, Fact
from playhead_core.tape.protocols import Tape
from playhead_core.tape.slices import SlicedTape, part_of
from playhead_semconv import attributes as a


class PartialRun:
    """The instance ids of a run in its file."""

    def __init__(self, tapes: Sequence[Tape], trace_id: str) -> None:
        trace = bytes.fromhex(trace_id)
        self._names = {
            tape.instance: part_of(tape.instance, trace)
            for tape in tapes
            if isinstance(tape, SlicedTape)
        }
        self._texts = {old.hex(): new.hex() for old, new in self._names.items()}

    def tapes(self, tapes: Sequence[Tape]) -> list[Tape]:
        """The tapes, each with its new instance id."""
        return (
            [RenumberedTape(one, self.of(one.instance), self._texts) for one in tapes]
            if self._names
            else [*tapes]
        )

    def of(self, instance: bytes) -> bytes:
        """The new id of an instance."""
        return self._names.get(instance, instance)

    def span(self, envelope: ResourceSpans) -> ResourceSpans:
        """A span whose reference to its exchange uses the new ids."""
        if not self._names:
            return envelope
        for attribute in envelope.resource.attributes:
            if attribute.key == a.PLAYHEAD_INSTANCE:
                instance = attribute.value.string_value
                attribute.value.string_value = self._texts.get(instance, instance)
        for scope in envelope.scope_spans:
            for span in scope.spans:
                for attribute in list(span.attributes):
                    if attribute.key == a.PLAYHEAD_EXCHANGE_REF:
                        instance, _, exchange = attribute.value.string_value.partition("/")
                        named = self._texts.get(instance, instance)
                        attribute.value.string_value = f"{named}/{exchange}"
                    elif attribute.key == a.PLAYHEAD_RESTS_ON:
                        span.attributes.remove(attribute)  # a fact number of the whole tape
        return envelope

    def otlp(self, stored: bytes) -> bytes:
        """The same for a span in its stored bytes."""
        return self.span(ResourceSpans.FromString(stored)).SerializeToString() if self._names else stored


class RenumberedTape:
    """A tape with another instance id."""

    def __init__(self, tape: Tape, instance: bytes, names: Mapping[str, str]) -> None:
        """``names``: new instance ids by the ids on the tape."""
        self._tape = tape
        self._names = names
        self.instance = instance
        """The process instance that the facts belong to."""

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending."""
        for fact in self._tape.facts(after):
            at = fact.attributes
            parent = at.get(a.PLAYHEAD_PROCESS_PARENT_INSTANCE)
            if parent in self._names:
                at = {**at, a.PLAYHEAD_PROCESS_PARENT_INSTANCE: self._names[str(parent)]}
            yield msgspec.structs.replace(fact, instance=self.instance, attributes=at)

    def read(self, content: Content) -> bytes:
        """The bytes of a content of this tape."""
        return self._tape.read(content)
