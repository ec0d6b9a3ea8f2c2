"""Continues the trace in child processes, and starts recording in the children of a fork server.

A child gets ``TRACEPARENT``, ``TRACESTATE``, ``BAGGAGE`` and the instance of its parent in its
environment and reads them once, at its start. The program's own ``os.environ`` is unchanged. Forked
children do not need them.

A fork server of `multiprocessing` is not a process of the run, but its children are. So nothing is
recorded in the server, and recording starts in a child when the child gets its task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, cast

from opentelemetry import baggage, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, Setter

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.subprocess.child_environment import (
    AGENT,
    JOINS,
    LINEAGE,
    PARENT,
    VARIABLES,
    WHOLE,
    Environment,
)
from playhead_instrumentation.patching.patches import PATCHES

log = Log(__name__)

RELOADED = ("WERKZEUG_RUN_MAIN", "RUN_MAIN")
"""Variables that the reloaders of Flask and Django set in the service that they start."""


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
    """The span in ``environ`` that started this process, and a context with only its baggage."""
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


def joins(environ: Mapping[str, str]) -> bool:
    """Whether inbound requests of this process belong to the run of its parent process.

    They do not where this is the parent program itself after an ``exec``, or one of its workers.
    """
    told = environ.get(JOINS, "")
    if told in ("", WHOLE):
        return bool(told)
    reloaded = any(environ.get(name) for name in RELOADED)
    return told != str(os.getpid()) and not reloaded


class Children:
    """Passes the trace to the children of this process."""

    def __init__(
        self,
        context: Callable[[], Context | None],
        instance: Callable[[], bytes],
        agent: Callable[[], str],
        whole: bool = False,
        lineage: Callable[[], str] = str,
    ) -> None:
        """``context``: what a child continues. ``instance``, ``agent``, ``lineage``: of the parent.

        ``whole``: this process belongs to the run of its own parent.
        """
        self._context = context
        self._instance = instance
        self._agent = agent
        self._whole = whole
        self._lineage = lineage
        self._inherited = {name: os.environ[name] for name in VARIABLES if name in os.environ}

    def variables(self) -> dict[str, str]:
        """Variables that make a child continue the trace and name its parent. Never raises."""
        try:
            told = injected(self._context())
            told[PARENT] = self._instance().hex()
            told[JOINS] = WHOLE if self._whole else str(os.getpid())
            if agent := self._agent():
                told[AGENT] = agent
            if lineage := self._lineage():
                told[LINEAGE] = lineage
            return told
        except Exception:
            log.debug("playhead could not hand the trace to a child", exc_info=True)
            return {}

    def environment(self, env: Environment) -> Environment:
        """The environment for a child that was given ``env`` (None: ours). Never raises.

        Variables that the program itself set for the child are kept. Names are bytes where possible, so
        that they need not be encoded again.
        """
        try:
            given: dict[Any, Any] = dict(_ENVIRONMENT if env is None else env)
            names = {key: os.fsdecode(key) for key in given}  # `-bb` forbids comparing text and bytes
            for key, name in names.items():
                if name in VARIABLES:
                    if os.fsdecode(given[key]) != self._inherited.get(name):
                        return env
                    del given[key]
            told = self.variables()
            if LINEAGE in map(os.fsdecode, given):
                told.pop(LINEAGE, None)
            if env is None and _ENVIRONMENT is not os.environ:
                told = {os.fsencode(name): os.fsencode(value) for name, value in told.items()}
            return given | told if told else env
        except Exception:
            log.debug("playhead could not hand the trace to a child", exc_info=True)
            return env


_data: Any = getattr(os.environ, "_data", None)

_ENVIRONMENT: Mapping[Any, Any] = (
    cast("dict[bytes, bytes]", _data) if os.name == "posix" and type(_data) is dict else os.environ
)
"""Our own variables, in the encoded form of the system where that is accessible."""


_SERVER: Final = os.getpid()

_start: list[Callable[[], Any]] = []
"""Functions that start the recording of a child; the first is used."""


def is_fork_server() -> bool:
    """Whether this process is a fork server, and not a child of one."""
    if os.getpid() != _SERVER or not any("multiprocessing" in word for word in sys.orig_argv):
        return False
    from playhead_instrumentation.libraries.subprocess.workers import SERVER, role_of

    return role_of(sys.orig_argv[1:]) == SERVER


def start_in_children(start: Callable[[], Any]) -> None:
    """Call ``start`` in each child."""
    _start.append(start)
    if len(_start) == 1:
        PATCHES.when_imported("multiprocessing.spawn", "multiprocessing.spawn", _hook_spawn)


def _hook_spawn(module: ModuleType) -> None:
    PATCHES.around(module, "prepare", _start_and_prepare)


def _start_and_prepare(prepare: Any, data: Any) -> None:
    from playhead_instrumentation.libraries.subprocess.workers import HANDED

    variables = data.pop(HANDED, None)
    if variables is not None:
        os.environ.update(variables)
        _start[0]()
    prepare(data)
