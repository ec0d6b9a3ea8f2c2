"""What a child process is told: which trace it goes on, and whose child it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

from playhead_instrumentation.boundaries.process.words import EXCHANGE

Environment = Mapping[Any, Any] | None
"""Variables of a child; None: those of this process."""


class Teller(Protocol):
    """Knows what a child needs to be told. Its methods never raise."""

    def variables(self) -> dict[str, str]:
        """What a child is told, as variables."""
        ...

    def environment(self, env: Environment) -> Environment:
        """The environment for a child that was to have ``env``, with these in it."""
        ...


_teller: Teller | None = None


def tell(teller: Teller | None) -> None:
    """Have children be told by ``teller`` from now on."""
    global _teller
    _teller = teller


def variables() -> dict[str, str]:
    """What a child that is started now is told."""
    return {} if _teller is None else _teller.variables()


def environment(given: Environment, exchange: str = "") -> Environment:
    """The environment for a child that was to have ``given``; ``exchange``: id of its exchange."""
    told = given if _teller is None else _teller.environment(given)
    if not exchange or told is given:
        return told
    name: Any = EXCHANGE
    value: Any = exchange
    if any(type(key) is bytes for key in told or ()):
        name, value = os.fsencode(name), os.fsencode(value)
    return {**(told or {}), name: value}
