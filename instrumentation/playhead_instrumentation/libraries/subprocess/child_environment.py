"""Environment variables that tell a child which trace it continues and which process is its parent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Protocol

OWN = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", "PLAYHEAD_")
"""Prefixes of the environment variables that playhead hands to a child."""

PARENT = "PLAYHEAD_PARENT_INSTANCE"
"""Variable that names the recorded process which started this one: 32 hex digits."""

EXCHANGE = "PLAYHEAD_PARENT_EXCHANGE"
"""Variable that names the exchange in which this process was started."""

AGENT = "PLAYHEAD_PARENT_AGENT"
"""Variable that names the agent whose run this process belongs to."""

JOINS = "PLAYHEAD_PARENT_JOINS"
"""Variable of a program that a recorded one started: requests that arrive there belong to the same run.

Value: the id of the process that started it, or `WHOLE`.
"""

REPORTED = "PLAYHEAD_PARENT_REPORTED"
"""Variable that says that a parent could not record and has reported why."""

LINEAGE = "PLAYHEAD_LINEAGE"
"""Variable (and setting) that names what a run and its retries have in common."""

WHOLE = "whole"
"""Value of `JOINS`: whatever the process becomes or starts belongs to the run, as its parent does."""

VARIABLES = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", PARENT, EXCHANGE, AGENT, JOINS)
"""Variables by which a child continues the trace and knows its parent."""

WORKER = "PLAYHEAD_REPLAY_WORKER"
"""Variable that tells a process of `multiprocessing`, in a replay, where its tape is."""

Environment = Mapping[Any, Any] | None
"""Environment variables of a child; None: it inherits those of this process."""


WITH_ENVIRONMENT: Final = {"execv": "execve", "execvp": "execvpe"}
"""Functions that replace the process image, and the variant of each that takes an environment."""


class Teller(Protocol):
    """Makes the environment that a child gets. Its methods never raise."""

    def variables(self) -> dict[str, str]:
        """Environment variables to hand to a child."""
        ...

    def environment(self, env: Environment) -> Environment:
        """Return the environment for a child that would get ``env``, with these variables added."""
        ...


_teller: Teller | None = None


def tell(teller: Teller | None) -> None:
    """Use ``teller`` for children that start from now on."""
    global _teller
    _teller = teller


def variables() -> dict[str, str]:
    """Environment variables to hand to a child that starts now."""
    return {} if _teller is None else _teller.variables()


def environment(given: Environment, exchange: str = "") -> Environment:
    """Return the environment for a child that would get ``given``.

    ``exchange``: id of the child's exchange.
    """
    told = given if _teller is None else _teller.environment(given)
    if not exchange or told is given:
        return told
    name: Any = EXCHANGE
    value: Any = exchange
    if any(type(key) is bytes for key in told or ()):
        name, value = os.fsencode(name), os.fsencode(value)
    return {**(told or {}), name: value}
