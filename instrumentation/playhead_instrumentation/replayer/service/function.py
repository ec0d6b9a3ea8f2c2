"""Calls a marked function with the inputs that a tape holds."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

from playhead_core.errors import ReplayFailed
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.recorder.decision import Played
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.replayer.service.rest import rest


def call(driver: Driver, function: Any, requests: Sequence[Played]) -> None:
    """Call ``function`` with one input after the other.

    `ReplayFailed` where the tape does not hold an input.
    """
    for played in requests:
        args, kwargs = _given(played)
        try:
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                asyncio.run(_to_its_end(driver, result))
        except Exception:
            continue  # on the tape


async def _to_its_end(driver: Driver, result: Any) -> None:
    try:
        await result
    finally:
        await rest(driver)


def _given(played: Played) -> tuple[list[Any], dict[str, Any]]:
    key = played.exchange.ask.key
    if not played.exchange.parts:
        raise ReplayFailed(f"the tape does not hold what {key} was given")
    try:
        given = values.read(played.part(0))
        return list(given["args"]), dict(given["kwargs"])
    except Exception as problem:
        raise ReplayFailed(
            f"{key} cannot be called again: its input cannot be kept on a tape",
            cause=str(problem) or type(problem).__name__,
            hint="give it plain values: texts, numbers, lists, dictionaries, dataclasses",
        ) from problem
