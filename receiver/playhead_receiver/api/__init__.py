"""The HTTP query API: runs, spans, events, search, live view; described at ``/openapi.json``."""
