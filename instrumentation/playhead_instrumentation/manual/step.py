"""Record steps that a program marks: from one state to the next, with the decision on the way."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from types import TracebackType
from typing import Any, TypeVar, overload

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode

from playhead_core.facts import Content, digest_of
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

F = TypeVar("F", bound=Callable[..., Any])

Chosen = Callable[[Any], Any]
"""Takes the result of a step and returns what was chosen."""

CHOSEN_CHARS = 500
"""Characters of a decision, a type or a tool name that are recorded."""

MOST_ITEMS = 100
"""Items of a generator that are recorded as the output of its step."""


@overload
def step(function: F, /) -> F: ...


@overload
def step(
    type: str = "", /, name: str = "", *, decision: Chosen | None = None, tool: Chosen | None = None
) -> MarkedStep: ...


def step(
    what: Any = None,
    /,
    name: str = "",
    *,
    decision: Chosen | None = None,
    tool: Chosen | None = None,
) -> Any:
    """Mark a function or a block that takes the program from one state to the next.

    ::

        @playhead.step("planning", decision=lambda state: state["next"])
        def plan(state): ...

        with playhead.step("tool_execution", "look up the order") as step:
            step.output = find(order)

    Each call is a span, and a fact with input, output and decision. A replay runs the function: the
    tape does not answer it. The first argument is the type: ``planning``, ``llm_call``, ``file_read``, …
    ``name``: by default the function's. ``decision`` and ``tool`` receive the result and return the
    decision and the chosen tool; their exceptions are ignored. The function may be sync, async or a
    generator, whose items are the output; TypeError for other objects. Without a recording nothing
    changes.
    """
    if what is None or isinstance(what, str):
        return MarkedStep(what or "", name, decision, tool)
    return MarkedStep("", name, decision, tool)(what)


class MarkedStep:
    """A step that is marked: a decorator, and a context manager."""

    def __init__(
        self, type: str, name: str, decision: Chosen | None = None, tool: Chosen | None = None
    ) -> None:
        self.type = type
        self.name = name
        self.output: Any = None
        """Set it in a ``with`` statement: it is recorded as the output."""
        self.chosen = {a.PLAYHEAD_STEP_DECISION: decision, a.PLAYHEAD_STEP_TOOL: tool}
        self._entered: list[_Running] = []

    def __enter__(self) -> MarkedStep:
        running = _Running(self, self.name or self.type or "step", (), {})
        running.__enter__()
        self._entered.append(running)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        running = self._entered.pop()
        running.output = self.output
        running.__exit__(kind, error, at)

    def __call__(self, function: F) -> F:
        """Mark a function."""
        if not callable(function):
            raise TypeError("playhead.step marks a function, a coroutine function or a generator")
        name = self.name or str(getattr(function, "__name__", type(function).__name__))
        wrapped: Any = functools.wraps(function)(self._wrapper(function, name))
        return wrapped

    def _wrapper(self, function: Any, name: str) -> Any:
        begin = functools.partial(_Running, self, name)

        async def run(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as running:
                running.output = await function(*args, **kwargs)
                return running.output

        def call(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as running:
                running.output = function(*args, **kwargs)
                return running.output

        def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from _generated(begin(args, kwargs), function(*args, **kwargs)))

        async def agenerate(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            running, items = begin(args, kwargs), function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(anext, items)
            error: BaseException | None = None
            try:
                while True:
                    try:
                        with running.inside():
                            item = await resume()
                    except StopAsyncIteration:
                        return
                    running.add(item)
                    try:
                        resume = functools.partial(items.asend, (yield item))
                    except GeneratorExit:
                        with running.inside():
                            await items.aclose()
                        raise
                    except BaseException as thrown:
                        resume = functools.partial(items.athrow, thrown)
            except BaseException as raised:
                error = None if isinstance(raised, GeneratorExit) else raised
                raise
            finally:
                running.end(error)

        if inspect.isasyncgenfunction(function):
            return agenerate
        if inspect.isgeneratorfunction(function):
            return generate
        return run if inspect.iscoroutinefunction(function) else call


def _generated(running: _Running, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Yield the items of a generator, whose span is the current one only while it runs."""
    resume: Callable[[], Any] = functools.partial(next, items)
    error: BaseException | None = None
    try:
        while True:
            try:
                with running.inside():
                    item = resume()
            except StopIteration as end:
                return end.value
            running.add(item)
            try:
                resume = functools.partial(items.send, (yield item))
            except GeneratorExit:
                with running.inside():
                    items.close()
                raise
            except BaseException as thrown:
                resume = functools.partial(items.throw, thrown)
    except BaseException as raised:
        error = None if isinstance(raised, GeneratorExit) else raised
        raise
    finally:
        running.end(error)


