"""Perform effects once, however often the program is run again.

Such a call is a tool with a claim: a replay answers it from the tape; a live run (a resume, a fork, a
retry, another process) first checks whether the effect was already performed.
"""

from __future__ import annotations

import asyncio
import inspect
import string
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, get_args

import msgspec

from playhead_instrumentation.manual.tool.claimed_call import (
    ClaimedCall,
    OnceRule,
    OnUnknown,
    claimed_call,
)
from playhead_instrumentation.manual.tool.exchange import ToolExchange
from playhead_instrumentation.manual.tool.tool import Marked, call_of
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.session.session import current
from playhead_semconv import attributes as a

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Key = str | Callable[..., str]


class idempotent:
    """Perform an effect once per run family: the run, its forks, resumes and retries.

    As a decorator of a sync or async function. The key names parameters in braces, or is a function of
    the same parameters::

        @playhead.idempotent("refund:{order}")
        def refund(order: int, amount: float) -> str: ...

    As a call with a literal key; for an async function it returns an awaitable::

        receipt = playhead.idempotent(f"refund:{order}").call(stripe.refund, order, amount)

    The first call claims the key and performs the effect. Later calls, in any process, return an equal
    result and do nothing. A call during another one waits for it. Calls are recorded, and a replay
    answers them from the tape, as with ``playhead.tool``.

    If an attempt started and did not return (its process was killed, or it raised), its outcome is
    unknown. ``on_unknown`` decides what the next call does: ``"raise"`` `playhead.OutcomeUnknown` (the
    default), perform the effect ``"again"``, or ``"skip"`` it and return None. ``not_done``: exceptions
    of the function that mean that nothing was done, so that the next call performs the effect.

    ``lineage``: a name that runs share for their claims; by default the setting ``lineage``, else
    the run's own. ``name``: name of the effect, by default the function's; a key belongs to one name.

    Raises `StoreError` if the key cannot be claimed; then nothing was done. Without a recording the
    function is called and nothing is claimed.
    """

    def __init__(
        self,
        key: Key,
        /,
        *,
        on_unknown: OnUnknown = "raise",
        not_done: type[BaseException] | tuple[type[BaseException], ...] = (),
        lineage: str = "",
        name: str = "",
    ) -> None:
        if not key:
            raise ValueError("a key is not empty")
        if on_unknown not in get_args(OnUnknown):
            raise ValueError(f"on_unknown is raise, again or skip, not {on_unknown!r}")
        kinds = not_done if isinstance(not_done, tuple) else (not_done,)
        self._key: Final = key
        self._rule: Final = OnceRule(name, on_unknown, kinds, lineage)

    def __call__(self, function: F, /) -> F:
        """Mark ``function``, whose calls are done once."""
        if isinstance(self._key, str):
            _require_parameters(self._key, function)
        return call_of(_Once(function, self._key, self._rule))

    def call(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Call ``function`` once, and return its result; of an async function, an awaitable of it."""
        key = self._key
        if isinstance(key, str):
            return call_of(_Once(function, _AsItIs(key), self._rule))(*args, **kwargs)
        return call_of(_Once(function, key, self._rule))(*args, **kwargs)


class _AsItIs(NamedTuple):
    """A key that names no parameters."""

    key: str

    def __call__(self, *_: Any, **__: Any) -> str:
        return self.key


def _require_parameters(key: str, function: Any) -> None:
    """`ValueError` if ``key`` names a parameter that ``function`` does not have."""
    named = {str(name) for _, name, _, _ in string.Formatter().parse(key) if name is not None}
    fields = {name.partition(".")[0].partition("[")[0] for name in named}
    try:
        known = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return
    if missing := sorted(fields - known):
        raise ValueError(f"the key {key!r} names {', '.join(map(repr, missing))}: no such parameter")


class _Once(Marked):
    """A function whose calls are done once."""

    def __init__(self, function: Any, key: Key, rule: OnceRule) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator is not done once: mark the function that does one thing")
        super().__init__(function, "write", rule.name)
        self._key = key
        self._rule = msgspec.structs.replace(rule, name=self.name)
        self._is_async = inspect.iscoroutinefunction(function)

    def details(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the key of the call."""
        session = current()
        key = self._key_of(args, kwargs)
        return {} if session is None else {a.PLAYHEAD_IDEMPOTENT_KEY: session.redactor.text(key)}

    def perform(self, going: ToolExchange | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do it, or give what an earlier attempt has returned."""
        session = current()
        if session is None:
            return self.function(*args, **kwargs)
        rule = self._rule
        if going is not None:
            decided: dict[str, OnUnknown] = {"resend": "again", "skip": "skip"}
            how = decided.get(going.call.unknown, rule.on_unknown)
            rule = msgspec.structs.replace(rule, on_unknown=how)
        facts = {} if going is None else going.at_end
        attempt = claimed_call(session, rule, self._key_of(args, kwargs), facts)
        if attempt is None:
            return self.function(*args, **kwargs)
        return (self._later if self._is_async else self._now)(attempt, args, kwargs)

    def _key_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        made = self._key
        key = (
            made.format(**self.arguments(args, kwargs))
            if isinstance(made, str)
            else made(*args, **kwargs)
        )
        if not key or not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"the key of {self.name} is a text that is not empty, not {key!r}")
        return key

    def _now(self, attempt: ClaimedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        while (wait_s := attempt.ask()) is not None:
            REAL.sleep(wait_s)
        if attempt.is_over:
            return attempt.result()
        with attempt.ours():
            value = self.function(*args, **kwargs)
        attempt.returned(value)
        return value

    async def _later(self, attempt: ClaimedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        while (wait_s := attempt.ask()) is not None:
            await asyncio.sleep(wait_s)
        if attempt.is_over:
            return attempt.result()
        with attempt.ours():
            value = await self.function(*args, **kwargs)
        attempt.returned(value)
        return value
