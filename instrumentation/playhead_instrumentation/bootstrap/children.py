"""The trace goes on in child processes: ``TRACEPARENT``, ``TRACESTATE``, ``BAGGAGE``, and whose it is.

A child gets them in its environment and takes them up once, when it starts. The program's own
``os.environ`` stays as it is. Forked children need nothing.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry import baggage, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, Setter

from playhead_instrumentation.boundaries.process_words import AGENT, EXCHANGE, PARENT, VARIABLES
from playhead_instrumentation.boundaries.process_workers import HANDED, exchange_of_start
from playhead_instrumentation.patches import Unpatchable, required

SITE = str(Path(__file__).parent / "site")
"""A folder that makes Python children of this process record too."""

log = logging.getLogger(__name__)


class _Setter(Setter[dict[str, str]]):
    def set(self, carrier: dict[str, str], key: str, value: str) -> None:
        carrier[_variable(key)] = value


class _Getter(Getter[Mapping[str, str]]):
    def get(self, carrier: Mapping[str, str], key: str) -> list[str] | None:
        value = carrier.get(_variable(key))
        return None if value is None else [value]

    def keys(self, carrier: Mapping[str, str]) -> list[str]:
        return list(carrier)


def _variable(key: str) -> str:
    return key.upper().replace("-", "_")


def extracted(environ: Mapping[str, str]) -> tuple[trace.SpanContext | None, Context]:
    """Who started this process: the span named in ``environ``, and a context with its baggage alone."""
    found = propagate.extract(environ, context=Context(), getter=_Getter())
    parent = trace.get_current_span(found).get_span_context()
    carried = Context()
    for name, value in baggage.get_all(found).items():
        carried = baggage.set_baggage(name, value, carried)
    return (parent if parent.is_valid else None), carried


def injected(context: Context | None) -> dict[str, str]:
    """The variables that make a child continue ``context``."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=context, setter=_Setter())
    return carrier


class Children:
    """Hands the trace to the children of this process."""

    def __init__(
        self,
        context: Callable[[], Context | None],
        instance: Callable[[], bytes],
        agent: Callable[[], str],
    ) -> None:
        """``context``: what a child continues. ``instance``, ``agent``: whose child it is."""
        self._context = context
        self._instance = instance
        self._agent = agent
        self._inherited = {name: os.environ[name] for name in VARIABLES if name in os.environ}

    def environment(self, env: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
        """The environment for a child that was to have ``env`` (None: ours). Never raises.

        Variables that the program chose for the child itself stay.
        """
        try:
            given: dict[Any, Any] = dict(os.environ if env is None else env)
            names = {os.fsdecode(key): key for key in given}
            for name in VARIABLES:
                if name in names:
                    if os.fsdecode(given[names[name]]) != self._inherited.get(name):
                        return env
                    del given[names[name]]
            given.update(injected(self._context()))
            given[PARENT] = self._instance().hex()
            if agent := self._agent():
                given[AGENT] = agent
            return given
        except Exception:
            log.debug("playhead could not hand the trace to a child", exc_info=True)
            return env

    def patch_subprocess(self, subprocess: Any) -> None:
        """`subprocess.Popen`, which everything in that module goes through; asyncio's too."""
        owner = required(subprocess, "Popen")
        original = required(owner, "__init__")
        names = list(inspect.signature(original).parameters)
        if "env" not in names:
            raise Unpatchable("Popen takes no env")
        place = names.index("env") - 1

        @functools.wraps(original)
        def init(popen: Any, *args: Any, **named: Any) -> None:
            if len(args) > place:
                args = (*args[:place], self.environment(args[place]), *args[place + 1 :])
            else:
                named["env"] = self.environment(named.get("env"))
            original(popen, *args, **named)

        owner.__init__ = init

    def patch_multiprocessing(self, util: Any) -> None:
        """`multiprocessing` (spawn, forkserver), whose children take the environment as it is."""
        original = required(util, "spawnv_passfds")

        @functools.wraps(original)
        def spawnv_passfds(path: Any, args: Any, passfds: Any) -> Any:
            with self._exposed():
                return original(path, args, passfds)

        util.spawnv_passfds = spawnv_passfds

    def patch_preparation(self, spawn: Any) -> None:
        """What a fork server's children are told: their environment is the server's."""
        original = required(spawn, "get_preparation_data")

        @functools.wraps(original)
        def get_preparation_data(name: Any) -> Any:
            data = original(name)
            if exchange := exchange_of_start():
                given = self.environment(None) or {}
                told = {variable: given[variable] for variable in VARIABLES if variable in given}
                data[HANDED] = told | {EXCHANGE: exchange}
            return data

        spawn.get_preparation_data = get_preparation_data

    @contextmanager
    def _exposed(self) -> Generator[None]:
        """For the time that it takes to start a process, the variables are in our own environment."""
        before = {name: os.environ.get(name) for name in VARIABLES}
        given = self.environment(None)
        try:
            for name in VARIABLES:
                if given is not None and name in given:
                    os.environ[name] = given[name]
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
