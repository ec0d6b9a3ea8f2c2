"""Record the results of libpq: each generator here replaces one of psycopg."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, Final, cast

from playhead_core.errors import ExchangeExhausted
from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.database.exchange import DatabaseExchange
from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.psycopg import results
from playhead_instrumentation.libraries.postgresql.psycopg.link import (
    ORIGINAL,
    DatabaseLink,
    libpq,
    link_of,
    module,
    steps,
)
from playhead_instrumentation.libraries.postgresql.psycopg.stand_in import StandIn
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import Steps, arrival, blocks, outside
from playhead_instrumentation.libraries.postgresql.statement import Query
from playhead_instrumentation.patching.lanes import resume
from playhead_instrumentation.recorder.exceptions import again as raised_again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_semconv import attributes as a

log = Log(__name__)

READY: Final = messages.message(b"Z", b"I")[:-1]
LOST: Final = {a.ERROR_TYPE: "connection"}
"""Values of the end of an exchange after which the connection is lost."""


def _came(link: DatabaseLink, data: bytes, at: Delivery | None, found: Any = ()) -> None:
    exchange = link.exchange
    if exchange is not None:
        exchange.received(data, at)
        link.note(found, libpq())


def _over(link: DatabaseLink, at: Delivery | None, pgconn: Any = None) -> None:
    exchange, link.exchange = link.exchange, None
    if exchange is not None:
        exchange.finished(at, LOST if pgconn is not None and _lost(pgconn) else None)


def _lost(pgconn: Any) -> bool:
    return pgconn.status == libpq().ConnStatus.BAD


def _messages(link: DatabaseLink, pgconn: Any, found: Any, *, ready: bool = True) -> bytes:
    """What the server has said, by the results that came of it."""
    pq = libpq()
    try:
        data = link.known.told() + b"".join(results.written(one, pq) for one in found)
        if ready and not _lost(pgconn):
            data += link.known.changed(pgconn) + results.ready(pgconn)
        return data
    except Exception:
        log.debug("playhead could not record a result", exc_info=True)
        return b""


def _answer(
    link: DatabaseLink, pgconn: Any, exchange: DatabaseExchange, steps: Steps
) -> Generator[Any, Any, Any]:
    """Run ``steps`` live. Return their value and the delivery; an error is the response."""
    try:
        try:
            with outside():
                value = yield from steps
        except Exception as error:
            at = yield from arrival(exchange)
            result: Any = getattr(error, "pgresult", None)
            if hasattr(result, "error_field"):
                _came(link, _messages(link, pgconn, [result]), at, [result])
                _over(link, at)
            exchange.failed(error, at)
            raise
        at = yield from arrival(exchange)
    except BaseException as error:
        exchange.failed(error)
        link.exchange = None
        raise
    return value, at


def _play(
    link: DatabaseLink, pgconn: Any, played: PlayedExchange
) -> Generator[Any, Any, Delivery | None]:
    """Let the stand-in send the next recorded part. Raises the recorded error if none is left."""
    exchange, stand_in = link.exchange, link.stand_in
    assert exchange is not None and stand_in is not None
    stand_in.flush(pgconn)
    try:
        at = yield from arrival(exchange)
    except ExchangeExhausted as error:
        exchange.exhausted(error)
        raise
    except BaseException as error:
        exchange.failed(error)
        raise
    number, recorded = exchange.received_count, played.exchange
    if number < len(recorded.parts):
        data = played.part(number)
        exchange.received(data, at)
        stand_in.say(data, pgconn)
        if data[-6:-1] == READY:
            link.status = data[-1:]
        if (
            number + 1 == len(recorded.parts)
            and recorded.end
            and LOST.items() <= recorded.end.values.items()
        ):
            stand_in.close()
    elif recorded.end is not None and recorded.end.error is not None:
        exchange.broken(recorded.end.error, at)
        _lose(stand_in, pgconn)
        raise raised_again(recorded.end.error, OSError)
    return at


def _lose(stand_in: StandIn, pgconn: Any) -> None:
    """The recorded connection was lost."""
    stand_in.close()
    with contextlib.suppress(Exception):
        pgconn.consume_input()
        while pgconn.get_result() is not None:
            pass


def execute(pgconn: Any) -> Steps:
    """Send the request and wait for its results."""
    link = link_of(pgconn)
    if link is not None and link.quiet:
        answer, link.quiet = link.quiet, b""
        if link.stand_in is not None:
            link.stand_in.say(answer + messages.message(b"Z", link.status), pgconn)
        else:
            return (yield from _unasked("execute", pgconn))
        return (yield from steps(module("generators")._fetch_many)(pgconn))
    exchange = None if link is None else link.exchange
    if link is None or exchange is None:
        return (yield from ORIGINAL["execute"](pgconn))
    if link.played is None:
        found, at = yield from _answer(link, pgconn, exchange, ORIGINAL["execute"](pgconn))
        copies = _copies(found)
        _came(link, _messages(link, pgconn, found, ready=not copies), at, found)
    else:
        at = yield from _play(link, pgconn, link.played)
        found = yield from steps(module("generators")._fetch_many)(pgconn)
        copies = _copies(found)
        link.note(found, libpq())
    if not copies:
        _over(link, at, pgconn)
    return found


def _unasked(name: str, *args: Any) -> Steps:
    """What the driver does for itself."""
    with outside():
        found = yield from ORIGINAL[name](*args)
    if blocks():
        resume()
    return found


def _copies(found: Any) -> bool:
    status = libpq().ExecStatus
    return bool(found) and found[-1].status in (status.COPY_IN, status.COPY_OUT)


def send(pgconn: Any) -> Steps:
    """Send a request that is answered in pieces, or flush a pipeline."""
    link = link_of(pgconn)
    if link is None:
        return (yield from ORIGINAL["send"](pgconn))
    if link.stand_in is not None:
        link.stand_in.flush(pgconn)
    else:
        yield from _unasked("send", pgconn)


def fetch(pgconn: Any) -> Steps:
    """Return the next piece of a result."""
    link = link_of(pgconn)
    exchange = None if link is None else link.exchange
    if link is None or exchange is None:
        return (yield from ORIGINAL["fetch"](pgconn))
    pq = libpq()
    if link.played is None:
        found, at = yield from _answer(link, pgconn, exchange, ORIGINAL["fetch"](pgconn))
        if found is not None:
            data = link.known.told() + results.piece(found, pq, first=not link.began)
        else:
            data = link.known.told() + link.known.changed(pgconn) + results.ready(pgconn)
        _came(link, data, at, [found] if found is not None else [])
    else:
        at = yield from _play(link, pgconn, link.played)
        found = yield from steps(module("generators")._fetch)(pgconn)
        link.note([found] if found is not None else [], pq)
    link.began = True
    if found is None:
        _over(link, at)
    return found


def _group(pgconn: Any) -> list[Any]:
    """Return the results of one message of a pipeline, of which all has come."""
    pq = libpq()
    found: list[Any] = []
    while not pgconn.is_busy():
        one = pgconn.get_result()
        if one is None:
            if found:
                return found
            break
        found.append(one)
        if one.status == pq.ExecStatus.PIPELINE_SYNC:
            return found
    raise ExchangeExhausted("the tape does not hold the answer to a statement of a pipeline")


def _quiet_groups(link: DatabaseLink, pgconn: Any) -> list[list[Any]]:
    """Replay: the results of messages before the next request that are not requests themselves."""
    found: list[list[Any]] = []
    while link.stand_in is not None and link.awaited and link.awaited[0] is not None:
        link.stand_in.say(link.awaited.popleft() or b"", pgconn)
        found.append(_group(pgconn))
    return found


def communicate(pgconn: Any, commands: Any) -> Steps:
    """Send statements of a pipeline and take the responses that arrive."""
    link = link_of(pgconn)
    if link is None:
        return (yield from ORIGINAL["pipeline_communicate"](pgconn, commands))
    asked, link.queue = link.queue, []
    syncs, link.syncs = link.syncs, 0
    exchange = link.ask(asked, sync=syncs)
    link.prepared |= link.being_prepared
    link.being_prepared.clear()
    if exchange is None:
        return (yield from ORIGINAL["pipeline_communicate"](pgconn, commands))
    if link.played is None:
        steps = ORIGINAL["pipeline_communicate"](pgconn, commands)
        groups, at = yield from _answer(link, pgconn, exchange, steps)
        _record_groups(link, pgconn, groups, at)
    else:
        assert link.stand_in is not None
        while commands:
            commands.popleft()()
            link.stand_in.flush(pgconn)
        groups: list[list[Any]] = []
        at = None
        for number in range(max(1, len(link.played.exchange.parts))):
            if number < len(link.played.exchange.parts):
                groups += _quiet_groups(link, pgconn)
            at = (yield from _play(link, pgconn, link.played)) or at
            if number < len(link.played.exchange.parts):
                link.awaited.popleft()
                groups.append(_group(pgconn))
    _over(link, at)
    return groups


def _record_groups(link: DatabaseLink, pgconn: Any, groups: Any, at: Delivery | None) -> None:
    pq = libpq()
    for group in groups:
        if link.awaited and link.awaited.popleft() is not None:
            continue
        synced = group[0].status == pq.ExecStatus.PIPELINE_SYNC
        data = results.ready(pgconn) if synced else _messages(link, pgconn, group, ready=False)
        _came(link, data, at, () if synced else group)


def fetch_many(pgconn: Any) -> Steps:
    """Return the next answer of a pipeline."""
    link = link_of(pgconn)
    if link is None:
        return (yield from ORIGINAL["fetch_many"](pgconn))
    if link.awaited and link.awaited[0] is not None:
        if link.stand_in is not None:
            return _quiet_groups(link, pgconn)[0]
        link.awaited.popleft()
        return (yield from _unasked("fetch_many", pgconn))
    exchange = link.ask([Query(b"RECEIVE")])
    if exchange is None:
        return (yield from ORIGINAL["fetch_many"](pgconn))
    if link.played is None:
        group, at = yield from _answer(link, pgconn, exchange, ORIGINAL["fetch_many"](pgconn))
        _record_groups(link, pgconn, [group] if group else [], at)
    else:
        at = yield from _play(link, pgconn, link.played)
        if link.awaited:
            link.awaited.popleft()
        group = _group(pgconn) if link.played.exchange.parts else []
    _over(link, at)
    return group


def copy_from(pgconn: Any) -> Steps:
    """Return the next piece of what is copied out, or the end of it."""
    found: Any
    link = link_of(pgconn)
    exchange = None if link is None else link.exchange
    if link is None or exchange is None:
        return (yield from ORIGINAL["copy_from"](pgconn))
    if link.played is not None:
        at = yield from _play(link, pgconn, link.played)
        found = yield from _ending(link, at, ORIGINAL["copy_from"](pgconn))
    else:
        found, at = yield from _answer(link, pgconn, exchange, ORIGINAL["copy_from"](pgconn))
        if isinstance(found, memoryview):
            _came(link, messages.message(b"d", bytes(cast("bytes", found))), at)
        else:
            _came(link, messages.COPIED + _messages(link, pgconn, [found]), at)
    if not isinstance(found, memoryview):
        _over(link, at)
    return cast("Any", found)


def _ending(link: DatabaseLink, at: Delivery | None, steps: Steps) -> Steps:
    """Replay: take what was said from libpq. An error is the end."""
    try:
        return (yield from steps)
    except Exception:
        _over(link, at)
        raise


def copy_to(pgconn: Any, buffer: Any, flush: bool = True) -> Steps:
    """Record a piece that is copied in."""
    link = link_of(pgconn)
    exchange = None if link is None else link.exchange
    if link is None or exchange is None:
        return (yield from ORIGINAL["copy_to"](pgconn, buffer, flush))
    exchange.sent(bytes(buffer))
    if link.stand_in is None:
        return (yield from _unasked("copy_to", pgconn, buffer, flush))
    while pgconn.put_copy_data(buffer) == 0:
        link.stand_in.flush(pgconn)
    link.stand_in.flush(pgconn)


def copy_end(pgconn: Any, error: bytes | None) -> Steps:
    """End a copy into the server, or give it up."""
    link = link_of(pgconn)
    exchange = None if link is None else link.exchange
    if link is None or exchange is None:
        return (yield from ORIGINAL["copy_end"](pgconn, error))
    if link.played is None:
        found, at = yield from _answer(link, pgconn, exchange, ORIGINAL["copy_end"](pgconn, error))
        _came(link, _messages(link, pgconn, [found]), at)
    else:
        at = yield from _play(link, pgconn, link.played)
        found = yield from _ending(link, at, ORIGINAL["copy_end"](pgconn, error))
    _over(link, at)
    return found


def notifies(pgconn: Any) -> Steps:
    """What is said on channels that the connection listens to."""
    link = link_of(pgconn)
    exchange = None if link is None else link.ask([Query(b"NOTIFIES")])
    if link is None or exchange is None:
        return (yield from ORIGINAL["notifies"](pgconn))
    if link.played is None:
        found, at = yield from _answer(link, pgconn, exchange, ORIGINAL["notifies"](pgconn))
        _came(link, link.known.told(), at)
    elif link.played.exchange.end is not None and link.played.exchange.end.how == "abandoned":
        return (yield from ORIGINAL["notifies"](pgconn))  # the program waits until its time is over
    else:
        at = yield from _play(link, pgconn, link.played)
        found: list[Any] = []
        while (one := pgconn.notifies()) is not None:
            found.append(one)
            if pgconn.notify_handler:
                pgconn.notify_handler(one)
    _over(link, at)
    return found
