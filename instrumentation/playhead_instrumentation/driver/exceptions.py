"""Exceptions that cross a boundary: as they stand on tape, and raised again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from playhead_instrumentation.runtime.plain_classes import class_named
from playhead_semconv.facts import ErrorRecord

OWN_DOING = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
"""What the program, or its user, does to an exchange: it is not an answer of the world."""


def record_of(error: BaseException, scrub: Callable[[str], str]) -> ErrorRecord:
    """``error`` as it goes on tape. ``scrub`` takes credentials out of its text. Never raises."""
    cls = type(error)
    try:
        message = scrub(str(error))
    except Exception:
        message = ""
    plain: list[Any] = []
    for value in error.args:
        if isinstance(value, str):
            plain.append(scrub(value))
        elif value is None or isinstance(value, bool | int | float):
            plain.append(value)
        else:
            plain = []
            break
    return ErrorRecord(cls.__module__, cls.__qualname__, message, plain)


def is_own_doing(record: ErrorRecord | None) -> bool:
    """Whether a recorded end is what the program, or its user, did."""
    return record is not None and any(
        (record.module, record.qualname) == (cls.__module__, cls.__qualname__) for cls in OWN_DOING
    )


def name_of(record: ErrorRecord) -> str:
    """The class of a recorded exception, as ``error.type`` names it: a builtin without its module."""
    return record.qualname if record.module == "builtins" else f"{record.module}.{record.qualname}"


def again(record: ErrorRecord, otherwise: type[Exception]) -> BaseException:
    """The recorded exception, of the same class; of ``otherwise`` where the program has none such.

    Nothing is imported: a tape may name any module.
    """
    cls: Any = class_named(record.module, record.qualname)
    if cls is None or not issubclass(cls, BaseException):
        return otherwise(f"{record.qualname}: {record.message}")
    arguments = record.args or ([record.message] if record.message else [])
    try:
        return cls(*arguments)
    except Exception:
        error = cls.__new__(cls)
        error.args = tuple(arguments)
        return error
