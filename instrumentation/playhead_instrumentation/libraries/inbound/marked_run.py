"""Record functions and blocks that a program marks as runs: messages of a consumer, jobs of a worker.

A call of a marked function is an inbound request, whatever triggered it. Its lane is a root; its input
and its result are on the tape as `values` writes them. A replay loads the module and
calls the function with the recorded input.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.libraries.inbound.applications import Application, application_of
from playhead_instrumentation.libraries.inbound.exchange import (
    END,
    MARKED,
    InboundExchange,
    InboundRequest,
    begin,
)
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.session.session import Session, current

log = Log(__name__)

_MARK = "__playhead_run__"
"""Attribute of marked functions: a tape cannot make a replay call any other function."""

F = TypeVar("F", bound=Callable[..., Any])


@overload
def run(function: F, /) -> F: ...


@overload
def run(name: str = "", /, *, input: Any = None) -> MarkedRun: ...


def run(what: Any = "", /, *, input: Any = None) -> Any:
    """Record the work of a long-lived process for one message as a separate run.

    ::

        @playhead.run                     # or @playhead.run("refund"), under that name
        async def handle(message): ...    # each call is a run, which can be replayed

        with playhead.run("refund", input=message) as run:
            run.output = refund(message)  # also a run; a replay cannot call a block again

    The function may be sync or async. Within a run, and without a recording, nothing changes. TypeError
    for other objects.
    """
    return MarkedRun(what, input) if isinstance(what, str) else MarkedRun("")(what)


class MarkedRun:
    """A marked run: either a decorator for a function or a context manager for a block."""

    def __init__(self, name: str, input: Any = None) -> None:
        self._name = name
        self._input = input
        self._going: _OpenRun | None = None
        self.output: Any = None
        """Result of the block, set by the program."""

    def __call__(self, function: F) -> F:
        """Return ``function`` wrapped so that each call is a run."""
        if not callable(function) or _is_stream(function):
            raise TypeError("playhead.run marks a function or a coroutine function")
        marked = _Marked(function, self._name)
        called = _async_call(marked) if inspect.iscoroutinefunction(function) else _call(marked)
        setattr(called, _MARK, True)
        return cast("F", called)

    def __enter__(self) -> MarkedRun:
        asked = functools.partial(_RunRequest, self._name or "run", {"input": self._input}, _nowhere)
        self._going = going = _begun(asked)
        if going is not None:
            going.comes_at_once()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        going, self._going = self._going, None
        if going is None:
            return
        if error is None:
            going.returned(self.output)
        else:
            going.raised(error)

    async def __aenter__(self) -> MarkedRun:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)


def is_marked(function: Any) -> bool:
    """Return whether each call of ``function`` is a run."""
    return getattr(function, _MARK, False) is True


def _is_stream(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


class _Marked:
    """A function of which each call is a run."""

    def __init__(self, function: Any, name: str) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _RunRequest:
        """Return the request that a call stands for."""
        owner = args[0] if args and self._is_method(args[0]) else None
        given = {"args": list(args if owner is None else args[1:]), "kwargs": kwargs}
        return _RunRequest(self.name, given, functools.partial(self._application, owner))

    def _is_method(self, first: object) -> bool:
        qualname = str(getattr(self.function, "__qualname__", ""))
        holder, _, name = qualname.rpartition(".")
        return bool(holder) and not holder.endswith("<locals>") and hasattr(type(first), name)

    def _application(self, owner: Any) -> Application:
        if owner is not None:
            held = application_of(owner)
            name = str(self.function.__name__)
            return Application(f"{held.spelt}.{name}", held.folder) if held.spelt else held
        module, qualname = str(self.function.__module__), str(self.function.__qualname__)
        return application_of(None, "" if "<locals>" in qualname else f"{module}:{qualname}")


class _RunRequest:
    """A call of a marked function, or a marked block, as a request."""

    def __init__(self, name: str, given: dict[str, Any], application: Callable[[], Application]) -> None:
        self.name = name
        self.given = given
        self.application = application


def _nowhere() -> Application:
    return Application("", "")


class _OpenRun:
    """A marked run in progress."""

    def __init__(self, exchange: InboundExchange, given: dict[str, Any]) -> None:
        self._exchange = exchange
        self._given = given
        self._within = exchange.within()
        self._within.__enter__()

    def comes_at_once(self) -> None:
        """The input enters the program."""
        self._exchange.came(self._exchange.call.comes().wait())
        self._received(self._exchange.call.arrive().wait())

    async def comes(self) -> None:
        """As `comes_at_once`, on an event loop."""
        self._exchange.came(await self._exchange.call.comes())
        self._received(await self._exchange.call.arrive())

    def _received(self, at: Any) -> None:
        try:
            given = values.kept(self._given)
        except Exception:  # a replay needs the input, and reports that it is missing
            given = values.written(self._given, stubs=[])
        self._exchange.received(given, at, END)

    def returned(self, value: Any) -> None:
        """The program is done with the request."""
        try:
            self._exchange.sends(values.written(value, stubs=[]), END)
        except Exception:
            log.debug("playhead could not record a result", exc_info=True)
        self._exchange.finished()
        self._within.__exit__(None, None, None)

    def raised(self, error: BaseException) -> None:
        """``error`` leaves the program."""
        self._exchange.failed(error)
        self._within.__exit__(None, None, None)


def _session() -> Session | None:
    session, lane = current(), lanes.current()
    return None if lane.of_request or lane in (lanes.UNRECORDED, lanes.GC) else session


def _begun(describe: Callable[[], _RunRequest]) -> _OpenRun | None:
    session = _session()
    if session is None:
        return None
    session.driver.serves()
    try:
        asked = describe()
        request = InboundRequest(MARKED, "", asked.name, "", (), {})
        exchange = begin(session, asked.application(), request)
        return None if exchange is None else _OpenRun(exchange, asked.given)
    except Exception:
        log.debug("playhead could not record a run", exc_info=True)
        return None


def _call(marked: _Marked) -> Any:
    function = marked.function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        going = _begun(functools.partial(marked.asked, args, kwargs))
        if going is None:
            return function(*args, **kwargs)
        try:
            going.comes_at_once()
            value = function(*args, **kwargs)
        except BaseException as error:
            going.raised(error)
            raise
        going.returned(value)
        return value

    return called


def _async_call(marked: _Marked) -> Any:
    function = marked.function

    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        going = _begun(functools.partial(marked.asked, args, kwargs))
        if going is None:
            return await function(*args, **kwargs)
        try:
            await going.comes()
            value = await function(*args, **kwargs)
        except BaseException as error:
            going.raised(error)
            raise
        going.returned(value)
        return value

    return called