class _Inside:
    """A block in which a span is the current one; a generator leaves it at each item."""

    def __init__(self, span: trace.Span | None) -> None:
        self._span = span
        self._token: Any = None

    def __enter__(self) -> None:
        if self._span is not None:
            self._token = context.attach(trace.set_span_in_context(self._span))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._token is not None:
            context.detach(self._token)


class _Running:
    """A marked step in progress."""

    def __init__(
        self, step: MarkedStep, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.output: Any = None
        self._step = step
        self._name = name
        self._input = b"null"
        self._session: Session | None = None
        self._span: trace.Span = trace.INVALID_SPAN
        self._inside = _Inside(None)
        session = current()
        if session is None or lanes.current() in (lanes.UNRECORDED, lanes.GC):
            return
        self._session = session
        try:
            with Shadow():
                self._input = values.written({"args": list(args), "kwargs": kwargs}, stubs=[])
            self._span = session.tracer.start_span(name, attributes=self._attributes())
        except Exception:
            log.debug("playhead could not begin a step", exc_info=True)

    def __enter__(self) -> _Running:
        self._inside = self.inside()
        self._inside.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._inside.__exit__(kind, error, at)
        self.end(error)

    def inside(self) -> _Inside:
        """Return a block in which the span of the step is the current one."""
        return _Inside(None if self._session is None else self._span)

    def add(self, item: Any) -> None:
        """Note an item of a generator."""
        if self._session is not None:
            self.output = [] if self.output is None else self.output
            if len(self.output) < MOST_ITEMS:
                self.output.append(item)

    def end(self, error: BaseException | None) -> None:
        """End the step: its span, and its fact."""
        session, span = self._session, self._span
        if session is None:
            return
        try:
            attributes: dict[str, Any] = self._attributes()
            with Shadow():
                output = b"null" if error is not None else values.written(self.output, stubs=[])
                if error is None:
                    attributes |= self._chosen(session)
            if error is not None:
                told = record_of(error, session.redactor.text)
                attributes[a.ERROR_TYPE] = name_of(told)
                span.set_status(Status(StatusCode.ERROR, told.message or None))
            span.set_attributes(attributes)
            body = b'{"input":%b,"output":%b}' % (self._input, output)
            kept, count = session.redactor.body(body, 0)
            if count:
                attributes[a.PLAYHEAD_REDACTED_COUNT] = count
            content = Content(b"", len(body))
            if session.redactor.content:
                content = Content(digest_of(kept), len(kept), kept)
            session.tell(e.PLAYHEAD_STEP, attributes, content, span=span)
        except Exception:
            log.debug("playhead could not record a step", exc_info=True)
        finally:
            span.end()

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {a.PLAYHEAD_STEP_NAME: self._name}
        if self._step.type:
            found[a.PLAYHEAD_STEP_TYPE] = self._step.type[:CHOSEN_CHARS]
        return found

    def _chosen(self, session: Session) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, choose in self._step.chosen.items():
            if choose is None or not session.redactor.content:
                continue
            try:
                said = choose(self.output)
            except Exception:
                log.debug("playhead could not tell what a step decided", exc_info=True)
                continue
            if said is not None:
                found[name] = session.redactor.text(str(said)[:CHOSEN_CHARS])
        return found
