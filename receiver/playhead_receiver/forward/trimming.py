"""Spans for a destination that does not get all of them: attributes left out, values cut."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.faces.capping import Cap
from playhead_receiver.forward.destination import Destination


class Trimmer:
    """Changes spans as a `Destination` wants them; ``base_url``: of the API that has them whole."""

    def __init__(self, destination: Destination, base_url: str = "") -> None:
        self._keep = _pattern(destination.keep)
        self._drop = _pattern(destination.drop)
        self._cap = Cap(destination.limit_bytes, base_url)

    def trim(self, envelope: ResourceSpans) -> ResourceSpans:
        """Leave out and cut, in place. How many attributes went is in ``dropped_attributes_count``.

        ``drop`` concerns resource and scope too, ``keep`` only the span, its events and links.
        """
        if self._keep or self._drop:
            self._leave_out(envelope.resource, about_span=False)
            for scoped in envelope.scope_spans:
                self._leave_out(scoped.scope, about_span=False)
                for span in scoped.spans:
                    for holder in (span, *span.events, *span.links):
                        self._leave_out(holder, about_span=True)
        return self._cap.apply(envelope)

    def _leave_out(self, holder: Any, *, about_span: bool) -> None:
        pairs = holder.attributes
        kept = [pair for pair in pairs if self._stays(pair.key, about_span)]
        if len(kept) < len(pairs):
            holder.dropped_attributes_count += len(pairs) - len(kept)
            del pairs[:]
            pairs.extend(kept)

    def _stays(self, name: str, about_span: bool) -> bool:
        if self._drop is not None and self._drop.match(name):
            return False
        return not about_span or self._keep is None or bool(self._keep.match(name))


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    found = "|".join(translate(glob) for glob in globs)
    return re.compile(found) if found else None
