"""Sends the requests of a tape to a WSGI application."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from playhead_core.rerun.headers import with_headers
from playhead_instrumentation.libraries.inbound.exchange import END
from playhead_instrumentation.recorder.decision import Played
from playhead_semconv import attributes as a


def serve(app: Any, played: Played, headers: Mapping[str, str]) -> None:
    """Send one request and read its answer as far as the recorded client did.

    ``headers``: replace the recorded headers.
    """
    exchange = played.exchange
    environ = _environ(exchange.ask.details, headers)
    environ["wsgi.input"] = _Body([played.part(number) for number in range(len(exchange.parts))])
    sent = exchange.sent
    whole = bool(sent) and sent[-1].attributes.get(a.PLAYHEAD_INBOUND_MESSAGE) == END
    try:
        answer = app(environ, _start_response)
    except Exception:
        return  # on the tape; a server would have answered 500
    try:
        left = len(sent)
        while whole or left or exchange.end is None:
            next(answer)
            left -= 1
    except StopIteration:
        pass
    except Exception:
        return
    finally:
        answer.close()


def _start_response(status: str, headers: Any, *problem: Any) -> Any:
    return _write


def _write(data: bytes) -> None:
    """No-op: nothing reads it."""


class _Body:
    """The body of a request, in the pieces in which it was read."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, whatever ``size`` is."""
        return next(self._pieces, b"")

    readline = read


def _environ(at: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    root = str(at.get(a.PLAYHEAD_INBOUND_ROOT, ""))
    path = unquote_to_bytes(str(at.get(a.URL_PATH, "/"))).decode("latin-1")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": str(at.get(a.HTTP_REQUEST_METHOD, "GET")),
        "SCRIPT_NAME": root,
        "PATH_INFO": path.removeprefix(root),
        "QUERY_STRING": str(at.get(a.URL_QUERY, "")),
        "SERVER_NAME": str(at.get(a.SERVER_ADDRESS, "")),
        "SERVER_PORT": str(at.get(a.SERVER_PORT, "80")),
        "SERVER_PROTOCOL": f"HTTP/{at.get(a.NETWORK_PROTOCOL_VERSION, '1.1')}",
        "REMOTE_ADDR": str(at.get(a.CLIENT_ADDRESS, "")),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": str(at.get(a.URL_SCHEME, "http")),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if at.get(a.PLAYHEAD_INBOUND_TERMINATED):
        environ["wsgi.input_terminated"] = True
    if a.CLIENT_PORT in at:
        environ["REMOTE_PORT"] = str(at[a.CLIENT_PORT])
    words = with_headers(at.get(a.PLAYHEAD_HTTP_HEADERS, []), headers)
    for name, value in zip(words[::2], words[1::2], strict=True):
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ
