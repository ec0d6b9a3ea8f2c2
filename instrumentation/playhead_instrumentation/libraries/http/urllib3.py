"""Record requests of urllib3, and therefore of requests and botocore.

The patch is on `HTTPConnectionPool._make_request`, through which every attempt goes: each retry and each
hop of a redirect. It has the request before the connection is made, so a failed connection is an outcome
of that request. The answer is recorded in the adapter for `http.client`, on which urllib3 is based.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from types import ModuleType
from typing import Any

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.common.recording import recording_requests_of_program
from playhead_instrumentation.libraries.http.exchange import HttpExchange, Outgoing, begin
from playhead_instrumentation.libraries.http.framing import error_of
from playhead_instrumentation.libraries.http.http_client import (
    BLOCK_BYTES,
    OpenRequest,
    as_bytes,
    hand_on,
    let_go,
    pieces,
    play,
    told,
    unplug,
    whole,
)
from playhead_instrumentation.libraries.http.http_client_connecting import Server, outgoing
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.layers import ErrorInstead
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.exceptions import again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

WRAPPERS = ("ProxyError", "SSLError")
"""Exceptions of urllib3 that wrap another exception.

On tape their arguments are: text of the wrapper, then module, class, text and arguments of the other."""

UNCONNECTED = "_playhead_unconnected"
"""Attribute of a connection: the error that prevented its tunnel through a proxy."""


def patch(module: ModuleType) -> None:
    """Patch the pools."""
    pool: Any = required(module, "HTTPConnectionPool")
    PATCHES.around(pool, "_make_request", _make_request)
    for owner in (pool, getattr(module, "HTTPSConnectionPool", None)):
        if owner is not None and "_prepare_proxy" in vars(owner):
            PATCHES.around(owner, "_prepare_proxy", _prepare_proxy)


def _prepare_proxy(original: Any, pool: Any, connection: Any) -> None:
    session = recording_requests_of_program()
    if session is None or not isinstance(connection, HTTPConnection):
        return original(pool, connection)
    if session.driver.closed:
        return None
    try:
        with Shadow():
            original(pool, connection)
    except Exception as error:
        # Becomes the outcome of the next request; urllib3 handles both errors in the same place.
        setattr(connection, UNCONNECTED, error)
        if isinstance(error, OSError):
            try:
                pool._raise_timeout(err=error, url=pool.proxy.url, timeout_value=connection.timeout)
            except Exception as timeout:
                setattr(connection, UNCONNECTED, timeout)


def _make_request(
    original: Any, pool: Any, connection: Any, method: str, url: str, *args: Any, **kwargs: Any
) -> Any:
    session = recording_requests_of_program()
    # Connections of another make (HTTP/2, or one that a program's own mocking brings) are left alone.
    if session is None or not isinstance(connection, HTTPConnection):
        return original(pool, connection, method, url, *args, **kwargs)
    given = kwargs.get("body")
    # urllib3 sends text as UTF-8; its first versions left that to `http.client`.
    body = given.encode() if isinstance(given, str) else whole(given)
    if body is None:
        made = pieces(given, "utf-8", getattr(connection, "blocksize", BLOCK_BYTES))
        kwargs["body"] = made
        if session.driver.closed:
            kwargs["body"] = kept = list(made)
            body = b"".join(as_bytes(piece, "utf-8") for piece in kept)
    exchange = begin(session, _outgoing, pool, method, url, kwargs.get("headers"), body)
    if exchange is None:
        return original(pool, connection, method, url, *args, **kwargs)
    if body is None:
        kwargs["body"] = told(exchange, iter(kwargs["body"]), "utf-8")
    if exchange.call.pending_release is not None:
        _depart(exchange)
    if exchange.call.replaced is not None:
        kwargs["body"] = exchange.call.replaced
        headers = dict(kwargs.get("headers") or {})
        kept = {name: value for name, value in headers.items() if str(name).lower() != "content-length"}
        kwargs["headers"] = {**kept, "Content-Length": str(len(exchange.call.replaced))}
    try:
        hand_on(connection, OpenRequest(exchange, own=False))
        exchange.call.answer(unplug, _connect_again, connection, pool, url)
        response = _ask(original, pool, connection, method, url, *args, **kwargs)
    except BaseException as problem:
        _fail(exchange, connection, problem.error if isinstance(problem, ErrorInstead) else problem)
        raise
    finally:
        let_go(connection)
        unplug(connection)  # tells the pool that a recorded connection cannot be reused
    if exchange.attempt.status_code is None:
        exchange.abandoned()
    return response


def _depart(exchange: HttpExchange) -> None:
    """Wait until the request may go out. What interrupts the wait ends the attempt."""
    try:
        exchange.release()
    except BaseException as error:
        exchange.failed(error)
        raise


def _connect_again(played: PlayedExchange, connection: Any, pool: Any, url: str) -> None:
    """Make ``connection`` look as it did when recorded. Raises the error that replaced the head."""
    play(played, connection)
    if getattr(connection, "proxy", None) is not None:
        connection._has_connected_to_proxy = True
    if hasattr(connection, "is_verified"):
        connection.is_verified = getattr(connection, "cert_reqs", None) in (2, "CERT_REQUIRED")
    if not played.exchange.head:
        raise _error(played, pool, connection, url)


def _ask(original: Any, pool: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
    unconnected: Exception | None = connection.__dict__.pop(UNCONNECTED, None)
    if unconnected is not None:
        raise ErrorInstead(unconnected)
    # The program produces a streamed body while it holds the permit.
    with Outside() if isinstance(kwargs.get("body"), bytes | str | None) else Shadow():
        return original(pool, connection, *args, **kwargs)


def _fail(exchange: HttpExchange, connection: Any, error: BaseException) -> None:
    """End the attempt with ``error``, unless the answer has a head and its stream records the error."""
    if exchange.over or exchange.attempt.status_code is not None:
        return
    if not isinstance(error, Exception):
        exchange.failed(error)
        return
    at = exchange.await_arrival()
    error = _by_proxy(connection, error)
    inner = error.args[-1] if error.args else None
    if type(error).__name__ in WRAPPERS and isinstance(inner, Exception):
        outer, within = exchange.recorded(error), exchange.recorded(inner)
        text = error.args[0] if len(error.args) > 1 else ""
        words = [text, within.module, within.qualname, within.message, *within.args]
        exchange.broken(ErrorRecord(outer.module, outer.qualname, outer.message, words), at)
    else:
        exchange.failed(error, at)


def _by_proxy(connection: Any, error: Exception) -> Exception:
    """``error`` as urllib3 will wrap it if the proxy could not be reached."""
    proxy = getattr(connection, "proxy", None)
    if proxy is None or getattr(connection, "has_connected_to_proxy", True):
        return error
    wrap: Any = getattr(sys.modules.get("urllib3.connection"), "_wrap_proxy_error", None)
    known: Any = sys.modules["urllib3.exceptions"]
    if isinstance(error, ssl.SSLError | ssl.CertificateError):
        error = known.SSLError(error)
    reasons = OSError, HTTPException, known.NewConnectionError, known.TimeoutError, known.SSLError
    return wrap(error, proxy.scheme) if wrap is not None and isinstance(error, reasons) else error


def _error(played: PlayedExchange, pool: Any, connection: Any, url: str) -> BaseException:
    """Return the recorded error of an attempt, made as urllib3 makes it."""
    end = played.exchange.end
    known: Any = sys.modules["urllib3.exceptions"]
    record = None if end is None else end.error
    if record is not None and record.qualname in WRAPPERS and len(record.args) > 3:
        text, module, qualname, message, *words = record.args
        inner = again(ErrorRecord(str(module), str(qualname), str(message), words), OSError)
        inner = _placed(inner, pool, connection, url)
        wrapper = getattr(known, record.qualname)
        error = wrapper(text, inner) if text else wrapper(inner)
    else:
        error = error_of(played, known.ProtocolError)
    return _placed(error, pool, connection, url)


def _placed(error: BaseException, pool: Any, connection: Any, url: str) -> BaseException:
    """``error`` with the attributes that exceptions of urllib3 have besides their text."""
    if isinstance(error, sys.modules["urllib3.exceptions"].HTTPError):
        for name, value in (("pool", pool), ("conn", connection), ("url", url)):
            vars(error).setdefault(name, value)
    return error


def _outgoing(
    pool: Any, method: str, url: str, headers: Mapping[str, Any] | None, body: bytes | None
) -> Outgoing:
    given: Any = headers or {}
    if type(given).__module__ == "botocore.awsrequest":
        # Its own look-up makes a key of each name again.
        sent = [(key._key, value) for key, value in given._dict.items()]
    else:
        sent = given.items()
    return outgoing(method, Server(pool.scheme, pool.host, pool.port), url, sent, body)
