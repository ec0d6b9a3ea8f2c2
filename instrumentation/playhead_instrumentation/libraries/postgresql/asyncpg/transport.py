"""Stand between a connection of asyncpg and its transport: asyncpg writes here and is fed from here.

asyncpg does one thing at a time on a connection. Each is one exchange: the bytes that go out until the
server is asked to finish are the request, those that arrive until the server is ready are the response.
A replay has no transport below.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from playhead_core.errors import ExchangeExhausted, ExchangeUnmatched, PlayheadError
from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, drive
from playhead_instrumentation.libraries.common.recording import recording, recording_requests
from playhead_instrumentation.libraries.database.exchange import (
    DatabaseExchange,
    Server,
    begin,
    other_side,
)
from playhead_instrumentation.libraries.database.opening import OpeningConnection, begin_opening
from playhead_instrumentation.libraries.database.reusable_responses import ReusableResponse
from playhead_instrumentation.libraries.database.set_up import in_set_up
from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.asyncpg.answer import Answer
from playhead_instrumentation.libraries.postgresql.asyncpg.client_messages import (
    ClientRequest,
    RequestReader,
)
from playhead_instrumentation.libraries.postgresql.statement import Query, statement_of
from playhead_instrumentation.patching.lanes import In, Lane, Shadow, current
from playhead_instrumentation.recorder.exceptions import again as raised_again
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

log = Log(__name__)

HEARD: Final = "_playhead_heard"
"""Attribute of a protocol of asyncpg: the `RecordingTransport` that feeds it."""

LOST: Final = {a.ERROR_TYPE: "connection"}
"""Values of the end of an exchange after which the connection is lost."""

DRIVER: Final = {"driver": "asyncpg"}
"""Part of a reusable request: responses to other drivers have values in another form."""

CANCEL: Final = b"CANCEL"
"""Message recorded when the program cancels a statement that it waits for."""


class RecordingTransport(asyncio.Transport):
    """The transport of a connection, for asyncpg."""

    def __init__(self, session: Session, server: Server, protocol: Any, below: Any) -> None:
        """``below``: the real transport; None in a replay."""
        super().__init__()
        self.feeding = False
        """Whether the protocol is being given what came."""
        self.exchange: DatabaseExchange | None = None
        """The last request."""
        self._played: PlayedExchange | None = None
        """Its recording, if one answers."""
        self._text = b""
        """The statement that was asked last."""
        self.welcome = b""
        """What the server has said until the connection was open."""
        self._session = session
        self.server = server
        self._protocol = protocol
        self._below = below
        self._asks = RequestReader()
        self._answer = Answer(prepares=False)
        self._prepared: dict[bytes, ReusableResponse] = {}
        """What the server has said of statements, by text."""
        self._opening: ReusableResponse | None = None
        """What the server has said when the connection was opened; None: it is being opened."""
        self._held = b""
        """What goes out with what follows."""
        self._lane: Lane = current()
        """The lane of the last request."""
        self._came: deque[bytes | Exception | None] = deque()
        """What has come, and waits for its permit: bytes, or the loss of the connection."""
        self._permit: Permit | None = None
        """The permit that is waited for."""
        self._resumed: asyncio.Future[None] | None = None
        """While reading is paused: done when reading resumes."""
        self._leaving: OpeningConnection | None = None
        """The end of the connection, which the program has asked for and waits for."""
        self._closed = False
        self._listens = False
        self._state = b"I"
        """The state of the transaction, as the server said it last."""

    # what asyncpg says

    def write(self, data: Any) -> None:
        """As a transport does. Raises what a replay refuses."""
        said = self._held + bytes(data)
        self._held = b""
        if self._opening is not None and not self._closed and recording_requests() is not None:
            said = self._say(said)
        if said and self._below is not None:
            self._below.write(said)

    def writelines(self, list_of_data: Any) -> None:
        """As a transport does: all of it is one piece."""
        self.write(b"".join(bytes(one) for one in list_of_data))

    def _say(self, data: bytes) -> bytes:
        """Record ``data``. Return what goes out now. Raises what a replay refuses."""
        try:
            return self._read(data)
        except PlayheadError:
            raise
        except Exception as error:
            log.debug("playhead could not read what asyncpg says", exc_info=True)
            if self._session.driver.closed:
                raise ExchangeUnmatched("a message of asyncpg is not understood") from error
            return data

    def _read(self, data: bytes) -> bytes:
        asked, exchange = self._asks.read(data), self.exchange
        if asked.kinds == b"P":
            self._held = data
            return b""
        if asked.kinds == b"X":
            self._leave()
        elif exchange is not None and not exchange.over and not self._answer.endless:
            self._says_more(exchange, asked)
        elif asked.kinds == b"CS" and not asked.queries:
            self._quietly()
        elif asked.queries:
            self._ask(asked)
        return data

    def _says_more(self, exchange: DatabaseExchange, asked: ClientRequest) -> None:
        if asked.awaits_ready:
            self._answer.synchronised()
        pieces = list(asked.pieces)
        if asked.queries:
            more = statement_of([Query(b"")], self._session.redactor, many=_rows(asked.queries))
            pieces.append(more.body)
        played = self._played
        for piece in pieces:
            if (
                played is not None
                and exchange.sent_count >= len(played.exchange.sent)
                and _fails(played)
            ):
                return  # the server had refused the rest before it went out
            exchange.sent(piece)

    def _ask(self, asked: ClientRequest) -> None:
        if self._opening is not None:
            self._opening.used()
        texts = {query.text for query in asked.queries}
        for text in texts:
            if not asked.prepares and text in self._prepared:
                self._prepared[text].used()
        first, more = asked.queries[0], dict(asked.more)
        many = asked.kinds.count(b"B") > 1 or not asked.awaits_ready
        if asked.prepares:
            first, more = Query(first.text), {"prepare": True}
        elif many:
            first, more = Query(first.text), {"many": _rows(asked.queries)}
        self._listens = (
            self._listens or first.operation == "LISTEN"
        ) and b"UNLISTEN *" not in first.text
        self._open([first], more, Answer(prepares=asked.prepares), stands=asked.prepares)

    def _open(
        self, queries: Sequence[Query], more: dict[str, Any], answer: Answer, *, stands: bool = False
    ) -> None:
        """Open the exchange of a request, and begin to play if the tape answers."""
        self._settle()
        self._lane, self._answer, self.exchange, self._played = current(), answer, None, None
        if stands or in_set_up():
            more = {**more, **DRIVER}
        statement = statement_of(queries, self._session.redactor, **more)
        if "prepare" in more:
            statement = statement._replace(operation="PREPARE", effect="read")
        if "many" in more:
            statement.attributes[a.DB_OPERATION_BATCH_SIZE] = len(more["many"])
        exchange = begin(self._session, self.server, statement, stands=stands)
        if exchange is None:
            return
        self.exchange, self._text = exchange, queries[0].text
        try:
            self._played = exchange.call.answer(lambda: None, lambda played: played)
            if (self._played is None) is not (self._below is not None):
                raise other_side(statement.operation)
        except BaseException as error:
            exchange.failed(error)
            raise
        if self._played is not None:
            self._soon(self._play, exchange, self._played)

    def _soon(self, play: Callable[..., Coroutine[Any, None, None]], *what: Any) -> None:
        """Replay: let the server answer, but not before asyncpg waits for it."""
        with Shadow():
            asyncio.get_running_loop().call_soon(lambda: drive(play(*what)))

    def _settle(self) -> None:
        """End the last request: nothing more comes for it."""
        exchange = self.exchange
        if exchange is not None and not exchange.over:
            if self._answer.endless:
                exchange.finished(None)
            else:
                exchange.abandoned()
        if self._permit is not None:
            self._permit.give_up()

    def _quietly(self) -> None:
        """A statement is let go: what is left of earlier ones is no request of the program."""
        self._settle()
        self.exchange = None
        if self._below is None:
            said = messages.CLOSED + messages.message(b"Z", self._state)
            asyncio.get_running_loop().call_soon(self._feed, said)

    def cancels(self) -> None:
        """Record that the program cancels the statement that it waits for."""
        if self.exchange is not None and not self.exchange.over:
            self.exchange.sent(CANCEL)

    def _leave(self) -> None:
        if recording() is None:
            return
        self._settle()
        try:
            self._leaving = leaving = begin_opening(self._session, self.server, {}, "DISCONNECT")
            if leaving is not None:
                leaving.call.check()
        except PlayheadError:
            leaving = None  # a connection can always be left
        if self._below is None:
            self._soon(self._left, leaving)

    async def _left(self, leaving: OpeningConnection | None) -> None:
        """Replay: the server ends the connection."""
        if leaving is not None:
            self._permit = leaving.permit()
            at = await self._permit
            if leaving.over:
                return
            leaving.finished(at)
        self._lose(None)

    # what the server says

    def opened(self, standing: ReusableResponse) -> None:
        """Note that the connection is open."""
        self._opening = standing

    def came(self, data: bytes) -> None:
        """Record ``data`` from the server."""
        if self._opening is None:
            self.welcome += data
            self._feed(data)
        else:
            self._bring(data)

    def lost(self, error: Exception | None) -> None:
        """Record that the connection is lost. ``error``: None if its end was orderly."""
        if self._opening is not None and not self._closed:
            self._bring(error)
        else:
            self._lose(error)

    def _bring(self, came: bytes | Exception | None) -> None:
        self._came.append(came)
        if len(self._came) == 1:
            with Shadow():
                drive(self._in_turn())

    async def _in_turn(self) -> None:
        """Live: give the program what has arrived, when the gate permits."""
        while self._came:
            if self._resumed is not None:
                await self._resumed
            exchange: MessageExchange | None = self._leaving or self.exchange
            at = None
            if exchange is not None and not exchange.over:
                at = await exchange.permit()
            came = self._came.popleft()
            if isinstance(came, bytes):
                rest = self._took(came, at)
                if rest:
                    self._came.appendleft(rest)
            else:
                self._ended(came, at)

    def _took(self, data: bytes, at: Delivery | None) -> bytes:
        """``data`` has arrived with its permit. Returns what of it is no answer to what was asked."""
        exchange = self.exchange
        if exchange is None or exchange.over or self._closed:
            self._feed(data)
            return b""
        mine = self._answer.take(data)
        exchange.received(data[:mine], at)
        if self._answer.over:
            self._answered(exchange, at)
        self._feed(data[:mine])
        self._listen_on()
        return data[mine:]

    def _answered(self, exchange: DatabaseExchange, at: Delivery | None) -> None:
        """End the exchange: the response is complete."""
        answer = self._answer
        self._state = answer.state or self._state
        if answer.types is not None:
            self._asks.typed(self._text, answer.types)
        if answer.rows:
            exchange.attributes[a.DB_RESPONSE_RETURNED_ROWS] = answer.rows
        if answer.failure:
            exchange.attributes[a.DB_RESPONSE_STATUS_CODE] = answer.failure
            exchange.attributes[a.ERROR_TYPE] = answer.failure
            exchange.describe({}, error=answer.failure)
        elif exchange.standing is not None and answer.prepared:
            self._prepared[self._text] = exchange.standing
        exchange.finished(at)

    def _listen_on(self) -> None:
        """What comes on its own initiative on channels is an answer of its own, until the next ask."""
        if self._listens and self._answer.over and not self._closed:
            with In(self._lane):
                self._open([Query(b"NOTIFIES")], {}, Answer(prepares=False, endless=True))

    async def _play(self, exchange: DatabaseExchange, played: PlayedExchange) -> None:
        """Replay: give the program what is on the tape."""
        recorded, number = played.exchange, 0
        try:
            while not exchange.over and self.exchange is exchange:
                if self._resumed is not None:
                    await self._resumed
                self._permit = permit = exchange.permit()
                at = await permit
                if self._permit is permit:
                    self._permit = None
                if exchange.over or self.exchange is not exchange:
                    return
                if not exchange.due(permit):
                    continue
                if number < len(recorded.parts):
                    number += 1
                    self._took(played.part(number - 1), at)
                elif recorded.end is not None and recorded.end.error is not None:
                    exchange.broken(recorded.end.error, at)
                    self._lose(raised_again(recorded.end.error, OSError))
                else:
                    self._ended(None, at)
        except ExchangeExhausted as error:
            exchange.exhausted(error)
            self._lose(error)

    def _ended(self, error: Exception | None, at: Delivery | None) -> None:
        """The server has ended the connection, with its permit."""
        exchange: MessageExchange | None = self._leaving or self.exchange
        if exchange is not None and not exchange.over:
            if error is None:
                exchange.finished(at, None if self._leaving else LOST)
            else:
                exchange.failed(error, at)
        self._lose(error)

    def _feed(self, data: bytes) -> None:
        self.feeding = True
        try:
            with In(self._lane):
                self._protocol.data_received(data)
        finally:
            self.feeding = False

    def _lose(self, error: BaseException | None) -> None:
        self._closed = self.feeding = True
        try:
            with In(self._lane):
                self._protocol.connection_lost(error)
        finally:
            self.feeding = False

    # the rest of a transport

    def pause_reading(self) -> None:
        """As a transport does."""
        if self._resumed is None:
            self._resumed = asyncio.get_running_loop().create_future()
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """As a transport does."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.set_result(None)
        if self._below is not None:
            self._below.resume_reading()

    def abort(self) -> None:
        """As a transport does: the program drops the connection."""
        self._drop()
        if self._below is not None:
            self._below.abort()

    def close(self) -> None:
        """As a transport does."""
        self._drop()
        if self._below is not None:
            self._below.close()

    def _drop(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._settle()
        if self._leaving is not None and not self._leaving.over:
            self._leaving.abandoned()
        if self._below is None:
            asyncio.get_running_loop().call_soon(self._lose, None)

    def is_closing(self) -> bool:
        """As a transport does."""
        return self._closed if self._below is None else self._below.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As a transport does; a replay knows nothing."""
        return default if self._below is None else self._below.get_extra_info(name, default)

    def __getattr__(self, name: str) -> Any:
        below = None if name.startswith("_") else self._below
        if below is None:
            raise AttributeError(name)
        return getattr(below, name)


def _rows(queries: Sequence[Query]) -> list[Any]:
    return [list(query.params or ()) for query in queries]


def _fails(played: PlayedExchange) -> bool:
    """Return whether a recorded answer is an error."""
    answer = Answer(prepares=False)
    for number in range(len(played.exchange.parts)):
        answer.take(played.part(number))
    return bool(answer.failure)
