"""Check functions: what has to hold for each span. The program or its replay supplies them."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import msgspec
from opentelemetry.sdk.trace import ReadableSpan

from playhead_core.errors import UsageError
from playhead_core.facts import Fact
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.session.process_facts import report
from playhead_instrumentation.session.session import current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

Check = Callable[[ReadableSpan], object]
F = TypeVar("F", bound=Check)


class _Named(msgspec.Struct, frozen=True):
    name: str
    function: Check


_checks: Final[list[_Named]] = []
_loaded: Final[set[str]] = set()


@overload
def check(function: F, /) -> F: ...


@overload
def check(*, name: str = "") -> Callable[[F], F]: ...


def check(function: Any = None, /, *, name: str = "") -> Any:
    """Run ``function`` on each span as it ends, in a recording, a replay or a fork.

    It receives the finished OpenTelemetry span (name, attributes, status, times); the span of a model
    call has its messages. The check fails if it raises an exception, for example by ``assert``, or
    returns False. The program continues. The tape has the failure, and a replay and a golden fail with
    the name of the span. Nothing that the function does is recorded. Spans end in several threads.
    """
    return functools.partial(_keep, name=name) if function is None else _keep(function, name)


def _keep(function: Any, name: str) -> Any:
    _checks.append(_Named(name or str(getattr(function, "__name__", type(function).__name__)), function))
    return function


def load_all(paths: str) -> None:
    """Run the files of check functions that the setting ``checks`` names. Raises `UsageError`."""
    for path in filter(None, paths.split(os.pathsep)):
        load(path)


def load(path: str) -> None:
    """Run a file of check functions, once.

    Raises `UsageError` where that fails: a check that was not loaded could never fail.
    """
    if os.path.realpath(path) in _loaded:
        return
    module = f"playhead_checks_{len(_checks)}_{os.path.basename(path).partition('.')[0]}"
    spec = importlib.util.spec_from_file_location(module, path)
    if spec is None or spec.loader is None:
        raise UsageError(
            f"{path} is no Python file", hint="--check FILE.py, with functions under @playhead.check"
        )
    before = len(_checks)
    found = importlib.util.module_from_spec(spec)
    sys.modules[module] = found
    try:
        with Shadow():
            spec.loader.exec_module(found)
    except Exception as problem:
        raise UsageError(f"{path} cannot be run: {type(problem).__name__}: {problem}") from problem
    if len(_checks) == before:
        raise UsageError(f"{path} holds no check: no function of it is under @playhead.check")
    _loaded.add(os.path.realpath(path))


def look(span: ReadableSpan, lane: int) -> None:
    """Run every check on a span that has ended. Never raises."""
    for one in list(_checks):
        said = _failure(one, span)
        if said is not None:
            _failed(one, span, lane, said)


def _failure(one: _Named, span: ReadableSpan) -> str | None:
    try:
        with Shadow():
            return "it returned False" if one.function(span) is False else None
    except Exception as error:
        plain = isinstance(error, AssertionError) and str(error)
        return str(error) if plain else f"{type(error).__name__}: {error}".removesuffix(": ")


def _failed(one: _Named, span: ReadableSpan, lane: int, said: str) -> None:
    session = current()
    context = span.get_span_context()
    if session is None or context is None:
        return
    report(failed=one.name)
    said, name = session.redactor.text(said), session.redactor.text(span.name)
    Notices().problem(f"check {one.name} failed at {name}: {said}")
    session.sink.append(
        Fact(
            REAL.time_ns(),
            lane,
            e.PLAYHEAD_CHECK,
            context.trace_id.to_bytes(16, "big"),
            context.span_id.to_bytes(8, "big"),
            attributes={
                a.PLAYHEAD_CHECK_NAME: one.name,
                a.PLAYHEAD_CHECK_SAID: said,
                a.PLAYHEAD_SPAN_NAME: name,
            },
        )
    )
