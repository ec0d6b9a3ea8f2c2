"""Record tools: functions that the program marks, for work that no other boundary records.

A marked function is recorded and answered as a whole. Work inside it has no lane, is not on the tape,
and does not happen in a replay. `values` stores its arguments and its result. A call is an exchange of
the kind ``tool``; the key is the tool's name.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final, Literal, TypeVar, cast, overload

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.manual.tool.exchange import ToolExchange
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session

log = Log(__name__)

F = TypeVar("F", bound=Callable[..., Any])
Effect = Literal["read", "write"]

RECEIVERS = ("self", "cls")
"""Names of first parameters of methods, which are not arguments of the tool."""


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(*, effect: Effect = "write", name: str = "") -> Callable[[F], F]: ...


def tool(function: Any = None, /, *, effect: Effect = "write", name: str = "") -> Any:
    """Record the calls of a function; a replay answers them from the tape.

    Use it for work that is not recorded otherwise, such as a database driver or a C extension. It
    accepts any function or method, also async ones and generators. Without a recording nothing changes.
    ``effect``: whether a call changes something outside the program. ``name``: name of the tool; by
    default the function's.

    A call is matched by its arguments (for a method without ``self``). A replay gives the program an
    equal result, or raises an equal exception. It does not repeat what the function did to its
    arguments, to globals, or to the world.
    """
    if effect not in ("read", "write"):
        raise ValueError(f"effect is read or write, not {effect!r}")
    if function is None:
        return functools.partial(_mark, effect=effect, name=name)
    return _mark(function, effect, name)


def _mark(function: Any, effect: Effect, name: str) -> Any:
    if isinstance(function, classmethod):
        return classmethod(_mark(cast("Any", function).__func__, effect, name))
    if isinstance(function, staticmethod):
        return staticmethod(_mark(cast("Any", function).__func__, effect, name))
    marked = Marked(function, effect, name)
    if inspect.isasyncgenfunction(function):
        return _async_stream(marked)
    if inspect.isgeneratorfunction(function):
        return _stream(marked)
    return call_of(marked)


def call_of(marked: Marked) -> Any:
    """Return the function that a program calls in place of a marked one that is no generator."""
    return _async_call(marked) if inspect.iscoroutinefunction(marked.function) else _call(marked)


class Marked:
    """A function that is marked as a tool."""

    def __init__(self, function: Any, effect: Effect, name: str) -> None:
        self.function: Final = function
        self.effect: Final[Effect] = effect
        self.name: Final = name or str(getattr(function, "__name__", type(function).__name__))
        self.description: Final = (inspect.getdoc(function) or "").partition("\n\n")[0]
        returns: Any = getattr(function, "__annotations__", {}).get("return", "")
        text = returns if isinstance(returns, str) else getattr(returns, "__name__", str(returns))
        self.returns: Final = text.partition("[")[0]
        """Name of the type that the function says it returns, e.g. ``dict``; empty: it says none."""
        self.said: Final[set[str]] = set()
        """Messages about the tool that the user has been shown."""
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        within = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
        first = next(iter(self._signature.parameters), "") if self._signature is not None else ""
        self._receiver = first if within and not within.endswith("<locals>") else ""

    def details(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Further attributes of the request fact of a call."""
        return {}

    def perform(self, going: ToolExchange | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function. ``going``: the exchange of the call; None if nothing is recorded."""
        return self.function(*args, **kwargs)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name. TypeError if the call does not fit the function."""
        if self._signature is None:
            return {"args": list(args), **kwargs}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found = dict(bound.arguments)
        if self._receiver in RECEIVERS:
            found.pop(self._receiver, None)
        return found

    def begin(self, form: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ToolExchange | None:
        """Begin the exchange of a call; None if nothing is to be recorded."""
        session = recording()
        return None if session is None else self._begun(session, form, args, kwargs)

    def _begun(
        self, session: Session, form: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ToolExchange | None:
        try:
            arguments = self.arguments(args, kwargs)
        except TypeError:
            return None  # the function itself reports this
        try:
            stubs: list[str] = []
            asked = values.written(arguments, stubs=stubs)
            exchange = ToolExchange(session, self, form, asked, self.details(args, kwargs))
        except Exception:
            if session.driver.closed:
                raise
            log.debug("playhead could not record a call of %s", self.name, exc_info=True)
            return None
        for cls in stubs:
            exchange.say(f"an argument of {self.name} counts by its class only: {cls}")
        return exchange

    def edited(
        self, exchange: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call, or those that an operator put in their place."""
        replaced = exchange.call.replaced
        if replaced is None or self._signature is None:
            return args, kwargs
        before, after = json.loads(exchange.asked), json.loads(replaced)
        changed = {name: one for name, one in after.items() if before.get(name) != one}
        exchange.sent(replaced)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        bound.arguments.update(values.read(json.dumps(changed).encode()))
        return bound.args, bound.kwargs

    def check(self, exchange: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Warn if the call has changed its arguments, since a replay does not."""
        try:
            asked = values.written(self.arguments(args, kwargs), stubs=[])
            if exchange.changed(asked):
                exchange.say(f"{self.name} changes its arguments, which a replay does not")
        except Exception:
            log.debug("playhead could not look at the arguments of %s", self.name, exc_info=True)


def _call(marked: Marked) -> Any:
    def live(going: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            with Outside(), going.within():
                value = marked.perform(going, args, kwargs)
        except (Exception, SystemExit) as error:
            going.raised(error, going.call.arrive().wait())
            raise
        going.returned(value, going.call.arrive().wait())
        marked.check(going, args, kwargs)
        return value

    def again(played: PlayedExchange, going: ToolExchange, *_: Any) -> Any:
        return going.again(played, going.call.arrive().wait())[1]

    @functools.wraps(marked.function)
    def called(*args: Any, **kwargs: Any) -> Any:
        going = marked.begin("call", args, kwargs)
        if going is None:
            return marked.perform(None, args, kwargs)
        try:
            if going.call.pending_release is not None:
                going.call.release().wait()
                args, kwargs = marked.edited(going, args, kwargs)
            return going.call.answer(live, again, going, args, kwargs)
        except BaseException as error:
            going.failed(error)
            raise

    return called


def _async_call(marked: Marked) -> Any:
    async def live(going: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            with Shadow(), going.within():
                value = await marked.perform(going, args, kwargs)
        except (Exception, SystemExit) as error:
            going.raised(error, await going.call.arrive())
            raise
        going.returned(value, await going.call.arrive())
        marked.check(going, args, kwargs)
        return value

    async def again(played: PlayedExchange, going: ToolExchange, *_: Any) -> Any:
        return going.again(played, await going.call.arrive())[1]

    @functools.wraps(marked.function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        going = marked.begin("call", args, kwargs)
        if going is None:
            return await marked.perform(None, args, kwargs)
        try:
            if going.call.pending_release is not None:
                await going.call.release()
                args, kwargs = marked.edited(going, args, kwargs)
            return await going.call.answer(live, again, going, args, kwargs)
        except BaseException as error:
            going.failed(error)
            raise

    return called


def _stream(marked: Marked) -> Any:
    function: Callable[..., Generator[Any, Any, Any]] = marked.function

    def live(
        going: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Generator[Any, Any, Any]:
        source = function(*args, **kwargs)
        sent: Any = None
        try:
            while True:
                try:
                    with Outside(), going.within():
                        value = next(source) if sent is None else source.send(sent)
                except StopIteration as over:
                    going.returned(over.value, going.call.arrive().wait())
                    return over.value
                except (Exception, SystemExit) as error:
                    going.raised(error, going.call.arrive().wait())
                    raise
                going.yielded(value, going.call.arrive().wait())
                sent = yield value
        except BaseException as error:
            going.failed(error)
            raise
        finally:
            with Shadow():
                source.close()

    def again(played: PlayedExchange, going: ToolExchange, *_: Any) -> Generator[Any, Any, Any]:
        while True:
            how, value = going.again(played, going.call.arrive().wait())
            if how == "return":
                return value
            yield value

    @functools.wraps(function)
    def streamed(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        going = marked.begin("stream", args, kwargs)
        if going is None:
            return (yield from function(*args, **kwargs))
        try:
            if going.call.pending_release is not None:
                going.call.release().wait()
                args, kwargs = marked.edited(going, args, kwargs)
            return (yield from going.call.answer(live, again, going, args, kwargs))
        except BaseException as error:
            going.failed(error)
            raise

    return streamed


def _async_stream(marked: Marked) -> Any:
    function = marked.function

    async def live(
        going: ToolExchange, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Any, Any]:
        source = function(*args, **kwargs)
        sent: Any = None
        try:
            while True:
                try:
                    with Shadow(), going.within():
                        value = await source.asend(sent)
                except StopAsyncIteration:
                    going.returned(None, await going.call.arrive())
                    return
                except (Exception, SystemExit) as error:
                    going.raised(error, await going.call.arrive())
                    raise
                going.yielded(value, await going.call.arrive())
                sent = yield value
        except BaseException as error:
            going.failed(error)
            raise
        finally:
            with Shadow():
                await source.aclose()

    async def again(played: PlayedExchange, going: ToolExchange, *_: Any) -> AsyncGenerator[Any, Any]:
        while True:
            how, value = going.again(played, await going.call.arrive())
            if how == "return":
                return
            yield value

    @functools.wraps(function)
    async def streamed(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        going = marked.begin("stream", args, kwargs)
        source: Any = None
        sent: Any = None
        try:
            if going is None:
                source = function(*args, **kwargs)
            else:
                if going.call.pending_release is not None:
                    await going.call.release()
                    args, kwargs = marked.edited(going, args, kwargs)
                source = going.call.answer(live, again, going, args, kwargs)
            while True:
                try:
                    value = await source.asend(sent)
                except StopAsyncIteration:
                    return
                sent = yield value
        except BaseException as error:
            if going is not None:
                going.failed(error)
            raise
        finally:
            if source is not None:
                with Shadow():
                    await source.aclose()

    return streamed
