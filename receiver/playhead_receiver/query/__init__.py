"""The HTTP query API: runs, spans, events, search, live view; described at ``/openapi.json``."""

from playhead_receiver.query.app import query_app

__all__ = ["query_app"]
