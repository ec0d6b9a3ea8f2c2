"""Record steps that a program marks: from one state to the next, with the decision on the way."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from playhead_core.facts import Content, digest_of
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

Chosen = Callable[[Any], Any]
"""Takes the result of a step and returns what was chosen."""

CHOSEN_CHARS = 500
"""Characters of a decision or of a tool name that are recorded."""


@overload
def step(function: F, /) -> F: ...


@overload
def step(
    *, name: str = "", decision: Chosen | None = None, tool: Chosen | None = None
) -> Callable[[F], F]: ...


def step(
    function: Any = None,
    /,
    *,
    name: str = "",
    decision: Chosen | None = None,
    tool: Chosen | None = None,
) -> Any:
    """Mark a function that takes the program from one state to the next.

    ::

        @playhead.step(decision=lambda state: state["next"])
        def plan(state): ...

    Each call is a span, and a fact with input, output and decision. A replay runs the function: the
    tape does not answer it. ``name``: by default the function's. ``decision`` and ``tool`` receive the
    result and return the decision and the chosen tool; their exceptions are ignored. The function may
    be sync or async; TypeError for other objects. Without a recording nothing changes.
    """
    if function is None:
        return functools.partial(_mark, name=name, decision=decision, tool=tool)
    return _mark(function, name, decision, tool)


def _mark(function: Any, name: str, decision: Chosen | None, tool: Chosen | None) -> Any:
    if (
        not callable(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise TypeError("playhead.step marks a function or a coroutine function")
    named = name or str(getattr(function, "__name__", type(function).__name__))
    chosen = {a.PLAYHEAD_STEP_DECISION: decision, a.PLAYHEAD_STEP_TOOL: tool}

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def runs(*args: Any, **kwargs: Any) -> Any:
            with _begun(named, args, kwargs, chosen) as going:
                going.output = await function(*args, **kwargs)
                return going.output

        return runs

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _begun(named, args, kwargs, chosen) as going:
            going.output = function(*args, **kwargs)
            return going.output

    return call


class _Step:
    """A marked step in progress."""

    def __init__(self, name: str, chosen: dict[str, Chosen | None]) -> None:
        self.name = name
        self.chosen = chosen
        self.input = b"null"
        self.output: Any = None


@contextmanager
def _begun(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: dict[str, Chosen | None]
) -> Generator[_Step]:
    session, lane = current(), lanes.current()
    going = _Step(name, chosen)
    if session is None or lane in (lanes.UNRECORDED, lanes.GC):
        yield going
        return
    span: trace.Span = trace.INVALID_SPAN
    try:
        with Shadow():
            going.input = values.written({"args": list(args), "kwargs": kwargs}, stubs=[])
        span = session.tracer().start_span(name, attributes={a.PLAYHEAD_STEP_NAME: name})
    except Exception:
        log.debug("playhead could not begin a step", exc_info=True)
    with trace.use_span(span, record_exception=False, set_status_on_exception=False):
        try:
            yield going
        except BaseException as error:
            _over(session, going, span, error)
            raise
        _over(session, going, span, None)


def _over(session: Session, going: _Step, span: trace.Span, error: BaseException | None) -> None:
    try:
        attributes: dict[str, Any] = {a.PLAYHEAD_STEP_NAME: going.name}
        with Shadow():
            output = b"null" if error is not None else values.written(going.output, stubs=[])
            if error is None:
                attributes |= _chosen(session, going)
        if error is not None:
            told = record_of(error, session.redactor.text)
            attributes[a.ERROR_TYPE] = name_of(told)
            span.set_status(Status(StatusCode.ERROR, told.message or None))
        span.set_attributes(attributes)
        body = b'{"input":%b,"output":%b}' % (going.input, output)
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


def _chosen(session: Session, going: _Step) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, choose in going.chosen.items():
        if choose is None or not session.redactor.content:
            continue
        try:
            said = choose(going.output)
        except Exception:
            log.debug("playhead could not tell what a step decided", exc_info=True)
            continue
        if said is not None:
            found[name] = session.redactor.text(str(said)[:CHOSEN_CHARS])
    return found
